package keyservice

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"moorage/internal/loopback"
	"moorage/secrets"
)

// Schemes of the address of a key.
const (
	SchemeVault = "hcvault"
	// SchemePlain is for a Vault server on this machine, without TLS.
	SchemePlain = "hcvault+http"
)

// prefix is the beginning of the text that Vault returns for a sealed value. The version of the key
// follows.
const prefix = "vault:v"

// VaultConfig holds the address of the key, and the credentials for it.
type VaultConfig struct {
	// Address is hcvault://HOST:PORT/MOUNT/keys/NAME. The scheme means HTTPS, MOUNT is the path of
	// the engine, and NAME is the name of the key.
	Address string
	// TokenFile is the file with the token. Each call reads it, so another program may replace the
	// token.
	TokenFile string
	// CAFile is the file with the PEM certificates of the authorities that sign the server's
	// certificate. Default: the system's.
	CAFile string
}

// Vault is a secrets.Source. It is safe for concurrent use.
type Vault struct {
	base, mount, key string
	tokenFile        string
	service          *Client
}

// NewVault returns a source that seals with the key in config. It sends no request, so a server
// starts even if the engine is unreachable.
func NewVault(config VaultConfig) (*Vault, error) {
	address, err := url.Parse(config.Address)
	if err != nil || address.Host == "" || address.User != nil || address.RawQuery != "" || address.Fragment != "" {
		return nil, fmt.Errorf("vault: %q is not the address of a key, such as hcvault://HOST:8200/transit/keys/NAME",
			config.Address)
	}
	mount, key, found := strings.Cut(strings.Trim(address.Path, "/"), "/keys/")
	if !found || mount == "" || key == "" || strings.Contains(key, "/") {
		return nil, fmt.Errorf("vault: the path of %q is not MOUNT/keys/NAME", config.Address)
	}
	scheme := "https"
	if address.Scheme == SchemePlain {
		if !loopback.Is(address.Hostname()) {
			return nil, fmt.Errorf("vault: %s is for an address of this machine, such as 127.0.0.1", SchemePlain)
		}
		scheme = "http"
	}
	if config.TokenFile == "" {
		return nil, errors.New("vault: a file with the token is needed")
	}
	var roots *x509.CertPool
	if config.CAFile != "" {
		content, err := os.ReadFile(config.CAFile)
		if err != nil {
			return nil, fmt.Errorf("vault: read the certificates: %w", err)
		}
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(content) {
			return nil, fmt.Errorf("vault: %s has no certificate", config.CAFile)
		}
	}
	return &Vault{
		base: scheme + "://" + address.Host + "/v1/", mount: mount, key: key, tokenFile: config.TokenFile,
		service: NewClient(roots),
	}, nil
}

// Seal encrypts plain for owner.
func (s *Vault) Seal(plain []byte, owner secrets.Owner) ([]byte, error) {
	if err := secrets.CheckLength(plain, secrets.PlainBytesMax); err != nil {
		return nil, err
	}
	bound, err := owner.Bound()
	if err != nil {
		return nil, err
	}
	var answer struct{ Data struct{ Ciphertext string } }
	err = s.call(context.Background(), http.MethodPost, s.mount+"/encrypt/"+s.key, map[string]string{
		"plaintext": encoded(plain), "associated_data": encoded(bound),
	}, &answer)
	if err != nil {
		return nil, fmt.Errorf("vault: seal: %w", err)
	}
	if _, ok := versionOf(answer.Data.Ciphertext); !ok {
		return nil, fmt.Errorf("vault: seal: %w", ErrAnswer)
	}
	return secrets.FormVault.Wrap([]byte(answer.Data.Ciphertext)), nil
}

// Open decrypts a value that was sealed for owner.
func (s *Vault) Open(sealed []byte, owner secrets.Owner) ([]byte, error) {
	bound, err := owner.Bound()
	if err != nil {
		return nil, err
	}
	text, err := secrets.FormVault.Unwrap(sealed)
	if err != nil {
		return nil, err
	}
	var answer struct{ Data struct{ Plaintext []byte } } // in base64
	err = s.call(context.Background(), http.MethodPost, s.mount+"/decrypt/"+s.key, map[string]string{
		"ciphertext": string(text), "associated_data": encoded(bound),
	}, &answer)
	if refused, ok := errors.AsType[*vaultRefusal](err); ok && refused.code == http.StatusBadRequest {
		return nil, fmt.Errorf("%w: %w", secrets.ErrOpen, err)
	}
	if err == nil && len(answer.Data.Plaintext) == 0 {
		err = ErrAnswer
	}
	if err != nil {
		return nil, fmt.Errorf("vault: open: %w", err)
	}
	return answer.Data.Plaintext, nil
}

// Rewrap opens a value and, if it was sealed with an older version of the key, seals it again. It
// does not use the engine's rewrap operation, because the engine's documentation does not mention
// associated data for that operation.
func (s *Vault) Rewrap(sealed []byte, owner secrets.Owner) ([]byte, bool, error) {
	plain, err := s.Open(sealed, owner)
	if err != nil {
		return nil, false, err
	}
	latest, err := s.latest(context.Background())
	if err != nil {
		return nil, false, err
	}
	if version, _ := versionOf(string(sealed[1:])); version == latest {
		return sealed, false, nil
	}
	again, err := s.Seal(plain, owner)
	return again, err == nil, err
}

// Turn creates a new version of the key, which seals from then on. It returns the names of the new
// version and of the previous version. If a retry repeats the request, Vault creates another
// version, which does no harm.
func (s *Vault) Turn(ctx context.Context) (now, before string, err error) {
	if before, err = s.Present(ctx); err != nil {
		return "", "", err
	}
	if err := s.call(ctx, http.MethodPost, s.mount+"/keys/"+s.key+"/rotate", nil, nil); err != nil {
		return "", "", fmt.Errorf("vault: rotate the key: %w", err)
	}
	now, err = s.Present(ctx)
	return now, before, err
}

// Present returns the name of the version of the key that seals.
func (s *Vault) Present(ctx context.Context) (string, error) {
	latest, err := s.latest(ctx)
	return s.key + " v" + strconv.Itoa(latest), err
}

// latest returns the version of the key that seals.
func (s *Vault) latest(ctx context.Context) (int, error) {
	var answer struct {
		Data struct {
			Latest int `json:"latest_version"`
		}
	}
	err := s.call(ctx, http.MethodGet, s.mount+"/keys/"+s.key, nil, &answer)
	if err == nil && answer.Data.Latest == 0 {
		err = ErrAnswer
	}
	if err != nil {
		return 0, fmt.Errorf("vault: look at the key: %w", err)
	}
	return answer.Data.Latest, nil
}

// vaultRefusal is a response of the engine that is not a success.
type vaultRefusal struct {
	code int
	text string // the message of the engine
}

func (r *vaultRefusal) Error() string {
	return fmt.Sprintf("the engine answered %d: %s", r.code, r.text)
}

// call sends a request to the engine. It returns secrets.ErrAway if the engine does not answer or
// does not accept the token. It returns a *vaultRefusal if the engine refuses the request.
func (s *Vault) call(ctx context.Context, method, path string, body, answer any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	said, err := s.service.Call(ctx, func(ctx context.Context) (*http.Request, error) {
		token, err := os.ReadFile(s.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("read the token: %w", err)
		}
		request, err := http.NewRequestWithContext(ctx, method, s.base+path, bytes.NewReader(content))
		if err != nil {
			return nil, err
		}
		request.Header.Set("X-Vault-Token", strings.TrimSpace(string(token)))
		request.Header.Set("X-Vault-Request", "true")
		return request, nil
	}, Answer.MayPass)
	switch {
	case err != nil:
		return err
	case said.Status == http.StatusNoContent:
		return nil
	case said.Status != http.StatusOK:
		return vaultRefusalOf(said)
	case answer == nil:
		return nil
	}
	return said.Decode(answer)
}

// vaultRefusalOf returns the error for an answer that is not a success.
func vaultRefusalOf(said Answer) error {
	var document struct{ Errors []string }
	_ = said.Decode(&document) // the response may be a proxy's, without such a document
	refused := &vaultRefusal{said.Status, Words(strings.Join(document.Errors, "; "))}
	if refused.code == http.StatusBadRequest {
		return refused
	}
	return fmt.Errorf("%w: %w", secrets.ErrAway, refused) // such as a bad token, a sealed engine, too many requests
}

// versionOf returns the version of the key in the text of a sealed value.
func versionOf(text string) (int, bool) {
	digits, _, found := strings.Cut(strings.TrimPrefix(text, prefix), ":")
	version, err := strconv.Atoi(digits)
	return version, found && err == nil && strings.HasPrefix(text, prefix)
}

func encoded(value []byte) string { return base64.StdEncoding.EncodeToString(value) }

var _ secrets.Source = (*Vault)(nil)
