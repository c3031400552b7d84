package identity

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"moorage"
)

const (
	// ownIssuer is the beginning of iss in the store's own tokens. The id of the store follows.
	ownIssuer = "moorage:"
	// signerLife is the time for which a process signs with one key.
	signerLife = 24 * time.Hour
	// publicGrace is the time for which a public key is kept after the end of the last token that
	// it verifies. So a client that was asleep can still renew its expired token, with the token
	// and the client's credential.
	publicGrace = 24 * time.Hour
	// publicKeysMax is the maximum number of public keys in the cache, and also of keys remembered
	// as missing.
	publicKeysMax = 4096
	// missedFor is the time before a missing key is looked up again in the store.
	missedFor = 30 * time.Second
)

// mint signs the store's own tokens, and holds the keys to verify them. It is safe for concurrent
// use.
type mint struct {
	records PublicKeys
	config  Config
	turn    chan struct{} // holds the right to draw and publish a signing key
	lookups *limiter

	mu     sync.Mutex // guards the fields below; no lock is taken, and no I/O done, under it
	signer *signer    // nil before the first key is drawn
	public map[string]PublicKey
	missed map[string]time.Time // when a key was not found in the store
}

// signer is a key that signs tokens.
type signer struct {
	kid     string
	signer  jose.Signer
	retires time.Time
}

// newMint returns a mint that publishes its keys in records. It uses Now, Random and TokenLifetime
// of config.
func newMint(config Config, records PublicKeys) *mint {
	return &mint{
		records: records, config: config, turn: make(chan struct{}, 1),
		lookups: newSharing(config.Now, lookupsMax, lookupsShare),
		public:  map[string]PublicKey{}, missed: map[string]time.Time{},
	}
}

// sign returns a token with the claims c, which must be encodable as JSON.
func (m *mint) sign(ctx context.Context, c any) (string, error) {
	by, err := m.current(ctx)
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	signed, err := by.signer.Sign(body)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// current returns the key to sign with. If there is no key yet, or if it is older than signerLife,
// current draws and publishes a new one.
func (m *mint) current(ctx context.Context) (*signer, error) {
	if found := m.fresh(); found != nil {
		return found, nil
	}
	select {
	case m.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-m.turn }()
	if found := m.fresh(); found != nil {
		return found, nil
	}
	drawn, public, err := m.draw()
	if err != nil {
		return nil, err
	}
	if err := m.records.Publish(ctx, drawn.kid, public); err != nil {
		return nil, unavailable("publish a key", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.signer = drawn
	m.rememberLocked(drawn.kid, public)
	return drawn, nil
}

func (m *mint) fresh() *signer {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.signer != nil && m.config.Now().Before(m.signer.retires) {
		return m.signer
	}
	return nil
}

// draw returns a new random key.
func (m *mint) draw() (*signer, PublicKey, error) {
	seed := make([]byte, ed25519.SeedSize+16)
	if _, err := io.ReadFull(m.config.Random, seed); err != nil {
		return nil, PublicKey{}, fmt.Errorf("draw a key: %w", err)
	}
	private := ed25519.NewKeyFromSeed(seed[:ed25519.SeedSize])
	kid := base64.RawURLEncoding.EncodeToString(seed[ed25519.SeedSize:])
	made, err := jose.NewSigner(
		jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: private, KeyID: kid}},
		(&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return nil, PublicKey{}, err
	}
	retires := m.config.Now().Add(signerLife)
	ends := retires.Add(m.config.TokenLifetime + publicGrace)
	return &signer{kid, made, retires}, PublicKey{private.Public().(ed25519.PublicKey), ends}, nil
}

// keyOf returns the public key called kid, for a token sent from address. found is false if no node
// has published the key. KindTooManyRequests means that this node does not know the key, and
// address may not cause further lookups now.
func (m *mint) keyOf(ctx context.Context, kid, address string) (key ed25519.PublicKey, found bool, err error) {
	now := m.config.Now()
	m.mu.Lock()
	known, found := m.public[kid]
	missed, isMissed := m.missed[kid]
	m.mu.Unlock()
	switch {
	case found:
		return known.Key, now.Before(known.Ends), nil
	case isMissed && now.Sub(missed) < missedFor:
		return nil, false, nil
	case !m.lookups.add(address):
		return nil, false, errTooMany()
	}
	known, found, err = m.records.PublicKey(ctx, kid)
	if err != nil {
		return nil, false, unavailable("look up a key", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !found {
		if len(m.missed) >= publicKeysMax {
			clear(m.missed)
		}
		m.missed[kid] = now
		return nil, false, nil
	}
	delete(m.missed, kid)
	m.rememberLocked(kid, known)
	return known.Key, now.Before(known.Ends), nil
}

// rememberLocked adds a public key to the cache, within publicKeysMax. m.mu must be held.
func (m *mint) rememberLocked(kid string, key PublicKey) {
	if len(m.public) >= publicKeysMax {
		clear(m.public) // the keys are still in the store
	}
	m.public[kid] = key
}

// verify returns the claims of a token that a node of this store has signed, as JSON. The token was
// sent from address.
func (m *mint) verify(ctx context.Context, t *token, address string) ([]byte, error) {
	if t.algorithm != jose.EdDSA {
		return nil, refuse(reasonAlgorithm)
	}
	if t.kid == "" {
		return nil, refuse(reasonNoKeyID)
	}
	key, found, err := m.keyOf(ctx, t.kid, address)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, refuse(reasonKey)
	}
	body, err := t.signed.Verify(key)
	if err != nil {
		return nil, refuse(reasonSignature)
	}
	return body, nil
}

// ownClaims are the claims of the store's own tokens.
type ownClaims struct {
	Issuer        string    `json:"iss"`
	Subject       string    `json:"sub"` // the whole name of the caller
	Actor         *ownActor `json:"act,omitempty"`
	ID            string    `json:"jti"`
	Issued        int64     `json:"iat"`
	Ends          int64     `json:"exp"`
	Authenticated int64     `json:"auth_time"` // when the caller presented its credential
	Key           ownKey    `json:"key"`
	Only          []string  `json:"only"` // null if the token is not limited to roles
}

// ownActor is the engine that acts in the name of the subject.
type ownActor struct {
	Subject string `json:"sub"`
}

// ownKey is the API key for which a token was issued.
type ownKey struct {
	ID         string `json:"id"`
	Generation uint64 `json:"generation"`
}

// caller returns the caller in the claims.
func (c ownClaims) caller() moorage.Caller {
	caller := moorage.Caller{
		Name: c.Subject, Only: c.Only, Source: moorage.SourceToken,
		KeyID: c.Key.ID, KeyGeneration: c.Key.Generation, Ends: time.Unix(c.Ends, 0).UTC(),
	}
	if c.Actor != nil {
		caller.Via = []string{c.Actor.Subject}
	}
	return caller
}
