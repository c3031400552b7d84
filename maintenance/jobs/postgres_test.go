package jobs_test

import (
	"fmt"
	"testing"
	"time"

	"moorage/registry"
	"moorage/registry/postgres"
	"moorage/testkit/pgserver"
	"moorage/testkit/scale"
	"moorage/testkit/storagetest"
)

var database pgserver.Shared

func TestMain(m *testing.M) { database.Main(m) }

// inPostgres makes a store in an empty schema. The test moves its clock.
func inPostgres(t testing.TB, random *lockedRandom, clock *clock) registry.Store {
	t.Helper()
	dsn, set, err := database.SchemaWithClock(t.Context(), clock.Now())
	must(t, err)
	clock.Follow(set)
	_, err = postgres.Migrate(t.Context(), dsn)
	must(t, err)
	store, err := postgres.Open(t.Context(), dsn+"&pool_max_conns=4", postgres.Options{Random: random, AcquireTimeout: time.Minute})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	return store
}

// crashStride is the distance between two calls that get a fault in the short form of the test.
const crashStride = 9

// TestCrashEveryCallOverPostgres is TestCrashEveryCall over PostgreSQL. Its short form makes only
// some of the calls the last one.
func TestCrashEveryCallOverPostgres(t *testing.T) {
	t.Parallel()
	for at, kind := range kindsOfJobs() {
		for _, action := range []storagetest.Action{storagetest.Fail, storagetest.Lose, storagetest.Die, storagetest.DieAfter} {
			stride, first := 1, 0
			if !scale.Every() {
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
