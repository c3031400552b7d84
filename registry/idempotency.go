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

// IdempotencyKey is the key of the outcome of a mutation. hash covers the sender, the warehouse,
// and the idempotency key of the request.
func IdempotencyKey(hash Hash) Key { return Key{TableIdempotency, hash.String()} }

// Idempotency is the value of an idempotency record: the outcome of a mutation with an idempotency
// key. If the mutation has an effect, the Apply with that effect also writes this record. The
// record is written once, and deleted some time after its life has ended.
type Idempotency struct {
	Unknown
	// Method and Path describe the request for human readers of the record. Path may be truncated.
	Method string `json:"method"`
	Path   string `json:"path"`
	// Request is the hash of the whole request. A request with the same key but another hash is
	// refused.
	Request Hash `json:"request"`
	// Created is when the record was written, by the clock of the node that wrote it. Life is the
	// minimum time for which the record is kept.
	Created time.Time     `json:"created"`
	Life    time.Duration `json:"life-ns"`
	Outcome Outcome       `json:"outcome"`
}

// Expires returns when the life of i ends.
func (i Idempotency) Expires() time.Time { return i.Created.Add(i.Life) }

// Outcome is the answer to a mutation. If Failure is set, the mutation was refused. Otherwise it
// succeeded, and at most one of the other members is set. If no member is set, the answer has no
// content.
type Outcome struct {
	Failure *Failure `json:"failure,omitempty"`
	// Table is the version of a table in the answer.
	Table *TableVersion `json:"table,omitempty"`
	// View is the version of a view in the answer. Its TableUUID is the view-uuid.
	View *TableVersion `json:"view,omitempty"`
	// Properties are the properties of a new namespace. The map is empty, not nil, if it has none.
	Properties map[string]string `json:"properties,omitzero"`
	// Changed lists the properties of a namespace that were changed.
	Changed *ChangedProperties `json:"changed,omitempty"`
}

// Failure is a refusal.
type Failure struct {
	Kind    moorage.Kind `json:"kind"`
	Message string       `json:"message"`
}

// TableVersion is one version of a table or view.
type TableVersion struct {
	Ident            moorage.Identifier `json:"identifier"` // its name at that time
	Pointer          ID                 `json:"pointer"`
	TableUUID        string             `json:"table-uuid"`
	MetadataLocation string             `json:"metadata-location"`
	// Registration is the pointer's Registration at that time, for a table.
	Registration ID `json:"registration,omitzero"`
}

// ChangedProperties are names of properties; each list is sorted.
type ChangedProperties struct {
	Updated []string `json:"updated"`
	Removed []string `json:"removed"`
	Missing []string `json:"missing"`
}
