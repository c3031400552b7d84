package keyservice

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"

	"moorage/secrets"
)

// invalidArgument is the status in the service's error for a value that does not open.
const invalidArgument = "INVALID_ARGUMENT"

// errSum means that a checksum in the answer is missing or wrong.
var errSum = fmt.Errorf("%w: it does not have the checksums of what was asked", ErrAnswer)

// castagnoli is the polynomial of the checksums.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum is a checksum. The service writes it as a string.
type sum int64

func sumOf(content []byte) sum { return sum(crc32.Checksum(content, castagnoli)) }

// encryption is the request body of an encryption.
type encryption struct {
	Plaintext []byte `json:"plaintext"`
	PlainSum  sum    `json:"plaintextCrc32c,string"`
	Bound     []byte `json:"additionalAuthenticatedData"`
	BoundSum  sum    `json:"additionalAuthenticatedDataCrc32c,string"`
}

// encrypted is the response of an encryption.
type encrypted struct {
	Name       string `json:"name"` // of the version of the key
	Ciphertext []byte `json:"ciphertext"`
	Sum        sum    `json:"ciphertextCrc32c,string"`
	// These fields say whether the service verified the checksums of the plain text and of the
	// additional data.
	PlainArrived bool `json:"verifiedPlaintextCrc32c"`
	BoundArrived bool `json:"verifiedAdditionalAuthenticatedDataCrc32c"`
}

// decryption is the request body of a decryption.
type decryption struct {
	Ciphertext    []byte `json:"ciphertext"`
	CiphertextSum sum    `json:"ciphertextCrc32c,string"`
	Bound         []byte `json:"additionalAuthenticatedData"`
	BoundSum      sum    `json:"additionalAuthenticatedDataCrc32c,string"`
}

// decrypted is the response of a decryption.
type decrypted struct {
	Plaintext   []byte `json:"plaintext"`
	Sum         sum    `json:"plaintextCrc32c,string"`
	UsedPrimary bool   `json:"usedPrimary"`
}

// call requests an action with the key, and calls read with the answer. If read fails, call sends
// the request again, as Google recommends after a wrong checksum.
//
// It returns the error of read. It returns secrets.ErrAway if there is no answer or no token, or if
// an administrator can correct the reason for a refusal. Each refusal wraps a *googleRefusal.
func (s *Google) call(ctx context.Context, action string, body any, read func(Answer) error) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	var unread error
	said, err := s.service.Call(ctx, func(ctx context.Context) (*http.Request, error) {
		return s.request(ctx, action, content)
	}, func(said Answer) bool {
		switch said.Status {
		case http.StatusOK:
			unread = read(said)
			return unread != nil
		case http.StatusUnauthorized:
			s.tokens.forget() // the token may have been revoked
			return true
		}
		return said.MayPass()
	})
	switch {
	case err != nil:
		return err
	case said.Status != http.StatusOK:
		return googleRefusalOf(said)
	}
	return unread
}

// request returns a request with a token.
func (s *Google) request(ctx context.Context, action string, content []byte) (*http.Request, error) {
	token, err := s.tokens.get(ctx)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.endpoint+"/v1/"+s.key+":"+action,
		bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	return request, nil
}

// googleRefusal is a response of the service that is not a success.
type googleRefusal struct {
	status int
	kind   string // such as PERMISSION_DENIED
	words  string // the message of the service
}

func (r *googleRefusal) Error() string {
	return fmt.Sprintf("Cloud KMS answered %d %s: %s", r.status, r.kind, r.words)
}

// googleRefusalOf returns the error for a response that is not a success. It is secrets.ErrAway if
// an administrator can correct the reason, such as a permission or a disabled version.
func googleRefusalOf(said Answer) error {
	var document struct {
		Error struct{ Status, Message string }
	}
	_ = said.Decode(&document) // the response may be a proxy's, without such a document
	refused := &googleRefusal{said.Status, Words(document.Error.Status), Words(document.Error.Message)}
	if refused.kind == invalidArgument {
		return refused
	}
	return fmt.Errorf("%w: %w", secrets.ErrAway, refused)
}
