package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"moorage"
	"moorage/access"
	"moorage/audit"
	"moorage/catalog"
	"moorage/catalog/grants"
	"moorage/catalog/vending"
	"moorage/identity"
	"moorage/internal/cli"
	"moorage/internal/worker"
	"moorage/management"
)

// whoAuthenticates is the name of the caller when authentication reads and writes the store.
const whoAuthenticates = "identity"

// issuerTimeout bounds each fetch from an issuer. The user waits for it at a sign-in.
const issuerTimeout = 5 * time.Second

// openIdentity returns the authenticator of requests, or nil if callers need not authenticate. It
// does not start the authenticator.
func openIdentity(c cli.Config, made *catalog.Catalog, log *audit.Log, logger *slog.Logger) (
	*identity.Authenticator, error) {
	if !c.Authenticates() {
		return nil, nil
	}
	config := identity.Config{
		Issuers: c.Issuers, FetchTimeout: issuerTimeout,
		Certificates: c.TLSClientCA != "", TokenLifetime: c.TokenLifetime, Admins: c.Admins,
		TrustedProxies: c.TrustedProxies, Refused: log.NoteRefused, Logger: logger, Jitter: newJitter(),
		Issued: func(ctx context.Context, issued identity.Issued) { noteIssued(ctx, log, issued) },
	}
	if c.APIKeys {
		config.Records = keyRecords{made.As(moorage.System(whoAuthenticates)).Grants()}
	}
	return identity.New(config)
}

// openStages returns the source of tokens for tables that are about to be created.
func openStages(made *catalog.Catalog) *identity.Stages {
	records := keyRecords{made.As(moorage.System(whoAuthenticates)).Grants()}
	return identity.NewStages(identity.StagesConfig{Keys: stageKeys{records}})
}

// stageKeys are the public keys of a store. A store without access control has no public keys: each
// node accepts only tokens that it issued itself.
type stageKeys struct{ keyRecords }

// Store returns the id of the store, or "" if it has none.
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

// asking returns the function with which the HTTP server authenticates requests, or nil if a is
// nil.
func asking(a *identity.Authenticator) func(*http.Request) (moorage.Caller, error) {
	if a == nil {
		return nil
	}
	return a.Authenticate
}

// keyRecords gives package identity access to the keys of a store.
type keyRecords struct{ access *grants.Grants }

// APIKey returns the key with an id.
func (k keyRecords) APIKey(ctx context.Context, id string) (key identity.APIKey, found bool, err error) {
	known, found, err := k.access.Key(ctx, id)
	if err != nil || !found {
		return identity.APIKey{}, false, err
	}
	key = identity.APIKey{
		Principal: known.Principal, Disabled: known.Disabled, Roles: known.Roles, Epoch: known.Epoch,
	}
	for _, secret := range known.Secrets {
		key.Secrets = append(key.Secrets, identity.KeySecret(secret))
	}
	return key, true, nil
}

// Epoch returns the number of the store's present access policy.
func (k keyRecords) Epoch(ctx context.Context) (uint64, error) { return k.access.Epoch(ctx) }

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
	return k.access.PublishKey(ctx, grants.PublicKey{
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

// noteGiven records in the audit log that an engine received access to files.
func noteGiven(ctx context.Context, log *audit.Log, given vending.Given) {
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
	if given.Delegation == vending.RemoteSigning {
		line.Event, line.Method, line.Target = audit.Signed, given.Method, given.Target
		line.Sampled = given.Method == http.MethodGet || given.Method == http.MethodHead
	}
	log.Note(line)
}

// drawKey generates an API key, or a further secret for the key with the given id.
func drawKey(id string) (management.Drawn, error) {
	made, err := identity.NewAPIKey(rand.Reader, id)
	if err != nil {
		return management.Drawn{}, moorage.E("moorage.drawKey", id, moorage.KindIllegalArgument, err)
	}
	return management.Drawn{ID: made.ID, Text: made.Text, SHA256: made.SHA256}, nil
}

// refuseOpenStore returns an error if the server must not serve the store. A store with access
// control needs authentication. A store without access control must not be open to every identity
// of a token issuer, which may be a whole company.
func refuseOpenStore(ctx context.Context, c cli.Config, made *catalog.Catalog) error {
	vouched := len(c.Issuers) > 0 || c.TLSClientCA != ""
	if !vouched && c.Authenticates() || !c.Authenticates() && c.InsecureNoAuth || vouched && c.InsecureOpenToIssuer {
		return nil
	}
	on, err := made.As(moorage.System(whoAuthenticates)).Grants().IsOn(ctx)
	switch {
	case err != nil:
		return err
	case on && !c.Authenticates():
		return errors.New("this store has access control: say how callers show who they are, with --keys, --issuer " +
			"or --tls-client-ca")
	case !on && vouched:
		return errors.New("this store has no access control, so every holder of a token or certificate of " +
			"these authorities could change every table. Switch access on first, with moorage key create NAME " +
			"--admin or moorage access enable, or say --insecure open-to-issuer if that is meant")
	}
	return nil
}

// openStoreInterval is the time between two warnings of a server without authentication.
const openStoreInterval = time.Minute

const (
	// keyWarnBefore and certificateWarnBefore say how long before the end of a key or a certificate
	// the log has a warning.
	keyWarnBefore         = 14 * 24 * time.Hour
	certificateWarnBefore = 30 * 24 * time.Hour
	// expiryInterval is the time between two rounds of warnings. The first round is at the start.
	expiryInterval = 24 * time.Hour
	// keysToldMax is the maximum number of keys in one round of warnings, and keysMeteredMax the
	// maximum in metrics. If there are more, the keys that end first are taken.
	keysToldMax    = 20
	keysMeteredMax = 1000
	// keyEndsMax is the time for which a request for metrics waits for the store to return the
	// keys.
	keyEndsMax = time.Second
)

// expiries finds API keys and certificates that end soon. It is safe for concurrent use.
type expiries struct {
	keys         func(ctx context.Context) ([]grants.KeyEnd, error)
	certificates map[string]string // paths of the files, by setting
	now          func() time.Time
	logger       *slog.Logger
}

func newExpiries(c cli.Config, made *catalog.Catalog, logger *slog.Logger) *expiries {
	e := &expiries{
		keys:         made.As(moorage.System(whoAuthenticates)).Grants().KeyEnds,
		certificates: make(map[string]string), now: time.Now, logger: logger,
	}
	for name, file := range map[string]string{"--tls-cert": c.TLSCert, "--peer-tls": peerFile(c, peerCertificate)} {
		if file != "" {
			e.certificates[name] = file
		}
	}
	return e
}

// worker returns the worker that logs the warnings, at its start and then once a day.
func (e *expiries) worker() *worker.Worker {
	w := worker.New(worker.Config{
		Name: "expiry", Run: e.tell, Interval: expiryInterval, Jitter: newJitter(), Logger: e.logger,
	})
	w.Kick()
	return w
}

// tell logs a warning for each key and certificate that ends soon.
func (e *expiries) tell(ctx context.Context) error {
	now := e.now()
	for name := range e.certificates {
		if ends, err := e.certificateEnd(name); err == nil && ends.Sub(now) < certificateWarnBefore {
			e.logger.Warn("a certificate ends soon or has ended: put another one into its file",
				"setting", name, "file", e.certificates[name], "ends", ends)
		}
	}
	keys, err := e.keys(ctx)
	if err != nil {
		return err
	}
	told, more := 0, 0
	for _, key := range keys {
		if left := key.Ends.Sub(now); left > keyWarnBefore || left <= 0 {
			continue // a key that has ended is logged when a client uses it
		}
		if told++; told > keysToldMax {
			more++
			continue
		}
		e.logger.Warn("an API key ends soon: give it another secret with moorage key rotate",
			"principal", key.Principal, "key", key.ID, "ends", key.Ends)
	}
	if more > 0 {
		e.logger.Warn("more API keys end soon: see moorage key list", "keys", more)
	}
	return nil
}

// certificateEnd returns when the certificate of a setting ends.
func (e *expiries) certificateEnd(setting string) (time.Time, error) {
	text, err := os.ReadFile(e.certificates[setting])
	if err != nil {
		return time.Time{}, err
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			first, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return time.Time{}, fmt.Errorf("%s: %w", setting, err)
			}
			return first.NotAfter, nil
		}
	}
	return time.Time{}, errors.New(setting + ": it holds no certificate")
}

// addNotices adds a notice for /readyz to notices for each certificate that ends soon.
func (e *expiries) addNotices(notices map[string]string) map[string]string {
	found := make(map[string]string)
	maps.Copy(found, notices)
	for name := range e.certificates {
		if ends, err := e.certificateEnd(name); err == nil && ends.Sub(e.now()) < certificateWarnBefore {
			word := "ends "
			if !e.now().Before(ends) {
				word = "ended "
			}
			found["certificate of "+name] = word + ends.UTC().Format(time.RFC3339)
		}
	}
	return found
}

// Describe implements prometheus.Collector. It describes no metrics, because the labels of these
// metrics change.
func (e *expiries) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (e *expiries) Collect(to chan<- prometheus.Metric) {
	certificates := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "moorage_certificate_expiry_seconds",
		Help: "Time until the certificate of a setting expires. Negative after it has expired.",
	}, []string{"setting"})
	for name := range e.certificates {
		if ends, err := e.certificateEnd(name); err == nil {
			certificates.WithLabelValues(name).Set(ends.Sub(e.now()).Seconds())
		}
	}
	certificates.Collect(to)
	ctx, cancel := context.WithTimeout(context.Background(), keyEndsMax)
	defer cancel()
	keys, err := e.keys(ctx)
	if err != nil {
		return // failing requests show that the store is unavailable
	}
	left := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "moorage_key_expiry_seconds",
		Help: "Time until an API key expires, of the 1,000 that expire first. Negative after it has expired.",
	}, []string{"principal", "key"})
	for _, key := range keys[:min(len(keys), keysMeteredMax)] {
		left.WithLabelValues(key.Principal, key.ID).Set(key.Ends.Sub(e.now()).Seconds())
	}
	left.Collect(to)
}
