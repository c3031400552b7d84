package identity

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net/netip"
	"time"

	"moorage"
)

// Config configures an Authenticator. Without Issuers, Records and Certificates, no caller can
// authenticate.
type Config struct {
	// Issuers are the outside issuers. Their tokens are accepted.
	Issuers []IssuerConfig
	// FetchTimeout bounds each fetch of an issuer's keys and discovery document together, and each
	// exchange with an issuer at the end of a sign-in. It is required if there are Issuers.
	FetchTimeout time.Duration
	// Records provides the API keys, and the public keys that verify the store's own tokens. If it
	// is nil, there are no such keys, and the token endpoint is off.
	Records Records
	// Certificates is true if the TLS layer verifies client certificates.
	Certificates bool
	// TokenLifetime is the lifetime of the store's own tokens, at most tokenLifetimeMax. Default 1
	// hour.
	TokenLifetime time.Duration
	// Admins lists the names that a caller must not get through a token exchange.
	Admins []string
	// TrustedProxies are the addresses of trusted proxies. A request from a trusted proxy comes
	// from the address in its X-Forwarded-For header.
	TrustedProxies []netip.Prefix
	// Refused is called for each refused credential, with the address of the request and the
	// reason. The reason is one of a few fixed texts. It may also contain the name of a key that
	// was once valid. Default: does nothing.
	Refused func(address, reason string)
	// Issued is called for each issued token. Default: does nothing.
	Issued func(ctx context.Context, issued Issued)
	// Logger gets a line when the keys or the discovery document of an issuer cannot be fetched,
	// and when they can be fetched again. It also gets a line for each failed sign-in. It also gets
	// one line a minute for each API key that is used but no longer valid. Default: discards.
	Logger *slog.Logger
	// Now returns the time. Default time.Now.
	Now func() time.Time
	// Random is the source of keys and of ids of tokens. Default crypto/rand.
	Random io.Reader
	// Jitter is the source of random pauses between two fetches. Default: a random source with a
	// random seed.
	Jitter *mathrand.Rand
}

// Issued describes an issued token.
type Issued struct {
	Caller moorage.Caller // the subject of the token
	Grant  string         // the grant_type
	ID     string         // the jti of the token
	Ends   time.Time
}

// Records gives access to the keys in the store. All methods are safe for concurrent use. Any error
// means that the store did not answer.
type Records interface {
	PublicKeys
	// APIKey returns the key with that id. If there is no such key, or its principal is disabled,
	// found is false.
	APIKey(ctx context.Context, id string) (key APIKey, found bool, err error)
	// Epoch returns the number of the store's present access policy. It changes with each change of
	// a key or a principal. It is 0 if access control is off.
	Epoch(ctx context.Context) (uint64, error)
	// SpeaksFor returns the alias of the issuer for whose subjects caller may act. If caller may
	// not act for the subjects of any issuer, may is false.
	SpeaksFor(ctx context.Context, caller moorage.Caller) (alias string, may bool, err error)
	// HasRole reports whether caller has a role, directly or through other roles.
	HasRole(ctx context.Context, caller moorage.Caller, role string) (bool, error)
}

// PublicKeys gives access to the public keys that each node publishes for the other nodes. All
// methods are safe for concurrent use. Any error means that the store did not answer.
type PublicKeys interface {
	// Store returns the unique id of the store. Each of the store's own tokens contains it.
	Store(ctx context.Context) (id string, err error)
	// PublicKey returns a key that a node has published.
	PublicKey(ctx context.Context, kid string) (key PublicKey, found bool, err error)
	// Publish publishes key to all nodes. When Publish returns, key is durable.
	Publish(ctx context.Context, kid string, key PublicKey) error
}

// APIKey is a key as recorded in the store.
type APIKey struct {
	Principal string      // "key:etl"
	Disabled  bool        // the principal is disabled
	Roles     []string    // the roles that limit the key; nil if there is no limit
	Secrets   []KeySecret // including secrets that have ended
	Epoch     uint64      // the epoch of the policy in which the key was read
}

// KeySecret describes one secret of a key.
type KeySecret struct {
	SHA256     [32]byte
	Generation uint64
	Ends       time.Time
}

// PublicKey is the public half of a key that signs tokens.
type PublicKey struct {
	Key  ed25519.PublicKey
	Ends time.Time // after that, no valid token needs the key
}

const (
	tokenLifetimeDefault = time.Hour
	// tokenLifetimeMax is the maximum lifetime of a token. A token can also be renewed for that
	// long after the caller presented its credential.
	tokenLifetimeMax = 12 * time.Hour
)

func (c Config) withDefaults() Config {
	if c.TokenLifetime <= 0 {
		c.TokenLifetime = tokenLifetimeDefault
	}
	c.TokenLifetime = min(c.TokenLifetime, tokenLifetimeMax)
	if c.Refused == nil {
		c.Refused = func(string, string) {}
	}
	if c.Issued == nil {
		c.Issued = func(context.Context, Issued) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.Jitter == nil {
		c.Jitter = mathrand.New(mathrand.NewPCG(uint64(c.Now().UnixNano()), 0))
	}
	return c
}

// check returns an error for faults of the list of issuers as a whole, not of a single issuer.
func (c Config) check() error {
	aliases, urls := map[string]bool{}, map[string]bool{}
	for _, issuer := range c.Issuers {
		switch {
		case aliases[issuer.Alias]:
			return fmt.Errorf("two issuers have the alias %s", issuer.Alias)
		case urls[issuer.URL]:
			return fmt.Errorf("two issuers are %s", issuer.URL)
		}
		aliases[issuer.Alias], urls[issuer.URL] = true, true
	}
	if len(c.Issuers) > 0 && c.FetchTimeout <= 0 {
		return errors.New("fetches from issuers have no timeout")
	}
	if len(c.Issuers) == 0 && c.Records == nil && !c.Certificates {
		return errors.New("no way of authentication is configured")
	}
	return nil
}
