package adls_test

import (
	"os"
	"sync"
	"testing"
	"time"

	"moorage/storage"
	"moorage/storage/adls"
	"moorage/testkit/fakecloud"
	"moorage/testkit/storagetest"
)

// TestStore runs the suite over an account without a hierarchical namespace.
func TestStore(t *testing.T) {
	t.Parallel()
	newStore := func(t *testing.T) (storage.Store, string) {
		server := fakecloud.StartAzure(t)
		root := server.NewContainer(t) + "/w"
		return open(t, emulated(server), root), root
	}
	storagetest.Run(t, newStore)
	storagetest.RunLister(t, newStore)
}

// TestStoreOfLake runs the suite over an account with a hierarchical namespace, with a token.
func TestStoreOfLake(t *testing.T) {
	t.Parallel()
	newStore := func(t *testing.T) (storage.Store, string) {
		lake := fakecloud.StartLake(t)
		root := lake.Behind.NewContainer(t) + "/w"
		return open(t, identified(t, lake), root), root
	}
	storagetest.Run(t, newStore)
	storagetest.RunLister(t, newStore)
}

// emulated returns options for the emulator. Their timeouts are long, so that a slow machine does
// not look like a silent server.
func emulated(server *fakecloud.AzureServer) adls.Options {
	return adls.Options{Endpoint: server.Endpoint, AccountKey: fakecloud.AzureAccountKey, StallTimeout: time.Minute}
}

// identity guards the setting of this process's identity for the simulated account.
var identity sync.Once

// identified returns options for the simulated account.
func identified(t *testing.T, lake *fakecloud.Lake) adls.Options {
	t.Helper()
	identity.Do(func() {
		for name, value := range lake.Environment(t) {
			if err := os.Setenv(name, value); err != nil {
				t.Fatal(err)
			}
		}
	})
	return adls.Options{Endpoint: lake.Endpoint, Trusted: lake.Endpoint, Hierarchical: true, StallTimeout: time.Minute}
}

func open(t *testing.T, options adls.Options, roots ...string) *adls.Store {
	t.Helper()
	client, err := adls.Connect(options)
	if err != nil {
		t.Fatal(err)
	}
	store, err := client.Within(roots)
	if err != nil {
		t.Fatal(err)
	}
	return store
}
