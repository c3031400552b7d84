package main

import (
	"bytes"
	"crypto/rand"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"moorage"
	"moorage/catalog"
	"moorage/internal/cli"
	"moorage/ledger"
	"moorage/locks"
	"moorage/maintenance/policy"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/storage"
	memorystorage "moorage/storage/memory"
	"moorage/testkit/registrytest"
)

// TestPoliciesAreReadAgain checks that a process finds a policy that it has missed, even if no
// other process uses the store. A damaged record of pauses must not prevent that.
func TestPoliciesAreReadAgain(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	logger, store := slog.New(slog.NewTextHandler(&log, nil)), memory.New(rand.Reader)
	deps := registrytest.LedgerDeps(ledger.Config{Store: store, Logger: logger})
	made, err := catalog.New(catalog.Config{
		Deps: deps, Locks: locks.NewLocal(locks.LocalConfig{}),
		OpenStorage: func(storage.Place) (storage.Store, error) { return memorystorage.New(), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := newMaintenance(cli.Config{}, deps, made.As(moorage.System("node")),
		newClock(deps, func() *catalog.Catalog { return made }), prometheus.NewRegistry(), func() {})
	if err != nil {
		t.Fatal(err)
	}
	apply := func(key registry.Key, value []byte) {
		t.Helper()
		_, err := store.Apply(t.Context(), registry.Batch{Writes: []registry.Write{registry.Put(key, registry.StateNone, value)}})
		if err != nil {
			t.Fatal(err)
		}
	}
	apply(registry.PauseKey(), []byte("{"))
	if err := kept.readPolicies(t.Context()); err != nil || kept.policies.Current() == nil {
		t.Fatalf("with pauses that cannot be read: %v", err)
	}
	if !strings.Contains(log.String(), "what maintenance is paused cannot be read") {
		t.Errorf("the log says %q", log.String())
	}
	value, err := registry.Encode(registry.MaintenancePolicy{Jobs: []registry.JobPolicy{
		{Type: string(policy.SnapshotManagement), Status: string(policy.Enabled)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	apply(registry.MaintenancePolicyKey(registry.ScopeServer), value)
	if err := kept.readPolicies(t.Context()); err != nil || !kept.policies.Current().Asks() {
		t.Errorf("the policy that was missed is not known: %v", err)
	}
}
