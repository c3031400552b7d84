package metadata

import (
	"moorage"
	"moorage/internal/jsontext"
)

// documentBytesMax is the maximum size of a document, because positions in it have 32 bits.
const documentBytesMax = 1<<31 - 1

func illegal(format string, args ...any) error {
	return moorage.Errorf(moorage.KindIllegalArgument, format, args...)
}

// cursor reads a JSON text from front to back, and has methods for the types of metadata members.
// Each method consumes one value, with the white space before it, and fails with KindBadRequest.
type cursor struct{ jsontext.Reader }

// strict returns a cursor on text that has not been checked.
func strict(raw []byte) *cursor { return &cursor{jsontext.NewReader(raw)} }

// reread returns a cursor on text that a cursor has already read.
func reread(raw []byte) *cursor { return &cursor{jsontext.Reread(raw)} }

// checkJSON returns an error unless raw is exactly one strict JSON value.
func checkJSON(raw []byte) error {
	c := strict(raw)
	if err := c.Skip(); err != nil {
		return err
	}
	return c.End()
}

// record consumes an object with the required members. member is called for each key.
func (c *cursor) record(member func(key []byte) error, required ...string) error {
	seen := 0
	err := c.Object(func(key []byte) error {
		for i, name := range required {
			if string(key) == name {
				seen |= 1 << i
			}
		}
		return member(key)
	})
	if err != nil {
		return err
	}
	for i, name := range required {
		if seen&(1<<i) == 0 {
			return moorage.Errorf(moorage.KindBadRequest, "Cannot parse missing field: %s", name)
		}
	}
	return nil
}
