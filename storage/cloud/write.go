package cloud

import (
	"encoding/hex"
	"fmt"
	"io"

	"moorage/storage"
)

// writeIDBytes is so large that no two calls draw the same id.
const writeIDBytes = 16

// NewWriteID draws the id of a write, which goes into the metadata of the object. The id is in
// hexadecimal digits.
func NewWriteID(random io.Reader) (string, error) {
	var id [writeIDBytes]byte
	if _, err := io.ReadFull(random, id[:]); err != nil {
		return "", fmt.Errorf("draw an id: %w", err)
	}
	return hex.EncodeToString(id[:]), nil
}

// Written is an object, by the id of the call that wrote it and by its length.
type Written struct {
	ID    string
	Bytes int64
}

// Settle decides which call wrote the object that exists at location. It is for a caller whose
// write the storage has refused because the name is taken. An earlier attempt of the same call may
// have succeeded, and its answer may have been lost. An object is complete or does not exist, so an
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
