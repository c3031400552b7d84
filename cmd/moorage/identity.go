package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"moorage"
	"moorage/access"
	"moorage/audit"
	"moorage/catalog"
	"moorage/identity"
	"moorage/internal/cli"
	"moorage/management"
)

// whoAuthenticates is the caller name of authentication's reads and writes in the store.
const whoAuthenticates = "identity"

// openIdentity returns the authenticator of requests, not started; nil without authentication.
func openIdentity(c cli.Config, made *catalog.Catalog, log *audit.Log, logger *slog.Logger) (
	*identity.Authenticator, error) {
	if !c.Authenticates() {
		return nil, nil
	}
	config := identity.Config{
		Issuers: c.Issuers, Certificates: c.TLSClientCA != "", TokenLifetime: c.TokenLifetime, Admins: c.Admins,
		TrustedProxies: c.TrustedProxies, Refused: log.NoteRefused, Logger: logger, Jitter: newJitter(),
		Issued: func(ctx context.Context, issued identity.Issued) { noteIssued(ctx, log, issued) },
	}
	if c.APIKeys {
		config.Records = keyRecords{catalog.AccessOf(made.As(moorage.System(whoAuthenticates)))}
	}
	return identity.New(config)
}

// openStages returns the source of tokens for tables that are about to be created.
func openStages(made *catalog.Catalog) *identity.Stages {
	records := keyRecords{catalog.AccessOf(made.As(moorage.System(whoAuthenticates)))}
	return identity.NewStages(identity.StagesConfig{Keys: stageKeys{records}})
}

// stageKeys are the public keys of a store. A store without access control has none: each of its
// nodes reads only its own tokens.
type stageKeys struct{ keyRecords }

// Store returns the id of the store; empty if it has none.
func (k stageKeys) Store(ctx context.Context) (string, error) {
	if on, err := k.access.IsOn(ctx); err != nil || !on {
		return "", err
	}
	return k.keyRecords.Store(ctx)
}

// PublicKey returns a key that a node has published.
func (k stageKeys) PublicKey(ctx context.Context, kid string) (key identity.PublicKey, found bool, err error) {
	if on, err := k.access.IsOn(ctx); err != nil || !on {
		return key, false, err
	}
	return k.keyRecords.PublicKey(ctx, kid)
}

// Publish makes key known to all nodes.
func (k stageKeys) Publish(ctx context.Context, kid string, key identity.PublicKey) error {
	if on, err := k.access.IsOn(ctx); err != nil || !on {
		return err
	}
	return k.keyRecords.Publish(ctx, kid, key)
}

// asking returns the authentication function of the HTTP server; nil without authentication.
func asking(a *identity.Authenticator) func(*http.Request) (moorage.Caller, error) {
	if a == nil {
		return nil
	}
	return a.Authenticate
}

// keyRecords are the keys of a store, as package identity needs them.
type keyRecords struct{ access catalog.Access }

// APIKey returns the key with an id.
func (k keyRecords) APIKey(ctx context.Context, id string) (key identity.APIKey, found bool, err error) {
	known, found, err := k.access.Key(ctx, id)
	if err != nil || !found {
		return identity.APIKey{}, false, err
	}
	key = identity.APIKey{Principal: known.Principal, Disabled: known.Disabled, Roles: known.Roles}
	for _, secret := range known.Secrets {
		key.Secrets = append(key.Secrets, identity.KeySecret(secret))
	}
	return key, true, nil
}

// Store returns the id of the store.
func (k keyRecords) Store(ctx context.Context) (string, error) {
	id, err := k.access.StoreID(ctx)
	if err == nil && id.IsZero() {
		err = errors.New("access control is not on in this store")
	}
	return id.String(), err
}

// signingAlgorithm is the algorithm of token keys.
const signingAlgorithm = "EdDSA"

// PublicKey returns a key that a node has published.
func (k keyRecords) PublicKey(ctx context.Context, kid string) (key identity.PublicKey, found bool, err error) {
	public, found, err := k.access.PublicKey(ctx, kid)
	if err != nil || !found || public.Algorithm != signingAlgorithm {
		return identity.PublicKey{}, false, err
	}
	bytes, err := base64.RawURLEncoding.DecodeString(public.Key)
	if err != nil || len(bytes) != ed25519.PublicKeySize {
		return identity.PublicKey{}, false, fmt.Errorf("the public key %s has %d bytes: %w", kid, len(bytes), err)
	}
	return identity.PublicKey{Key: bytes, Ends: public.Ends}, true, nil
}

// Publish makes key known to all nodes.
func (k keyRecords) Publish(ctx context.Context, kid string, key identity.PublicKey) error {
	return k.access.PublishKey(ctx, catalog.PublicKey{
		ID: kid, Algorithm: signingAlgorithm, Key: base64.RawURLEncoding.EncodeToString(key.Key), Ends: key.Ends,
	})
}

// SpeaksFor returns the alias of the issuer whose subjects caller may represent.
func (k keyRecords) SpeaksFor(ctx context.Context, caller moorage.Caller) (alias string, may bool, err error) {
	return k.access.SpeaksFor(ctx, caller)
}

// HasRole reports whether caller has a role.
func (k keyRecords) HasRole(ctx context.Context, caller moorage.Caller, role string) (bool, error) {
	roles, err := k.access.RolesOf(ctx, caller)
	return slices.Contains(roles, role), err
}

// noteIssued records in the audit log that a token was issued.
func noteIssued(ctx context.Context, log *audit.Log, issued identity.Issued) {
	log.Note(audit.Line{
		Event: audit.TokenIssued, RequestID: moorage.RequestID(ctx), Principal: issued.Caller.Name,
		Via: issued.Caller.Via, Address: issued.Caller.Address, Key: issued.Caller.KeyID,
	})
}

// noteGiven records in the audit log which access to files an engine got.
func noteGiven(ctx context.Context, log *audit.Log, given catalog.Given) {
	line := lineFrom(ctx, given.Caller, given.Verb)
	line.Object = audit.Object{
		Kind: access.Table.String(), Warehouse: given.Table.Warehouse, Namespace: given.Table.Namespace,
		Name: given.Table.Name,
	}
	line.Through = namesOf(given.Through)
	line.Event, line.Mode = audit.Vended, "read"
	if given.Write {
		line.Mode = "write"
	}
	line.Credential, line.Locations, line.Ends = given.Credential, given.Locations, given.Ends
	if given.Delegation == catalog.RemoteSigning {
		line.Event, line.Method, line.Target = audit.Signed, given.Method, given.Target
		line.Sampled = given.Method == http.MethodGet || given.Method == http.MethodHead
	}
	log.Note(line)
}

// drawKey generates an API key, or a further secret of one.
func drawKey(id string) (management.Drawn, error) {
	made, err := identity.NewAPIKey(rand.Reader, id)
	if err != nil {
		return management.Drawn{}, moorage.E("moorage.drawKey", id, moorage.KindIllegalArgument, err)
	}
	return management.Drawn{ID: made.ID, Text: made.Text, SHA256: made.SHA256}, nil
}

// refuseOpenStore returns why the store must not be served, and nil if it may. A store with access
// control needs authentication. A store without access control must not be open to every identity
// of an authority, which may be a whole company.
func refuseOpenStore(ctx context.Context, c cli.Config, made *catalog.Catalog) error {
	vouched := len(c.Issuers) > 0 || c.TLSClientCA != ""
	if !vouched && c.Authenticates() || !c.Authenticates() && c.InsecureNoAuth || vouched && c.OpenToIssuer {
		return nil
	}
	on, err := catalog.AccessOf(made.As(moorage.System(whoAuthenticates))).IsOn(ctx)
	switch {
	case err != nil:
		return err
	case on && !c.Authenticates():
		return errors.New("this store has access control: say how callers show who they are, with --keys, --issuer " +
			"or --tls-client-ca")
	case !on && vouched:
		return errors.New("this store has no access control, so every holder of a token or certificate of " +
			"these authorities could change every table. Switch access on first, with moorage key create NAME " +
			"--admin or moorage access enable, or say --insecure-open-to-issuer if that is meant")
	}
	return nil
}

// openStoreInterval is how often a server without authentication logs a warning.
const openStoreInterval = time.Minute
