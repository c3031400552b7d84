package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"moorage/registry"
	"moorage/testkit/registrytest"
)

// holdAt makes proxy hold the first message from a client for which wanted returns true. held is
// closed when the message has arrived; release lets it pass.
func holdAt(proxy *Proxy, wanted func(Message) bool) (held <-chan struct{}, release func()) {
	reached, released := make(chan struct{}), make(chan struct{})
	var once sync.Once
	proxy.Watch(func(m Message) Verdict {
		if !m.FromServer && wanted(m) {
			once.Do(func() {
				close(reached)
				<-released
			})
		}
		return Forward
	})
	return reached, sync.OnceFunc(func() { close(released) })
}

// awaitHeld waits until the message of a call is held. It fails the test if the call ends first.
func awaitHeld(t *testing.T, held <-chan struct{}, ended <-chan error) {
	t.Helper()
	select {
	case <-held:
	case err := <-ended:
		t.Fatalf("the call ended before what was to be held: %v", err)
	}
}

// isSync reports whether a message makes the server commit.
func isSync(m Message) bool { return m.Type == 'S' }

// parses returns a function that reports whether a message contains a statement with this
// beginning.
func parses(statement string) func(Message) bool {
	return func(m Message) bool {
		return m.Type == 'P' && strings.HasPrefix(string(m.Body), "\x00"+statement)
	}
}

// put returns a batch that creates pointer n, with change n.
func put(n int, conditions ...registry.Condition) registry.Batch {
	if absent := registry.Absent(registry.PointerKey(faultID(n))); !slices.Contains(conditions, absent) {
		conditions = append(conditions, absent)
	}
	return registry.Batch{
		Conditions: conditions,
		Writes:     []registry.Write{registry.Put(registry.PointerKey(faultID(n)), registry.StateLive, nil)},
		Change:     &registry.Change{ID: faultID(n)},
	}
}

// wantChanges fails the test unless the changes behind the position after have the numbers in want,
// in this order.
func wantChanges(t *testing.T, store *Store, after registry.Position, want ...int) (last registry.Position) {
	t.Helper()
	changes, err := store.Changes(t.Context(), after, registry.ListLimitMax)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, c := range changes {
		got = append(got, c.Change.ID.String())
		last = c.Position
	}
	names := []string{}
	for _, n := range want {
		names = append(names, faultID(n).String())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Fatalf("changes behind %d are %v, want %v", after, got, names)
	}
	return last
}

// TestChangeOfALateCommit makes the batch that wrote its change first commit last.
func TestChangeOfALateCommit(t *testing.T) {
	t.Parallel()
	schema := migrated(t)
	proxy := newProxy(t, server)
	late := openStore(t, proxy.DSN()+schema+"&default_query_exec_mode=exec", Options{})
	store := openStore(t, server.DSN()+schema, Options{})
	held, release := holdAt(proxy, isSync)
	defer release()
	ended := make(chan error, 1)
	go func() {
		_, err := late.Apply(t.Context(), put(1))
		ended <- err
	}()
	awaitHeld(t, held, ended)
	for n := 2; n < 5; n++ {
		if _, err := store.Apply(t.Context(), put(n)); err != nil {
			t.Fatal(err)
		}
	}
	last := wantChanges(t, store, 0, 2, 3, 4)
	wantChanges(t, store, last)
	release()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if _, err := store.Apply(t.Context(), put(5)); err != nil {
		t.Fatal(err)
	}
	wantChanges(t, store, last, 1, 5)
	wantChanges(t, store, 0, 2, 3, 4, 1, 5)
}

// insertWaiting writes waiting changes 1 to n. Each change depends on the previous one. The
// parameter at is the SQL expression of their times, in terms of i.
func insertWaiting(t *testing.T, schema string, n int, at string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.DSN()+schema)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	const id = "'fa' || lpad(to_hex(i), 6, '0') || repeat('0', 24)"
	_, err = conn.Exec(t.Context(), "INSERT INTO moorage_change (key, etag, state, value, awaits, at) SELECT convert_to("+id+
		", 'UTF8'), gen_random_uuid(), 0, convert_to('{\"id\":\"' || "+id+" || '\"}', 'UTF8'), true, now() + ("+at+") * interval '1 ms' FROM generate_series(1, $1::integer) AS i", n)
	if err != nil {
		t.Fatal(err)
	}
}

// TestManyChangesWait numbers more changes than fit into one step, with concurrent readers.
func TestManyChangesWait(t *testing.T) {
	t.Parallel()
	const count, readers = 2*numberedMax + 100, 3
	for name, at := range map[string]string{
		"in order":       "i",
		"at one time":    "0",
		"clock set back": fmt.Sprintf("CASE WHEN i > %d THEN i - 1000000 ELSE i END", count/2),
		"clock backward": "-i",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schema := migrated(t)
			insertWaiting(t, schema, count, at)
			store := openStore(t, server.DSN()+schema, Options{})
			var group sync.WaitGroup
			for range readers {
				group.Go(func() { wantAllInOrder(t, store, count) })
			}
			group.Wait()
		})
	}
}

// Many changes arrive while, according to the server's statistics, no change is waiting, as is
// usual. They are still numbered quickly.
func TestPileAfterQuiet(t *testing.T) {
	t.Parallel()
	const old, pile = 1500, 30_000
	// Each of the eight steps took 5 to 15 s when the server used these statistics. All of them
	// take 2 s on a busy machine.
	const soon = 30 * time.Second
	schema := migrated(t)
	store := openStore(t, server.DSN()+schema, Options{})
	insertWaiting(t, schema, old, "i")
	wantAllInOrder(t, store, old)
	execute(t, schema, "ALTER TABLE moorage_change SET (autovacuum_enabled = false)")
	execute(t, schema, "ANALYZE moorage_change")
	execute(t, schema, "INSERT INTO moorage_change (key, etag, state, value, awaits, at) "+
		"SELECT convert_to(md5(i::text), 'UTF8'), gen_random_uuid(), 0, '', true, now() FROM generate_series(1, $1::integer) AS i", pile)
	began := time.Now()
	for more := true; more; {
		var err error
		if more, err = store.Number(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took > soon {
		t.Errorf("%d changes had their places after %s, want at most %s", pile, took, soon)
	}
	if waiting := countWaiting(t, schema); waiting > 0 {
		t.Errorf("%d changes wait", waiting)
	}
}

// wantAllInOrder fails the test unless the store's changes are 1 to count, in this order.
func wantAllInOrder(t *testing.T, store *Store, count int) {
	t.Helper()
	var after registry.Position
	for n := 1; n <= count; {
		page, err := store.Changes(t.Context(), after, 1500)
		if err != nil || len(page) == 0 {
			t.Errorf("after %d changes: %d more, %v", n-1, len(page), err)
			return
		}
		for _, c := range page {
			if c.Change.ID != faultID(n) || c.Position <= after {
				t.Errorf("position %d behind %d has change %s, want %s", c.Position, after, c.Change.ID, faultID(n))
				return
			}
			after = c.Position
			n++
		}
	}
}

// countWaiting returns the number of changes that wait for their places.
func countWaiting(t *testing.T, schema string) (count int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.DSN()+schema)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM moorage_change WHERE awaits").Scan(&count); err != nil {
		t.Fatal(err)
	}
	return count
}

// execute runs a statement in a schema.
func execute(t *testing.T, schema, statement string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.DSN()+schema)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

// TestChangesAfterAClockWasSetBack sets the server's clock back between each change and the next.
// The writer of each change has seen the previous one, but does not require any record written by
// it.
func TestChangesAfterAClockWasSetBack(t *testing.T) {
	t.Parallel()
	const count = 20
	schema := migrated(t)
	store := openStore(t, server.DSN()+schema, Options{})
	var want []int
	for n := 1; n <= count; n++ {
		if _, err := store.Apply(t.Context(), put(n)); err != nil {
			t.Fatal(err)
		}
		execute(t, schema, "UPDATE moorage_change SET at = now() - $1::integer * interval '1 hour' WHERE awaits AND key = $2", n, []byte(faultID(n).String()))
		want = append(want, n)
	}
	wantChanges(t, store, 0, want...)
}

// TestNumber numbers changes that have waited long enough, and changes with a time in the future.
func TestNumber(t *testing.T) {
	t.Parallel()
	schema := migrated(t)
	store := openStore(t, server.DSN()+schema, Options{})
	wantWaiting := func(waited time.Duration, wantMore bool, want int) {
		t.Helper()
		more, err := store.Number(t.Context(), waited)
		if err != nil || more != wantMore {
			t.Errorf("more %t, %v; want %t", more, err, wantMore)
		}
		if got := countWaiting(t, schema); got != want {
			t.Errorf("%d changes wait, want %d", got, want)
		}
	}
	wantWaiting(0, false, 0)
	if _, err := store.Apply(t.Context(), put(1)); err != nil {
		t.Fatal(err)
	}
	wantWaiting(time.Hour, false, 1)
	wantWaiting(0, false, 0)
	if _, err := store.Apply(t.Context(), put(2)); err != nil {
		t.Fatal(err)
	}
	execute(t, schema, "UPDATE moorage_change SET at = now() + interval '1 year' WHERE awaits")
	wantWaiting(time.Hour, false, 0)
	wantChanges(t, store, 0, 1, 2)
	execute(t, schema, "DELETE FROM moorage_change")
	insertWaiting(t, schema, numberedMax+1, "-i")
	wantWaiting(0, true, 1)
	wantWaiting(0, false, 0)
}

func TestChangesBehindDamage(t *testing.T) {
	t.Parallel()
	store := newStore(t, "")
	registrytest.ReadsBehindDamage(t, store, func(key registry.Key, value []byte) {
		tag, err := store.pool.Exec(t.Context(), "UPDATE moorage_change SET value = $1 WHERE key = $2", value, []byte(key.ID))
		if err != nil || tag.RowsAffected() != 1 {
			t.Fatalf("damage %s: %s, %v", key, tag, err)
		}
	})
}
