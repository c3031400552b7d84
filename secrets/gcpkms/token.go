package gcpkms

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
)

const (
	// scope is what tokens are for.
	scope = "https://www.googleapis.com/auth/cloudkms"
	// tokenLeftMin is how long a token must be good for when it is used. The metadata service of
	// Google's machines gives the same one until some four minutes before it ends.
	tokenLeftMin = 225 * time.Second
)

// tokens keeps the token of the process. It is safe for concurrent use.
type tokens struct {
	now func() time.Time

	// mu guards the field below; a leaf, never held over a call.
	mu   sync.Mutex
	kept *oauth2.Token // nil: none
}

// get returns a token. Those who ask at the same time may each make one.
func (t *tokens) get(ctx context.Context) (string, error) {
	t.mu.Lock()
	kept := t.kept
	t.mu.Unlock()
	if kept != nil && kept.Expiry.Sub(t.now()) >= tokenLeftMin {
		return kept.AccessToken, nil
	}
	found, err := google.FindDefaultCredentials(ctx, scope)
	if err != nil {
		return "", fmt.Errorf("there are no credentials for Cloud KMS: none come from the environment "+
			"(GOOGLE_APPLICATION_CREDENTIALS), gcloud's files or the machine's account: %w", err)
	}
	made, err := found.TokenSource.Token()
	if err != nil {
		return "", fmt.Errorf("get a token for Cloud KMS: %w", err)
	}
	t.mu.Lock()
	t.kept = made
	t.mu.Unlock()
	return made.AccessToken, nil
}

// forget has the next request make a token.
func (t *tokens) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = nil
}
