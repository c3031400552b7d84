package keyservice

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
)

const (
	// scope is the OAuth scope of the tokens.
	scope = "https://www.googleapis.com/auth/cloudkms"
	// tokenLeftMin is the minimum remaining validity of a token in use. The metadata service of
	// Google's machines returns the same token until about four minutes before it expires.
	tokenLeftMin = 225 * time.Second
)

// tokens caches the token of the process. It is safe for concurrent use.
type tokens struct {
	http *http.Client // its requests have a timeout
	now  func() time.Time

	// mu guards the field below. While mu is held, no lock is taken and no request is sent.
	mu   sync.Mutex
	kept *oauth2.Token // nil if there is no token
}

// get returns a token. Concurrent callers may each request a new token. get returns when ctx ends,
// even if the request for the token continues.
func (t *tokens) get(ctx context.Context) (string, error) {
	t.mu.Lock()
	kept := t.kept
	t.mu.Unlock()
	if kept != nil && kept.Expiry.Sub(t.now()) >= tokenLeftMin {
		return kept.AccessToken, nil
	}
	type result struct {
		made *oauth2.Token
		err  error
	}
	done := make(chan result, 1)
	// Parts of package oauth2 ignore the context, but their requests have their own timeout.
	go func() {
		made, err := fetch(context.WithValue(ctx, oauth2.HTTPClient, t.http))
		done <- result{made, err}
	}()
	select {
	case got := <-done:
		if got.err != nil {
			return "", got.err
		}
		t.mu.Lock()
		t.kept = got.made
		t.mu.Unlock()
		return got.made.AccessToken, nil
	case <-ctx.Done():
		return "", fmt.Errorf("get a token for Cloud KMS: %w", context.Cause(ctx))
	}
}

// fetch creates a token with the credentials of the environment.
func fetch(ctx context.Context) (*oauth2.Token, error) {
	found, err := google.FindDefaultCredentials(ctx, scope)
	if err != nil {
		return nil, fmt.Errorf("there are no credentials for Cloud KMS: none come from the environment "+
			"(GOOGLE_APPLICATION_CREDENTIALS), gcloud's files or the machine's account: %w", err)
	}
	made, err := found.TokenSource.Token()
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return nil, fmt.Errorf("get a token for Cloud KMS: %s", Words(refused.Error()))
	}
	if err != nil {
		return nil, fmt.Errorf("get a token for Cloud KMS: %w", err)
	}
	return made, nil
}

// forget drops the cached token, so the next request gets a new one.
func (t *tokens) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = nil
}
