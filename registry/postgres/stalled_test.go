package postgres

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"moorage/registry"
	"moorage/testkit/loopback"
	"moorage/testkit/pgserver"
)

// processesOf returns the number of server processes that work for an application, and how many of
// them wait for the standby.
func processesOf(t *testing.T, conn *pgx.Conn, application string) (all, wait int) {
	t.Helper()
	const sql = "SELECT count(*), count(*) FILTER (WHERE wait_event = 'SyncRep') FROM pg_stat_activity WHERE application_name = $1"
	if err := conn.QueryRow(t.Context(), sql, application).Scan(&all, &wait); err != nil {
		t.Fatal(err)
	}
	return all, wait
}

// connect opens a connection that the test closes.
func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// readsP99 makes a number of reads of each kind, and returns the 99th percentile of their times. It
// fails the test if a read fails.
func readsP99(t *testing.T, store *Store) time.Duration {
	t.Helper()
	var took []time.Duration
	for range 100 {
		for name, read := range map[string]func() error{
			"get": func() error {
				_, err := store.Get(t.Context(), registry.PointerKey(faultID(1)), registry.WarehouseKey("w"))
				return err
			},
			"list":    func() error { _, err := store.List(t.Context(), registry.TablePointer, "", "", 100); return err },
			"healthy": func() error { return store.Healthy(t.Context()) },
		} {
			began := time.Now()
			if err := read(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			took = append(took, time.Since(began))
		}
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}

// applyAll sends count concurrent Applies, beginning with faultID(from), and waits until all have
// ended. In the meantime, it calls the function meanwhile. It returns the Applies with an unknown
// outcome. It fails the test unless all others returned ErrUnavailable.
func applyAll(t *testing.T, ctx context.Context, store *Store, from, count int, meanwhile func(ended <-chan struct{})) (unknown []int) {
	t.Helper()
	var mu sync.Mutex // guards unknown
	var calls sync.WaitGroup
	ended := make(chan struct{}, count)
	for n := from; n < from+count; n++ {
		calls.Go(func() {
			_, err := store.Apply(ctx, put(n))
			ended <- struct{}{}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, registry.ErrUnknown):
				unknown = append(unknown, n)
			case !errors.Is(err, registry.ErrUnavailable):
				t.Errorf("apply %d: %v, want ErrUnavailable or ErrUnknown", n, err)
			}
		})
	}
	meanwhile(ended)
	calls.Wait()
	return unknown
}

// TestReadsBesideStalledCommits sends a thousand commits while the synchronous standby is
// unreachable, and a thousand more after the first were given up. Reads and readiness are
// unaffected, and the server has no more processes than the node has connections.
func TestReadsBesideStalledCommits(t *testing.T) {
	t.Parallel()
	const commits, application = 1000, "stalled"
	dsn, proxy := startReplicated(t)
	store := openStore(t, dsn+"&application_name="+application, Options{})
	direct := connect(t, dsn)
	if _, err := store.Apply(t.Context(), put(1)); err != nil {
		t.Fatal(err)
	}
	calm := newStore(t, "") // on another server, to measure the machine
	before := readsP99(t, store)
	proxy.Stall()
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	writers := store.slots.free
	look := func(ended <-chan struct{}) {
		for waiting := 0; waiting < writers; {
			_, waiting = processesOf(t, direct, application)
		}
		// This machine may be stopped for a while during some of the checks, or be busier than
		// before.
		var took, beside []time.Duration
		for slow := true; slow && len(took) < 8; {
			took, beside = append(took, readsP99(t, store)), append(beside, readsP99(t, calm))
			slow = took[len(took)-1] > max(100*time.Millisecond, 3*before, 3*beside[len(beside)-1])
			if slow && len(took) == 8 {
				t.Errorf("reads take %s while commits stand still; they took %s before, and take %s on another server",
					took, before, beside)
			}
		}
		for range commits - writers {
			<-ended // refused, because no commit in progress ends
		}
		giveUp()
	}
	unknown := applyAll(t, ctx, store, 1000, commits, look)
	if len(unknown) != writers {
		t.Errorf("%d commits of %d connections are unknown", len(unknown), writers)
	}
	bounded, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if more := applyAll(t, bounded, store, 3000, commits, func(<-chan struct{}) {}); len(more) > 0 {
		t.Errorf("%d commits were sent while no connection was free", len(more))
	}
	readsP99(t, store)
	if all, waiting := processesOf(t, direct, application); all > connsMax || waiting != writers {
		t.Errorf("the server has %d processes for the node, of which %d wait, want at most %d and %d", all, waiting, connsMax, writers)
	}
	openStore(t, dsn, Options{}) // like a starting node
	proxy.Restore()
	for waiting := 1; waiting > 0; {
		_, waiting = processesOf(t, direct, application)
	}
	awaitApply(t, store, 2)
	for _, n := range unknown {
		if records, err := store.Get(t.Context(), registry.PointerKey(faultID(n))); err != nil || !records[0].Exists() {
			t.Errorf("apply %d, which was under way: %v, %v, want that it was done when the standby came back", n, records, err)
		}
	}
}

// awaitApply applies put(n), as soon as a slot is free.
func awaitApply(t *testing.T, store *Store, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		_, err := store.Apply(ctx, put(n))
		if err == nil {
			return
		}
		if !errors.Is(err, registry.ErrUnavailable) {
			t.Fatal(err)
		}
	}
}

// awaitKept waits until the writes have ended whose callers gave up.
func awaitKept(t *testing.T, store *Store) {
	t.Helper()
	limit := time.After(2 * time.Minute)
	for _, w := range store.kept.unfinished() {
		select {
		case <-w.ended:
		case <-limit:
			t.Fatal("a write does not end")
		}
	}
}

// locked locks a table exclusively until unlock is called.
func locked(t *testing.T, dsn, table string) (unlock func()) {
	t.Helper()
	conn := connect(t, dsn)
	if _, err := conn.Exec(t.Context(), "BEGIN; LOCK TABLE "+table); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := conn.Exec(t.Context(), "COMMIT"); err != nil {
			t.Error(err)
		}
	}
}

// awaitProcesses waits until want processes of an application or role wait for a lock.
func awaitProcesses(t *testing.T, conn *pgx.Conn, application string, want int) {
	t.Helper()
	const sql = "SELECT count(*) FROM pg_stat_activity WHERE $1::text IN (usename::text, application_name) AND wait_event_type = 'Lock'"
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for waiting := -1; waiting != want; {
		if err := conn.QueryRow(ctx, sql, application).Scan(&waiting); err != nil {
			t.Fatalf("%d processes wait for a lock, want %d: %v", waiting, want, err)
		}
	}
}

// TestGivenUpStatements: when its caller gives up, a read ends on the server. A write continues,
// and keeps its slot until it ends.
func TestGivenUpStatements(t *testing.T) {
	t.Parallel()
	schema := migrated(t)
	application := "given-up" + strings.TrimPrefix(schema, "&search_path=")
	store := openStore(t, server.DSN()+schema+"&pool_max_conns=2&application_name="+application, Options{})
	leases := openLeases(t, server.DSN()+schema+"&application_name="+application)
	direct := connect(t, server.DSN())
	unlock := locked(t, server.DSN()+schema, "moorage_pointer, moorage_lease_session")
	for name, call := range map[string]func(ctx context.Context) error{
		"get": func(ctx context.Context) error {
			_, err := store.Get(ctx, registry.PointerKey(faultID(1)))
			return err
		},
		"list": func(ctx context.Context) error {
			_, err := store.List(ctx, registry.TablePointer, "", "", 1)
			return err
		},
		"lease": func(ctx context.Context) error { return leases.Open(ctx, session{Name: "a"}) },
	} {
		ctx, giveUp := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- call(ctx) }()
		awaitProcesses(t, direct, application, 1)
		giveUp()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want the error of its context", name, err)
		}
		awaitProcesses(t, direct, application, 0)
	}

	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	result := make(chan error, 1)
	go func() { _, err := store.Apply(ctx, put(1)); result <- err }()
	awaitProcesses(t, direct, application, 1)
	giveUp()
	if err := <-result; !errors.Is(err, registry.ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("apply: %v, want ErrUnknown and the error of its context", err)
	}
	if _, err := store.Apply(t.Context(), put(2)); !errors.Is(err, registry.ErrUnavailable) || errors.Is(err, registry.ErrUnknown) {
		t.Errorf("apply while the only connection is busy: %v, want ErrUnavailable", err)
	}
	awaitProcesses(t, direct, application, 1) // the write was not cancelled
	unlock()
	awaitApply(t, store, 3)
	if records, err := store.Get(t.Context(), registry.PointerKey(faultID(1)), registry.PointerKey(faultID(2))); err != nil || !records[0].Exists() || records[1].Exists() {
		t.Errorf("afterwards: %v, %v, want the first and not the second", records, err)
	}
}

// TestReadsBehindBouncerEnd: behind a proxy no statement is cancelled, because that could hit other
// clients. There, the server ends reads that take too long.
func TestReadsBehindBouncerEnd(t *testing.T) {
	t.Parallel()
	dsn, schema := migratedBehind(t, newBouncer(t, server.DSN()))
	store := openStore(t, dsn+execMode, Options{})
	role, _, _ := strings.Cut(strings.TrimPrefix(dsn, "postgres://"), "@")
	direct := connect(t, server.DSN())
	unlock := locked(t, schema, "moorage_pointer")
	defer unlock()
	store.readTimeout = 5 * time.Second // long enough to see the process, even if this test is stopped for a while
	result := make(chan error, 1)
	go func() { _, err := store.Get(t.Context(), registry.PointerKey(faultID(1))); result <- err }()
	awaitProcesses(t, direct, role, 1)
	if err := <-result; !errors.Is(err, registry.ErrUnavailable) {
		t.Errorf("get: %v, want ErrUnavailable", err)
	}
	awaitProcesses(t, direct, role, 0)
}

// Sessions that only read have a time limit on the server, so that it ends the reads of a dead
// node. Other sessions have none.
func TestLimitsOfSessions(t *testing.T) {
	t.Parallel()
	store := newStore(t, "&pool_max_conns=9")
	for _, row := range []struct {
		limit string
		conns int32
	}{{"16s", 3}, {"0", 6}} {
		pool := store.pool
		if row.limit != "0" {
			pool = store.reads
		}
		var limit string
		if err := pool.QueryRow(t.Context(), "SHOW statement_timeout").Scan(&limit); err != nil || limit != row.limit || pool.Config().MaxConns != row.conns {
			t.Errorf("limit %s with %d connections, %v, want %s and %d", limit, pool.Config().MaxConns, err, row.limit, row.conns)
		}
	}
}

// TestSplitOfConnections: the number in the connection string is the total, unless one kind would
// have no connection.
func TestSplitOfConnections(t *testing.T) {
	t.Parallel()
	for options, want := range map[string][4]int32{ // reads, writes, and the minimum of each
		"":                                     {5, 12, 0, 0},
		"&pool_max_conns=1":                    {1, 1, 0, 0},
		"&pool_max_conns=2":                    {1, 1, 0, 0},
		"&pool_max_conns=16&pool_min_conns=16": {5, 11, 5, 11},
		"&pool_max_conns=64&pool_min_conns=3":  {8, 56, 1, 2},
	} {
		config, err := newConfig("postgres://127.0.0.1/x?sslmode=disable" + options)
		if err != nil {
			t.Fatal(err)
		}
		reads := splitConfig(config)
		if sum := config.MaxConns + reads.MaxConns + leaseConnectionsMax + heartbeatConnectionsMax; options == "" && sum > 24 {
			t.Errorf("a node has %d connections, want 24 at most", sum)
		}
		if got := [4]int32{reads.MaxConns, config.MaxConns, reads.MinConns, config.MinConns}; got != want {
			t.Errorf("%q: %v, want %v", options, got, want)
		}
	}
}

// TestSlotOfAServerThatIsGone: a server is stopped during an Apply, and another server takes its
// place. The outcome of the Apply stays unknown, and its slot becomes free although the connection
// never ends by itself.
func TestSlotOfAServerThatIsGone(t *testing.T) {
	t.Parallel()
	old, err := pgserver.Start("fsync=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = old.Stop() })
	if _, err := Migrate(t.Context(), old.DSN()); err != nil {
		t.Fatal(err)
	}
	oldURL, oldErr := url.Parse(old.DSN())
	newURL, newErr := url.Parse(server.DSN())
	if err := errors.Join(oldErr, newErr); err != nil {
		t.Fatal(err)
	}
	proxy, err := loopback.NewProxy(oldURL.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	schema := strings.TrimPrefix(migrated(t), "&search_path=") // the old server has its tables in public
	// A slow machine must not look like an old server that is gone.
	store := openStore(t, "postgres://moorage@"+proxy.Addr()+","+newURL.Host+"/postgres?sslmode=disable&connect_timeout=5&pool_max_conns=9"+
		"&search_path="+schema+",public", Options{})
	store.kept.interval, store.readTimeout = 50*time.Millisecond, 500*time.Millisecond
	all := store.slots.free
	if _, err := store.Apply(t.Context(), put(1)); err != nil {
		t.Fatal(err)
	}
	unlock := locked(t, old.DSN(), "public.moorage_pointer")
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	result := make(chan error, 1)
	go func() { _, err := store.Apply(ctx, put(2)); result <- err }()
	direct := connect(t, old.DSN())
	awaitProcesses(t, direct, "moorage", 1)
	proxy.Stall()
	giveUp()
	if err := <-result; !errors.Is(err, registry.ErrUnknown) {
		t.Errorf("apply: %v, want ErrUnknown", err)
	}
	awaitKept(t, store)
	if store.slots.free != all {
		t.Errorf("%d of %d slots are free", store.slots.free, all)
	}
	awaitApply(t, store, 3)
	taken := openStore(t, server.DSN()+"&search_path="+schema, Options{})
	if records, err := taken.Get(t.Context(), registry.PointerKey(faultID(3))); err != nil || !records[0].Exists() {
		t.Errorf("on the new server: %v, %v", records, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	records, err := store.Get(ctx, registry.PointerKey(faultID(3)))
	for errors.Is(err, registry.ErrUnavailable) { // a read on a connection to the old server
		records, err = store.Get(ctx, registry.PointerKey(faultID(3)))
	}
	if err != nil || !records[0].Exists() {
		t.Errorf("on the new server, by the same store: %v, %v", records, err)
	}
	unlock()
}
