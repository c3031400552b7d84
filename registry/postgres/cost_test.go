package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"moorage/registry"
	"moorage/testkit/pgserver"
)

// cost counts the messages of a call.
type cost struct {
	trips      int // round trips: messages that make the server answer
	statements int // statements that the server executes
}

// costs makes proxy count the messages of calls. It ignores the check whether a connection is
// alive, which occurs only if the connection was idle for a second.
func costs(proxy *Proxy) (taken func() cost) {
	var mu sync.Mutex // guards sum
	var sum cost
	proxy.Watch(func(m Message) Verdict {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case m.FromServer:
		case m.Type == 'S' || m.Type == 'H' || m.Type == 'Q' && string(m.Body) != "-- ping\x00":
			sum.trips++
		case m.Type == 'E':
			sum.statements++
		}
		return Forward
	})
	return func() cost {
		mu.Lock()
		defer mu.Unlock()
		taken := sum
		sum = cost{}
		return taken
	}
}

// TestRoundTrips counts the round trips and the statements of each call, once its statements are
// prepared.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	proxy := newProxy(t, server)
	store := openStore(t, proxy.DSN()+migrated(t)+"&pool_max_conns=1", Options{})
	key := registry.PointerKey(faultID(1))
	etag := registry.ETag{1}
	n := 0
	commitWith := func(more ...registry.Condition) error {
		n++
		etags, err := store.Apply(t.Context(), moving(1000+n, append(more, registry.ETagIs(key, etag))...))
		if err == nil {
			etag = etags[len(more)]
		}
		return err
	}
	commit := func() error { return commitWith() }
	refused := func() error {
		right := etag
		etag = registry.ETag{1}
		err := commit()
		etag = right
		if _, refused := registry.FailedCondition(err); !refused {
			return fmt.Errorf("want a failed condition: %w", err)
		}
		return nil
	}
	etags, err := store.Apply(t.Context(), put(1))
	if err != nil {
		t.Fatal(err)
	}
	etag = etags[0]
	taken := costs(proxy)
	calls := []struct {
		name       string
		statements int
		call       func() error
	}{
		{"get", 1, func() error {
			_, err := store.Get(t.Context(), key, registry.WarehouseKey("w"), registry.LocationKey("l"))
			return err
		}},
		{"list", 1, func() error {
			_, err := store.List(t.Context(), registry.TablePointer, "fa", "", 10)
			return err
		}},
		{"commit", 2, commit},
		{"refused commit", 2, refused},
		{"commit after a refused one", 2, commit},
		{"commit with a key", 3, func() error { return commitWith(registry.Absent(outcomeKey(n))) }},
		{"commit of two tables", 3, func() error {
			n++
			second := registry.PointerKey(faultID(5000 + n))
			etags, err := store.Apply(t.Context(), registry.Batch{Writes: []registry.Write{registry.Put(second, registry.StateLive, nil)}})
			if err != nil {
				return err
			}
			_ = taken()
			return commitWith(registry.ETagIs(second, etags[0]))
		}},
		{"healthy", 1, func() error { return store.Healthy(t.Context()) }},
		{"create", 2, func() error {
			n++
			_, err := store.Apply(t.Context(), put(n, registry.Absent(registry.PointerKey(faultID(n)))))
			return err
		}},
	}
	for round := range 2 {
		for _, c := range calls {
			if err := c.call(); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if got, want := taken(), (cost{1, c.statements}); round == 1 && got != want {
				t.Errorf("%s takes %+v, want %+v", c.name, got, want)
			}
		}
	}
	for _, want := range []int{3, 1} { // the first call numbers the waiting changes; the second finds none
		if _, err := store.Changes(t.Context(), 0, 1000); err != nil {
			t.Fatal(err)
		}
		if got := taken().trips; want == 1 && got != want {
			t.Errorf("changes takes %d round trips, want %d", got, want)
		}
	}
}

// TestHotRows prepares statements while the tables are empty, lets the tables grow, and then reads
// the costs from the server's statistics.
func TestHotRows(t *testing.T) {
	t.Parallel()
	const tables, commits, vacuums = 200, 300, 4
	// Autovacuum also keeps old rows alive while it analyzes, for a time that depends on the load
	// from other tests. So this test uses its own server without autovacuum.
	quiet, err := pgserver.Start("fsync=off", "autovacuum=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := quiet.Stop(); err != nil {
			t.Error(err)
		}
	})
	dsn := quiet.DSN()
	if _, err := Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	store := openStore(t, dsn, Options{})
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	n := 0
	var etags [tables]registry.ETag
	for i := range tables {
		n++
		made, err := store.Apply(t.Context(), registry.Batch{
			Conditions: []registry.Condition{
				registry.Absent(registry.EntryKey(faultID(0), fmt.Sprint(i))), registry.Absent(registry.PointerKey(faultID(i))),
			},
			Writes: []registry.Write{
				registry.Put(registry.PointerKey(faultID(i)), registry.StateLive, make([]byte, 500)),
				registry.Put(registry.EntryKey(faultID(0), fmt.Sprint(i)), registry.StateTable, nil),
				registry.Put(registry.LocationKey(fmt.Sprint(i)), registry.StateOwner, nil),
			},
			Change: &registry.Change{ID: faultID(n)},
		})
		if err != nil {
			t.Fatal(err)
		}
		etags[i] = made[0]
	}
	var sizes []int64
	for range vacuums {
		for range commits {
			i := n % 5 // few tables get all commits
			n++
			made, err := store.Apply(t.Context(), registry.Batch{
				Conditions: []registry.Condition{registry.ETagIs(registry.PointerKey(faultID(i)), etags[i])},
				Writes:     []registry.Write{over(registry.Put(registry.PointerKey(faultID(i)), registry.StateLive, make([]byte, 500)), etags[i])},
				Change:     &registry.Change{ID: faultID(n)},
			})
			if err != nil {
				t.Fatal(err)
			}
			etags[i] = made[0]
			_, getErr := store.Get(t.Context(), registry.PointerKey(faultID(i)))
			_, listErr := store.List(t.Context(), registry.TableEntry, registry.EntryPrefix(faultID(0)), "", 10)
			if err := errors.Join(getErr, listErr); err != nil {
				t.Fatal(err)
			}
			if n%10 == 0 {
				if _, err := store.Changes(t.Context(), registry.Position(n-10), 20); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := conn.Exec(t.Context(), "VACUUM moorage_change"); err != nil {
			t.Fatal(err)
		}
		var size int64
		if err := conn.QueryRow(t.Context(), "SELECT pg_relation_size('moorage_change_waiting') / 8192").Scan(&size); err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, size)
	}
	if grown := sizes[vacuums-1] - sizes[0]; grown > 2 {
		t.Errorf("the index of changes that wait has %v pages after each of %d commits", sizes, commits)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	checkStatistics(t, conn, int64(n))
}

// checkStatistics checks the server's statistics of the tables after a number of calls of each
// kind.
func checkStatistics(t *testing.T, conn *pgx.Conn, calls int64) {
	t.Helper()
	// A server process reports its counts when it ends, so they are complete when no process is
	// left.
	for others := 1; others > 0; {
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'").Scan(&others); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := conn.Query(t.Context(), "SELECT relname, seq_scan, coalesce(idx_tup_fetch, 0), n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname <> 'moorage_step'")
	if err != nil {
		t.Fatal(err)
	}
	var name string
	var scans, fetched, updated, hot int64
	seen := 0
	_, err = pgx.ForEachRow(rows, []any{&name, &scans, &fetched, &updated, &hot}, func() error {
		seen++
		if scans > 5 { // creating an index takes one
			t.Errorf("%s was read from end to end %d times", name, scans)
		}
		if fetched > 20*calls {
			t.Errorf("%d rows of %s were fetched in %d calls", fetched, name, calls)
		}
		switch name {
		case "moorage_pointer", "moorage_change_head":
			if updated == 0 || hot*10 < updated*9 {
				t.Errorf("%s: %d of %d updates left the indexes alone, want nine of ten", name, hot, updated)
			}
		}
		return nil
	})
	if err != nil || seen < 11 {
		t.Errorf("%d tables, %v", seen, err)
	}
}
