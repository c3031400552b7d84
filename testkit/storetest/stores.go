// Package storetest opens stores of every kind for tests. The PostgreSQL stores share one server.
// The first test that needs one starts the server, and Main stops it.
package storetest

import (
	"crypto/rand"
	"io"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"moorage/registry"
	"moorage/registry/memory"
	"moorage/registry/pebble"
	"moorage/registry/postgres"
	"moorage/testkit/pgserver"
)

// Stores opens the stores of the tests of a package. Its zero value is ready to use. It is safe for
// concurrent use.
type Stores struct {
	// Database is the server of the PostgreSQL stores. It starts when a test first needs it.
	Database pgserver.Shared
}

// Main runs the tests of a package. The package's TestMain calls it.
func (s *Stores) Main(m *testing.M) { s.Database.Main(m) }

// Each runs a test over every kind of store. Each store is new.
func (s *Stores) Each(t *testing.T, test func(t *testing.T, store registry.Store)) {
	t.Helper()
	for name, open := range s.Kinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t, rand.Reader))
		})
	}
}

// Open opens a new store that draws from random. The test closes it.
type Open func(t testing.TB, random io.Reader) registry.Store

// Kinds returns a function for each kind of store, by the kind's name: memory, pebble, postgres.
// The function opens a store of that kind.
func (s *Stores) Kinds() map[string]Open {
	return map[string]Open{
		"memory": func(_ testing.TB, random io.Reader) registry.Store { return memory.New(random) },
		"pebble": OpenPebble,
		"postgres": func(t testing.TB, random io.Reader) registry.Store {
			return OpenNode(t, s.NewDatabase(t), random)
		},
	}
}

// OpenPebble opens a Pebble store on a file system in memory. It is an Open.
func OpenPebble(t testing.TB, random io.Reader) registry.Store {
	t.Helper()
	store, err := pebble.Open("store", pebble.Options{FS: vfs.NewMem(), Random: random})
	return opened(t, store, err)
}

// NewDatabase returns the DSN of an empty database with the tables of a store.
func (s *Stores) NewDatabase(t testing.TB) string {
	t.Helper()
	dsn, err := s.Database.Schema(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	return dsn
}

// OpenPostgres returns a store over a database, for one node.
func OpenPostgres(t testing.TB, dsn string) registry.Store {
	t.Helper()
	return OpenNode(t, dsn, rand.Reader)
}

// OpenNode is like OpenPostgres, with a source of random bits.
func OpenNode(t testing.TB, dsn string, random io.Reader) registry.Store {
	t.Helper()
	store, err := postgres.Open(t.Context(), dsn+"&pool_max_conns=8",
		postgres.Options{Random: random, AcquireTimeout: time.Minute})
	return opened(t, store, err)
}

// opened returns a store that is closed after the test.
func opened(t testing.TB, store registry.Store, err error) registry.Store {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}
