package gcs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"moorage/internal/impatient"
	"moorage/storage"
)

const (
	// vendLifeMin is the shortest time that a credential is made for.
	vendLifeMin = 15 * time.Minute
	// rootLeftMin is how long a token must be good for that credentials are made from: they end
	// with it, and some clients never ask again.
	rootLeftMin = 50 * time.Minute
)

// The parts of a credential, by the names that Iceberg's clients have for them.
const (
	configToken   = "gcs.oauth2.token"
	configExpires = "gcs.oauth2.token-expires-at" // milliseconds since 1970
	configRefresh = "gcs.oauth2.refresh-credentials-endpoint"
)

// Names of the protocol by which a token is narrowed. Source: RFC 8693.
const (
	grantExchange   = "urn:ietf:params:oauth:grant-type:token-exchange"
	typeAccessToken = "urn:ietf:params:oauth:token-type:access_token"
)

// vender makes credentials for engines.
type vender struct {
	http   impatient.Client
	sts    string
	source *source
	roots  *tokens // that credentials are made from
	now    func() time.Time
}

func newVender(options Options, client impatient.Client, from *source) *vender {
	return &vender{
		http: client, sts: strings.TrimSuffix(options.STS, "/"), source: from,
		roots: &tokens{make: from.of(scopeAll), now: time.Now}, now: time.Now,
	}
}

// Vend makes a token that is narrowed to what scope says. It lives for the duration that scope asks
// for if an account is impersonated, else as long as the token that it is made from.
func (s *Store) Vend(ctx context.Context, scope storage.Scope) (storage.Credential, error) {
	locations := make([]storage.Location, 0, len(scope.Locations))
	for _, location := range scope.Locations {
		parsed, err := storage.Parse(location)
		if err != nil {
			return storage.Credential{}, err
		}
		if !s.contains(parsed) {
			return storage.Credential{}, fmt.Errorf("%w: %s", storage.ErrOutside, location)
		}
		locations = append(locations, parsed)
	}
	narrowed, err := boundaryFor(locations, scope.Write)
	if err != nil {
		return storage.Credential{}, err
	}
	if s.client.vender == nil {
		return storage.Credential{}, fmt.Errorf("gcs: without tokens (%s=true) there are no credentials", OptionNoAuth)
	}
	made, err := s.client.vender.narrow(ctx, narrowed, scope.Duration)
	if err != nil && mayPass(err) && !errors.Is(err, storage.ErrUnavailable) {
		err = fmt.Errorf("%w: %w", storage.ErrUnavailable, err)
	}
	if err != nil {
		return storage.Credential{}, fmt.Errorf("gcs: make credentials: %w", err)
	}
	return storage.Credential{
		Config: map[string]string{
			configToken: made.value, configExpires: strconv.FormatInt(made.ends.UnixMilli(), 10),
		},
		Expires: made.ends, RefreshedAt: configRefresh,
	}, nil
}

// CredentialLife returns how long a credential lives.
func (s *Store) CredentialLife() time.Duration { return tokenLifeMax }

// root returns the token that a credential is made from. life is how long that is to live; zero: as
// long as it can.
func (v *vender) root(ctx context.Context, life time.Duration) (token, error) {
	life = min(max(cmp.Or(life, tokenLifeMax), vendLifeMin), tokenLifeMax)
	if life == tokenLifeMax || v.source.impersonate == "" {
		return v.roots.get(ctx, rootLeftMin)
	}
	return v.source.fetch(ctx, scopeAll, life)
}

// narrow exchanges a token for one that is narrowed. Source: Security Token Service API, token.
func (v *vender) narrow(ctx context.Context, to boundary, life time.Duration) (token, error) {
	root, err := v.root(ctx, life)
	if err != nil {
		return token{}, err
	}
	options, err := json.Marshal(to)
	if err != nil {
		return token{}, err
	}
	form := url.Values{
		"grant_type": {grantExchange}, "requested_token_type": {typeAccessToken},
		"subject_token": {root.value}, "subject_token_type": {typeAccessToken}, "options": {string(options)},
	}
	sent, err := http.NewRequestWithContext(ctx, http.MethodPost, v.sts+"/v1/token", strings.NewReader(form.Encode()))
	if err != nil {
		return token{}, err
	}
	sent.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	asked := v.now()
	var made struct {
		Token string `json:"access_token"`
		Life  int64  `json:"expires_in"` // seconds; missing: that of the root
	}
	if err := exchange(v.http, sent, &made); err != nil {
		return token{}, err
	}
	ends := root.ends
	if made.Life > 0 {
		ends = asked.Add(time.Duration(made.Life) * time.Second)
	}
	if made.Token == "" || made.Token == root.value || ends.IsZero() {
		// The token that was to be narrowed opens everything.
		return token{}, errors.New("the answer of the security token service is not whole")
	}
	return token{made.Token, ends}, nil
}
