package sealers

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

// bodyBytesMax is the maximum size of a request's body.
const bodyBytesMax = 1 << 20

// Refusal is an answer that is not a success.
type Refusal struct {
	Status int
	Kind   string // the service's name of the error
	Words  string
}

// trouble holds the refusals that a double returns instead of answers. It is safe for concurrent
// use.
type trouble struct {
	// mu guards the fields below. No other lock is taken under it.
	mu      sync.Mutex
	left    int // number of requests to refuse; negative for all further ones
	refusal Refusal
	asked   int
}

// Fail refuses the given number of next requests. If requests is below 0, it refuses all further
// requests.
func (t *trouble) Fail(requests int, refusal Refusal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left, t.refusal = requests, refusal
}

// Asked returns the number of requests that the double has received.
func (t *trouble) Asked() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.asked
}

// next counts a request. It returns the request's refusal, and whether there is one.
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

// newCipher returns a cipher with a new key.
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

// seal encrypts plain with bound as additional data, and returns the result.
func seal(with cipher.AEAD, plain, bound []byte) []byte {
	nonce := []byte(rand.Text())[:with.NonceSize()]
	return with.Seal(nonce, nonce, plain, bound)
}

// open decrypts a sealed value.
func open(with cipher.AEAD, sealed, bound []byte) ([]byte, error) {
	if len(sealed) < with.NonceSize() {
		return nil, errors.New("too short")
	}
	return with.Open(nil, sealed[:with.NonceSize()], sealed[with.NonceSize():], bound)
}

// decode reads a body into document, which has a field for each allowed member.
func decode(r *http.Request, body []byte, contentType string, document any) error {
	if got := r.Header.Get("Content-Type"); got != contentType {
		return errors.New("the type of the body is " + got)
	}
	return strict(body, document)
}
