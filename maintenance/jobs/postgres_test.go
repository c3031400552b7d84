package jobs_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"moorage/internal/pgtest"
	"moorage/registry"
	"moorage/registry/postgres"
	"moorage/storage/storagetest"
)

// database starts the server of the tests that want one.
var database = sync.OnceValues(func() (*pgtest.Server, error) {
	// What a test's server forgets in a power cut does not matter here.
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

// inPostgres makes a store in an empty database. Its clock is the database's.
func inPostgres(t testing.TB, random *lockedRandom, _ func() time.Time) registry.Store {
	t.Helper()
	databaseUsed.Do(func() {})
	server, err := database()
	must(t, err)
	dsn, err := server.NewSchema(t.Context(), "test_"+strings.ToLower(rand.Text()))
	must(t, err)
	_, err = postgres.Migrate(t.Context(), dsn)
	must(t, err)
	store, err := postgres.Open(t.Context(), dsn+"&pool_max_conns=4", postgres.Options{Random: random, AcquireTimeout: time.Minute})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	return store
}

// crashStride is how many calls the short form passes over between two that meet a fault.
const crashStride = 9

// TestCrashEveryCallOverPostgres is TestCrashEveryCall over PostgreSQL, whose clock no test moves:
// files go at once. The short form lets a part of the calls be the last.
func TestCrashEveryCallOverPostgres(t *testing.T) {
	t.Parallel()
	for at, kind := range kindsWith(0, 0) {
		for _, action := range []storagetest.Action{storagetest.Fail, storagetest.Lose, storagetest.Die, storagetest.DieAfter} {
			stride, first := 1, 0
			if !*every {
				if action != storagetest.DieAfter {
					continue
				}
				stride, first = crashStride, 3*at
			}
			t.Run(fmt.Sprintf("%s/%d", kind.name, action), func(t *testing.T) {
				t.Parallel()
				for k := first; ; k += stride {
					survived := false
					t.Run(fmt.Sprint(k), func(t *testing.T) { survived = crash(t, inPostgres, kind, k, int(action)) })
					if survived || t.Failed() {
						if k < 15 {
							t.Errorf("only %d calls were met", k)
						}
						return
					}
				}
			})
		}
	}
}
