package keyservice

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"moorage/secrets"
)

// SchemeGoogle is the scheme of the address of a key.
const SchemeGoogle = "gcp-kms"

const (
	// googleEndpoint is the URL of the service.
	googleEndpoint = "https://cloudkms.googleapis.com"
	// lengthBytes is the size of the field with the length of the key's name.
	lengthBytes = 2
)

// googleKeyPattern matches the resource name of a key. Its parts need no escape in a path.
var googleKeyPattern = regexp.MustCompile(
	`^projects/[a-z0-9.:-]{1,63}/locations/[a-z0-9-]{1,63}/keyRings/[\w-]{1,63}/cryptoKeys/[\w-]{1,63}$`)

// GoogleConfig holds the addresses of the key and of the service.
type GoogleConfig struct {
	// Address is gcp-kms:// and the resource name of the key,
	// projects/P/locations/L/keyRings/R/cryptoKeys/K.
	Address string
	// Endpoint is the URL of the service. Default: Google's.
	Endpoint string
}

// Google is a secrets.Source. It is safe for concurrent use.
type Google struct {
	key      string // its resource name
	endpoint string
	tokens   *tokens
	service  *Client
}

// NewGoogle returns a source that seals with the key in config. It sends no request, so a server
// starts even if the service is unreachable.
func NewGoogle(config GoogleConfig) (*Google, error) {
	key, ours := strings.CutPrefix(config.Address, SchemeGoogle+"://")
	if !ours || !googleKeyPattern.MatchString(key) {
		return nil, fmt.Errorf("gcpkms: %q is not the address of a key, such as "+
			"gcp-kms://projects/P/locations/L/keyRings/R/cryptoKeys/K", config.Address)
	}
	endpoint := googleEndpoint
	if config.Endpoint != "" {
		if err := CheckEndpoint(config.Endpoint); err != nil {
			return nil, fmt.Errorf("gcpkms: %w", err)
		}
		endpoint = strings.TrimSuffix(config.Endpoint, "/")
	}
	service := NewClient(nil)
	made := &tokens{http: service.HTTP(), now: time.Now}
	return &Google{key: key, endpoint: endpoint, tokens: made, service: service}, nil
}

// Seal encrypts plain for owner.
func (s *Google) Seal(plain []byte, owner secrets.Owner) ([]byte, error) {
	bound, err := owner.Bound()
	if err != nil {
		return nil, err
	}
	answer, err := s.encrypt(context.Background(), plain, bound)
	if err != nil {
		return nil, fmt.Errorf("gcpkms: seal: %w", err)
	}
	named := binary.BigEndian.AppendUint16(nil, uint16(len(s.key)))
	named = append(named, s.key...)
	return secrets.FormGoogle.Wrap(append(named, answer.Ciphertext...)), nil
}

// Open decrypts a value that was sealed for owner.
func (s *Google) Open(sealed []byte, owner secrets.Owner) ([]byte, error) {
	answer, err := s.open(sealed, owner)
	return answer.Plaintext, err
}

// Rewrap opens a value and, unless it was sealed with the primary version, seals it again.
func (s *Google) Rewrap(sealed []byte, owner secrets.Owner) ([]byte, bool, error) {
	answer, err := s.open(sealed, owner)
	if err != nil {
		return nil, false, err
	}
	if answer.UsedPrimary {
		return sealed, false, nil
	}
	again, err := s.Seal(answer.Plaintext, owner)
	return again, err == nil, err
}

// Turn returns an error, because Google creates the versions of the key.
func (s *Google) Turn(context.Context) (now, before string, err error) {
	parts := strings.Split(s.key, "/")
	return "", "", fmt.Errorf("gcpkms: Google makes the versions of this key, on a schedule or with "+
		"gcloud kms keys versions create --primary --project %s --location %s --keyring %s --key %s. "+
		"Then seal again with moorage secrets rotate --keep-key", parts[1], parts[3], parts[5], parts[7])
}

// Present returns the name of the key's primary version. To determine the version, Present encrypts
// a text, because that needs no additional permission.
func (s *Google) Present(ctx context.Context) (string, error) {
	answer, err := s.encrypt(ctx, []byte("moorage"), []byte("moorage"))
	if err != nil {
		return "", fmt.Errorf("gcpkms: look at the key: %w", err)
	}
	return answer.Name, nil
}

// encrypt encrypts plain, with bound as additional authenticated data. It verifies the checksums of
// the answer.
func (s *Google) encrypt(ctx context.Context, plain, bound []byte) (answer encrypted, err error) {
	if err := secrets.CheckLength(plain, secrets.PlainBytesMax); err != nil {
		return answer, err
	}
	asked := encryption{plain, sumOf(plain), bound, sumOf(bound)}
	err = s.call(ctx, "encrypt", asked, func(said Answer) error {
		answer = encrypted{}
		if err := said.Decode(&answer); err != nil {
			return err
		}
		if !strings.HasPrefix(answer.Name, s.key+"/cryptoKeyVersions/") {
			return fmt.Errorf("%w: it used another key", ErrAnswer)
		}
		if !answer.PlainArrived || !answer.BoundArrived || answer.Sum != sumOf(answer.Ciphertext) {
			return errSum
		}
		return nil
	})
	return answer, err
}

// open decrypts a value that was sealed for owner. The answer has the plain value, and reports
// whether it was sealed with the key's primary version.
func (s *Google) open(sealed []byte, owner secrets.Owner) (answer decrypted, err error) {
	bound, err := owner.Bound()
	if err != nil {
		return decrypted{}, err
	}
	ciphertext, err := s.parse(sealed)
	if err != nil {
		return decrypted{}, err
	}
	asked := decryption{ciphertext, sumOf(ciphertext), bound, sumOf(bound)}
	err = s.call(context.Background(), "decrypt", asked, func(said Answer) error {
		answer = decrypted{}
		if err := said.Decode(&answer); err != nil {
			return err
		}
		if len(answer.Plaintext) == 0 || answer.Sum != sumOf(answer.Plaintext) {
			return errSum
		}
		return nil
	})
	if refused, ok := errors.AsType[*googleRefusal](err); ok && refused.kind == invalidArgument {
		return decrypted{}, fmt.Errorf("%w: %w", secrets.ErrOpen, err)
	}
	if err != nil {
		return decrypted{}, fmt.Errorf("gcpkms: open: %w", err)
	}
	return answer, nil
}

// parse returns the ciphertext in a sealed value. It returns secrets.ErrNoKey if the value was
// sealed with another key.
func (s *Google) parse(sealed []byte) (ciphertext []byte, err error) {
	named, err := secrets.FormGoogle.Unwrap(sealed)
	if err != nil {
		return nil, err
	}
	if len(named) < lengthBytes {
		return nil, secrets.ErrOpen
	}
	length, named := int(binary.BigEndian.Uint16(named)), named[lengthBytes:]
	if len(named) <= length || !googleKeyPattern.Match(named[:length]) {
		return nil, secrets.ErrOpen
	}
	if key := string(named[:length]); key != s.key {
		return nil, fmt.Errorf("%w: it was sealed with %s", secrets.ErrNoKey, key)
	}
	return named[length:], nil
}

var _ secrets.Source = (*Google)(nil)
