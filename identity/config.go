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

// Config is what an Authenticator is made of. Without Issuers, Records and Certificates nobody can
// show who he is.
type Config struct {
	// Issuers are the outside issuers whose tokens are accepted.
	Issuers []IssuerConfig
	// Records has API keys and the public keys of our tokens; nil: there are neither, and the token
	// endpoint is off.
	Records Records
	// Certificates says that the TLS layer verifies client certificates.
	Certificates bool
	// TokenLifetime is how long a token of ours lasts. Default an hour; at most tokenLifetimeMax.
	TokenLifetime time.Duration
	// Admins are names that nobody may take by an exchange.
	Admins []string
	// TrustedProxies are the addresses of proxies whose X-Forwarded-For says where a request comes
	// from.
	TrustedProxies []netip.Prefix
	// Refused hears of each credential that was not accepted: where it came from, and why, in one
	// of a few words, or with the name of a key that was good once. Default: nobody hears.
	Refused func(address, reason string)
	// Issued hears of each token that is given out. Default: nobody hears.
	Issued func(ctx context.Context, issued Issued)
	// Logger gets a line when an issuer's keys cannot be fetched, and when they can again; and each
	// minute one for each API key that is shown although it is no longer good. Default: discards.
	Logger *slog.Logger
	// Now gives the time. Default time.Now.
	Now func() time.Time
	// Random draws the keys and ids of tokens. Default crypto/rand.
	Random io.Reader
	// Jitter draws the pauses between two fetches. Default: one with a seed of its own.
	Jitter *mathrand.Rand
}

// Issued is a token that was given out.
type Issued struct {
	Caller moorage.Caller // whom it stands for
	Grant  string         // the grant_type
	ID     string         // the jti of the token
	Ends   time.Time
}

// Records is what the store knows of keys. All methods are safe for concurrent use. An error means
// that the store did not answer.
type Records interface {
	PublicKeys
	// APIKey returns the key with that id. found is false if there is none, or its principal is
	// disabled.
	APIKey(ctx context.Context, id string) (key APIKey, found bool, err error)
	// SpeaksFor returns the alias of the issuer for whose subjects caller may ask. may is false if
	// it may for none.
	SpeaksFor(ctx context.Context, caller moorage.Caller) (alias string, may bool, err error)
	// HasRole reports whether caller has a role, by itself or through others.
	HasRole(ctx context.Context, caller moorage.Caller, role string) (bool, error)
}

// PublicKeys is where nodes find each other's keys. All methods are safe for concurrent use. An
// error means that the store did not answer.
type PublicKeys interface {
	// Store returns an id of the store that no other has. It stands in each token of ours.
	Store(ctx context.Context) (id string, err error)
	// PublicKey returns a key that a node has published.
	PublicKey(ctx context.Context, kid string) (key PublicKey, found bool, err error)
	// Publish makes key known to all nodes. It is durable when this returns.
	Publish(ctx context.Context, kid string, key PublicKey) error
}

// APIKey is a key as the store knows it.
type APIKey struct {
	Principal string      // "key:etl"
	Disabled  bool        // the principal is
	Roles     []string    // that it is narrowed to; nil: it is not
	Secrets   []KeySecret // also those that have ended
}

// KeySecret is what a secret is compared with.
type KeySecret struct {
	SHA256     [32]byte
	Generation uint64
	Ends       time.Time
}

// PublicKey is the public half of a key that signs tokens.
type PublicKey struct {
	Key  ed25519.PublicKey
	Ends time.Time // nobody asks for it after that
}

const (
	tokenLifetimeDefault = time.Hour
	// tokenLifetimeMax is also how long after its credential was shown a token can be renewed.
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

// check returns what is wrong with the issuers as a whole.
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
	if len(c.Issuers) == 0 && c.Records == nil && !c.Certificates {
		return errors.New("there is no way to show who one is")
	}
	return nil
}
