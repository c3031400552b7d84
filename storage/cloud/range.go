package cloud

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// RangeHeader returns the header Range that requests length bytes from offset on.
func RangeHeader(offset, length int64) string {
	return fmt.Sprintf("bytes=%d-%d", offset, offset+length-1)
}

// OrShort returns io.ErrUnexpectedEOF if status means that an object ends before the requested
// range. Otherwise it returns err.
func OrShort(err error, status int) error {
	if status == http.StatusRequestedRangeNotSatisfiable {
		return io.ErrUnexpectedEOF
	}
	return err
}

// ReadRange returns length bytes of the object called name, from offset on. open requests a range,
// and returns the header Content-Range of the answer. If the connection breaks, ReadRange requests
// the rest, a few times at most. It returns io.ErrUnexpectedEOF if the object is shorter.
func ReadRange(name string, offset, length int64, open func(offset, length int64) (io.ReadCloser, string, error)) (
	[]byte, error) {
	from := func(skip int64) (io.ReadCloser, error) {
		first, last := offset+skip, offset+length-1
		stream, got, err := open(first, length-skip)
		switch {
		case err != nil:
			return nil, err
		case strings.HasPrefix(got, fmt.Sprintf("bytes %d-%d/", first, last)):
			return stream, nil
		case strings.HasPrefix(got, fmt.Sprintf("bytes %d-", first)):
			return nil, errors.Join(io.ErrUnexpectedEOF, stream.Close())
		}
		return nil, errors.Join(fmt.Errorf("the server returned the range %q", got), stream.Close())
	}
	stream, err := from(0)
	if err != nil {
		return nil, err
	}
	body := Resume(stream, Content{Name: name, Bytes: length, Resume: from})
	part := make([]byte, length)
	_, err = io.ReadFull(body, part)
	return part, errors.Join(err, body.Close())
}
