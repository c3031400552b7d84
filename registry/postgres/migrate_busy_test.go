package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"moorage/migrations"
)

// indexedRows is the number of changes in TestCommitsDuringMigration.
var indexedRows = flag.Int("indexed", 50_000, "how many changes wait in TestCommitsDuringMigration; from 1,000,000 on, no commit may stall for more than 500 ms")

// A table with largeRows rows is larger than smallBytesMax.
const largeRows = 20_000

// newDatabase returns a connection string for a new database at a step. Because it is separate,
// other tests' transactions do not delay the indexes of its tables.
func newDatabase(t *testing.T, step int) (dsn string) {
	t.Helper()
	name := "test_" + strings.ToLower(rand.Text())
	execute(t, "", "CREATE DATABASE "+name)
	dsn = strings.Replace(server.DSN(), "/postgres?", "/"+name+"?", 1)
	if _, err := migrate(t.Context(), dsn, laterSteps(t)[:step]); err != nil {
		t.Fatal(err)
	}
	return dsn
}

// connectTo returns a connection that the test closes.
func connectTo(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func mustExec(t *testing.T, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// writeChanges writes n waiting changes.
func writeChanges(t *testing.T, conn *pgx.Conn, n int) {
	t.Helper()
	mustExec(t, conn, "INSERT INTO moorage_change (key, etag, state, value, awaits, at) SELECT convert_to(md5(i::text), 'UTF8'), gen_random_uuid(), 0, "+
		"convert_to('{\"id\":\"' || md5(i::text) || repeat(' ', 200) || '\"}', 'UTF8'), true, now() FROM generate_series(1, $1::integer) AS i", n)
}

// commits applies put(from), put(from+1) and so on to the tables of dsn, whatever their step is,
// until stop returns. The first has been applied when commits returns. done is the number of
// batches that have been applied. stop returns the longest duration of one.
func commits(t *testing.T, dsn string, from int) (done *atomic.Int64, stop func() (longest time.Duration)) {
	t.Helper()
	store, err := connectLeases(t.Context(), dsn, 2)
	if err != nil {
		t.Fatal(err)
	}
	var stopped atomic.Bool
	var ended sync.WaitGroup
	done = new(atomic.Int64)
	var longest time.Duration
	begun := make(chan struct{})
	isBegun := sync.OnceFunc(func() { close(begun) })
	ended.Go(func() {
		defer isBegun() // after a failure too
		for n := from; !stopped.Load(); n++ {
			began := time.Now()
			if _, err := store.Apply(t.Context(), put(n)); err != nil {
				t.Error(err)
				return
			}
			longest = max(longest, time.Since(began))
			done.Add(1)
			isBegun()
		}
	})
	<-begun
	stop = sync.OnceValue(func() time.Duration {
		stopped.Store(true)
		ended.Wait()
		return longest
	})
	t.Cleanup(func() {
		stop()
		_ = store.Close()
	})
	return done, stop
}

// indexStep returns the last of laterSteps, which creates an index.
func indexStep(t *testing.T) migrations.Step {
	t.Helper()
	all := laterSteps(t)
	return all[len(all)-1]
}

// awaitQuery waits until a query returns true, or until ended is closed.
func awaitQuery(t *testing.T, conn *pgx.Conn, ended <-chan struct{}, sql string) {
	t.Helper()
	for is := false; !is; {
		select {
		case <-ended:
			t.Fatalf("it ended before %s", sql)
		default:
		}
		if err := conn.QueryRow(t.Context(), sql).Scan(&is); err != nil {
			t.Fatal(err)
		}
	}
}

const building = "SELECT count(*) > 0 FROM pg_stat_progress_create_index WHERE datname = current_database() AND phase = 'waiting for writers before build'"

// TestCommitsDuringIndex delays the build of an index by a transaction that has written to the
// table. Commits and pages continue until that transaction ends.
func TestCommitsDuringIndex(t *testing.T) {
	t.Parallel()
	step := indexStep(t)
	dsn := newDatabase(t, step.Version-1)
	holder, watcher := connectTo(t, dsn), connectTo(t, dsn)
	writeChanges(t, holder, largeRows)
	mustExec(t, holder, "BEGIN")
	mustExec(t, holder, "DELETE FROM moorage_change WHERE key = convert_to(md5('1'), 'UTF8')")
	ended := make(chan struct{})
	var migrateErr error
	go func() {
		defer close(ended)
		_, migrateErr = migrate(t.Context(), dsn, laterSteps(t))
	}()
	awaitQuery(t, watcher, ended, building)
	store, err := connectLeases(t.Context(), dsn, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	held, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for n := range 20 {
		if _, err := store.Apply(held, put(n)); err != nil {
			t.Fatalf("a commit while the index is made: %v", err)
		}
		if _, err := store.look(held, 0, 64); err != nil {
			t.Fatalf("a page while the index is made: %v", err)
		}
	}
	awaitQuery(t, watcher, ended, building)
	mustExec(t, holder, "COMMIT")
	if <-ended; migrateErr != nil {
		t.Fatal(migrateErr)
	}
	wantIndex(t, watcher)
	openStore(t, dsn, Options{})
}

// wantIndex fails the test unless the index of waiting changes is usable. It returns the ID of the
// index.
func wantIndex(t *testing.T, conn *pgx.Conn) (id uint32) {
	t.Helper()
	valid := false
	if err := conn.QueryRow(t.Context(), "SELECT indexrelid::oid, indisvalid FROM pg_index WHERE indexrelid = to_regclass('moorage_change_later')").Scan(&id, &valid); err != nil || !valid {
		t.Errorf("the index is valid: %t, %v", valid, err)
	}
	return id
}

// TestCommitsDuringMigration measures how long commits stall while later steps on a large table are
// taken. A build that locks the table would stall them for its whole duration.
func TestCommitsDuringMigration(t *testing.T) {
	const stallMax, manyMin = 500 * time.Millisecond, 1_000_000
	dsn := newDatabase(t, len(allSteps(t)))
	conn := connectTo(t, dsn)
	writeChanges(t, conn, *indexedRows)
	mustExec(t, conn, "INSERT INTO moorage_idempotency SELECT key, etag, state, value FROM moorage_change")
	done, stop := commits(t, dsn, 1<<20)
	before, began := done.Load(), time.Now()
	bounded, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if _, err := migrate(bounded, dsn, laterSteps(t)); err != nil {
		t.Fatal(err)
	}
	count, took := done.Load()-before, time.Since(began)
	longest := stop()
	t.Logf("the steps took %v, with %d commits of %v at most", took, count, longest)
	if *indexedRows >= manyMin && longest > stallMax || count == 0 {
		t.Errorf("%d commits, one of which took %v, want %v at most", count, longest, stallMax)
	}
	wantIndex(t, conn)
}

// TestLeftIndex migrates after another migrator has left an incomplete index, a complete one, or
// one that a server process is still creating.
func TestLeftIndex(t *testing.T) {
	t.Parallel()
	step := indexStep(t)
	for name, leave := range map[string]func(t *testing.T, conn, holder *pgx.Conn) (made chan error){
		"half": func(t *testing.T, conn, holder *pgx.Conn) chan error {
			mustExec(t, holder, "BEGIN; DELETE FROM moorage_change WHERE key = convert_to(md5('1'), 'UTF8')")
			mustExec(t, conn, "SET lock_timeout = '50ms'")
			if _, err := conn.Exec(t.Context(), step.SQL); stateOf(err) != stateLockNotAvailable {
				t.Fatalf("%v, want a timeout", err)
			}
			mustExec(t, holder, "COMMIT")
			return nil
		},
		"whole": func(t *testing.T, conn, _ *pgx.Conn) chan error {
			mustExec(t, conn, step.SQL)
			return nil
		},
		"in the making": func(t *testing.T, conn, holder *pgx.Conn) chan error {
			mustExec(t, holder, "BEGIN; DELETE FROM moorage_change WHERE key = convert_to(md5('1'), 'UTF8')")
			made := make(chan error, 1)
			go func() {
				_, err := conn.Exec(t.Context(), step.SQL)
				made <- err
			}()
			return made
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := newDatabase(t, step.Version-1)
			watcher, holder := connectTo(t, dsn), connectTo(t, dsn)
			// An autovacuum that has locked the table could keep the index from being begun.
			mustExec(t, holder, "ALTER TABLE moorage_change SET (autovacuum_enabled = false)")
			writeChanges(t, holder, largeRows)
			made := leave(t, connectTo(t, dsn), holder)
			m := migrator{conn: connectTo(t, dsn), all: laterSteps(t), tries: attemptsMax, pause: time.Millisecond}
			defer m.letIn(context.Background())
			ended := make(chan struct{})
			if made != nil {
				awaitQuery(t, watcher, ended, building)
			}
			var before *uint32
			if err := watcher.QueryRow(t.Context(), "SELECT to_regclass('moorage_change_later')::oid").Scan(&before); err != nil || before == nil {
				t.Fatalf("no index was left (%v)", err)
			}
			var nextErr error
			go func() {
				defer close(ended)
				_, nextErr = m.next(t.Context())
			}()
			if made != nil {
				awaitQuery(t, watcher, ended, "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LOCK TABLE%' AND wait_event_type = 'Lock'")
				mustExec(t, holder, "COMMIT")
				if err := <-made; err != nil {
					t.Errorf("the build was disturbed: %v", err)
				}
			}
			if <-ended; nextErr != nil {
				t.Fatal(nextErr)
			}
			if after := wantIndex(t, watcher); (after == *before) != (name != "half") {
				t.Errorf("index %d was left and %d is there", *before, after)
			}
			if taken, err := readTaken(t.Context(), watcher); err != nil || len(taken) != step.Version {
				t.Errorf("at step %d, %v, want %d", len(taken), err, step.Version)
			}
		})
	}
}

// TestCatalogRace makes the server refuse a step once, as if another session changed the same row
// of the system tables at that moment.
func TestCatalogRace(t *testing.T) {
	t.Parallel()
	for _, refusals := range []int{1, 3} {
		t.Run(fmt.Sprint(refusals), func(t *testing.T) {
			t.Parallel()
			step := indexStep(t)
			dsn := newDatabase(t, step.Version-1)
			conn := connectTo(t, dsn)
			mustExec(t, conn, "CREATE SEQUENCE refusals")
			mustExec(t, conn, fmt.Sprintf(`CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
				IF nextval('refusals') <= %d THEN
					RAISE EXCEPTION 'tuple concurrently updated' USING ERRCODE = 'XX000';
				END IF; END $$`, refusals))
			mustExec(t, conn, "CREATE EVENT TRIGGER refuse ON ddl_command_start EXECUTE FUNCTION refuse()")
			m := migrator{conn: connectTo(t, dsn), all: laterSteps(t), tries: 3, pause: time.Millisecond}
			done, err := m.next(t.Context())
			if refusals == m.tries {
				if stateOf(err) != stateInternalError || !strings.Contains(err.Error(), step.Name) {
					t.Errorf("%v, want what the server said of %s", err, step.Name)
				}
				return
			}
			if done || err != nil {
				t.Errorf("%t, %v, want the step taken", done, err)
			}
			wantIndex(t, conn)
		})
	}
}

// queryHook is a tracer of queries that calls a function before and after each query.
type queryHook struct {
	begun func(sql string)
	ended func(err error)
}

func (h queryHook) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	h.begun(data.SQL)
	return ctx
}

func (h queryHook) TraceQueryEnd(_ context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	h.ended(data.Err)
}

// connectHooked is like connectTo. The connection calls hook.
func connectHooked(t *testing.T, dsn string, hook queryHook) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.Tracer = hook
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// TestIndexThatBecomesValid: the server process that creates an index has released its lock, and
// commits that the index is valid just after a migrator has looked. The index stays.
func TestIndexThatBecomesValid(t *testing.T) {
	t.Parallel()
	step := indexStep(t)
	dsn := newDatabase(t, step.Version-1)
	builder, watcher := connectTo(t, dsn), connectTo(t, dsn)
	writeChanges(t, builder, largeRows)
	mustExec(t, builder, step.SQL)
	before := wantIndex(t, watcher)
	const setValid = "UPDATE pg_index SET indisvalid = $1 WHERE indexrelid = to_regclass('moorage_change_later')"
	mustExec(t, builder, setValid, false)
	mustExec(t, builder, "BEGIN")
	mustExec(t, builder, setValid, true)
	isLook, looks := false, 0
	var m migrator
	m = migrator{all: laterSteps(t), tries: attemptsMax, pause: time.Millisecond, conn: connectHooked(t, dsn, queryHook{
		begun: func(sql string) { isLook = m.others != nil && strings.Contains(sql, "indisvalid") },
		ended: func(error) {
			if isLook {
				if looks++; looks == 1 {
					mustExec(t, builder, "COMMIT")
				}
			}
		},
	})}
	defer m.letIn(context.Background())
	if _, err := m.next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := wantIndex(t, watcher); after != before || looks < 2 {
		t.Errorf("index %d was there and %d is there, after %d looks", before, after, looks)
	}
}

// TestLongReader keeps a transaction open that has only read a table. A step that changes the table
// waits for that transaction, and commits wait no longer than one try of the step. In the pause
// between two tries, commits continue.
func TestLongReader(t *testing.T) {
	t.Parallel()
	const tries, stallMax = 2, 5 * time.Second // lock_timeout is 1.5 s here; the rest is for a slow machine
	const inPauseMin = 10                      // without a pause, a few commits end between the tries
	version := len(allSteps(t)) + 1
	dsn := newDatabase(t, version-1)
	reader := connectTo(t, dsn)
	mustExec(t, reader, "BEGIN")
	mustExec(t, reader, "SELECT count(*) FROM moorage_change")
	var done *atomic.Int64
	var atPause, inPause int64 // commits until the pause between the tries, and in it
	hook := queryHook{
		begun: func(sql string) {
			if sql == lockTimeoutSQL && atPause > 0 { // the next try
				inPause, atPause = done.Load()-atPause, 0
			}
		},
		ended: func(err error) {
			if stateOf(err) == stateLockNotAvailable {
				atPause = done.Load()
			}
		},
	}
	m := migrator{conn: connectHooked(t, dsn, hook), all: laterSteps(t), tries: tries, pause: time.Second}
	// This machine may be stopped for a while during some of the rounds.
	var longest time.Duration
	for round := 1; round == 1 || round <= 4 && (longest > stallMax || inPause < inPauseMin); round++ {
		var stop func() time.Duration
		done, stop = commits(t, dsn, round<<20)
		atPause, inPause = 0, 0
		_, err := m.next(t.Context())
		if stateOf(err) != stateLockNotAvailable || !strings.Contains(err.Error(), "run moorage migrate again") || !strings.Contains(err.Error(), m.all[version-1].Name) {
			t.Errorf("%v, want what to do about the lock", err)
		}
		longest = stop()
	}
	t.Logf("the longest commit took %v; %d ended between the tries", longest, inPause)
	if longest > stallMax || inPause < inPauseMin {
		t.Errorf("the longest commit took %v, want %v at most; %d ended between the tries, want %d", longest, stallMax, inPause, inPauseMin)
	}
	mustExec(t, reader, "COMMIT")
	if done, err := m.next(t.Context()); done || err != nil {
		t.Errorf("the reader has ended: %t, %v", done, err)
	}
}

// In TestTenNodesIndexAtOnce, one node creates indexes while the others wait for their turn and
// read the tables. Creating the indexes must not wait for the others.
func TestTenNodesIndexAtOnce(t *testing.T) {
	t.Parallel()
	const nodes = 10
	dsn := newDatabase(t, indexStep(t).Version-1)
	writeChanges(t, connectTo(t, dsn), largeRows)
	bounded, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	errs := make(chan error, nodes)
	for i := range nodes {
		go func() {
			_, err := migrate(bounded, fmt.Sprintf("%s&default_transaction_isolation=%s", dsn, []string{"serializable", "read%20committed"}[i%2]), laterSteps(t))
			errs <- err
		}()
	}
	var err error
	for range nodes {
		err = errors.Join(err, <-errs)
	}
	if err != nil {
		t.Error(err)
	}
	openStore(t, dsn, Options{})
}
