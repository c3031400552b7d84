package main

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/internal/cli"
	"moorage/ledger"
	"moorage/locks"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/storage"
	"moorage/storage/s3"
	"moorage/testkit/fakecloud"
	"moorage/testkit/registrytest"
)

// TestStorageSaysTheTime checks that a clock three hours behind is in doubt, because the Date in
// the answers of an S3 server shows the difference. A correct clock is not in doubt.
func TestStorageSaysTheTime(t *testing.T) {
	t.Parallel()
	server := fakecloud.StartS3(t)
	for name, tt := range map[string]struct {
		off  time.Duration
		want string
	}{
		"right":  {0, ""},
		"behind": {-3 * time.Hour, "3h"},
		"ahead":  {3 * time.Hour, "3h"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bucket := server.NewBucket(t)
			now := func() time.Time { return time.Now().Add(tt.off) }
			store := memory.NewWithClock(rand.Reader, now)
			client, err := s3.Connect(t.Context(), s3.Options{
				Endpoint: server.Endpoint, Region: fakecloud.S3Region, AccessKeyID: fakecloud.S3AccessKeyID,
				SecretAccessKey: fakecloud.S3SecretAccessKey,
			})
			if err != nil {
				t.Fatal(err)
			}
			deps := registrytest.LedgerDeps(ledger.Config{Store: store, Now: now, Random: rand.Reader})
			made, err := catalog.New(catalog.Config{
				Deps: deps, Locks: locks.NewLocal(locks.LocalConfig{}),
				OpenStorage: func(place storage.Place) (storage.Store, error) { return client.Within(place.Roots) },
			})
			if err != nil {
				t.Fatal(err)
			}
			spec := warehouses.Spec{Name: "lake", Location: "s3://" + bucket + "/wh"}
			if _, err := made.As(moorage.Anonymous()).Warehouses().Create(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
			clock := newClock(deps, func() *catalog.Catalog { return made })
			why, err := clock.Doubt(t.Context())
			if err != nil || (why == "") != (tt.want == "") || !strings.Contains(why, tt.want) ||
				tt.want != "" && !strings.Contains(why, "s3://"+bucket) {
				t.Errorf("the doubt is %q, %v, want %q", why, err, tt.want)
			}
		})
	}
}

// TestResumeEndsDoubt checks that /readyz?verbose reports a clock in doubt, and that a command of
// the operator ends the doubt. The server uses only a local disk, so no storage can end the doubt.
func TestResumeEndsDoubt(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	startServe(t, "--data", data).stop()
	store, closeStore := mustOpenStore(t, data)
	value, err := registry.Encode(registry.ClockDoubt{Why: "The store's clock was set 5h ahead", Since: time.Now()})
	if err == nil {
		_, err = store.Apply(t.Context(), registry.Batch{
			Writes: []registry.Write{registry.Put(registry.ClockKey(), registry.StateNone, value)},
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	closeStore()
	server := startServe(t, "--data", data)
	doubted := func() string {
		_, body := server.request(t, "GET", "/readyz?verbose", "")
		return fmt.Sprint(strings.Contains(body, "the store's clock is in doubt"))
	}
	awaitText(t, doubted, "true")
	if got := runToEnd(t, "maintain", "resume", "server", "--uri", server.uri); got.code != cli.ExitDone {
		t.Fatalf("resume: %+v", got)
	}
	awaitText(t, doubted, "false")
}
