package storage

import (
	"bytes"
	"fmt"
	"io"
)

func errTooLong(location string, size, bytesMax int64) error {
	return fmt.Errorf("storage: %s has %d bytes, at most %d are read", location, size, bytesMax)
}

// readInto appends the content of body to buffer.
func readInto(buffer []byte, location string, body io.Reader, bytesMax int64) ([]byte, error) {
	into := bytes.NewBuffer(buffer)
	n, err := into.ReadFrom(io.LimitReader(body, bytesMax+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", location, err)
	case n > bytesMax:
		return nil, errTooLong(location, n, bytesMax)
	}
	return into.Bytes(), nil
}
