package purge_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/check"
	"moorage/internal/jsontext"
	"moorage/ledger"
	"moorage/locks"
	"moorage/maintenance/purge"
	"moorage/metadata"
	"moorage/registry"
	memoryregistry "moorage/registry/memory"
	"moorage/storage"
	memorystorage "moorage/storage/memory"
	"moorage/testkit"
	"moorage/testkit/registrytest"
)

type clock = testkit.Clock

var newLockedRandom = testkit.NewBits

// node is the catalog and the purges of one process.
type node struct {
	*catalog.Catalog
	worker *purge.Worker
}

func newNode(t testing.TB, config catalog.Config, interval time.Duration) *node {
	t.Helper()
	config.Alone = config.AbortPending
	config.Deps = registrytest.LedgerDeps(config.Deps.Config)
	served, err := catalog.New(config)
	must(t, err)
	worker, err := purge.New(purge.Config{
		Deps: config.Deps, Tables: served.Documents(), Interval: interval,
	})
	must(t, err)
	return &node{served.As(moorage.Anonymous()), worker}
}

func (n *node) purgeAll(ctx context.Context) error { return n.worker.RunOnce(ctx) }

func (n *node) PurgeStats() purge.Stats { return n.worker.Stats() }

// fixture is a node over stores in memory, with the warehouse "w" and the namespace "ns".
type fixture struct {
	*node
	t        testing.TB
	ctx      context.Context
	clock    *clock
	store    registry.Store
	files    storage.Store
	config   catalog.Config
	interval time.Duration // between two searches
}

// newFixture returns a fixture. change may edit the configuration before the node is made.
func newFixture(t testing.TB, change ...func(*catalog.Config)) *fixture {
	t.Helper()
	clock := testkit.NewClock()
	files, random := memorystorage.New(), newLockedRandom(1)
	var config catalog.Config
	config = catalog.Config{
		Deps: ledger.Deps{Config: ledger.Config{Store: memoryregistry.NewWithClock(random, func() time.Time {
			if config.Now == nil {
				return time.Now()
			}
			return config.Now()
		}), Now: clock.Now, Random: random}},
		Locks:       locks.NewLocal(locks.LocalConfig{}),
		OpenStorage: func(place storage.Place) (storage.Store, error) { return files.Within(place.Roots) },
	}
	for _, f := range change {
		f(&config)
	}
	f := &fixture{
		node: newNode(t, config, 0), t: t, ctx: t.Context(), clock: clock, store: config.Store, files: files, config: config,
	}
	_, err := f.Warehouses().Create(f.ctx, warehouses.Spec{Name: "w", Location: "file:///wh"})
	must(t, err)
	_, err = f.CreateNamespace(f.ctx, "w", moorage.Namespace{"ns"}, nil)
	must(t, err)
	return f
}

// other returns another node over the same storages, whose records are in store.
func (f *fixture) other(store registry.Store) *node { return f.otherBy(store, 0) }

// otherBy is like other, for a node whose clock is ahead.
func (f *fixture) otherBy(store registry.Store, ahead time.Duration) *node {
	f.t.Helper()
	config := f.config
	config.Store = store
	if now := config.Now; now != nil {
		config.Now = func() time.Time { return now().Add(ahead) }
	}
	return newNode(f.t, config, f.interval)
}

var ident = testkit.Ident

const testSchema = `{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":false,"type":"long"}]}`

func (f *fixture) create(name string) *catalog.Table {
	f.t.Helper()
	table, err := f.CreateTable(f.ctx, ident(name), catalog.CreateTableRequest{Schema: []byte(testSchema)})
	must(f.t, err)
	return table
}

// commitRequest decodes a commit without requirements.
func commitRequest(t testing.TB, updates string) catalog.CommitRequest {
	t.Helper()
	checked, err := jsontext.Check([]byte(updates))
	must(t, err)
	decoded, err := metadata.DecodeUpdates(checked)
	must(t, err)
	return catalog.CommitRequest{Updates: decoded}
}

// Check checks the store of f.
func (f *fixture) Check(ctx context.Context) (check.Report, error) {
	return check.New(check.Config{Deps: registrytest.LedgerDeps(ledger.Config{Store: f.store, Now: f.config.Now}), Files: f.Documents()}).Check(ctx)
}

// wantClean fails the test unless Check finds nothing.
func (f *fixture) wantClean() {
	f.t.Helper()
	report, err := f.Check(f.ctx)
	must(f.t, err)
	for _, problem := range report.Problems {
		f.t.Errorf("check: %s", problem)
	}
}

// write changes records behind the catalog's back.
func (f *fixture) write(writes ...registry.Write) {
	f.t.Helper()
	_, err := f.store.Apply(f.ctx, registry.Batch{Writes: writes})
	must(f.t, err)
}

// put writes a value under a key.
func (f *fixture) put(key registry.Key, state registry.State, value registry.Value) {
	f.t.Helper()
	encoded, err := registry.Encode(value)
	must(f.t, err)
	f.write(registry.Put(key, state, encoded))
}

// list returns all records of a table.
func (f *fixture) list(table registry.Table) []registry.Record {
	f.t.Helper()
	records, err := f.store.List(f.ctx, table, "", "", registry.ListLimitMax)
	must(f.t, err)
	return records
}

var must = testkit.Must

// appendSnapshot returns a commit that adds the first snapshot of table.
func appendSnapshot(t testing.TB, table *catalog.Table) catalog.CommitRequest {
	t.Helper()
	return commitRequest(t, fmt.Sprintf(`[{"action":"add-snapshot","snapshot":{"snapshot-id":1,"sequence-number":1,"timestamp-ms":%d,
			"manifest-list":"%s/metadata/snap-1.avro","summary":{"operation":"append"},"schema-id":0}},
		{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":1}]`,
		table.Document.LastUpdatedMS(), table.Document.Location()))
}

// wrapStorage puts wrap around each storage of a fixture.
func wrapStorage(config *catalog.Config, wrap func(storage.Store) storage.Store) {
	open := config.OpenStorage
	config.OpenStorage = func(place storage.Place) (storage.Store, error) {
		inner, err := open(place)
		if err != nil {
			return nil, err
		}
		return wrap(inner), nil
	}
}

// hookedDeletes is a storage that calls a function before each deletion.
type hookedDeletes struct {
	storage.Store
	before func()
}

func (f *hookedDeletes) Delete(ctx context.Context, locations ...string) error {
	f.before()
	return f.Store.Delete(ctx, locations...)
}

// countingStore counts the calls that would be round trips for a store on a network.
type countingStore struct {
	registry.Store
	calls atomic.Int64
}

func (s *countingStore) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	s.calls.Add(1)
	return s.Store.Get(ctx, keys...)
}

func (s *countingStore) List(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	s.calls.Add(1)
	return s.Store.List(ctx, table, prefix, after, limit)
}

func (s *countingStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	s.calls.Add(1)
	return s.Store.Apply(ctx, batch)
}

// present returns the locations at which a file exists.
func (f *fixture) present(locations []string) []string {
	f.t.Helper()
	return slices.DeleteFunc(slices.Clone(locations), func(location string) bool {
		_, err := f.files.Stat(f.ctx, location)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			f.t.Fatal(err)
		}
		return err != nil
	})
}
