package due_test

import (
	"testing"
	"time"

	"moorage/registry"
	"moorage/registry/postgres"
	"moorage/testkit/pgserver"
)

var database pgserver.Shared

func TestMain(m *testing.M) { database.Main(m) }

// inPostgres makes a store in an empty schema. The test moves its clock.
func inPostgres(t testing.TB, random *lockedRandom, clock *clock) registry.Store {
	t.Helper()
	dsn, set, err := database.SchemaWithClock(t.Context(), clock.Now())
	must(t, err)
	clock.Follow(set)
	return openPostgres(t, dsn, postgres.Options{Random: random})
}

func openPostgres(t testing.TB, dsn string, options postgres.Options) registry.Store {
	t.Helper()
	_, err := postgres.Migrate(t.Context(), dsn)
	must(t, err)
	options.AcquireTimeout = time.Minute
	store, err := postgres.Open(t.Context(), dsn+"&pool_max_conns=4", options)
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	return store
}
