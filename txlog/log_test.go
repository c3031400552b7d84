package txlog_test

import (
	"context"
	"crypto/rand"
	"errors"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"moorage"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/testkit/registrytest"
	"moorage/txlog"
)

// transaction returns a transaction on two tables, with a file for each.
func transaction(t testing.TB) txlog.Transaction {
	t.Helper()
	id, err := registry.NewID(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	participant := func(name string, n byte) txlog.Participant {
		ident := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"ns"}, Name: name}
		return txlog.Participant{Ident: ident, Pointer: registry.ID{n}, ETag: registry.ETag{n}, Writes: true}
	}
	return txlog.Transaction{
		ID: id, Warehouse: "w", Place: txlog.Place{Roots: []string{"file:///w"}},
		Participants: []txlog.Participant{participant("a", 1), participant("b", 2)},
		Files:        []string{"a1", "b1"}, Began: someTime, Deadline: someTime.Add(time.Minute), Principal: "ann",
	}
}

// begun returns the log of a store in which a transaction has begun.
func begun(t testing.TB, store registry.Store) (*txlog.Log, txlog.Entry) {
	t.Helper()
	log := txlog.New(registrytest.Ledger(store))
	e, err := log.Begin(t.Context(), transaction(t))
	if err != nil {
		t.Fatal(err)
	}
	return log, e
}

// commit makes a transaction take effect, as the catalog does.
func commit(ctx context.Context, store registry.Store, e txlog.Entry, published ...string) error {
	condition, write, err := e.Commit(published)
	if err != nil {
		return err
	}
	_, err = store.Apply(ctx, registry.Batch{
		Conditions: []registry.Condition{condition}, Writes: []registry.Write{write}, Change: &registry.Change{ID: e.ID, Operation: "commit-transaction"},
	})
	return err
}

// now returns the present state of a transaction in the log.
func now(t testing.TB, log *txlog.Log, e txlog.Entry) txlog.Entry {
	t.Helper()
	found, ok, err := log.Get(t.Context(), e.ID)
	if err != nil {
		t.Fatal(err)
	}
	if ok != found.Exists() {
		t.Fatalf("found: %t, and it is %s", ok, found.State)
	}
	return found
}

// step is one possible step of a transaction. e is an earlier state of the transaction.
type step struct {
	name string
	do   func(ctx context.Context, store registry.Store, e txlog.Entry) error
}

func steps() []step {
	return []step{
		{"begin", func(ctx context.Context, store registry.Store, e txlog.Entry) error {
			_, err := txlog.New(registrytest.Ledger(store)).Begin(ctx, e.Transaction)
			return err
		}},
		{"extend", func(ctx context.Context, store registry.Store, e txlog.Entry) error {
			_, err := txlog.New(registrytest.Ledger(store)).Extend(ctx, e, e.Participants, []string{"a2"})
			return err
		}},
		{"commit", func(ctx context.Context, store registry.Store, e txlog.Entry) error {
			return commit(ctx, store, e, e.Files...)
		}},
		{"commit with surplus", func(ctx context.Context, store registry.Store, e txlog.Entry) error {
			return commit(ctx, store, e, e.Files[0])
		}},
		{"abort", func(ctx context.Context, store registry.Store, e txlog.Entry) error {
			_, err := txlog.New(registrytest.Ledger(store)).Abort(ctx, e)
			return err
		}},
		{"finish", func(ctx context.Context, store registry.Store, e txlog.Entry) error {
			return txlog.New(registrytest.Ledger(store)).Finish(ctx, e)
		}},
	}
}

// TestTransitions takes every step from every state, with the entry from Begin. Exactly the steps
// in the package comment must be possible.
func TestTransitions(t *testing.T) {
	t.Parallel()
	const refused = registry.State(255)
	const none, pending, committed, aborted = registry.StateNone, registry.StatePending, registry.StateCommitted, registry.StateAborted
	tests := []struct {
		before []string // steps that lead to the state
		want   map[string]registry.State
	}{
		{nil, map[string]registry.State{
			"begin": refused, "extend": pending, "commit": none, "commit with surplus": committed, "abort": aborted, "finish": none,
		}},
		{[]string{"extend"}, map[string]registry.State{ // and the known version is old
			"begin": refused, "extend": refused, "commit": refused, "commit with surplus": refused, "abort": aborted, "finish": none,
		}},
		{[]string{"commit"}, map[string]registry.State{
			"begin": pending, "extend": refused, "commit": refused, "commit with surplus": refused, "abort": none, "finish": none,
		}},
		{[]string{"commit with surplus"}, map[string]registry.State{
			"begin": refused, "extend": refused, "commit": refused, "commit with surplus": refused, "abort": committed, "finish": none,
		}},
		{[]string{"abort"}, map[string]registry.State{
			"begin": refused, "extend": refused, "commit": refused, "commit with surplus": refused, "abort": aborted, "finish": none,
		}},
		{[]string{"abort", "finish"}, map[string]registry.State{
			"begin": pending, "extend": refused, "commit": refused, "commit with surplus": refused, "abort": none, "finish": none,
		}},
	}
	stores.Each(t, func(t *testing.T, store registry.Store) {
		for _, test := range tests {
			for _, last := range steps() {
				log, e := begun(t, store)
				for _, name := range test.before {
					i := slices.IndexFunc(steps(), func(s step) bool { return s.name == name })
					if err := steps()[i].do(t.Context(), store, e); err != nil {
						t.Fatalf("%s: %v", name, err)
					}
				}
				before := now(t, log, e)
				err := last.do(t.Context(), store, e)
				after, want := now(t, log, e), test.want[last.name]
				if want == refused {
					if _, failed := registry.FailedCondition(err); !failed || !reflect.DeepEqual(after, before) {
						t.Errorf("%q then %s: answered %v and left it %s, want a failed condition and no change", test.before, last.name, err, after.State)
					}
					continue
				}
				if err != nil || after.State != want {
					t.Errorf("%q then %s: it is %s (%v), want %s", test.before, last.name, after.State, err, want)
				}
			}
		}
	})
}

// Every entry is read as it was written, whichever step wrote it.
func TestEntries(t *testing.T) {
	t.Parallel()
	stores.Each(t, func(t *testing.T, store registry.Store) {
		log, e := begun(t, store)
		if got := now(t, log, e); !reflect.DeepEqual(got, e) || got.State != registry.StatePending {
			t.Errorf("after Begin: got %+v, want %+v", got, e)
		}
		participants := slices.Clone(e.Participants)
		participants[0].ETag = registry.ETag{9}
		extended, err := log.Extend(t.Context(), e, participants, []string{"a2", "b2"})
		if err != nil {
			t.Fatal(err)
		}
		if got := now(t, log, e); !reflect.DeepEqual(got, extended) || !slices.Equal(got.Files, []string{"a1", "b1", "a2", "b2"}) || got.Participants[0].ETag != (registry.ETag{9}) {
			t.Errorf("after Extend: got %+v, want %+v", got, extended)
		}
		if len(e.Files) != 2 || e.Participants[0].ETag == (registry.ETag{9}) {
			t.Errorf("Extend changed what it was given: %+v", e)
		}
		if err := commit(t.Context(), store, extended, "a2", "b2"); err != nil {
			t.Fatal(err)
		}
		committed := now(t, log, e)
		if committed.State != registry.StateCommitted || !slices.Equal(committed.Published, []string{"a2", "b2"}) || !slices.Equal(committed.Surplus(), []string{"a1", "b1"}) {
			t.Errorf("after Commit: got %+v", committed)
		}
		again, err := log.Abort(t.Context(), extended)
		if err != nil || !reflect.DeepEqual(again, committed) {
			t.Errorf("Abort of a committed one: got %+v (%v), want %+v", again, err, committed)
		}
		if err := errors.Join(log.Finish(t.Context(), committed), log.Finish(t.Context(), committed), log.Finish(t.Context())); err != nil {
			t.Error(err)
		}
		gone, err := log.Abort(t.Context(), extended)
		if err != nil || gone.Exists() || gone.ID != e.ID {
			t.Errorf("Abort of a finished one: got %+v (%v), want one that does not exist", gone, err)
		}
	})
}

// A transaction that is not PENDING can neither be extended nor committed, and a transaction cannot
// publish files that it did not record. Both are detected without a call to the store.
func TestCommitRefuses(t *testing.T) {
	t.Parallel()
	log, e := begun(t, memory.New(rand.Reader))
	if _, _, err := e.Commit([]string{"a1", "other"}); err == nil {
		t.Error("published a file that was not recorded")
	}
	aborted, err := log.Abort(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := aborted.Commit(nil); err == nil {
		t.Error("committed what is aborted")
	}
	if _, err := log.Extend(t.Context(), aborted, nil, []string{"a2"}); err == nil {
		t.Error("extended what is aborted")
	}
}

// TestPausedCoordinator has a coordinator wake up after its transaction was aborted, and after its
// record is gone.
func TestPausedCoordinator(t *testing.T) {
	t.Parallel()
	stores.Each(t, func(t *testing.T, store registry.Store) {
		for _, finished := range []bool{false, true} {
			log, e := begun(t, store)
			aborted, err := log.Abort(t.Context(), e)
			if err != nil {
				t.Fatal(err)
			}
			if finished {
				if err := log.Finish(t.Context(), aborted); err != nil {
					t.Fatal(err)
				}
			}
			err = commit(t.Context(), store, e, "a1", "b1")
			if condition, failed := registry.FailedCondition(err); !failed || condition.Key != registry.TransactionKey(e.ID) {
				t.Errorf("finished: %t: the commit was answered %v, want a failed condition on its record", finished, err)
			}
			if records, err := store.Get(t.Context(), registry.ChangeKey(e.ID)); err != nil || records[0].Exists() {
				t.Errorf("finished: %t: the commit happened (%v)", finished, err)
			}
		}
	})
}

// TestRaces has a coordinator that extends twice and commits race against several aborts. Either it
// commits and no abort succeeds, or it is fenced, and then the record names every file that it was
// allowed to write.
func TestRaces(t *testing.T) {
	t.Parallel()
	stores.Each(t, func(t *testing.T, store registry.Store) {
		var outcomes [2]int
		for range 40 {
			log, e := begun(t, store)
			allowed := slices.Clone(e.Files)
			var wg sync.WaitGroup
			var committed error
			wg.Go(func() {
				mine := e
				for _, file := range []string{"a2", "a3"} {
					var err error
					if mine, err = log.Extend(t.Context(), mine, mine.Participants, []string{file}); err != nil {
						committed = err
						return
					}
					allowed = append(allowed, file)
				}
				committed = commit(t.Context(), store, mine, "b1", "a3")
			})
			results := make([]txlog.Entry, 3)
			for i := range results {
				wg.Go(func() {
					var err error
					if results[i], err = log.Abort(t.Context(), e); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			last, want := now(t, log, e), registry.StateCommitted
			if committed != nil {
				want = registry.StateAborted
				if _, failed := registry.FailedCondition(committed); !failed {
					t.Error(committed)
				}
				if !slices.Equal(last.Surplus(), allowed) {
					t.Errorf("the surplus is %q, and the coordinator may have written %q", last.Surplus(), allowed)
				}
			}
			if committed == nil {
				outcomes[0]++
			} else {
				outcomes[1]++
			}
			for _, result := range append(results, last) {
				if result.State != want {
					t.Errorf("the coordinator heard %v, and somebody saw %s", committed, result.State)
				}
			}
		}
		t.Logf("%d committed, %d aborted", outcomes[0], outcomes[1])
	})
}

// TestUnknownOutcomes loses the answer of each step. The step happens at once, later, or never.
// Whatever the caller does then, there must be no commit after a successful abort, and no extension
// after a commit.
func TestUnknownOutcomes(t *testing.T) {
	t.Parallel()
	for _, last := range steps() {
		for name, action := range map[string]registrytest.Action{"happens": registrytest.Lose, "later": registrytest.Delay, "never": registrytest.Fail} {
			t.Run(last.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				store := memory.New(rand.Reader)
				log, e := begun(t, store)
				if last.name == "begin" {
					e = txlog.Entry{Transaction: transaction(t), State: registry.StatePending}
				}
				faulty := registrytest.Faulty(store, registrytest.NthApply(0, action))
				err := last.do(t.Context(), faulty, e)
				if wantUnknown := action != registrytest.Fail; errors.Is(err, registry.ErrUnknown) != wantUnknown || err == nil {
					t.Fatalf("answered %v", err)
				}
				fenced, err := log.Abort(t.Context(), now(t, log, e))
				if err != nil {
					t.Fatal(err)
				}
				for _, late := range faulty.Release(t.Context()) {
					_, failed := registry.FailedCondition(late)
					if unconditional := last.name == "finish" || last.name == "begin"; failed == unconditional {
						t.Errorf("what came late was answered %v", late)
					}
				}
				records, err := store.Get(t.Context(), registry.ChangeKey(e.ID))
				if err != nil {
					t.Fatal(err)
				}
				if happened := records[0].Exists(); happened && fenced.State == registry.StateAborted {
					t.Error("aborted, and it happened")
				}
			})
		}
	}
}

// If the store cannot return the state of a transaction, it remains unknown whether the transaction
// was aborted.
func TestAbortNotTold(t *testing.T) {
	t.Parallel()
	store := memory.New(rand.Reader)
	log, e := begun(t, store)
	extended, err := log.Extend(t.Context(), e, e.Participants, []string{"a2"})
	if err != nil {
		t.Fatal(err)
	}
	faulty := registrytest.Faulty(store, registrytest.Nth(1, registrytest.Fail)) // the read after the write that came too late
	if got, err := txlog.New(registrytest.Ledger(faulty)).Abort(t.Context(), e); !errors.Is(err, registry.ErrUnavailable) {
		t.Errorf("got %+v, %v, want ErrUnavailable", got, err)
	}
	if got := now(t, log, e); !reflect.DeepEqual(got, extended) {
		t.Errorf("it is %+v, want %+v", got, extended)
	}
}

// Unfinished returns everything, page by page, in the order of ids.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	stores.Each(t, func(t *testing.T, store registry.Store) {
		var want []string
		var log *txlog.Log
		for range 7 {
			var e txlog.Entry
			log, e = begun(t, store)
			want = append(want, e.ID.String())
		}
		slices.Sort(want)
		var got []string
		for after := (registry.ID{}); ; {
			page, err := log.Unfinished(t.Context(), after, 3)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range page {
				got = append(got, e.ID.String())
			}
			if len(page) < 3 {
				break
			}
			after = page[2].ID
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if _, err := log.Unfinished(t.Context(), registry.ID{}, 0); !errors.Is(err, registry.ErrBadBatch) {
			t.Errorf("a page of nothing: %v", err)
		}
	})
}
