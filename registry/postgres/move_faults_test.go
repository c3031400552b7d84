package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"moorage/registry"
)

// moveCases are the ways to send a commit: with and without statements prepared by the driver.
var moveCases = map[string]string{"prepared": "", "no prepared statements": "&default_query_exec_mode=exec"}

// TestCutMoveAtEachStep cuts the connection before each message of a move, from either side, with
// and without a failing condition. The result of the call must agree with the database.
func TestCutMoveAtEachStep(t *testing.T) {
	t.Parallel()
	for name, options := range moveCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := newProxy(t, server)
			schema := migrated(t)
			direct := openStore(t, server.DSN()+schema, Options{})
			var all outcomes
			n := 0
			for _, fromServer := range []bool{false, true} {
				for k, cut := 0, true; cut; k++ {
					for _, refused := range []bool{false, true} {
						n += 2
						store := openStore(t, proxy.DSN()+schema+options+"&pool_max_conns=1", Options{})
						conditions := make([]registry.Condition, 2)
						for i := range conditions { // the first move makes the driver prepare its statements
							mustPutPointer(t, direct, n+i, &conditions[i])
						}
						if _, err := store.Apply(t.Context(), moving(n, registry.Absent(outcomeKey(n)), conditions[0])); err != nil {
							t.Fatal(err)
						}
						if refused {
							conditions[1].ETag = registry.ETag{1}
						}
						watch, reached := watchAt(step{fromServer, k}, func() Verdict { return Cut })
						proxy.Watch(watch)
						etags, err := store.Apply(t.Context(), moving(n+1, registry.Absent(outcomeKey(n+1)), conditions[1]))
						proxy.Watch(nil)
						proxy.CutAll()
						proxy.Settled()
						judgeMove(t, direct, &all, n+1, etags, err)
						_ = store.Close()
						if cut = reached(); !cut && !refused && err != nil {
							t.Fatalf("not cut at %d: %v", k, err)
						}
					}
				}
			}
			// Check that each outcome has occurred.
			if all.done == 0 || all.refused == 0 || all.unknownDone == 0 || all.unknownUndone == 0 {
				t.Errorf("outcomes: %+v, want some of each", all)
			}
		})
	}
}

// mustPutPointer puts pointer n, and sets condition to require its version.
func mustPutPointer(t *testing.T, store *Store, n int, condition *registry.Condition) {
	t.Helper()
	etags, err := store.Apply(t.Context(), registry.Batch{
		Writes: []registry.Write{registry.Put(pointerKey(n), registry.StateLive, nil)},
	})
	if err != nil {
		t.Fatal(err)
	}
	*condition = registry.ETagIs(pointerKey(n), etags[0])
}

// judgeMove counts the outcome of move n, and fails the test unless it agrees with the database.
func judgeMove(t *testing.T, direct *Store, o *outcomes, n int, etags []registry.ETag, err error) {
	t.Helper()
	applied := isMoved(t, direct, n)
	records, getErr := direct.Get(t.Context(), pointerKey(n), outcomeKey(n))
	if getErr != nil || records[1].Exists() != applied {
		t.Fatalf("move %d happened: %t, and its outcome is %v (%v)", n, applied, records[1], getErr)
	}
	_, refused := registry.FailedCondition(err)
	unknown := errors.Is(err, registry.ErrUnknown)
	switch {
	case err == nil:
		o.done++
		if !applied || records[0].ETag != etags[1] {
			t.Fatalf("move %d was acknowledged with etag %s, but the record is %v", n, etags[1], records[0])
		}
		return
	case unknown && applied:
		o.unknownDone++
		return
	case unknown:
		o.unknownUndone++
	case refused:
		o.refused++
	case errors.Is(err, registry.ErrUnavailable):
		o.unavailable++
	default:
		t.Fatalf("move %d: %v, which is no outcome", n, err)
	}
	if applied {
		t.Fatalf("move %d: told %v, but it was applied", n, err)
	}
}

// TestMoveWarnings is TestWarnings for moves and for joined moves.
func TestMoveWarnings(t *testing.T) {
	t.Parallel()
	const warn = "CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'same text' USING ERRCODE = '01000'; RETURN NULL; END $$"
	for mode, options := range moveCases {
		for name, tt := range map[string]struct {
			trigger string
			want    error
		}{
			"in a statement":  {"CREATE TRIGGER warn AFTER UPDATE ON moorage_pointer FOR EACH STATEMENT EXECUTE FUNCTION warn()", nil},
			"in the last one": {"CREATE TRIGGER warn AFTER INSERT ON moorage_change FOR EACH STATEMENT EXECUTE FUNCTION warn()", nil},
			"when it commits": {"CREATE CONSTRAINT TRIGGER warn AFTER INSERT ON moorage_change DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION warn()", registry.ErrUnknown},
		} {
			t.Run(mode+" "+name, func(t *testing.T) {
				t.Parallel()
				store := newStore(t, options)
				for _, sql := range []string{warn, tt.trigger} {
					if _, err := store.pool.Exec(t.Context(), sql); err != nil {
						t.Fatal(err)
					}
				}
				conditions := withPointers(t, store, 5)
				batches := []registry.Batch{moving(3, conditions[3]), moving(4, conditions[4])}
				errs := joinAll(t, store, batches, nil)
				for n := range 3 { // with prepared statements, and without
					_, err := store.Apply(t.Context(), moving(n, conditions[n]))
					errs = append(errs, err)
				}
				for n, err := range errs {
					if !errors.Is(err, tt.want) {
						t.Errorf("move %d: %v, want %v", n, err, tt.want)
					}
				}
				for n := range 5 {
					if !isMoved(t, store, n) {
						t.Errorf("move %d did not happen", n)
					}
				}
				// A refused move stays refused, whatever its transaction commits.
				_, err := store.Apply(t.Context(), moving(10, stale(pointerKey(1))))
				if _, refused := registry.FailedCondition(err); !refused {
					t.Errorf("refused: %v", err)
				}
			})
		}
	}
}

// TestMovesUnseenUntilReplicated: if callers give up while the server waits for its standby, the
// outcomes of their moves are unknown, alone and joined. No reader sees the moves until the standby
// has them.
func TestMovesUnseenUntilReplicated(t *testing.T) {
	t.Parallel()
	store, proxy := newReplicated(t)
	conditions := withPointers(t, store, 3)
	proxy.Stall()
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	ended := make(chan struct{})
	var applyErr error
	go func() {
		defer close(ended)
		_, applyErr = store.Apply(ctx, moving(0, conditions[0]))
	}()
	awaitStandbyWait(t, store, ended)
	direct := connect(t, store.pool.Config().ConnString())
	batches := []registry.Batch{moving(1, conditions[1]), moving(2, conditions[2])}
	errs := joinAll(t, store, batches, func(giveUpJoined []context.CancelFunc) {
		go func() {
			for waiting := 0; waiting < 2; {
				_, waiting = processesOf(t, direct, "moorage")
			}
			for _, end := range giveUpJoined {
				end()
			}
		}()
	})
	giveUp()
	<-ended
	for n, err := range append(errs, applyErr) {
		if !errors.Is(err, registry.ErrUnknown) {
			t.Errorf("move %d: %v, want ErrUnknown", n, err)
		}
	}
	seen := func() (seen int) {
		for n := range 3 {
			if isMoved(t, store, n) {
				seen++
			}
		}
		return seen
	}
	for began := time.Now(); time.Since(began) < time.Second; {
		if n := seen(); n > 0 {
			t.Fatalf("after %s %d moves are seen, and the standby does not have them", time.Since(began), n)
		}
	}
	proxy.Restore()
	for began := time.Now(); seen() < 3; {
		if time.Since(began) > time.Minute {
			t.Fatal(fmt.Errorf("%d of 3 moves are seen", seen()))
		}
	}
}
