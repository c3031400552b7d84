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

	"moorage/storage"
	"moorage/storage/cloud"
)

const (
	// vendLifeMin is the shortest lifetime for which a credential is issued.
	vendLifeMin = 15 * time.Minute
	// rootLeftMin is the minimum remaining validity of a token from which credentials are made. The
	// credentials expire with the token, and some clients never renew them.
	rootLeftMin = 50 * time.Minute
)

// The parts of a credential, under the names of Iceberg's clients.
const (
	configToken   = "gcs.oauth2.token"
	configExpires = "gcs.oauth2.token-expires-at" // milliseconds since 1970
	configRefresh = "gcs.oauth2.refresh-credentials-endpoint"
)

// Names in the protocol for the exchange of a token for a narrowed one. Source: RFC 8693.
const (
	grantExchange   = "urn:ietf:params:oauth:grant-type:token-exchange"
	typeAccessToken = "urn:ietf:params:oauth:token-type:access_token"
)

// vender issues credentials for engines.
type vender struct {
	http   cloud.Client
	sts    string
	source *source
	roots  *tokens // from which credentials are made
	now    func() time.Time
}

func newVender(options Options, client cloud.Client, from *source) *vender {
	return &vender{
		http: client, sts: strings.TrimSuffix(options.STS, "/"), source: from,
		roots: &tokens{make: from.makerFor(scopeAll), now: time.Now}, now: time.Now,
	}
}

// Vend issues a token that is narrowed to scope. If an account is impersonated, the token's
// lifetime is the duration in scope. Otherwise the token expires with the token from which it is
// made.
func (s *Store) Vend(ctx context.Context, scope storage.Scope) (storage.Credential, error) {
	locations, err := s.roots.Scope(scope.Locations)
	if err != nil {
		return storage.Credential{}, err
	}
	narrowed, err := boundaryFor(locations, scope.Write)
	if err != nil {
		return storage.Credential{}, err
	}
	if s.client.vender == nil {
		return storage.Credential{}, fmt.Errorf("gcs: with %s=true there are no tokens for credentials", OptionNoAuth)
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

// CredentialLife returns the lifetime of a credential.
func (s *Store) CredentialLife() time.Duration { return tokenLifeMax }

// root returns the token from which a credential is made. life is the token's lifetime, or zero for
// the longest possible.
func (v *vender) root(ctx context.Context, life time.Duration) (token, error) {
	life = min(max(cmp.Or(life, tokenLifeMax), vendLifeMin), tokenLifeMax)
	if life == tokenLifeMax || v.source.impersonate == "" {
		return v.roots.get(ctx, rootLeftMin)
	}
	return v.source.fetch(ctx, scopeAll, life)
}

// narrow exchanges a token for a narrowed one. Source: Security Token Service API, token.
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
		Life  int64  `json:"expires_in"` // seconds; if missing, the lifetime of the root token
	}
	if err := exchange(v.http, sent, &made); err != nil {
		return token{}, err
	}
	ends := root.ends
	if made.Life > 0 {
		ends = asked.Add(time.Duration(made.Life) * time.Second)
	}
	if made.Token == "" || made.Token == root.value || ends.IsZero() {
		// Do not fall back to the root token, which gives full access.
		return token{}, errors.New("the response of the security token service is incomplete")
	}
	return token{made.Token, ends}, nil
}
