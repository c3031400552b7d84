package recovery_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"moorage/internal/pgtest"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/registry/pebble"
	"moorage/registry/postgres"
)

// database starts the server of the tests that want one.
var database = sync.OnceValues(func() (*pgtest.Server, error) {
	return pgtest.Start("fsync=off", "synchronous_commit=off", "full_page_writes=off")
})

// databaseUsed is set by the first test that wants a database.
var databaseUsed sync.Once

func TestMain(m *testing.M) {
	code := m.Run()
	unused := false
	databaseUsed.Do(func() { unused = true })
	if !unused {
		if server, err := database(); err == nil {
			if err := server.Stop(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}
	}
	os.Exit(code)
}

// eachStore runs a test over every kind of store, each new.
func eachStore(t *testing.T, test func(t *testing.T, store registry.Store)) {
	t.Helper()
	for name, open := range map[string]func(testing.TB) (registry.Store, error){
		"memory": func(testing.TB) (registry.Store, error) { return memory.New(rand.Reader), nil },
		"pebble": func(testing.TB) (registry.Store, error) {
			return pebble.Open("store", pebble.Options{FS: vfs.NewMem(), Random: rand.Reader})
		},
		"postgres": openPostgres,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, err := open(t)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := store.Close(); err != nil {
					t.Error(err)
				}
			})
			test(t, store)
		})
	}
}

func openPostgres(t testing.TB) (registry.Store, error) {
	databaseUsed.Do(func() {})
	server, err := database()
	if err != nil {
		return nil, err
	}
	dsn, err := server.NewSchema(t.Context(), "test_"+strings.ToLower(rand.Text()))
	if err != nil {
		return nil, err
	}
	if _, err := postgres.Migrate(t.Context(), dsn); err != nil {
		return nil, err
	}
	return postgres.Open(t.Context(), dsn+"&pool_max_conns=8", postgres.Options{Random: rand.Reader, AcquireTimeout: time.Minute})
}
