package postgres

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"moorage/registry"
	"moorage/testkit/pgserver"
)

// TestWarnings makes the server warn in statements, after which the outcome is known, and during
// the commit, as when a wait for a standby is ended. Only the moment of the warning matters, not
// its content.
func TestWarnings(t *testing.T) {
	t.Parallel()
	const warn = "CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'same text' USING ERRCODE = '01000'; RETURN NULL; END $$"
	for _, mode := range []string{"cache_statement", "cache_describe", "exec"} {
		for name, tt := range map[string]struct {
			trigger string
			want    error
		}{
			"in a statement":    {"CREATE TRIGGER warn AFTER INSERT OR UPDATE ON moorage_pointer FOR EACH STATEMENT EXECUTE FUNCTION warn()", nil},
			"in the last one":   {"CREATE TRIGGER warn AFTER INSERT OR UPDATE ON moorage_change FOR EACH STATEMENT EXECUTE FUNCTION warn()", nil},
			"when it commits":   {"CREATE CONSTRAINT TRIGGER warn AFTER INSERT OR UPDATE ON moorage_change DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION warn()", registry.ErrUnknown},
			"when it is no use": {"SELECT 1", nil},
		} {
			t.Run(mode+" "+name, func(t *testing.T) {
				t.Parallel()
				store := newStore(t, "&pool_max_conns=1&default_query_exec_mode="+mode)
				for _, sql := range []string{warn, tt.trigger} {
					if _, err := store.pool.Exec(t.Context(), sql); err != nil {
						t.Fatal(err)
					}
				}
				for n := range 3 { // with prepared statements, and without
					etags, err := store.Apply(t.Context(), put(n))
					if !errors.Is(err, tt.want) {
						t.Errorf("apply %d: %v, want %v", n, err, tt.want)
					}
					records, getErr := store.Get(t.Context(), registry.PointerKey(faultID(n)))
					if getErr != nil || !records[0].Exists() || err == nil && records[0].ETag != etags[0] {
						t.Errorf("apply %d: found %v, %v", n, records, getErr)
					}
				}
			})
		}
	}
}

// TestApplyNearWraparound commits to a server that warns with each assigned transaction ID.
func TestApplyNearWraparound(t *testing.T) {
	t.Parallel()
	own, err := pgserver.Start("fsync=off", "wal_level=logical", "max_replication_slots=1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Stop() })
	if _, err := Migrate(t.Context(), own.DSN()); err != nil {
		t.Fatal(err)
	}
	if err := own.NearWraparound(t.Context()); err != nil {
		t.Fatal(err)
	}
	store := openStore(t, own.DSN(), Options{})
	wantWarning(t, own.DSN())
	for n := range 3 {
		etags, err := store.Apply(t.Context(), put(n))
		if err != nil {
			t.Fatalf("apply %d: %v", n, err)
		}
		asks := registry.Batch{Conditions: []registry.Condition{registry.ETagIs(registry.PointerKey(faultID(n)), etags[0])}}
		if _, err := store.Apply(t.Context(), asks); err != nil {
			t.Errorf("an Apply that asks only: %v", err)
		}
	}
	wantChanges(t, store, 0, 0, 1, 2)
	wantWarning(t, own.DSN()) // the server still warns
}

// wantWarning fails the test unless a server sends a warning for a statement that writes.
func wantWarning(t *testing.T, dsn string) {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	warned := false
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) { warned = warned || notice.Severity == "WARNING" }
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), "SELECT key FROM moorage_pointer FOR UPDATE; SELECT pg_current_xact_id()"); err != nil || !warned {
		t.Fatalf("it warned: %t, %v", warned, err)
	}
}
