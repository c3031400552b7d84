package gcpkms

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"

	"moorage/secrets"
	"moorage/secrets/keyservice"
)

// invalidArgument is the kind of refusal of a value that does not open.
const invalidArgument = "INVALID_ARGUMENT"

// errSum says that a checksum was not sent on, or differs.
var errSum = fmt.Errorf("%w: it does not have the checksums of what was asked", keyservice.ErrAnswer)

// castagnoli is the polynomial of the checksums.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum is a checksum. The service writes it as a text.
type sum int64

func sumOf(content []byte) sum { return sum(crc32.Checksum(content, castagnoli)) }

// encryption is the body of an encryption.
type encryption struct {
	Plaintext []byte `json:"plaintext"`
	PlainSum  sum    `json:"plaintextCrc32c,string"`
	Bound     []byte `json:"additionalAuthenticatedData"`
	BoundSum  sum    `json:"additionalAuthenticatedDataCrc32c,string"`
}

// encrypted is its answer.
type encrypted struct {
	Name       string `json:"name"` // of the version of the key
	Ciphertext []byte `json:"ciphertext"`
	Sum        sum    `json:"ciphertextCrc32c,string"`
	// What arrived with the checksum that was sent for it.
	PlainArrived bool `json:"verifiedPlaintextCrc32c"`
	BoundArrived bool `json:"verifiedAdditionalAuthenticatedDataCrc32c"`
}

// decryption is the body of a decryption.
type decryption struct {
	Ciphertext    []byte `json:"ciphertext"`
	CiphertextSum sum    `json:"ciphertextCrc32c,string"`
	Bound         []byte `json:"additionalAuthenticatedData"`
	BoundSum      sum    `json:"additionalAuthenticatedDataCrc32c,string"`
}

// decrypted is its answer.
type decrypted struct {
	Plaintext   []byte `json:"plaintext"`
	Sum         sum    `json:"plaintextCrc32c,string"`
	UsedPrimary bool   `json:"usedPrimary"`
}

// call has the service do something with the key. read reads the answer. It is called again with
// that of another attempt if it fails, as Google asks where a checksum differs.
//
// Errors: that of read; secrets.ErrAway if there is no answer, no token, or a refusal that somebody
// can mend; a *refusal is in the chain of each refusal.
func (s *Sealer) call(ctx context.Context, action string, body any, read func(keyservice.Answer) error) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	var unread error
	said, err := s.service.Call(ctx, func(ctx context.Context) (*http.Request, error) {
		return s.request(ctx, action, content)
	}, func(said keyservice.Answer) bool {
		switch said.Status {
		case http.StatusOK:
			unread = read(said)
			return unread != nil
		case http.StatusUnauthorized:
			s.tokens.forget() // it may have been withdrawn
			return true
		}
		return said.MayPass()
	})
	switch {
	case err != nil:
		return err
	case said.Status != http.StatusOK:
		return refusalOf(said)
	}
	return unread
}

// request returns a request with a token.
func (s *Sealer) request(ctx context.Context, action string, content []byte) (*http.Request, error) {
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

// refusal is an answer of the service that is not a success.
type refusal struct {
	status int
	kind   string // such as PERMISSION_DENIED
	words  string // what the service said
}

func (r *refusal) Error() string {
	return fmt.Sprintf("Cloud KMS answered %d %s: %s", r.status, r.kind, r.words)
}

// refusalOf returns the error of an answer that is not a success. It is secrets.ErrAway where
// somebody can mend the reason, such as a permission or a version that is disabled.
func refusalOf(said keyservice.Answer) error {
	var document struct {
		Error struct{ Status, Message string }
	}
	_ = said.Decode(&document) // a proxy may stand in front
	refused := &refusal{said.Status, keyservice.Words(document.Error.Status), keyservice.Words(document.Error.Message)}
	if refused.kind == invalidArgument {
		return refused
	}
	return fmt.Errorf("%w: %w", secrets.ErrAway, refused)
}
