package registry

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
)

// Labels is the value of a label record: the labels of a table or view. Clients get them with each
// load. They are not part of the metadata.
type Labels struct {
	Unknown
	Object map[string]string `json:"object-labels,omitempty"`
	// Fields has at most one element for each field, ordered by ID. No element is empty.
	Fields []FieldLabels `json:"fields,omitempty"`
}

// FieldLabels are the labels of one field of a table or view.
type FieldLabels struct {
	Field  int               `json:"field-id"`
	Labels map[string]string `json:"labels"`
}

// IsEmpty reports whether l has no labels. Then there is no record.
func (l Labels) IsEmpty() bool { return len(l.Object) == 0 && len(l.Fields) == 0 }

// Text returns l as JSON, without the members of later versions. Equal labels have equal texts.
// version is a hash of the text, and zero if there are no labels.
func (l Labels) Text() (text []byte, version ID, err error) {
	if l.IsEmpty() {
		return nil, ID{}, nil
	}
	if text, err = json.Marshal(l); err != nil {
		return nil, ID{}, fmt.Errorf("encode labels: %w", err)
	}
	sum := sha256.Sum256(text)
	copy(version[:], sum[:])
	return text, version, nil
}

// LabelKey is the key of the labels of the table or view with this pointer.
func LabelKey(pointer ID) Key { return Key{TableLabel, pointer.String()} }
