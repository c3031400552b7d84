package gcpkms

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"moorage/secrets/keyservice"
)

const (
	// scope is what tokens are for.
	scope = "https://www.googleapis.com/auth/cloudkms"
	// tokenLeftMin is how long a token must be good for when it is used. A machine's account has
	// the same one until some four minutes before its end.
	tokenLeftMin = 225 * time.Second
)

// tokens keeps the token of the process. It is safe for concurrent use.
type tokens struct {
	http *http.Client // whose requests have an end
	now  func() time.Time

	// mu guards the field below; a leaf, never held over a call.
	mu   sync.Mutex
	kept *oauth2.Token // nil: none
}

// get returns a token. Those who ask at the same time may each make one. It ends with ctx, also
// where what makes the token goes on.
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
	// Not all of the package oauth2 heeds a context. What it asks has an end of its own.
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

// fetch makes a token of what the environment has.
func fetch(ctx context.Context) (*oauth2.Token, error) {
	found, err := google.FindDefaultCredentials(ctx, scope)
	if err != nil {
		return nil, fmt.Errorf("there are no credentials for Cloud KMS: none come from the environment "+
			"(GOOGLE_APPLICATION_CREDENTIALS), gcloud's files or the machine's account: %w", err)
	}
	made, err := found.TokenSource.Token()
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return nil, fmt.Errorf("get a token for Cloud KMS: %s", keyservice.Words(refused.Error()))
	}
	if err != nil {
		return nil, fmt.Errorf("get a token for Cloud KMS: %w", err)
	}
	return made, nil
}

// forget has the next request make a token.
func (t *tokens) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = nil
}
