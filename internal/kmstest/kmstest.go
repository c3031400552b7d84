// Package kmstest has doubles of the services that keep keys in clouds, for tests. They verify what
// they get: signatures, tokens, checksums, and what a value is bound to. They seal with real
// ciphers, so that what was changed or moved does not open.
package kmstest

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
)

// bodyBytesMax bounds the body of a request.
const bodyBytesMax = 1 << 20

// Refusal is an answer that is not a success.
type Refusal struct {
	Status int
	Kind   string // as the service names it
	Words  string
}

// trouble is what a double answers in place of what it is asked for. It is safe for concurrent use.
type trouble struct {
	// mu guards the fields below; a leaf.
	mu      sync.Mutex
	left    int // requests; below 0: all that come
	refusal Refusal
	asked   int
}

// Fail has the next requests refused; below 0: all requests from now on.
func (t *trouble) Fail(requests int, refusal Refusal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left, t.refusal = requests, refusal
}

// Asked returns how many requests there were.
func (t *trouble) Asked() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.asked
}

// next counts a request. It returns the refusal that it gets, and whether it gets one.
func (t *trouble) next() (Refusal, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked++
	if t.left == 0 {
		return Refusal{}, false
	}
	if t.left > 0 {
		t.left--
	}
	return t.refusal, true
}

// newCipher returns a cipher with a key of its own.
func newCipher(tb testing.TB) cipher.AEAD {
	tb.Helper()
	key := make([]byte, 32)
	if _, err := io.ReadFull(rand.Reader, key); err != nil {
		tb.Fatal(err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		tb.Fatal(err)
	}
	made, err := cipher.NewGCM(block)
	if err != nil {
		tb.Fatal(err)
	}
	return made
}

// seal returns plain, sealed and bound.
func seal(with cipher.AEAD, plain, bound []byte) []byte {
	nonce := []byte(rand.Text())[:with.NonceSize()]
	return with.Seal(nonce, nonce, plain, bound)
}

// open returns what seal was given.
func open(with cipher.AEAD, sealed, bound []byte) ([]byte, error) {
	if len(sealed) < with.NonceSize() {
		return nil, errors.New("too short")
	}
	return with.Open(nil, sealed[:with.NonceSize()], sealed[with.NonceSize():], bound)
}

// decode reads a body into document, which has a field for each member that a request may have.
func decode(r *http.Request, body []byte, contentType string, document any) error {
	if got := r.Header.Get("Content-Type"); got != contentType {
		return errors.New("the type of the body is " + got)
	}
	return strict(body, document)
}
