package identity

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Bounds of fetching keys from an issuer.
const (
	fetchBytesMax  = 1 << 20
	fetchHopsMax   = 3
	keysMax        = 200
	rsaBitsMin     = 2048
	rsaBitsMax     = 8192 // a longer key would make each verification slow
	discoveryPath  = "/.well-known/openid-configuration"
	fetchedDetails = 512 // unread bytes of a response that are read before its connection is closed
)

// keySet is the set of the present signing keys of an issuer. It never changes.
type keySet struct {
	keys []jose.JSONWebKey
	text string // the text of all keys; shows whether a fetched set is unchanged
}

// find returns the key that verifies a token. If the set has no key with the id kid, known is
// false.
func (s *keySet) find(algorithm jose.SignatureAlgorithm, kid string) (key any, known bool, err error) {
	if kid == "" {
		if len(s.keys) != 1 {
			return nil, false, refuse(reasonNoKeyID)
		}
		if !isKeyFor(s.keys[0], algorithm) {
			return nil, false, refuse(reasonAlgorithm)
		}
		return s.keys[0].Key, true, nil
	}
	for _, key := range s.keys {
		if key.KeyID != kid {
			continue
		}
		known = true
		if isKeyFor(key, algorithm) {
			return key.Key, true, nil
		}
	}
	if known {
		return nil, true, refuse(reasonAlgorithm)
	}
	return nil, false, nil
}

// isKeyFor reports whether key can be used with that algorithm.
func isKeyFor(key jose.JSONWebKey, algorithm jose.SignatureAlgorithm) bool {
	if key.Algorithm != "" && key.Algorithm != string(algorithm) {
		return false
	}
	switch public := key.Key.(type) {
	case *rsa.PublicKey:
		return algorithm == jose.RS256 || algorithm == jose.PS256
	case *ecdsa.PublicKey:
		return algorithm == jose.ES256 && public.Curve == elliptic.P256() ||
			algorithm == jose.ES384 && public.Curve == elliptic.P384()
	case ed25519.PublicKey:
		return algorithm == jose.EdDSA
	}
	return false
}

// parseKeySet reads a JWK set. It leaves out keys that cannot verify a signature with one of the
// algorithms.
func parseKeySet(text []byte, allowed []jose.SignatureAlgorithm) (*keySet, error) {
	var document struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("read the key set: %w", err)
	}
	if len(document.Keys) > keysMax {
		return nil, fmt.Errorf("the key set has %d keys, %d are allowed", len(document.Keys), keysMax)
	}
	set := &keySet{}
	var all strings.Builder
	for _, raw := range document.Keys {
		var key jose.JSONWebKey
		if json.Unmarshal(raw, &key) != nil || !isUsable(key, allowed) {
			continue
		}
		set.keys = append(set.keys, key)
		all.Write(raw)
	}
	if len(set.keys) == 0 {
		return nil, errors.New("the key set has no key that can be used")
	}
	set.text = all.String()
	return set, nil
}

func isUsable(key jose.JSONWebKey, allowed []jose.SignatureAlgorithm) bool {
	if !key.Valid() || !key.IsPublic() || key.Use != "" && key.Use != "sig" {
		return false
	}
	if public, isRSA := key.Key.(*rsa.PublicKey); isRSA {
		if bits := public.N.BitLen(); bits < rsaBitsMin || bits > rsaBitsMax {
			return false
		}
	}
	for _, algorithm := range allowed {
		if isKeyFor(key, algorithm) {
			return true
		}
	}
	return false
}

// fetcher reads the keys of one issuer.
type fetcher struct {
	config  IssuerConfig
	client  *http.Client
	timeout time.Duration // for the discovery document and the keys together
}

func newFetcher(config IssuerConfig, timeout time.Duration) (*fetcher, error) {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: timeout,
	}
	if config.CA != "" {
		text, err := os.ReadFile(config.CA)
		if err != nil {
			return nil, fmt.Errorf("issuer %s: read ca: %w", config.Alias, err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("issuer %s: %s holds no certificate", config.Alias, config.CA)
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	client := &http.Client{Transport: transport, CheckRedirect: checkRedirect}
	return &fetcher{config: config, client: client, timeout: timeout}, nil
}

// checkRedirect allows a redirect only to the same host and scheme. Another server is not in the
// issuer's configuration, so it must not get the token in token-file.
func checkRedirect(next *http.Request, before []*http.Request) error {
	first := before[0].URL
	if next.URL.Host != first.Host || next.URL.Scheme != first.Scheme || len(before) > fetchHopsMax {
		return errors.New("it redirects elsewhere")
	}
	return nil
}

// fetch returns the issuer's keys. It also returns the issuer's discovery document if that gives
// the address of the keys, or if users can sign in at the issuer. If the address of the keys does
// not come from the document, the keys are fetched first, because requests need them. They are
// returned even if fetching the document fails.
func (f *fetcher) fetch(ctx context.Context) (set *keySet, found *discovery, err error) {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	if f.config.KeySet == "" {
		if found, err = f.discover(ctx); err != nil {
			return nil, nil, err
		}
		if err := checkEndpoint(found.Keys); err != nil {
			return nil, nil, fmt.Errorf("jwks_uri: %w", err)
		}
		set, err = f.keys(ctx, found.Keys)
		return set, found, err
	}
	set, err = f.keys(ctx, f.config.KeySet)
	if f.config.SignIn.ID != "" {
		var failed error
		found, failed = f.discover(ctx)
		err = errors.Join(err, failed)
	}
	return set, found, err
}

// keys returns the keys at source, a URL or a file.
func (f *fetcher) keys(ctx context.Context, source string) (*keySet, error) {
	var text []byte
	var err error
	if isURL(source) {
		text, err = f.get(ctx, source)
	} else {
		text, err = readBounded(source)
	}
	if err != nil {
		return nil, err
	}
	return parseKeySet(text, f.config.algorithms())
}

// discovery holds the members of an issuer's discovery document that are used here. Source: OpenID
// Connect Discovery 1.0, and RFC 9207.
type discovery struct {
	Issuer    string   `json:"issuer"`
	Keys      string   `json:"jwks_uri"`
	Authorize string   `json:"authorization_endpoint"`
	Token     string   `json:"token_endpoint"`
	Methods   []string `json:"token_endpoint_auth_methods_supported"`
	// IsNamed is true if the issuer adds its name to the address to which it returns the browser.
	IsNamed bool `json:"authorization_response_iss_parameter_supported"`
}

// discover returns the issuer's discovery document.
func (f *fetcher) discover(ctx context.Context) (*discovery, error) {
	text, err := f.get(ctx, strings.TrimSuffix(f.config.URL, "/")+discoveryPath)
	if err != nil {
		return nil, err
	}
	var document discovery
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("read the discovery document: %w", err)
	}
	if document.Issuer != f.config.URL {
		return nil, fmt.Errorf("the discovery document is of %q, not of %q", document.Issuer, f.config.URL)
	}
	return &document, nil
}

// get returns the document at address.
func (f *fetcher) get(ctx context.Context, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if f.config.TokenFile != "" {
		shown, err := readBounded(f.config.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("read token-file: %w", err)
		}
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(shown)))
	}
	answer, err := f.client.Do(request)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // the other parts of the error repeat the address
		}
		return nil, fmt.Errorf("get %s: %w", address, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		_, _ = io.CopyN(io.Discard, answer.Body, fetchedDetails) // lets the connection be reused
		return nil, fmt.Errorf("get %s: it answers %s", address, answer.Status)
	}
	return bounded(answer.Body, address)
}

func readBounded(file string) ([]byte, error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	return bounded(opened, file)
}

func bounded(r io.Reader, name string) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, fetchBytesMax+1))
	if err == nil && len(text) > fetchBytesMax {
		err = fmt.Errorf("%s has more than %d bytes", name, fetchBytesMax)
	}
	return text, err
}
