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

// keepStatements and dropStatements are settings of PgBouncer. A version that cannot keep prepared
// statements has no such setting.
const (
	keepStatements = "max_prepared_statements = 200"
	dropStatements = "max_prepared_statements = 0"
)

// prepares reports whether the installed PgBouncer can keep prepared statements.
func prepares(t *testing.T) bool {
	t.Helper()
	prepares, err := pgserver.BouncerPrepares()
	if err != nil {
		t.Fatal(err)
	}
	return prepares
}

// newBouncer starts a PgBouncer in front of the server at dsn. By default, it drops prepared
// statements.
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

// behind returns a connection string that leads through bouncer to a schema without tables. The
// schema belongs to its own role, because PgBouncer accepts no search_path. settings (name = value)
// are settings of the role. direct is a connection string to the same schema without bouncer.
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

// migratedBehind is like behind, but the schema has tables, which are created through bouncer.
func migratedBehind(t *testing.T, bouncer *pgserver.Bouncer, settings ...string) (dsn, direct string) {
	t.Helper()
	dsn, direct = behind(t, bouncer, settings...)
	if _, err := Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	return dsn, direct
}

// execMode is the required parameter in a connection string through a PgBouncer that drops prepared
// statements.
const execMode = "&default_query_exec_mode=exec"

// TestBehindBouncer checks the contracts of the store and of the leases behind a PgBouncer that
// pools transactions.
func TestBehindBouncer(t *testing.T) {
	t.Parallel()
	// Fewer connections than a store uses, so that clients take turns.
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

// If PgBouncer drops prepared statements, opening a store with prepared statements is refused. If
// that shows only later, calls return an error.
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

	config, err := newConfig(dsn) // as if Open had not noticed
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
	if _, err := holder.Exec(t.Context(), "BEGIN"); err != nil { // takes the server connection that the store used
		t.Fatal(err)
	}
	if _, err := store.Apply(t.Context(), put(2)); !errors.Is(err, ErrPooling) || !errors.Is(err, registry.ErrUnavailable) {
		t.Errorf("apply: %v, want ErrPooling and ErrUnavailable", err)
	}
	wantGone(t, store, dsn, 2)
}

// wantGone fails the test unless put(n) left nothing.
func wantGone(t *testing.T, store *Store, dsn string, n int) {
	t.Helper()
	other := openStore(t, dsn+execMode, Options{})
	if records, err := other.Get(t.Context(), registry.PointerKey(faultID(n))); err != nil || records[0].Exists() {
		t.Errorf("an Apply that failed for certain left %v, %v", records, err)
	}
}

// TestBouncerKeepsSessions: a PgBouncer that pools sessions does not drop statements.
func TestBouncerKeepsSessions(t *testing.T) {
	t.Parallel()
	dsn, _ := migratedBehind(t, newBouncer(t, server.DSN(), "pool_mode = session"))
	store := openStore(t, dsn, Options{})
	if _, err := store.Apply(t.Context(), put(1)); err != nil {
		t.Error(err)
	}
}

// TestNothingIsLeftInSessions checks the single server connection shared by all clients, after they
// have finished.
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
		// PgBouncer applies the connection settings of each client.
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

// Settings that connections cannot make behind a proxy must be made on the role.
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

// awaitHealthy waits until store reaches the server with both kinds of connections. Just after a
// cut, PgBouncer may use a dead connection to look up users, and then refuse the store.
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
			watch, met := watchAt(step{fault.fromServer, n}, func() Verdict {
				if fault.kill {
					killed <- bouncer.Kill()
				}
				return Cut
			})
			awaitHealthy(t, store) // there is a connection that can be lost
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
		// A server that has received the sync commits, even if its answers are not read.
		if n < 20 || got.done != 1 || fault.fromServer && got.unknownDone == 0 || !fault.fromServer && got.unknownUndone == 0 {
			t.Errorf("%s: %d steps, outcomes %+v", fault.name, n, got)
		}
	}
}
