package identity

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"

	"moorage"
	"moorage/internal/worker"
)

const (
	// verifiedMax is the maximum number of cached bearer tokens.
	verifiedMax = 100_000
	// verifiedFor is the longest time for which a bearer token is cached.
	verifiedFor = 5 * time.Minute
)

// Authenticator authenticates the senders of requests. It is safe for concurrent use.
type Authenticator struct {
	config   Config
	issuers  map[string]*issuer // by iss in their tokens
	aliases  map[string]bool    // of the issuers
	mint     *mint
	verified *otter.Cache[[sha256.Size]byte, *verified] // by the hash of the bearer token
	failures *limiter
	dead     *limiter // limits log lines about API keys that are no longer valid, by key and minute
	renewals []*worker.Worker
}

// verified is a bearer token that was accepted.
type verified struct {
	caller moorage.Caller
	until  time.Time
	issuer *issuer // nil for one of the store's own tokens
	set    *keySet // the issuer's keys used to verify it
}

// New returns an Authenticator. It reads the files named in config. It fetches nothing before
// Start.
func New(config Config) (*Authenticator, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	config = config.withDefaults()
	a := &Authenticator{
		config: config, issuers: map[string]*issuer{}, aliases: map[string]bool{},
		mint:     newMint(config, config.Records),
		verified: otter.Must(&otter.Options[[sha256.Size]byte, *verified]{MaximumSize: verifiedMax}),
		failures: newLimiter(config.Now, failuresMax), dead: newLimiter(minutesOf(config.Now), 1),
	}
	for _, each := range config.Issuers {
		made, err := newIssuer(each, config.FetchTimeout, config.Now, config.Logger)
		if err != nil {
			return nil, err
		}
		a.issuers[each.URL], a.aliases[each.Alias] = made, true
	}
	return a, nil
}

// Start fetches the keys of the issuers, and keeps them up to date in the background.
func (a *Authenticator) Start() {
	if len(a.issuers) == 0 || len(a.renewals) > 0 {
		return
	}
	// A worker's pauses vary by half of their mean. But keys must be renewed after 15 minutes plus
	// or minus a tenth. So the worker checks every minute, and renews keys at a random age.
	for _, each := range a.issuers {
		spread := renewInterval / 10
		age := renewInterval - spread + time.Duration(a.config.Jitter.Int64N(int64(2*spread)))
		renewal := worker.New(worker.Config{
			Name: "keys of " + each.config.Alias, Interval: renewPause, Logger: a.config.Logger,
			Jitter: newJitter(a.config.Jitter),
			Run: func(ctx context.Context) error {
				if each.isStale(age) {
					each.renew(ctx)
				}
				return nil
			},
		})
		a.renewals = append(a.renewals, renewal)
		renewal.Kick()
		renewal.Start()
	}
}

// Stop stops the work of Start. A second call does nothing.
func (a *Authenticator) Stop() {
	for _, renewal := range a.renewals {
		renewal.Stop()
	}
}

// Authenticate returns the caller that sent r.
//
// Errors: KindNotAuthorized, KindTooManyRequests and KindUnavailable. A KindNotAuthorized error
// wraps an error with a method Challenge, which returns the WWW-Authenticate header of the
// response. KindTooManyRequests means that too many credentials from that address were refused.
// KindUnavailable means that the caller cannot be determined now.
func (a *Authenticator) Authenticate(r *http.Request) (moorage.Caller, error) {
	address := a.addressOf(r)
	caller, err := a.identify(r, address)
	if err != nil {
		return moorage.Caller{}, a.kindError(address, err)
	}
	caller.Address = address
	caller.Client = moorage.ClientOf(r.Header.Get("X-Client-Version"), r.UserAgent())
	return caller, nil
}

// Texts for clients. All faults of a credential have the same text, with one exception: the sender
// of a genuine but expired credential learns when it expired.
const (
	textNone    = "Authentication required: the request has no credentials"
	textRefused = "Invalid credentials"
	textEnded   = "The credentials expired at %s: get new ones"
)

// kindError converts the error of a failed authentication into an error with a kind. It also counts
// refused credentials.
func (a *Authenticator) kindError(address string, err error) error {
	refused, ok := errors.AsType[*refusal](err)
	if !ok {
		return err
	}
	a.note(address, refused)
	text := textRefused
	switch {
	case refused.reason == reasonNone:
		text = textNone
	case !a.failures.add(address):
		return errTooMany()
	case !refused.ended.IsZero():
		text = fmt.Sprintf(textEnded, refused.ended.UTC().Format(time.RFC3339))
	}
	return &moorage.Error{Kind: moorage.KindNotAuthorized, Message: text, Err: refused}
}

// note reports a refusal to Config.Refused. If the credential is a key that was once valid, note
// also writes a log line, for the key's owner.
func (a *Authenticator) note(address string, refused *refusal) {
	a.config.Refused(address, refused.reason)
	if refused.isKey && a.dead.add(refused.reason) {
		a.config.Logger.Warn("a key is no longer valid: give its owner another one", "key", refused.reason,
			"address", address)
	}
}

func errTooMany() error {
	return moorage.Errorf(moorage.KindTooManyRequests, "Too many invalid or unknown credentials come from this address")
}

// identify authenticates with the first credential in r.
func (a *Authenticator) identify(r *http.Request, address string) (moorage.Caller, error) {
	if strings.Contains(r.URL.RawQuery, "access_token=") { // refused, because logs and proxies store the query
		return moorage.Caller{}, refuse(reasonMalformed)
	}
	switch headers := r.Header["Authorization"]; len(headers) {
	case 0:
		if a.config.Certificates && r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
			return callerOfCertificate(r.TLS.VerifiedChains[0][0])
		}
		return moorage.Caller{}, refuse(reasonNone)
	case 1:
		return a.authorizeOn(r.Context(), headers[0], address)
	}
	return moorage.Caller{}, refuse(reasonMalformed)
}

// authorize checks the credential in header, which is the value of the request's Authorization
// header.
func (a *Authenticator) authorize(ctx context.Context, header, address string) (accepted, error) {
	scheme, credential, found := strings.Cut(header, " ")
	switch {
	case len(header) > tokenBytesMax:
		return accepted{}, refuse(reasonTooLong)
	case !found || credential == "":
		return accepted{}, refuse(reasonMalformed)
	case strings.EqualFold(scheme, "Bearer"):
		return a.bearer(ctx, credential, address)
	case strings.EqualFold(scheme, "Basic"):
		id, secret, ok := parseBasic(credential)
		if !ok {
			return accepted{}, refuse(reasonMalformed)
		}
		return a.checkKey(ctx, id, secret)
	}
	return accepted{}, refuse(reasonMalformed)
}

// parseBasic returns the API key in a credential of the scheme Basic. The credential is an id and a
// secret, separated by a colon. Java sends a whole key without a colon; that is accepted too.
func parseBasic(credential string) (id, secret string, ok bool) {
	text, err := base64.StdEncoding.DecodeString(credential)
	if err != nil {
		return "", "", false
	}
	clientID, clientSecret, found := strings.Cut(string(text), ":")
	if !found {
		clientID, clientSecret = "", clientID
	}
	return parsePair(clientID, clientSecret)
}

// bearer checks the bearer token text.
func (a *Authenticator) bearer(ctx context.Context, text, address string) (accepted, error) {
	if LooksLikeKey(text) {
		id, secret, ok := parseAPIKey(text)
		if !ok {
			return accepted{}, refuse(reasonMalformed)
		}
		return a.checkKey(ctx, id, secret)
	}
	now, hash := a.config.Now(), sha256.Sum256([]byte(text))
	found, isKnown := a.verified.GetIfPresent(hash)
	if isKnown && now.Before(found.until) && (found.issuer == nil || found.issuer.keys() == found.set) {
		return a.checkAlive(ctx, found.caller, found.until)
	}
	if !a.failures.allows(address) {
		return accepted{}, errTooMany()
	}
	t, err := parseToken(text)
	if err != nil {
		return accepted{}, err
	}
	made := &verified{until: now.Add(verifiedFor)}
	if made.caller, err = a.verify(ctx, t, address, made); err != nil {
		return accepted{}, err
	}
	if made.caller.Ends.Before(made.until) {
		made.until = made.caller.Ends
	}
	a.verified.Set(hash, made)
	return a.checkAlive(ctx, made.caller, made.until)
}

// verify returns the caller of a token that was sent from address. It records in made how the token
// was verified.
func (a *Authenticator) verify(ctx context.Context, t *token, address string, made *verified) (
	caller moorage.Caller, err error) {
	from, ok := t.claims.text("iss")
	if !ok {
		return moorage.Caller{}, refuse(reasonClaims)
	}
	if strings.HasPrefix(from, ownIssuer) {
		return a.verifyOwn(ctx, t, address)
	}
	if made.issuer, ok = a.issuers[from]; !ok {
		return moorage.Caller{}, refuse(reasonIssuer)
	}
	caller, made.set, err = made.issuer.verify(ctx, t)
	return caller, err
}

// newJitter returns a random source that is not shared. Its seed is drawn from source.
func newJitter(source *mathrand.Rand) *mathrand.Rand {
	return mathrand.New(mathrand.NewPCG(source.Uint64(), source.Uint64()))
}
