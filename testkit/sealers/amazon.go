package sealers

import (
	"bytes"
	"crypto/cipher"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
)

// Region is the region of the Amazon keys.
const Region = "eu-north-1"

// AccessKeyID and SecretAccessKey are the credentials of the client that may use the Amazon keys.
const (
	AccessKeyID     = "AKIAKMSTEST"
	SecretAccessKey = "kmstest-secret-access-key"
)

// Amazon simulates AWS KMS with symmetric keys. It is safe for concurrent use.
//
// Source: AWS KMS API Reference, 2014-11-01.
type Amazon struct {
	trouble
	URL string

	server *httptest.Server

	// keysMu guards the field below. No other lock is taken under it.
	keysMu sync.Mutex
	keys   map[string]*amazonKey // by their resource names
	mute   bool                  // answers omit the names of key materials
}

// amazonKey holds a key's materials by id, and the id of the material that seals.
type amazonKey struct {
	materials map[string]cipher.AEAD
	present   string
}

// NewAmazon returns an Amazon that has no keys.
func NewAmazon(tb testing.TB) *Amazon {
	tb.Helper()
	a := &Amazon{keys: make(map[string]*amazonKey)}
	a.server = httptest.NewServer(http.HandlerFunc(a.serve))
	tb.Cleanup(a.server.Close)
	a.URL = a.server.URL
	return a
}

// Close stops the server.
func (a *Amazon) Close() { a.server.Close() }

// NewKey creates a key and returns its resource name.
func (a *Amazon) NewKey(tb testing.TB) string {
	tb.Helper()
	name := "arn:aws:kms:" + Region + ":111122223333:key/" + uuid.NewString()
	a.keysMu.Lock()
	a.keys[name] = &amazonKey{materials: make(map[string]cipher.AEAD)}
	a.keysMu.Unlock()
	a.Rotate(tb, name)
	return name
}

// Mute makes later answers omit the names of key materials.
func (a *Amazon) Mute() {
	a.keysMu.Lock()
	defer a.keysMu.Unlock()
	a.mute = true
}

// Rotate gives a key new material.
func (a *Amazon) Rotate(tb testing.TB, name string) {
	tb.Helper()
	material := strings.ReplaceAll(uuid.NewString()+uuid.NewString(), "-", "")
	drawn := newCipher(tb)
	a.keysMu.Lock()
	defer a.keysMu.Unlock()
	key := a.keys[name]
	key.materials[material], key.present = drawn, material
}

// amazonRequest is the body of every supported action.
type amazonRequest struct {
	KeyID             string `json:"KeyId"`
	Plaintext         []byte
	CiphertextBlob    []byte
	EncryptionContext map[string]string
}

// blobOf returns a ciphertext with the names of its key and material. A change of any byte makes
// the ciphertext invalid.
func blobOf(key, material string, sealed []byte) []byte {
	return append([]byte(key+"\n"+material+"\n"), sealed...)
}

func (a *Amazon) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, bodyBytesMax))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	answer, refusal := a.answer(r, body)
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	if refusal != nil {
		w.WriteHeader(refusal.Status)
		answer = map[string]string{"__type": refusal.Kind, "message": refusal.Words}
	}
	_ = json.NewEncoder(w).Encode(answer) // the client may have disconnected
}

// answer returns the answer to a request, or its refusal.
func (a *Amazon) answer(r *http.Request, body []byte) (any, *Refusal) {
	if refusal, refused := a.next(); refused {
		return nil, &refusal
	}
	invalid := func(format string, args ...any) *Refusal {
		return &Refusal{http.StatusBadRequest, "ValidationException", fmt.Sprintf(format, args...)}
	}
	if err := verifySignature(r, body, signer{AccessKeyID, SecretAccessKey, Region, "kms"}); err != nil {
		return nil, &Refusal{http.StatusBadRequest, "InvalidSignatureException", err.Error()}
	}
	var asked amazonRequest
	if err := decode(r, body, "application/x-amz-json-1.1", &asked); err != nil || r.Method != http.MethodPost {
		return nil, invalid("not a request: %v", err)
	}
	a.keysMu.Lock()
	defer a.keysMu.Unlock()
	key := a.keys[asked.KeyID]
	if key == nil {
		return nil, &Refusal{http.StatusBadRequest, "NotFoundException", "Key '" + asked.KeyID + "' does not exist"}
	}
	// The service accepts the pairs of the encryption context in any order.
	bound, err := json.Marshal(asked.EncryptionContext)
	if err != nil {
		return nil, invalid("%v", err)
	}
	switch r.Header.Get("X-Amz-Target") {
	case "TrentService.Encrypt":
		if len(asked.Plaintext) < 1 || len(asked.Plaintext) > 4096 || asked.CiphertextBlob != nil {
			return nil, invalid("the plaintext has %d bytes", len(asked.Plaintext))
		}
		blob := blobOf(asked.KeyID, key.present, seal(key.materials[key.present], asked.Plaintext, bound))
		return map[string]any{
			"CiphertextBlob": blob, "KeyId": asked.KeyID, "EncryptionAlgorithm": "SYMMETRIC_DEFAULT",
		}, nil
	case "TrentService.Decrypt":
		answer, refused := key.decrypt(asked, bound)
		if a.mute {
			delete(answer, "KeyMaterialId")
		}
		return answer, refused
	case "TrentService.DescribeKey":
		about := map[string]any{"Arn": asked.KeyID, "Enabled": true, "CurrentKeyMaterialId": key.present}
		if a.mute {
			delete(about, "CurrentKeyMaterialId")
		}
		return map[string]any{"KeyMetadata": about}, nil
	}
	return nil, &Refusal{http.StatusBadRequest, "UnknownOperationException", ""}
}

func (k *amazonKey) decrypt(asked amazonRequest, bound []byte) (map[string]any, *Refusal) {
	corrupt := &Refusal{http.StatusBadRequest, "InvalidCiphertextException", ""} // this error has no message
	parts := bytes.SplitN(asked.CiphertextBlob, []byte("\n"), 3)
	if len(parts) < 3 || asked.Plaintext != nil {
		return nil, corrupt
	}
	name, id, sealed := string(parts[0]), string(parts[1]), parts[2]
	if name != asked.KeyID {
		return nil, &Refusal{http.StatusBadRequest, "IncorrectKeyException",
			"The key ID in the request does not identify a CMK that can perform this operation."}
	}
	material := k.materials[id]
	if material == nil {
		return nil, corrupt
	}
	plain, err := open(material, sealed, bound)
	if err != nil {
		return nil, corrupt
	}
	return map[string]any{
		"Plaintext": plain, "KeyId": asked.KeyID, "KeyMaterialId": id,
		"EncryptionAlgorithm": "SYMMETRIC_DEFAULT",
	}, nil
}

// strict decodes JSON, and refuses unknown members.
func strict(content []byte, document any) error {
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	return decoder.Decode(document)
}
