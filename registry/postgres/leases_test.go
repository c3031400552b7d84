package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"moorage/locks"
	"moorage/registry"
)

var _ locks.Leases = (*Leases)(nil)

// newLeases returns a store of leases in its own schema.
func newLeases(t testing.TB, options string) *Leases {
	t.Helper()
	dsn := newSchema(t)
	if _, err := Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	return openLeases(t, dsn+options)
}

// openLeases opens a store of leases that the test closes. Its calls wait for connections like the
// calls of a store from openStore.
func openLeases(t testing.TB, dsn string) *Leases {
	t.Helper()
	leases, err := OpenLeases(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	leases.connections.acquireTimeout, leases.heartbeats.acquireTimeout = time.Minute, time.Minute
	t.Cleanup(func() {
		if err := leases.Close(); err != nil {
			t.Error(err)
		}
	})
	return leases
}

// pass makes the duration d pass, by making all records older.
func (l *Leases) pass(t *testing.T, d time.Duration) {
	t.Helper()
	for _, sql := range []string{
		"UPDATE moorage_lease_session SET renewed = renewed - $1::bigint * interval '1 microsecond'",
		"UPDATE moorage_lease SET since = since - $1::bigint * interval '1 microsecond'",
		"UPDATE moorage_lease_want SET since = since - $1::bigint * interval '1 microsecond'",
	} {
		if _, err := l.connections.pool.Exec(t.Context(), sql, d.Microseconds()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLeases(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]string{
		"read committed": "",
		"serializable":   "&default_transaction_isolation=serializable",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runLeaseContract(t, func(t *testing.T) leaseStore {
				leases := newLeases(t, options)
				return leaseStore{Leases: leases, Pass: leases.pass}
			})
		})
	}
}

// If a session ends during the Try that takes its leases, these leases do not count, and are swept.
func TestLeasesOfNobody(t *testing.T) {
	t.Parallel()
	leases := newLeases(t, "")
	for _, session := range []string{"a", "b"} {
		if err := leases.Open(t.Context(), locks.Session{Name: session}); err != nil {
			t.Fatal(err)
		}
	}
	whole := []locks.Lease{{ID: 1, Path: "/w", Mode: uint8(locks.W)}}
	if blocked, alive, err := leases.Try(t.Context(), "a", 0, whole, time.Minute); blocked >= 0 || !alive || err != nil {
		t.Fatal(blocked, alive, err)
	}
	if _, err := leases.connections.pool.Exec(t.Context(), "DELETE FROM moorage_lease_session WHERE session = 'a'"); err != nil {
		t.Fatal(err)
	}
	if ended, err := leases.Reap(t.Context(), time.Minute); ended != 0 || err != nil {
		t.Errorf("reap: got %d, error %v, want 0", ended, err)
	}
	var left int
	if err := leases.connections.pool.QueryRow(t.Context(), "SELECT count(*) FROM moorage_lease").Scan(&left); err != nil || left != 0 {
		t.Errorf("leases: got %d, error %v, want none", left, err)
	}
	if blocked, alive, err := leases.Try(t.Context(), "b", 0, whole, time.Minute); blocked >= 0 || !alive || err != nil {
		t.Errorf("try: blocked at %d, alive %t, error %v, want it granted", blocked, alive, err)
	}
}

// Errors of the server are returned, even if they come from the second transaction of a Try, which
// records the wants of a blocked ticket, or ends the wants of a granted one.
func TestLeasesRefused(t *testing.T) {
	t.Parallel()
	leases := newLeases(t, "")
	exec := func(sql string) {
		t.Helper()
		if _, err := leases.connections.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$")
	refused := func(event string, call func() error) {
		t.Helper()
		exec("CREATE TRIGGER refuse BEFORE " + event + " FOR EACH ROW EXECUTE FUNCTION refuse()")
		if err := call(); !errors.Is(err, registry.ErrUnavailable) {
			t.Errorf("%s: got %v, want ErrUnavailable", event, err)
		}
		_, table, _ := strings.Cut(event, " ON ")
		exec("DROP TRIGGER refuse ON " + table)
		if err := call(); err != nil {
			t.Errorf("%s, which is not refused any more: %v", event, err)
		}
	}
	try := func(session string, ticket int64) (err error) {
		_, _, err = leases.Try(t.Context(), session, ticket, []locks.Lease{{ID: 2, Path: "/w", Mode: uint8(locks.W)}}, time.Minute)
		return err
	}
	for _, session := range []string{"a", "b"} {
		refused("INSERT ON moorage_lease_session", func() error { return leases.Open(t.Context(), locks.Session{Name: session}) })
	}
	refused("INSERT ON moorage_lease", func() error { return try("a", 0) })
	refused("INSERT ON moorage_lease_want", func() error { return try("b", 1) })
	refused("DELETE ON moorage_lease", func() error { return leases.Release(t.Context(), "a", []int64{2}) })
	exec("CREATE TRIGGER refuse BEFORE DELETE ON moorage_lease_want FOR EACH ROW EXECUTE FUNCTION refuse()")
	if err := try("b", 1); !errors.Is(err, registry.ErrUnavailable) {
		t.Errorf("the end of wants: got %v, want ErrUnavailable", err)
	}
	exec("CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'undone' USING ERRCODE = '40001'; END $$")
	refused("INSERT ON moorage_lease_session", func() error { return leases.Open(t.Context(), locks.Session{Name: "c"}) }) // refused each time it is sent
}

// A closed store, missing tables and an invalid connection string give errors.
func TestLeasesOpenAndClose(t *testing.T) {
	t.Parallel()
	if _, err := OpenLeases(t.Context(), newSchema(t)); !errors.Is(err, ErrSchema) {
		t.Errorf("without tables: got %v, want ErrSchema", err)
	}
	if _, err := OpenLeases(t.Context(), "postgres://127.0.0.1:port"); !errors.Is(err, ErrConnectionString) {
		t.Errorf("a port that is none: got %v, want ErrConnectionString", err)
	}
	leases := newLeases(t, "")
	if err := leases.Close(); err != nil {
		t.Fatal(err)
	}
	if err := leases.Open(t.Context(), locks.Session{Name: "a"}); !errors.Is(err, registry.ErrClosed) {
		t.Errorf("after Close: got %v, want ErrClosed", err)
	}
}

// Nodes of both kinds over one database: no lock waits for ever, and no two holders of a write lock
// coexist.
func TestNodesOverLeases(t *testing.T) {
	t.Parallel()
	const nodes, workers, rounds = 3, 4, 15
	leases := newLeases(t, "")
	var mu sync.Mutex // guards the field below; leaf
	writing := make(map[locks.Path]string)
	var all sync.WaitGroup
	for i := range nodes {
		over := locks.NewDistributed(locks.DistributedConfig{Leases: leases, Jitter: rand.New(rand.NewPCG(1, uint64(i)))})
		t.Cleanup(over.Close)
		var node locks.Manager = over
		if i > 0 {
			coalesced := locks.NewCoalesced(over)
			t.Cleanup(coalesced.Close)
			node = coalesced
		}
		for w := range workers {
			name, random := fmt.Sprintf("node %d, worker %d", i, w), rand.New(rand.NewPCG(2, uint64(i*workers+w)))
			all.Go(func() {
				for range rounds {
					paths := randomPaths(random)
					hold, err := acquirePatiently(t.Context(), node, paths)
					if err != nil {
						t.Errorf("%s: %v", name, err)
						return
					}
					mu.Lock()
					for _, path := range paths {
						for other, who := range writing {
							if (path.Contains(other) || other.Contains(path)) && who != name {
								t.Errorf("%s writes %s while %s writes %s", name, path, who, other)
							}
						}
					}
					for _, path := range paths {
						writing[path] = name
					}
					mu.Unlock()
					mu.Lock()
					for _, path := range paths {
						delete(writing, path)
					}
					mu.Unlock()
					hold.Release()
				}
			})
		}
	}
	all.Wait()
}

// acquirePatiently takes locks, however slow this machine is. If a node was stopped for longer than
// a heartbeat may take, it may have lost its session, so it tries again a few times.
func acquirePatiently(ctx context.Context, node locks.Manager, paths []locks.Path) (hold locks.Hold, err error) {
	for range 10 {
		began := time.Now()
		hold, err = node.Acquire(ctx, locks.Request{Writes: paths}, locks.Options{Timeout: locks.FixedTimeout(5 * time.Minute)})
		if !errors.Is(err, locks.ErrUnavailable) || time.Since(began) < locks.HeartbeatMax {
			break
		}
	}
	return hold, err
}

// randomPaths returns one or two shards, and sometimes a namespace.
func randomPaths(random *rand.Rand) []locks.Path {
	ns := locks.Warehouse("wh").Namespace("ns")
	if random.IntN(16) == 0 {
		return []locks.Path{ns}
	}
	return []locks.Path{ns.Shard(uint8(random.IntN(4))), ns.Shard(uint8(random.IntN(4)))}
}

// A call whose context ends while the server works on it returns at once.
func TestLeasesContextEndsDuringCall(t *testing.T) {
	t.Parallel()
	leases := newLeases(t, "")
	if err := leases.Open(t.Context(), locks.Session{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	holder, err := leases.connections.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback(context.Background()) }()
	if _, err := holder.Exec(t.Context(), "LOCK TABLE moorage_lease_stripe"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, _, err = leases.Try(ctx, "a", 1, []locks.Lease{{ID: 2, Path: "/w", Mode: uint8(locks.W)}}, time.Minute)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want context.DeadlineExceeded", err)
	}
}

// During a Try, a silent session is renewed, or the taker's own session ends. The answer of the Try
// is consistent for one moment: it reports no free lease as blocked, and no lease of an ended
// session.
func TestLeasesChangeDuringTry(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		meanwhile string
		blocked   int
		alive     bool
	}{
		"renewed": {"UPDATE moorage_lease_session SET renewed = clock_timestamp() WHERE session = 'holder'", 1, true},
		"ended":   {"DELETE FROM moorage_lease_session WHERE session = 'taker'", -1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const application = "lease_during_try_"
			leases := newLeases(t, "&application_name="+application+name)
			gate, err := leases.connections.pool.Begin(t.Context()) // on its own connection, so that both calls of Try use another
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = gate.Rollback(context.Background()) }()
			for _, session := range []string{"holder", "taker"} {
				if err := leases.Open(t.Context(), locks.Session{Name: session}); err != nil {
					t.Fatal(err)
				}
			}
			held := []locks.Lease{{ID: 1, Path: "/w/@2", Mode: uint8(locks.W)}}
			if blocked, alive, err := leases.Try(t.Context(), "holder", 0, held, time.Minute); blocked >= 0 || !alive || err != nil {
				t.Fatal(blocked, alive, err)
			}
			leases.pass(t, time.Hour)

			// Calls that write leases wait for this lock; calls that only read them do not.
			if _, err := gate.Exec(t.Context(), "LOCK TABLE moorage_lease IN SHARE MODE"); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			var blocked int
			var alive bool
			var failed error
			go func() {
				defer close(ended)
				wanted := []locks.Lease{{ID: 1, Path: "/w/@1", Mode: uint8(locks.W)}, {ID: 2, Path: "/w/@2", Mode: uint8(locks.W)}}
				blocked, alive, failed = leases.Try(t.Context(), "taker", 0, wanted, time.Minute)
			}()
			awaitLocks(t, application+name, 1, ended)
			if _, err := gate.Exec(t.Context(), row.meanwhile); err != nil {
				t.Fatal(err)
			}
			if err := gate.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-ended
			if blocked != row.blocked || alive != row.alive || failed != nil {
				t.Errorf("blocked at %d, alive %t (%v), want %d and %t", blocked, alive, failed, row.blocked, row.alive)
			}
		})
	}
}

// BenchmarkLeases takes and releases one lease.
func BenchmarkLeases(b *testing.B) {
	leases := newLeases(b, "")
	if err := leases.Open(b.Context(), locks.Session{Name: "a"}); err != nil {
		b.Fatal(err)
	}
	id := int64(0)
	for b.Loop() {
		id++
		one := []locks.Lease{{ID: id, Path: "/wh/ns/#1", Mode: uint8(locks.W)}}
		if blocked, alive, err := leases.Try(b.Context(), "a", 0, one, time.Minute); blocked >= 0 || !alive || err != nil {
			b.Fatal(blocked, alive, err)
		}
		if err := leases.Release(b.Context(), "a", []int64{id}); err != nil {
			b.Fatal(err)
		}
	}
}
