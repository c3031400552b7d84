package catalog_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/ledger"
	"moorage/locks"
	"moorage/registry"
	memoryregistry "moorage/registry/memory"
	"moorage/registry/pebble"
	"moorage/storage"
	"moorage/storage/file"
	memorystorage "moorage/storage/memory"
	"moorage/testkit/catalogkit"
	"moorage/testkit/histories"
	"moorage/testkit/registrytest"
	"moorage/testkit/scale"
)

// historySystem is the system under test: nodes that share a store and files.
type historySystem struct {
	nodes []*catalogkit.Instance
	gates []*turnstile         // one for each node; if empty, no commit is held
	clean *catalogkit.Instance // over the store without faults
	files *createdFiles
	// If faults is true, any call may fail with KindUnavailable.
	faults bool
	// disturb, if not nil, is called by the clients now and then, to let late writes happen.
	disturb func(ctx context.Context) error
}

// historyParts are the parts of a system that tests vary.
type historyParts struct {
	store  registry.Store   // with faults, as each node sees it
	stores []registry.Store // or one for each node
	locks  func() locks.Manager
	nodes  int
	open   func(roots []string) (storage.Store, error) // default: files in memory
	root   string                                      // of the warehouse; default file:///wh
	random *lockedRandom
}

// newHistorySystem returns nodes over parts. It creates the warehouse and the namespaces through
// clean, the store without faults.
func newHistorySystem(t testing.TB, clean registry.Store, parts historyParts) *historySystem {
	t.Helper()
	if parts.open == nil {
		files := memorystorage.New()
		parts.open = func(roots []string) (storage.Store, error) { return files.Within(roots) }
		parts.root = "file:///wh"
	}
	system := &historySystem{files: newCreatedFiles()}
	config := catalog.Config{
		Deps:  registrytest.LedgerDeps(ledger.Config{Store: clean, Now: newClock().Now, Random: parts.random}),
		Locks: locks.GrantAll{},
		OpenStorage: func(place storage.Place) (storage.Store, error) {
			opened, err := parts.open(place.Roots)
			return recordingStorage{opened, system.files}, err
		},
	}
	var err error
	if system.clean, err = catalogkit.NewInstance(config); err != nil {
		t.Fatal(err)
	}
	if _, err := system.clean.Warehouses().Create(t.Context(), warehouses.Spec{Name: catalogkit.Warehouse, Location: parts.root}); err != nil {
		t.Fatal(err)
	}
	for group := range historyGroups {
		if _, err := system.clean.CreateNamespace(t.Context(), catalogkit.Warehouse, groupNamespace(group), nil); err != nil {
			t.Fatal(err)
		}
	}
	config.Store, config.Locks = parts.store, parts.locks()
	for i := range parts.nodes {
		if parts.stores != nil {
			config.Store = parts.stores[i]
		}
		node, err := catalogkit.NewInstance(config)
		if err != nil {
			t.Fatal(err)
		}
		system.nodes = append(system.nodes, node)
	}
	return system
}

func localLocks() locks.Manager { return locks.NewLocal(locks.LocalConfig{}) }

// Many clients change and read a few tables concurrently. The history must be linearizable: in some
// order of all calls, a single client would get the same answers. Every version of a table consists
// of the previous version and exactly one commit.
func TestHistory(t *testing.T) {
	t.Parallel()
	small := historySize{writers: 32, commits: 40 / scale.Factor, readers: 4, reads: 60}
	tests := []struct {
		name string
		size historySize
		make func(t *testing.T, random *lockedRandom) *historySystem
	}{
		{"local locks", historySize{writers: 32, commits: 200 / scale.Factor, readers: 4, reads: 300}, memorySystem(localLocks, 1)},
		{"no locks", small, memorySystem(catalogkit.NoLocks, 1)},
		{"two nodes", small, memorySystem(catalogkit.NoLocks, 2)},
		{"lost and late answers", small, faultySystem},
		{"outcomes that stay unknown", small, unansweredSystem},
		{"three nodes on PostgreSQL", small, postgresSystem(catalogkit.NoLocks, 3)},
		{"lost and late answers on PostgreSQL", small, faultyPostgresSystem},
		{"on disk", historySize{writers: 16, commits: 25, readers: 2, reads: 30}, diskSystem},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			seed := catalogkit.NewSeed(t)
			system := tt.make(t, newLockedRandom(seed))
			history := runHistory(t.Context(), system, tt.size, seed)
			if err := history.Failure; err != nil {
				t.Fatal(err)
			}
			t.Log(history.Summary())
			checker, err := histories.NewChecker(system.files.all(), system.faults)
			if err != nil {
				t.Fatal(err)
			}
			checker.Check(t, history.Events)
			catalogkit.WantClean(t, system.clean)
		})
	}
}

// memorySystem is a system that never fails.
func memorySystem(manager func() locks.Manager, nodes int) func(*testing.T, *lockedRandom) *historySystem {
	return func(t *testing.T, random *lockedRandom) *historySystem {
		store := memoryregistry.New(random)
		return newHistorySystem(t, store, historyParts{store: store, locks: manager, nodes: nodes, random: random})
	}
}

// faultySystem is a system of two nodes. Its store loses some answers, makes some writes late, and
// refuses some calls.
func faultySystem(t *testing.T, random *lockedRandom) *historySystem {
	return faultySystemOver(t, memoryregistry.New(random), random)
}

// faultySystemOver is faultySystem over a store.
func faultySystemOver(t *testing.T, store registry.Store, random *lockedRandom) *historySystem {
	chance := random.Rand()
	faulty := registrytest.Faulty(store, func(_ int, method string) registrytest.Action {
		n := chance.IntN(1000)
		switch {
		case n < 5:
			return registrytest.Fail
		case n < 40 && method == registrytest.MethodApply:
			return registrytest.Lose
		case n < 75 && method == registrytest.MethodApply:
			return registrytest.Delay
		}
		return registrytest.Pass
	})
	system := newHistorySystem(t, store, historyParts{store: faulty, locks: catalogkit.NoLocks, nodes: 2, random: random})
	system.faults = true
	system.disturb = func(ctx context.Context) error { return lateAnswers(faulty.Release(ctx)) }
	return system
}

// lateAnswers returns the unexpected errors among the answers of late writes. A late write may
// succeed or be refused.
func lateAnswers(answers []error) error {
	var failures []error
	for _, err := range answers {
		if _, refused := registry.FailedCondition(err); err != nil && !refused {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// unansweredSystem is a system of two nodes. Its store never reveals the outcome of some writes.
func unansweredSystem(t *testing.T, random *lockedRandom) *historySystem {
	store := memoryregistry.New(random)
	unanswered := newUnansweredStore(store, random.Rand())
	system := newHistorySystem(t, store, historyParts{store: unanswered, locks: catalogkit.NoLocks, nodes: 2, random: random})
	system.faults = true
	system.disturb = unanswered.release
	t.Cleanup(func() {
		if len(unanswered.silent) == 0 {
			t.Error("no outcome was unknown, so nothing was shown")
		}
	})
	return system
}

// diskSystem is one node with the same kinds of stores as a server.
func diskSystem(t *testing.T, random *lockedRandom) *historySystem {
	dir := t.TempDir()
	store, err := pebble.Open(filepath.Join(dir, "store"), pebble.Options{Random: random})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	root := "file://" + filepath.Join(dir, "warehouse")
	return newHistorySystem(t, store, historyParts{
		store: store, locks: localLocks, nodes: 1, random: random, root: root,
		open: func(roots []string) (storage.Store, error) {
			opened, err := file.New(roots)
			if err == nil {
				t.Cleanup(func() { opened.Close() })
			}
			return opened, err
		},
	})
}
