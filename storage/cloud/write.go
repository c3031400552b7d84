package cloud

import (
	"encoding/hex"
	"fmt"
	"io"

	"moorage/storage"
)

// writeIDBytes is the length of a write's id, long enough that no two calls draw the same one.
const writeIDBytes = 16

// NewWriteID draws the id of a write, as hexadecimal digits. The id is stored in the metadata of
// the object.
func NewWriteID(random io.Reader) (string, error) {
	var id [writeIDBytes]byte
	if _, err := io.ReadFull(random, id[:]); err != nil {
		return "", fmt.Errorf("draw an id: %w", err)
	}
	return hex.EncodeToString(id[:]), nil
}

// Written describes an object: the id of the call that wrote it, and its length.
type Written struct {
	ID    string
	Bytes int64
}

// Settle finds out which call wrote the existing object at location. A caller needs this if the
// storage refuses its write because the name is taken: an earlier attempt of the same call may have
// succeeded, and its answer may have been lost. An object is complete or does not exist, so an
// object with the caller's id is the caller's. Settle also compares the lengths, because that costs
// nothing. It returns ErrExists if another call wrote the object.
func Settle(location string, ours, found Written) error {
	switch {
	case found.ID != ours.ID:
		return fmt.Errorf("%w: %s", storage.ErrExists, location)
	case found.Bytes != ours.Bytes:
		return fmt.Errorf("create %s: the server stored %d of %d bytes", location, found.Bytes, ours.Bytes)
	}
	return nil
}
