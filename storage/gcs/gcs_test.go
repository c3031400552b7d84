package gcs_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"moorage/storage"
	"moorage/storage/gcs"
	"moorage/testkit/fakecloud"
	"moorage/testkit/storagetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	newStore := func(t *testing.T) (storage.Store, string) {
		server := fakecloud.StartGoogle(t)
		root := "gs://" + server.NewBucket(t) + "/w"
		return open(t, options(server.URL), root), root
	}
	storagetest.Run(t, newStore)
	storagetest.RunLister(t, newStore)
}

// TestStoreWithTokens runs the suite against a server that requires tokens, with the key of an
// account.
func TestStoreWithTokens(t *testing.T) {
	t.Parallel()
	cloud := fakecloud.NewGoogleCloud(t)
	storagetest.Run(t, func(t *testing.T) (storage.Store, string) {
		root := "gs://" + cloud.Server.NewBucket(t) + "/w"
		return open(t, cloudOptions(t, cloud), root), root
	})
}

// options returns options for the server at url, which requires no token. Their timeouts are long,
// so that a slow machine does not look like a silent server.
func options(url string) gcs.Options {
	return gcs.Options{Endpoint: url, NoAuth: true, StallTimeout: time.Minute}
}

// cloudOptions returns options for a simulated cloud, with the key of its account.
func cloudOptions(t *testing.T, cloud *fakecloud.GoogleCloud) gcs.Options {
	t.Helper()
	return gcs.Options{
		Endpoint: cloud.URL, STS: cloud.URL, IAM: cloud.URL, TokenURL: cloud.URL + "/token", Key: cloud.KeyText(t),
		StallTimeout: time.Minute,
	}
}

func open(t *testing.T, options gcs.Options, roots ...string) *gcs.Store {
	t.Helper()
	client, err := gcs.Connect(options)
	if err != nil {
		t.Fatal(err)
	}
	store, err := client.Within(roots)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestWithinRefuses(t *testing.T) {
	t.Parallel()
	client, err := gcs.Connect(options("http://127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{"s3://bucket/a", "file:///a", "gs://Bucket/a", "gs://b'c/a", "gs://b/a", "gs:///a"} {
		if _, err := client.Within([]string{root}); !errors.Is(err, storage.ErrLocation) {
			t.Errorf("Within(%q) = %v, want ErrLocation", root, err)
		}
	}
}

// TestMissingBucket: a missing bucket does not mean that its files are gone for good.
func TestMissingBucket(t *testing.T) {
	t.Parallel()
	store := open(t, options(fakecloud.StartGoogle(t).URL), "gs://nobody-made-it/w")
	if err := store.Probe(t.Context()); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Probe = %v, want ErrNotFound", err)
	}
	if _, err := store.Stat(t.Context(), "gs://nobody-made-it/w/a"); err == nil || errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Stat = %v, want another error than ErrNotFound", err)
	}
	if err := store.Create(t.Context(), "gs://nobody-made-it/w/a", nil); err == nil || errors.Is(err, storage.ErrExists) {
		t.Errorf("Create = %v, want an error", err)
	}
}

// TestProbe: a probe leaves nothing behind. It detects a server that replaces an object although
// the request forbids that.
func TestProbe(t *testing.T) {
	t.Parallel()
	server := fakecloud.StartGoogle(t)
	bucket := server.NewBucket(t)
	proxy := fakecloud.NewProxy(t, server.URL)
	store := open(t, options(proxy.URL), "gs://"+bucket+"/w")
	if err := store.Probe(t.Context()); err != nil {
		t.Error(err)
	}
	proxy.Follow(fakecloud.Every("POST", deaf))
	if err := store.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "replaces objects") {
		t.Errorf("Probe = %v, want that the server replaces objects", err)
	}
	if names := server.Names(t, bucket); len(names) > 0 {
		t.Errorf("the probes left %q", names)
	}
}

// TestDeleteMany deletes more objects than one request can. Some of them are missing.
func TestDeleteMany(t *testing.T) {
	t.Parallel()
	server := fakecloud.StartGoogle(t)
	bucket := server.NewBucket(t)
	proxy := fakecloud.NewProxy(t, server.URL)
	root := "gs://" + bucket + "/w"
	store := open(t, options(proxy.URL), root)
	var locations []string
	for i := range 205 {
		location := storage.Join(root, "a"+strings.Repeat("b", i))
		locations = append(locations, location)
		if i%3 > 0 {
			continue
		}
		if err := store.Create(t.Context(), location, []byte("body")); err != nil {
			t.Fatal(err)
		}
	}
	proxy.Follow(nil)
	if err := store.Delete(t.Context(), locations...); err != nil {
		t.Error(err)
	}
	if got, want := proxy.Requests(), "POST POST POST"; got != want {
		t.Errorf("requests %s, want %s", got, want)
	}
	if names := server.Names(t, bucket); len(names) > 0 {
		t.Errorf("%d objects are left", len(names))
	}
}
