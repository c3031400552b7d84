package registry

import (
	"encoding/base64"
	"time"
)

// Secret is the value of a secret record: the credentials of a warehouse's storage, sealed with a
// key that is not in the store.
type Secret struct {
	Unknown
	// Warehouse is the warehouse that owns the secret. The sealed values cannot be opened for
	// another warehouse.
	Warehouse ID `json:"warehouse"`
	// Sealed holds the sealed values by name, in the text form of SealedText. A name is the purpose
	// of its value.
	Sealed map[string]string `json:"sealed"`
	// Kinds holds the kind of each value under the same name, for readers that cannot open the
	// value; see storage.SecretKind.
	Kinds map[string]string `json:"kinds,omitempty"`
	By    string            `json:"by"` // identity that last changed the secret
	At    time.Time         `json:"at"`
}

// SecretRef is a warehouse's reference to its secret.
type SecretRef struct {
	ID ID `json:"id"`
	// Version counts the changes of the sealed values, so that nodes notice them.
	Version uint64 `json:"version"`
	// Names are the names of the sealed values, sorted.
	Names []string `json:"names"`
}

// SecretStore is the value of the record SecretStoreKey. The record is written with the first
// secret and never changes.
type SecretStore struct {
	Unknown
	// ID identifies the store in sealed values. A backup has the same ID, so the secrets in it can
	// be opened.
	ID ID `json:"id"`
}

// SealedText returns the text of a sealed value in a record.
func SealedText(sealed []byte) string { return base64.StdEncoding.EncodeToString(sealed) }

// ParseSealed is the inverse of SealedText.
func ParseSealed(text string) ([]byte, error) { return base64.StdEncoding.DecodeString(text) }

// SecretKey is the key of the secret with this id.
func SecretKey(id ID) Key { return Key{TableSecret, id.String()} }

// SecretStoreKey is the key of the record that identifies the store in sealed values.
func SecretStoreKey() Key { return Key{TableSecret, "store"} }

var (
	secretMembers      = MembersOf[Secret]()
	secretStoreMembers = MembersOf[SecretStore]()
)

// Members implements Value.
func (Secret) Members() *Members { return secretMembers }

// Members implements Value.
func (SecretStore) Members() *Members { return secretStoreMembers }
