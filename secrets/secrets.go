package secrets

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// PlainBytesMax is the maximum length of Seal's input. The longest credential in use is the key
// file of a Google service account, about 2,400 bytes.
const PlainBytesMax = 64 << 10

// sealedOverhead is the length that sealing adds: prefix, nonce and tag.
const sealedOverhead = keyIDOffset + keyIDBytes + 12 + 16

// The beginning of a sealed value.
const (
	keyIDOffset = 1 // after the byte of the form
	keyIDBytes  = 4
)

var (
	// ErrNoKey means that this process lacks the key with which the value was sealed.
	ErrNoKey = errors.New("secrets: the key that the value was sealed with is not here")
	// ErrOpen means that the value was changed, was sealed for another owner, or was never sealed.
	ErrOpen = errors.New("secrets: the value does not open here")
	// ErrTooLong means that the source seals only shorter secrets.
	ErrTooLong = errors.New("secrets: the secret is too long")
	// ErrAway means that the source of the keys cannot be reached now.
	ErrAway = errors.New("secrets: the keys cannot be reached")
)

// Owner identifies the record to which a sealed value belongs. The value opens only for that owner.
type Owner struct {
	Store     string // id of the store
	Secret    string // id of the record
	Warehouse string // id of the warehouse that uses it
}

// Sealer seals and opens values. It is safe for concurrent use.
type Sealer interface {
	// Seal encrypts plain for owner, so that only Open can read it. It returns ErrTooLong if plain
	// is too long.
	Seal(plain []byte, owner Owner) (sealed []byte, err error)
	// Open decrypts a value that was sealed for owner. It returns ErrNoKey or ErrOpen if that is
	// impossible.
	Open(sealed []byte, owner Owner) (plain []byte, err error)
	// Rewrap returns the value, sealed with the present key. If the value was already sealed with
	// that key, changed is false. Errors: as for Open.
	Rewrap(sealed []byte, owner Owner) (again []byte, changed bool, err error)
}

// Source is a Sealer whose key can be rotated. It is safe for concurrent use.
type Source interface {
	Sealer
	// Turn creates a key that seals from then on. It returns the names of the new key and of the
	// previous key. It returns an error if only the key service can rotate the key.
	Turn(ctx context.Context) (now, before string, err error)
	// Present returns the name of the key that seals at present.
	Present(ctx context.Context) (string, error)
}

// Keyring is a Sealer with the keys of a file. If it lacks a value's key, it reads the file again,
// because another process may have rotated the keys.
type Keyring struct {
	path string

	// mu guards the fields below. No other lock is taken while it is held. The only I/O while it is
	// held is the read of a short file.
	mu   sync.Mutex
	keys *keys
}

// keys holds the keys in one version of the file. It is immutable.
type keys struct {
	handle  *keyset.Handle
	cipher  tink.AEAD
	primary KeyID
	known   map[KeyID]bool
}

// KeyID names a key of a key file.
type KeyID uint32

// String returns id as spelled in the key file.
func (id KeyID) String() string { return fmt.Sprintf("%d", uint32(id)) }

// Load returns a Keyring with the keys of the file at path. See checkMode for the allowed
// permissions of the file.
func Load(path string) (*Keyring, error) {
	keys, err := read(path)
	if err != nil {
		return nil, err
	}
	return &Keyring{path: path, keys: keys}, nil
}

// Primary returns the id of the key that Seal uses.
func (k *Keyring) Primary() KeyID { return k.present().primary }

// Reload reads the file again. Seal then uses the primary key of the new content.
func (k *Keyring) Reload() error {
	_, err := k.readAgain()
	return err
}

// Turn adds to the file a key that seals from then on. It returns the names of that key and of the
// previous key. The key is durable when Turn returns.
func (k *Keyring) Turn(context.Context) (now, before string, err error) {
	drawn, old, err := Rotate(k.path)
	if err == nil {
		err = k.Reload()
	}
	return drawn.String(), old.String(), err
}

// Present reads the file again, and returns the name of the key that seals at present.
func (k *Keyring) Present(context.Context) (string, error) {
	keys, err := k.readAgain()
	if err != nil {
		return "", err
	}
	return keys.primary.String(), nil
}

// Seal seals plain for owner.
func (k *Keyring) Seal(plain []byte, owner Owner) ([]byte, error) {
	return seal(k.present(), plain, owner)
}

// Open opens a value that was sealed for owner.
func (k *Keyring) Open(sealed []byte, owner Owner) ([]byte, error) {
	plain, _, err := k.open(sealed, owner)
	return plain, err
}

// Rewrap seals a value with the present key.
func (k *Keyring) Rewrap(sealed []byte, owner Owner) ([]byte, bool, error) {
	plain, keys, err := k.open(sealed, owner)
	if err != nil {
		return nil, false, err
	}
	if id, _ := KeyOf(sealed); id == keys.primary {
		return sealed, false, nil
	}
	again, err := seal(keys, plain, owner)
	return again, err == nil, err
}

// KeyOf returns the id of the key with which a value was sealed. It returns false if the value was
// not sealed with a key of a key file.
func KeyOf(sealed []byte) (KeyID, bool) {
	if len(sealed) < sealedOverhead || Form(sealed[0]) != FormFile {
		return 0, false
	}
	return KeyID(binary.BigEndian.Uint32(sealed[keyIDOffset:])), true
}

// open returns the plain value, and the keys that opened it.
func (k *Keyring) open(sealed []byte, owner Owner) ([]byte, *keys, error) {
	bound, err := owner.Bound()
	if err != nil {
		return nil, nil, err
	}
	if _, err := FormFile.Unwrap(sealed); err != nil {
		return nil, nil, err
	}
	id, ok := KeyOf(sealed)
	if !ok || len(sealed) > PlainBytesMax+sealedOverhead {
		return nil, nil, ErrOpen
	}
	keys := k.present()
	if !keys.known[id] {
		if keys, err = k.readAgain(); err != nil {
			return nil, nil, err
		}
		if !keys.known[id] {
			return nil, nil, fmt.Errorf("%w: key %s", ErrNoKey, id)
		}
	}
	plain, err := keys.cipher.Decrypt(sealed, bound)
	if err != nil {
		return nil, nil, ErrOpen // the library gives no further reason
	}
	return plain, keys, nil
}

func (k *Keyring) present() *keys {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.keys
}

func (k *Keyring) readAgain() (*keys, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	keys, err := read(k.path)
	if err != nil {
		return nil, err
	}
	k.keys = keys
	return keys, nil
}

func seal(keys *keys, plain []byte, owner Owner) ([]byte, error) {
	if err := CheckLength(plain, PlainBytesMax); err != nil {
		return nil, err
	}
	bound, err := owner.Bound()
	if err != nil {
		return nil, err
	}
	sealed, err := keys.cipher.Encrypt(plain, bound)
	if err != nil {
		return nil, fmt.Errorf("secrets: seal: %w", err)
	}
	return sealed, nil
}

// CheckLength returns ErrTooLong for a secret of more than bytesMax bytes.
func CheckLength(plain []byte, bytesMax int) error {
	if len(plain) > bytesMax {
		return fmt.Errorf("%w: it has %d bytes, and may have %d here", ErrTooLong, len(plain), bytesMax)
	}
	return nil
}

// Bound returns the associated data of the owner's values. Ids have no slash, so two owners never
// have the same associated data.
func (o Owner) Bound() ([]byte, error) {
	for _, id := range []string{o.Store, o.Secret, o.Warehouse} {
		if id == "" || strings.Contains(id, "/") {
			return nil, fmt.Errorf("secrets: %q is not an id", id)
		}
	}
	return []byte("moorage/" + o.Store + "/" + o.Secret + "/" + o.Warehouse), nil
}

// newKeys returns the keys of handle, ready for use. All must be AES-256-GCM keys.
func newKeys(handle *keyset.Handle) (*keys, error) {
	primary, err := handle.Primary()
	if err != nil {
		return nil, errors.New("there is no primary key that is enabled")
	}
	cipher, err := aead.New(handle)
	if err != nil {
		return nil, errors.New("its keys are not keys for AES-256-GCM")
	}
	made := &keys{handle: handle, cipher: cipher, primary: KeyID(primary.KeyID()), known: make(map[KeyID]bool)}
	for i := range handle.Len() {
		entry, err := handle.Entry(i)
		if err != nil {
			return nil, fmt.Errorf("its key %d cannot be read", i)
		}
		if !isOurs(entry) {
			return nil, fmt.Errorf("key %d is not a key for AES-256-GCM that moorage secrets made", entry.KeyID())
		}
		made.known[KeyID(entry.KeyID())] = entry.KeyStatus() == keyset.Enabled
	}
	return made, nil
}

var _ Source = (*Keyring)(nil)
