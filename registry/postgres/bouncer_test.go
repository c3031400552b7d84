package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"moorage/locks"
	"moorage/registry"
	"moorage/testkit/pgserver"
	"moorage/testkit/registrytest"
)

// keepStatements and dropStatements are settings of PgBouncer. Where it cannot keep prepared
// statements there is no setting for it.
const (
	keepStatements = "max_prepared_statements = 200"
	dropStatements = "max_prepared_statements = 0"
)

// prepares reports whether the PgBouncer that is here can keep prepared statements.
func prepares(t *testing.T) bool {
	t.Helper()
	prepares, err := pgserver.BouncerPrepares()
	if err != nil {
		t.Fatal(err)
	}
	return prepares
}

// newBouncer starts a PgBouncer before the server that is reached at dsn. It drops prepared
// statements, unless told otherwise.
func newBouncer(t *testing.T, dsn string, settings ...string) *pgserver.Bouncer {
	t.Helper()
	if prepares(t) && !slices.Contains(settings, keepStatements) {
		settings = append(settings, dropStatements)
	}
	bouncer, err := pgserver.StartBouncer(dsn, settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bouncer.Stop(); err != nil {
			t.Error(err)
		}
	})
	return bouncer
}

// behind returns a connection string that leads through bouncer to a schema without tables, which
// is that of a role of its own, because PgBouncer takes no search_path. settings (name = value) are
// those of the role. direct is a way to the same schema without it.
func behind(t *testing.T, bouncer *pgserver.Bouncer, settings ...string) (dsn, direct string) {
	t.Helper()
	direct = newSchema(t)
	_, schema, _ := strings.Cut(direct, "search_path=")
	role := "role_" + strings.ToLower(rand.Text())
	sql := "CREATE ROLE " + role + " SUPERUSER LOGIN"
	for _, setting := range append([]string{"search_path = " + schema}, settings...) {
		sql += "; ALTER ROLE " + role + " SET " + setting
	}
	conn, err := pgx.Connect(t.Context(), server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
	return strings.Replace(bouncer.DSN(), "//moorage@", "//"+role+"@", 1), direct
}

// migratedBehind is behind with tables, which are made through bouncer.
func migratedBehind(t *testing.T, bouncer *pgserver.Bouncer, settings ...string) (dsn, direct string) {
	t.Helper()
	dsn, direct = behind(t, bouncer, settings...)
	if _, err := Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	return dsn, direct
}

// execMode is what a connection string says that leads through a PgBouncer that drops prepared
// statements.
const execMode = "&default_query_exec_mode=exec"

// TestBehindBouncer holds the store and the leases against their contracts behind a PgBouncer that
// pools transactions.
func TestBehindBouncer(t *testing.T) {
	t.Parallel()
	// Fewer connections than a store has, so that they change hands.
	few := []string{"default_pool_size = 4", "max_db_connections = 32"}
	t.Run("exec", func(t *testing.T) {
		t.Parallel()
		bouncer := newBouncer(t, server.DSN(), few...)
		t.Run("store", func(t *testing.T) { suiteBehind(t, bouncer, execMode) })
		t.Run("leases", func(t *testing.T) { leasesSuiteBehind(t, bouncer, execMode) })
	})
	if prepares(t) {
		t.Run("kept statements", func(t *testing.T) {
			t.Parallel()
			bouncer := newBouncer(t, server.DSN(), append(few, keepStatements)...)
			t.Run("store", func(t *testing.T) { suiteBehind(t, bouncer, "") })
			t.Run("leases", func(t *testing.T) { leasesSuiteBehind(t, bouncer, "") })
		})
	}
}

func suiteBehind(t *testing.T, bouncer *pgserver.Bouncer, options string) {
	registrytest.Run(t, func(t *testing.T) registry.Store {
		dsn, _ := migratedBehind(t, bouncer)
		return openStore(t, dsn+options, Options{})
	})
}

func leasesSuiteBehind(t *testing.T, bouncer *pgserver.Bouncer, options string) {
	runLeaseContract(t, func(t *testing.T) leaseStore {
		dsn, _ := migratedBehind(t, bouncer)
		leases := openLeases(t, dsn+options)
		return leaseStore{Leases: leases, Pass: leases.pass}
	})
}

// Prepared statements that a PgBouncer drops are refused when a store is opened, and told of when
// they are met later.
func TestBouncerDropsStatements(t *testing.T) {
	t.Parallel()
	bouncer := newBouncer(t, server.DSN())
	dsn, _ := migratedBehind(t, bouncer)
	if store, err := Open(t.Context(), dsn, Options{}); !errors.Is(err, ErrPooling) {
		t.Errorf("open: %v, want ErrPooling", err)
		if err == nil {
			_ = store.Close()
		}
	}
	if leases, err := OpenLeases(t.Context(), dsn); !errors.Is(err, ErrPooling) {
		t.Errorf("open leases: %v, want ErrPooling", err)
		if err == nil {
			_ = leases.Close()
		}
	}

	config, err := newConfig(dsn) // as if it had not shown when the store was opened
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	store := storeOver(pool, newLines(), Options{Random: rand.Reader, AcquireTimeout: time.Minute, Now: time.Now})
	defer store.Close()
	if _, err := store.Apply(t.Context(), put(1)); err != nil {
		t.Fatalf("as long as nobody else uses the server's connection: %v", err)
	}
	holder, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close(context.WithoutCancel(t.Context()))
	if _, err := holder.Exec(t.Context(), "BEGIN"); err != nil { // has the server's connection that the store had
		t.Fatal(err)
	}
	if _, err := store.Apply(t.Context(), put(2)); !errors.Is(err, ErrPooling) || !errors.Is(err, registry.ErrUnavailable) {
		t.Errorf("apply: %v, want ErrPooling and ErrUnavailable", err)
	}
	wantGone(t, store, dsn, 2)
}

// wantGone fails unless put(n) left nothing.
func wantGone(t *testing.T, store *Store, dsn string, n int) {
	t.Helper()
	other := openStore(t, dsn+execMode, Options{})
	if records, err := other.Get(t.Context(), registry.PointerKey(faultID(n))); err != nil || records[0].Exists() {
		t.Errorf("an Apply that failed for certain left %v, %v", records, err)
	}
}

// TestBouncerKeepsSessions: a PgBouncer that pools sessions is none that drops statements.
func TestBouncerKeepsSessions(t *testing.T) {
	t.Parallel()
	dsn, _ := migratedBehind(t, newBouncer(t, server.DSN(), "pool_mode = session"))
	store := openStore(t, dsn, Options{})
	if _, err := store.Apply(t.Context(), put(1)); err != nil {
		t.Error(err)
	}
}

// TestNothingIsLeftInSessions looks at the one connection that all go through behind them.
func TestNothingIsLeftInSessions(t *testing.T) {
	t.Parallel()
	dsn, _ := migratedBehind(t, newBouncer(t, server.DSN(), "default_pool_size = 1"))
	for n, options := range []string{execMode, "&default_query_exec_mode=cache_describe"} {
		store := openStore(t, dsn+options, Options{})
		leases, err := OpenLeases(t.Context(), dsn+options)
		if err != nil {
			t.Fatal(err)
		}
		_, applyErr := store.Apply(t.Context(), put(n))
		_, changesErr := store.Changes(t.Context(), 0, 10)
		openErr := leases.Open(t.Context(), locks.Session{Name: "a"})
		_, _, tryErr := leases.Try(t.Context(), "a", 1, []locks.Lease{{ID: 2, Path: "/w", Mode: uint8(locks.W)}}, time.Minute)
		endErr := leases.End(t.Context(), "a")
		if err := errors.Join(applyErr, changesErr, openErr, tryErr, endErr, store.Healthy(t.Context()), leases.Close()); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := pgx.Connect(t.Context(), dsn+execMode)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for what, sql := range map[string]string{
		// PgBouncer sets for each of its clients what the client asked for when it connected.
		"settings":   "SELECT name FROM pg_settings WHERE source = 'session' AND name <> ALL('{application_name,client_encoding,DateStyle,TimeZone,standard_conforming_strings,IntervalStyle}')",
		"statements": "SELECT name FROM pg_prepared_statements",
		"locks":      "SELECT locktype FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'",
		"channels":   "SELECT pg_listening_channels()",
		"cursors":    "SELECT name FROM pg_cursors WHERE name <> ''",
	} {
		rows, err := conn.Query(t.Context(), sql)
		if err != nil {
			t.Fatal(err)
		}
		if left, err := pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || len(left) > 0 {
			t.Errorf("%s: %q, %v, want none", what, left, err)
		}
	}
}

// What connections cannot set behind a proxy must be set for the role.
func TestSettingsBehindBouncer(t *testing.T) {
	t.Parallel()
	bouncer := newBouncer(t, server.DSN())
	for name, tt := range map[string]struct {
		setting string
		want    error
	}{
		"accepts no writes": {"default_transaction_read_only = on", nil},
		"tells no warnings": {"client_min_messages = error", errSilent},
	} {
		dsn, direct := behind(t, bouncer, tt.setting)
		if _, err := Migrate(t.Context(), direct); err != nil {
			t.Fatal(err)
		}
		store, err := Open(t.Context(), dsn+execMode, Options{})
		if err == nil {
			_ = store.Close()
		}
		if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	session := newBouncer(t, server.DSN(), "pool_mode = session")
	for setting, want := range map[string]bool{"enable_seqscan = on": true, "enable_seqscan = off": false} {
		dsn, _ := migratedBehind(t, session, setting)
		for options, prepares := range map[string]bool{"": true, execMode: false} {
			got, err := openStore(t, dsn+options, Options{}).Warnings(t.Context())
			if warned := strings.Contains(strings.Join(got, "\n"), "enable_seqscan"); err != nil || warned != (want && prepares) {
				t.Errorf("%s%s: warnings %q, %v", setting, options, got, err)
			}
		}
	}
}

// awaitHealthy waits until store reaches the server, by a connection of either kind: just after a
// cut PgBouncer may ask, by a connection that it does not know to be gone, who is let in, and turn
// the store away.
func awaitHealthy(t *testing.T, store *Store) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if err = errors.Join(store.Healthy(t.Context()), store.pool.Ping(t.Context())); err == nil {
			return
		}
	}
	t.Fatal(err)
}

// TestBouncerLosesServer cuts PgBouncer off from the server before each message of an Apply, and
// kills PgBouncer before each answer.
func TestBouncerLosesServer(t *testing.T) {
	t.Parallel()
	proxy := newProxy(t, server)
	bouncer := newBouncer(t, proxy.DSN(), "server_login_retry = 0.05")
	dsn, directDSN := migratedBehind(t, bouncer)
	direct := openStore(t, directDSN, Options{})
	store := openStore(t, dsn+execMode+"&pool_max_conns=1", Options{})
	if _, err := store.Apply(t.Context(), registry.Batch{Writes: []registry.Write{registry.Put(registry.WarehouseKey("w"), registry.StateLive, nil)}}); err != nil {
		t.Fatal(err)
	}
	for i, fault := range []struct {
		name       string
		fromServer bool
		kill       bool
	}{{"cut before an answer", true, false}, {"cut before a message", false, false}, {"killed before an answer", true, true}} {
		var got outcomes
		n := 0
		for reached := true; reached; n++ {
			killed := make(chan error, 1)
			watch, met := at(step{fault.fromServer, n}, func() Verdict {
				if fault.kill {
					killed <- bouncer.Kill()
				}
				return Cut
			})
			awaitHealthy(t, store) // there is a connection to be lost
			proxy.Watch(watch)
			id := 1000*i + n
			etags, err := store.Apply(t.Context(), faultBatch(id, false))
			reached = met()
			proxy.Watch(nil)
			if reached && fault.kill {
				if err := errors.Join(<-killed, bouncer.Restart()); err != nil {
					t.Fatal(err)
				}
			}
			proxy.CutAll()
			proxy.Settled()
			got.judge(t, direct, id, fmt.Sprintf("%s %d", fault.name, n), etags, err)
		}
		// A server that has got the sync commits, even if nobody reads its answers.
		if n < 20 || got.done != 1 || fault.fromServer && got.unknownDone == 0 || !fault.fromServer && got.unknownUndone == 0 {
			t.Errorf("%s: %d steps, outcomes %+v", fault.name, n, got)
		}
	}
}
