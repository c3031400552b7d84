package registry

import (
	"encoding/json"
	"fmt"
)

// Encode returns the value of a record. value is one of the structs of this package, or of txlog.
// All values are JSON objects whose unknown members are kept, so a later version may add members.
func Encode(value Value) ([]byte, error) {
	encoded, err := encode(value)
	if rest := value.Later().rest; err == nil && rest != nil {
		return rest.into(encoded)
	}
	return encoded, err
}

// encode is like Encode, but leaves out unknown members.
func encode(value Value) ([]byte, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", value, err)
	}
	return encoded, nil
}

// Encode returns the value of a record for c.
func (c Change) Encode() ([]byte, error) { return Encode(c) }
