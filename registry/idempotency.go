package registry

import (
	"encoding/hex"
	"time"

	"moorage"
)

// Hash is a SHA-256.
type Hash [32]byte

// String returns h as 64 lower-case hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText returns the text of String.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads the text of String.
func (h *Hash) UnmarshalText(text []byte) error { return unmarshalHex(h[:], text) }

// IdempotencyKey is the key of the outcome of a mutation. hash is made of the sender, the
// warehouse, and the key that the mutation was sent with.
func IdempotencyKey(hash Hash) Key { return Key{TableIdempotency, hash.String()} }

// Idempotency is the value of an idempotency record: how a mutation ended that was sent with a key.
// It is written once, with the effect of the mutation if it has one, and deleted some time after
// its life.
type Idempotency struct {
	Unknown
	// Method and Path say what the request was, for people who read the record. Path may be cut
	// short.
	Method string `json:"method"`
	Path   string `json:"path"`
	// Request is the hash of the whole request: the same key with another one is refused.
	Request Hash `json:"request"`
	// Created is by the clock of the node that wrote it. Life is how long it is kept at least.
	Created time.Time     `json:"created"`
	Life    time.Duration `json:"life-ns"`
	Outcome Outcome       `json:"outcome"`
}

// Expires returns when the life of i ends.
func (i Idempotency) Expires() time.Time { return i.Created.Add(i.Life) }

// Outcome is the answer to a mutation. If there is a Failure, the mutation was refused. Otherwise
// it succeeded, and at most one of the other members is there: none if the answer has no content.
type Outcome struct {
	Failure *Failure `json:"failure,omitempty"`
	// Table is the version of a table that was answered.
	Table *TableVersion `json:"table,omitempty"`
	// View is the version of a view that was answered; its TableUUID is the view-uuid.
	View *TableVersion `json:"view,omitempty"`
	// Properties are the properties of a new namespace. They are empty, not nil, if it has none.
	Properties map[string]string `json:"properties,omitzero"`
	// Changed is what became of the properties of a namespace.
	Changed *ChangedProperties `json:"changed,omitempty"`
}

// Failure is a refusal.
type Failure struct {
	Kind    moorage.Kind `json:"kind"`
	Message string       `json:"message"`
}

// TableVersion is one version of a table or view.
type TableVersion struct {
	Ident            moorage.Identifier `json:"identifier"` // its name then
	Pointer          ID                 `json:"pointer"`
	TableUUID        string             `json:"table-uuid"`
	MetadataLocation string             `json:"metadata-location"`
	// Registration is the pointer's Registration at that time, if the pointer is a table's.
	Registration ID `json:"registration,omitzero"`
}

// ChangedProperties are names of properties; each list is sorted.
type ChangedProperties struct {
	Updated []string `json:"updated"`
	Removed []string `json:"removed"`
	Missing []string `json:"missing"`
}
