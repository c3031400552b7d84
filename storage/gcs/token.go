package gcs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"golang.org/x/oauth2/jwt"
	"golang.org/x/sync/singleflight"

	"moorage/storage"
	"moorage/storage/cloud"
)

const (
	// tokenLeftMin is the minimum remaining validity of a token in use. The metadata service of
	// Google's machines returns the same token until about four minutes before it expires.
	tokenLeftMin = 225 * time.Second
	// tokenLifeMax is the lifetime of a token.
	tokenLifeMax = time.Hour
	// tokenTimeout is the timeout of issuing a token.
	tokenTimeout = 10 * time.Second
)

// Scopes of tokens. A token that is used to get narrowed or impersonated tokens needs the full
// scope.
const (
	scopeStorage = "https://www.googleapis.com/auth/devstorage.read_write"
	scopeAll     = "https://www.googleapis.com/auth/cloud-platform"
)

// token gives the access of its account, until it expires.
type token struct {
	value string
	ends  time.Time
}

// maker issues a token. Only one goroutine calls it at a time.
type maker func(ctx context.Context) (token, error)

// tokens caches a token, and gets the next token before the cached one expires. It is safe for
// concurrent use.
type tokens struct {
	make   maker
	now    func() time.Time
	flight singleflight.Group

	// mu guards the field below. No other lock is taken while it is held.
	mu   sync.Mutex
	kept token
}

// get returns a token that is valid for at least the duration left. If the maker's tokens do not
// last that long, get returns a new token. Concurrent callers wait for the same new token, each
// until its context ends. If no token can be issued, get returns the last one until it expires.
func (t *tokens) get(ctx context.Context, left time.Duration) (token, error) {
	t.mu.Lock()
	kept := t.kept
	t.mu.Unlock()
	if kept.ends.Sub(t.now()) >= left {
		return kept, nil
	}
	done := t.flight.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tokenTimeout)
		defer cancel()
		made, err := t.make(ctx)
		if err == nil {
			t.mu.Lock()
			t.kept = made
			t.mu.Unlock()
		}
		return made, err
	})
	select {
	case result := <-done:
		if result.Err != nil && kept.ends.Sub(t.now()) > tokenTimeout {
			return kept, nil
		}
		made, _ := result.Val.(token)
		return made, result.Err
	case <-ctx.Done():
		return token{}, context.Cause(ctx)
	}
}

// source issues tokens of the account in the options.
type source struct {
	http        cloud.Client
	key         *jwt.Config // nil for the environment's credentials
	impersonate string
	iam         string
}

func newSource(options Options, client cloud.Client) (*source, error) {
	made := &source{http: client, impersonate: options.Impersonate, iam: strings.TrimSuffix(options.IAM, "/")}
	if options.Key == "" {
		return made, nil
	}
	key, err := parseKey(options.Key)
	if err != nil {
		return nil, err
	}
	key.TokenURL = cmp.Or(options.TokenURL, key.TokenURL)
	made.key = key
	return made, nil
}

// parseKey parses the key of a service account. The result always uses Google's address for tokens,
// because the address in a key could be another server, which would receive the signed assertion.
// Errors contain no part of the key.
func parseKey(text string) (*jwt.Config, error) {
	key, err := google.JWTConfigFromJSON([]byte(text))
	if err != nil || key.Email == "" || len(key.PrivateKey) == 0 {
		return nil, errors.New(`gcs: a secret is the key of a service account, ` +
			`the JSON file with "type": "service_account"`)
	}
	key.TokenURL = google.JWTTokenURL
	return key, nil
}

// makerFor returns a maker of tokens that have the given scope and the longest possible lifetime.
func (s *source) makerFor(scope string) maker {
	return func(ctx context.Context) (token, error) { return s.fetch(ctx, scope, tokenLifeMax) }
}

// fetch issues a token with a scope. Only tokens of an impersonated account can have a lifetime
// other than tokenLifeMax.
func (s *source) fetch(ctx context.Context, scope string, life time.Duration) (token, error) {
	if s.impersonate == "" {
		return s.own(ctx, scope)
	}
	own, err := s.own(ctx, scopeAll)
	if err != nil {
		return token{}, err
	}
	var made struct {
		Token string    `json:"accessToken"`
		Ends  time.Time `json:"expireTime"`
	}
	at := s.iam + "/v1/projects/-/serviceAccounts/" + s.impersonate + ":generateAccessToken"
	err = s.post(ctx, at, own.value, map[string]any{
		"scope": []string{scope}, "lifetime": fmt.Sprintf("%ds", int(life.Seconds())),
	}, &made)
	if err == nil && (made.Token == "" || made.Ends.IsZero()) {
		err = errors.New("the response is incomplete")
	}
	if err != nil {
		return token{}, fmt.Errorf("get a token of %s: %w", s.impersonate, err)
	}
	return token{made.Token, made.Ends}, nil
}

// noCredentials wraps storage.ErrNoCredentials and its cause.
type noCredentials struct{ cause error }

// Error implements error.
func (n noCredentials) Error() string {
	return "there are no credentials for Google Cloud Storage: none are set, and none come from the environment " +
		"(GOOGLE_APPLICATION_CREDENTIALS), gcloud's files or the machine's account: " + n.cause.Error()
}

// Unwrap returns storage.ErrNoCredentials and the cause.
func (n noCredentials) Unwrap() []error { return []error{storage.ErrNoCredentials, n.cause} }

// own issues a token of the account itself, without impersonation.
func (s *source) own(ctx context.Context, scope string) (token, error) {
	ctx = context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Transport: transport{s.http}})
	var from oauth2.TokenSource
	if s.key != nil {
		key := *s.key
		key.Scopes = []string{scope}
		from = key.TokenSource(ctx)
	} else {
		found, err := google.FindDefaultCredentials(ctx, scope)
		if err != nil {
			return token{}, noCredentials{err}
		}
		from = found.TokenSource
	}
	made, err := from.Token()
	if err != nil {
		return token{}, tokenError(err)
	}
	return token{made.AccessToken, made.Expiry}, nil
}

// tokenError returns the error for a service that issued no token. If the service refused, the
// error has its status and message. Otherwise the service did not answer.
func tokenError(err error) error {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && refused.Response != nil {
		answer := *refused.Response
		answer.Body = io.NopCloser(bytes.NewReader(refused.Body))
		return fmt.Errorf("get a token: %w", newStatusError(&answer))
	}
	return fmt.Errorf("%w: get a token: %w", storage.ErrUnavailable, err)
}

// post sends a JSON document and decodes the document in the answer.
func (s *source) post(ctx context.Context, url, bearer string, document, answered any) error {
	body, err := json.Marshal(document)
	if err != nil {
		return err
	}
	sent, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	sent.Header.Set("Content-Type", "application/json")
	sent.Header.Set("Authorization", "Bearer "+bearer)
	return exchange(s.http, sent, answered)
}

// exchange sends a request and decodes the document in the answer.
func exchange(client cloud.Client, sent *http.Request, answered any) error {
	answer, err := client.Do(sent)
	if err != nil {
		return err
	}
	if answer.StatusCode/100 != 2 {
		defer answer.Body.Close()
		return newStatusError(answer)
	}
	return readJSON(answer, answered)
}

// transport sends the requests of the package oauth2.
type transport struct{ client cloud.Client }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	return t.client.Do(request)
}
