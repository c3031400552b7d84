package gcs_test

import (
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"moorage/storage"
	"moorage/testkit/fakecloud"
)

// TestTokensAreKept: concurrent callers share one token, which is used until shortly before it
// expires.
func TestTokensAreKept(t *testing.T) {
	t.Parallel()
	cloud := fakecloud.NewGoogleCloud(t)
	tokens := fakecloud.NewProxy(t, cloud.URL)
	with := cloudOptions(t, cloud)
	with.TokenURL = tokens.URL + "/token"
	root := "gs://" + cloud.Server.NewBucket(t) + "/w"
	store := open(t, with, root)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := store.Stat(t.Context(), root+"/a"); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("Stat = %v, want ErrNotFound", err)
			}
		})
	}
	all.Wait()
	if got := tokens.Requests(); got != "POST" {
		t.Errorf("tokens were asked for by %q, want POST", got)
	}
}

// TestTokensNearTheirEnd: a token that is about to expire is replaced, or still used if there is no
// other.
func TestTokensNearTheirEnd(t *testing.T) {
	t.Parallel()
	cloud := fakecloud.NewGoogleCloud(t)
	cloud.Life = 3 * time.Minute
	tokens := fakecloud.NewProxy(t, cloud.URL)
	with := cloudOptions(t, cloud)
	with.TokenURL, with.RetryDelayMax = tokens.URL+"/token", time.Millisecond
	root := "gs://" + cloud.Server.NewBucket(t) + "/w"
	store := open(t, with, root)
	create := func(name string) {
		t.Helper()
		if err := store.Create(t.Context(), storage.Join(root, name), []byte("body")); err != nil {
			t.Error(err)
		}
	}
	create("a")
	create("b")
	if got := tokens.Requests(); got != "POST POST" {
		t.Errorf("tokens were asked for by %q, want POST POST", got)
	}
	tokens.Follow(fakecloud.FirstN(100, refuse(http.StatusServiceUnavailable)))
	create("c")
}

// TestTokenServiceFails: a service that fails temporarily is tried again. One that refuses is not.
func TestTokenServiceFails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		do       fakecloud.Fault
		works    bool
		requests int
	}{
		"once unavailable": {refuse(http.StatusServiceUnavailable), true, 2},
		"cut":              {fakecloud.Cut, true, 2},
		"refuses":          {refuse(http.StatusForbidden), false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cloud := fakecloud.NewGoogleCloud(t)
			tokens := fakecloud.NewProxy(t, cloud.URL)
			with := cloudOptions(t, cloud)
			with.TokenURL, with.RetryDelayMax = tokens.URL+"/token", time.Millisecond
			root := "gs://" + cloud.Server.NewBucket(t) + "/w"
			tokens.Follow(fakecloud.Nth(0, tt.do))
			err := open(t, with, root).Create(t.Context(), root+"/a", []byte("body"))
			if (err == nil) != tt.works {
				t.Errorf("Create = %v, want it to work: %t", err, tt.works)
			}
			if got := len(strings.Fields(tokens.Requests())); got != tt.requests {
				t.Errorf("%d tokens were asked for, want %d", got, tt.requests)
			}
		})
	}
}

// TestNoCredentials: without credentials, the error reports where they were looked for.
func TestNoCredentials(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "none.json"))
	with := options("http://127.0.0.1:1")
	with.NoAuth = false
	err := open(t, with, "gs://bucket/w").Probe(t.Context())
	if err == nil || !strings.Contains(err.Error(), "there are no credentials for Google Cloud Storage") {
		t.Errorf("Probe = %v, want that there are no credentials", err)
	}
}
