package postgres

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"moorage/registry"
)

// joinAll sends batches concurrently, as waiting moves, so that they become one transaction in the
// order of batches. It returns the error of each Apply. If while is not nil, it is called when all
// moves wait, with the functions that end their contexts.
func joinAll(t *testing.T, store *Store, batches []registry.Batch, while func(giveUp []context.CancelFunc)) []error {
	t.Helper()
	// First wait until no transaction is in progress. Otherwise, if one is slow, the waiting moves
	// would be sent one by one.
	for taken := false; !taken; runtime.Gosched() {
		store.moves.mu.Lock()
		if taken = store.moves.underWay == 0; taken {
			store.moves.underWay = store.moves.most
		}
		store.moves.mu.Unlock()
	}
	errs := make([]error, len(batches))
	giveUp := make([]context.CancelFunc, len(batches))
	var calls sync.WaitGroup
	for i, batch := range batches {
		var ctx context.Context
		ctx, giveUp[i] = context.WithCancel(t.Context())
		defer giveUp[i]()
		calls.Go(func() { _, errs[i] = store.Apply(ctx, batch) })
		awaitWaiting(store, i+1)
	}
	if while != nil {
		while(giveUp)
	}
	store.moves.next() // like the end of a transaction
	calls.Wait()
	for range store.moves.most - 1 {
		store.moves.next()
	}
	return errs
}

// awaitWaiting waits until the number of waiting moves is want.
func awaitWaiting(store *Store, want int) {
	for waiting := -1; waiting != want; runtime.Gosched() {
		store.moves.mu.Lock()
		waiting = len(store.moves.waiting)
		store.moves.mu.Unlock()
	}
}

// withPointers puts pointers 0 to n-1, and returns a condition for each.
func withPointers(t *testing.T, store *Store, n int) (conditions []registry.Condition) {
	t.Helper()
	for i := range n {
		etags, err := store.Apply(t.Context(), registry.Batch{
			Writes: []registry.Write{registry.Put(pointerKey(i), registry.StateLive, nil)},
		})
		if err != nil {
			t.Fatal(err)
		}
		conditions = append(conditions, registry.ETagIs(pointerKey(i), etags[0]))
	}
	return conditions
}

// mustPut writes a record with which a member of TestJoinedMembersFail conflicts.
func mustPut(t *testing.T, store *Store, key registry.Key) {
	t.Helper()
	batch := registry.Batch{Writes: []registry.Write{registry.Put(key, registry.StateVoid, nil)}}
	if _, err := store.Apply(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
}

// isMoved reports whether a pointer and its change were written. It fails the test if only one of
// the two was.
func isMoved(t *testing.T, store *Store, n int) bool {
	t.Helper()
	records, err := store.Get(t.Context(), pointerKey(n), registry.ChangeKey(faultID(n)))
	if err != nil {
		t.Fatal(err)
	}
	moved := string(records[0].Value) == "moved"
	if changed := records[1].Exists() && records[1].State != registry.StateVoid; changed != moved {
		t.Errorf("move %d: half of it is there: %v", n, records)
	}
	return moved
}

// requireAnother returns a batch of moving that requires a version of its pointer that never
// existed.
func requireAnother(batch registry.Batch) registry.Batch {
	required := &batch.Conditions[1]
	required.ETag = registry.ETag{1}
	for i, write := range batch.Writes {
		if write.Key == required.Key {
			batch.Writes[i] = over(write, required.ETag)
		}
	}
	return batch
}

// TestJoinedMembersFail makes one of several joined moves fail: the first, the middle and the last
// one, and for each reason. The others succeed.
func TestJoinedMembersFail(t *testing.T) {
	t.Parallel()
	const members = 5
	for name, options := range map[string]string{
		"read committed": "", "serializable": "&default_transaction_isolation=serializable",
		"no prepared statements": "&default_query_exec_mode=exec",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, place := range []int{0, members / 2, members - 1} {
				for reason, tt := range map[string]struct {
					fail  func(t *testing.T, store *Store, batch registry.Batch) registry.Batch
					want  int // the index of the failed condition
					sends int64
				}{
					"version": {func(_ *testing.T, _ *Store, batch registry.Batch) registry.Batch {
						return requireAnother(batch)
					}, 1, 1},
					"key": {func(t *testing.T, store *Store, batch registry.Batch) registry.Batch {
						mustPut(t, store, batch.Writes[0].Key)
						return batch
					}, 0, 1 + members},
					"key and version": {func(t *testing.T, store *Store, batch registry.Batch) registry.Batch {
						mustPut(t, store, batch.Writes[0].Key)
						return requireAnother(batch)
					}, 0, 1},
					"fence": {func(t *testing.T, store *Store, batch registry.Batch) registry.Batch {
						mustPut(t, store, registry.ChangeKey(batch.Change.ID))
						return batch
					}, 2, 1 + members},
				} {
					store := newStore(t, options)
					var batches []registry.Batch
					for n, condition := range withPointers(t, store, members) {
						batches = append(batches, moving(n, registry.Absent(outcomeKey(n)), condition))
					}
					batches[place] = tt.fail(t, store, batches[place])
					before := store.pool.Stat().AcquireCount()
					errs := joinAll(t, store, batches, nil)
					var failed *registry.FailedError
					if !errors.As(errs[place], &failed) || failed.Index != tt.want {
						t.Errorf("%s in place %d: %v, want that condition %d failed", reason, place, errs[place], tt.want)
					}
					for n, err := range errs {
						if n != place && err != nil {
							t.Errorf("%s in place %d: member %d: %v", reason, place, n, err)
						}
						if moved := isMoved(t, store, n); moved != (n != place) {
							t.Errorf("%s in place %d: member %d happened: %t", reason, place, n, moved)
						}
					}
					if sent := store.pool.Stat().AcquireCount() - before; sent != tt.sends {
						t.Errorf("%s in place %d: %d transactions, want %d", reason, place, sent, tt.sends)
					}
				}
			}
		})
	}
}

// TestJoinedTransaction: waiting moves become transactions of at most joinedMovesMax moves, with
// one move for each pointer. Each caller gets its own ETags.
func TestJoinedTransaction(t *testing.T) {
	t.Parallel()
	store := newStore(t, "")
	const members = joinedMovesMax + 3
	var batches []registry.Batch
	for n, condition := range withPointers(t, store, members) {
		batches = append(batches, moving(n, condition))
	}
	batches = append(batches, moving(100, batches[0].Conditions...)) // it loses to the first move of the same pointer
	before := store.pool.Stat().AcquireCount()
	errs := joinAll(t, store, batches, nil)
	for n, err := range errs[:members] {
		if err != nil || !isMoved(t, store, n) {
			t.Errorf("member %d: %v", n, err)
		}
	}
	if _, refused := registry.FailedCondition(errs[members]); !refused {
		t.Errorf("the second move of a pointer: %v, want a failed condition", errs[members])
	}
	if sent := store.pool.Stat().AcquireCount() - before; sent != 2 {
		t.Errorf("%d transactions, want 2", sent)
	}
	store.moves.mu.Lock()
	underWay := store.moves.underWay
	store.moves.mu.Unlock()
	if underWay != 0 {
		t.Errorf("%d transactions are under way after the last", underWay)
	}
	changes, err := store.Changes(t.Context(), 0, 100)
	if err != nil || len(changes) != members {
		t.Errorf("%d changes, %v, want %d", len(changes), err, members)
	}
}

// TestJoinedUnknown cuts the connection of a joined transaction before and after its commit. The
// outcome of each member is unknown. As in the ledger, the change record or a fence then shows for
// each member whether it happened.
func TestJoinedUnknown(t *testing.T) {
	t.Parallel()
	const members = 3
	for _, happened := range []bool{false, true} {
		t.Run(fmt.Sprintf("happened %t", happened), func(t *testing.T) {
			t.Parallel()
			proxy := newProxy(t, server)
			store := openStore(t, proxy.DSN()+migrated(t)+"&pool_max_conns=2", Options{})
			direct := openDirect(t, store)
			var batches []registry.Batch
			for n, condition := range withPointers(t, store, members) {
				if n == 1 {
					condition.ETag = registry.ETag{1} // it is refused, whatever happens to the others
				}
				batches = append(batches, moving(n, registry.Absent(outcomeKey(n)), condition))
			}
			errs := joinAll(t, store, batches, func([]context.CancelFunc) {
				var executed, done atomic.Bool // set by a statement of the transaction, not by its preparation
				proxy.Watch(func(m Message) Verdict {
					switch {
					case !m.FromServer && m.Type == 'E':
						executed.Store(true)
					case m.FromServer && m.Type == 'C':
						done.Store(true)
					case !happened && !m.FromServer && isSync(m) && executed.Load(), happened && m.FromServer && m.Type == 'Z' && done.Load():
						return Cut
					}
					return Forward
				})
			})
			proxy.Watch(nil)
			proxy.CutAll()
			proxy.Settled()
			for n, err := range errs {
				if !errors.Is(err, registry.ErrUnknown) {
					t.Errorf("member %d: %v, want ErrUnknown", n, err)
				}
				fence := registry.Batch{
					Conditions: []registry.Condition{registry.Absent(registry.ChangeKey(faultID(n)))},
					Writes:     []registry.Write{registry.Put(registry.ChangeKey(faultID(n)), registry.StateVoid, nil)},
				}
				_, err := direct.Apply(t.Context(), fence)
				_, met := registry.FailedCondition(err)
				if want := happened && n != 1; err != nil && !met || met != want || isMoved(t, direct, n) != want {
					t.Errorf("member %d: the fence says %v, want that it happened: %t", n, err, want)
				}
			}
		})
	}
}

// TestJoinedFenced: while the transaction is delayed, the caller of a member gives up and fences
// the member. That member never happens, and the others do.
func TestJoinedFenced(t *testing.T) {
	t.Parallel()
	const members = 3
	proxy := newProxy(t, server)
	store := openStore(t, proxy.DSN()+migrated(t)+"&pool_max_conns=2", Options{})
	direct := openDirect(t, store)
	var batches []registry.Batch
	for n, condition := range withPointers(t, store, members) {
		batches = append(batches, moving(n, condition))
	}
	gone := make(chan struct{})
	var watching sync.WaitGroup
	errs := joinAll(t, store, batches, func(giveUp []context.CancelFunc) {
		held, release := holdAt(proxy, isSync)
		watching.Go(func() {
			<-held
			giveUp[0]()
			mustPut(t, direct, registry.ChangeKey(faultID(0)))
			close(gone)
			release()
		})
	})
	watching.Wait()
	<-gone
	if !errors.Is(errs[0], registry.ErrUnknown) || !errors.Is(errs[0], context.Canceled) {
		t.Errorf("the member that gave up: %v, want ErrUnknown and the error of its context", errs[0])
	}
	for n := range members {
		if n > 0 && errs[n] != nil {
			t.Errorf("member %d: %v", n, errs[n])
		}
		if isMoved(t, direct, n) != (n > 0) {
			t.Errorf("member %d happened: %t", n, n == 0)
		}
	}
}

// TestJoinedCallersLeave: a call that ends while it waits returns an error that means that it was
// not sent. If all callers of a transaction have gone, the transaction continues without them.
func TestJoinedCallersLeave(t *testing.T) {
	t.Parallel()
	schema := migrated(t)
	application := "leave" + strings.TrimPrefix(schema, "&search_path=")
	store := openStore(t, server.DSN()+schema+"&pool_max_conns=2&application_name="+application, Options{})
	direct := connect(t, server.DSN())
	conditions := withPointers(t, store, 3)
	batches := []registry.Batch{moving(0, conditions[0]), moving(1, conditions[1])}
	errs := joinAll(t, store, batches, func(giveUp []context.CancelFunc) {
		giveUp[0]()
		awaitWaiting(store, 1)
	})
	if !errors.Is(errs[0], context.Canceled) || errors.Is(errs[0], registry.ErrUnknown) || errs[1] != nil {
		t.Errorf("got %v, want that only the first ended, and nothing was sent of it", errs)
	}
	if isMoved(t, store, 0) {
		t.Error("it was sent nevertheless")
	}
	unlock := locked(t, server.DSN()+schema, "moorage_pointer")
	var watching sync.WaitGroup
	errs = joinAll(t, store, []registry.Batch{moving(0, conditions[0]), moving(2, conditions[2])}, func(giveUp []context.CancelFunc) {
		watching.Go(func() {
			awaitProcesses(t, direct, application, 1)
			for _, end := range giveUp {
				end()
			}
		})
	})
	watching.Wait()
	for n, err := range errs {
		if !errors.Is(err, registry.ErrUnknown) || !errors.Is(err, context.Canceled) {
			t.Errorf("call %d: %v, want ErrUnknown and the error of its context", n, err)
		}
	}
	unlock()
	awaitApply(t, store, 50) // its slot becomes free
	if !isMoved(t, store, 0) || !isMoved(t, store, 2) {
		t.Error("it did not go on without its callers")
	}
}
