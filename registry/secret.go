package registry

import (
	"encoding/base64"
	"time"
)

// Secret is the value of a secret record: what a warehouse needs to reach its storage, sealed with
// a key that is not in the store.
type Secret struct {
	Unknown
	// Warehouse is the one whose secret it is. The sealed values open for no other.
	Warehouse ID `json:"warehouse"`
	// Sealed are the values by name. A name says what a value is for.
	// SealedText wrote them.
	Sealed map[string]string `json:"sealed"`
	// Kinds say what each value is, by the names of Sealed, to those who cannot open it: see
	// storage.SecretKind. An older version left them out.
	Kinds map[string]string `json:"kinds,omitempty"`
	By    string            `json:"by"` // who changed it last
	At    time.Time         `json:"at"`
}

// SecretRef is what a warehouse says of its secret.
type SecretRef struct {
	ID ID `json:"id"`
	// Version counts the changes of what is sealed, so that nodes notice them.
	Version uint64 `json:"version"`
	// Names are those of the sealed values, sorted.
	Names []string `json:"names"`
}

// SecretStore is the value of the record SecretStoreKey, which is made with the first secret and
// never changes.
type SecretStore struct {
	Unknown
	// ID stands for the store in what is sealed. A backup has it too, so its secrets open.
	ID ID `json:"id"`
}

// SealedText returns a sealed value as records have it.
func SealedText(sealed []byte) string { return base64.StdEncoding.EncodeToString(sealed) }

// ParseSealed returns the sealed value that SealedText wrote as text.
func ParseSealed(text string) ([]byte, error) { return base64.StdEncoding.DecodeString(text) }

// SecretKey is the key of the secret with this id.
func SecretKey(id ID) Key { return Key{TableSecret, id.String()} }

// SecretStoreKey is the key of the record that names the store in what is sealed.
func SecretStoreKey() Key { return Key{TableSecret, "store"} }

var (
	secretMembers      = MembersOf[Secret]()
	secretStoreMembers = MembersOf[SecretStore]()
)

// Members implements Value.
func (Secret) Members() *Members { return secretMembers }

// Members implements Value.
func (SecretStore) Members() *Members { return secretStoreMembers }
