package recovery_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"moorage/ledger"
	"moorage/locks"
	"moorage/recovery"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/testkit/registrytest"
	"moorage/txlog"
)

// resolver provides DeleteSurplus for transactions without files. It remembers when it was called.
type resolver struct {
	deps  ledger.Deps
	log   *txlog.Log
	fails func(attempt int) error // for each attempt of a transaction, from 1; nil for no failures

	mu    sync.Mutex // guards asked; leaf
	asked map[registry.ID][]time.Time
}

func newResolver(store registry.Store) *resolver {
	deps := registrytest.LedgerDeps(ledger.Config{Store: store})
	return &resolver{deps: deps, log: txlog.New(deps.Ledger), asked: make(map[registry.ID][]time.Time)}
}

func (r *resolver) deleteSurplus(_ context.Context, e txlog.Transaction) error {
	r.mu.Lock()
	r.asked[e.ID] = append(r.asked[e.ID], time.Now())
	attempt := len(r.asked[e.ID])
	r.mu.Unlock()
	if r.fails != nil {
		if err := r.fails(attempt); err != nil {
			return err
		}
	}
	return nil
}

// node returns a recovery that reads the log only every hour, so that a test sees only runs that it
// requested.
func (r *resolver) node(change ...func(*recovery.Config)) *recovery.Recovery {
	config := recovery.Config{
		Deps: r.deps, Locks: locks.GrantAll{}, DeleteSurplus: r.deleteSurplus,
		RetryPurge: func(context.Context, registry.ID) error { return errors.New("no purges") }, Interval: time.Hour, Jitter: mathrand.New(mathrand.NewPCG(1, 1)),
	}
	for _, f := range change {
		f(&config)
	}
	return recovery.New(config)
}

// begin records a transaction that begins at the given time, with a deadline one minute later.
func (r *resolver) begin(t *testing.T, at time.Time) txlog.Entry {
	t.Helper()
	return r.beginIn(t, "w", at)
}

// beginIn is like begin, for a transaction in a warehouse.
func (r *resolver) beginIn(t *testing.T, warehouse string, at time.Time) txlog.Entry {
	t.Helper()
	tx := transaction(t)
	tx.Warehouse, tx.Began, tx.Deadline = warehouse, at, at.Add(time.Minute)
	e, err := r.log.Begin(t.Context(), tx)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func wantStats(t *testing.T, r *recovery.Recovery, want recovery.Stats) {
	t.Helper()
	if got := r.Stats(); got != want {
		t.Errorf("stats: got %+v, want %+v", got, want)
	}
}

// blocker returns the blocker of a transaction that was given up.
func blocker(t *testing.T, store registry.Store, e txlog.Entry) (registry.Task, bool) {
	t.Helper()
	records, err := store.Get(t.Context(), registry.TaskKey(e.ID))
	if err != nil {
		t.Fatal(err)
	}
	if !records[0].Exists() {
		return registry.Task{}, false
	}
	task, err := registry.Decode[registry.Task](records[0])
	if err != nil {
		t.Fatal(err)
	}
	if records[0].State != registry.StateBlocked {
		t.Errorf("the blocker is %s", records[0].State)
	}
	return task, true
}

// New panics if a required field is missing.
func TestRecoveryNeeds(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*recovery.Config){
		"Ledger":        func(c *recovery.Config) { c.Ledger = nil },
		"Locks":         func(c *recovery.Config) { c.Locks = nil },
		"DeleteSurplus": func(c *recovery.Config) { c.DeleteSurplus = nil },
		"RetryPurge":    func(c *recovery.Config) { c.RetryPurge = nil },
	} {
		func() {
			defer func() {
				if said := recover(); said != "recovery: Deps, Locks, DeleteSurplus and RetryPurge are required" {
					t.Errorf("without %s: %v", name, said)
				}
			}()
			newResolver(memory.New(rand.Reader)).node(change)
		}()
	}
}

// TestRecoveryDue leaves transactions to their coordinators until the deadline, and ends the
// others.
func TestRecoveryDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(rand.Reader)
		r := newResolver(store)
		started := time.Now()
		young, old := r.begin(t, started), r.begin(t, started.Add(-61*time.Second))
		committed, aborted := r.begin(t, started), r.begin(t, started)
		if err := commit(t.Context(), store, committed, committed.Files[0]); err != nil {
			t.Fatal(err)
		}
		if _, err := r.log.Abort(t.Context(), aborted); err != nil {
			t.Fatal(err)
		}
		node := r.node()
		if err := node.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if now(t, r.log, young).State != registry.StatePending {
			t.Error("a transaction was taken from its coordinator before its deadline")
		}
		for _, e := range []txlog.Entry{old, committed, aborted} {
			if e := now(t, r.log, e); e.Exists() {
				t.Errorf("%s stays %s", e.ID, e.State)
			}
			if len(r.asked[e.ID]) != 1 {
				t.Errorf("%s was resolved %d times, want once", e.ID, len(r.asked[e.ID]))
			}
		}
		wantStats(t, node, recovery.Stats{Unfinished: 1, Attempts: 3, Recovered: 3})
		time.Sleep(time.Minute)
		if err := node.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if now(t, r.log, young).State != registry.StatePending {
			t.Error("a transaction was taken from its coordinator at its deadline, want after it")
		}
		time.Sleep(time.Nanosecond)
		if err := node.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if now(t, r.log, young).Exists() {
			t.Error("a transaction past its deadline was left")
		}
	})
}

// A process with exclusive use of the store does not wait for the deadlines of an earlier process's
// transactions.
func TestRecoveryAbandoned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newResolver(memory.New(rand.Reader))
		before := r.begin(t, time.Now().Add(-time.Nanosecond))
		started := time.Now()
		mine := r.begin(t, started)
		node := r.node(func(c *recovery.Config) { c.AbandonedBefore = started })
		node.Start()
		synctest.Wait()
		node.Stop()
		if now(t, r.log, before).Exists() || !now(t, r.log, mine).Exists() {
			t.Error("want the earlier process's transaction ended, and only that")
		}
	})
}

// TestRecoveryBackoff lets attempts fail until the transaction is given up: 50 attempts, 50 ms to 1
// s apart, then a blocker and no more attempts.
func TestRecoveryBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(rand.Reader)
		r := newResolver(store)
		broken := errors.New("no such bucket")
		r.fails = func(int) error { return broken }
		e := r.begin(t, time.Now().Add(-time.Hour))
		var logs bytes.Buffer
		node := r.node(func(c *recovery.Config) { c.Logger = slog.New(slog.NewTextHandler(&logs, nil)) })
		if err := node.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		asked := r.asked[e.ID]
		if len(asked) != 50 {
			t.Fatalf("%d attempts, want 50", len(asked))
		}
		limit := 50 * time.Millisecond
		for i := 1; i < len(asked); i++ {
			if pause := asked[i].Sub(asked[i-1]); pause < limit/2 || pause > limit {
				t.Errorf("pause %d: %s, want %s to %s", i, pause, limit/2, limit)
			}
			limit = min(2*limit, time.Second)
		}
		task, found := blocker(t, store, e)
		if !found || task.ID != e.ID || task.Kind != registry.TaskRecovery || task.Attempts != 50 || task.LastError != broken.Error() || !task.Created.Equal(time.Now()) {
			t.Errorf("the blocker is %+v", task)
		}
		if !strings.Contains(logs.String(), e.ID.String()) || !strings.Contains(logs.String(), broken.Error()) || !strings.Contains(logs.String(), "ERROR") {
			t.Errorf("the log does not tell of it: %s", logs.String())
		}
		if strings.Count(logs.String(), "WARN") != 1 {
			t.Errorf("the log does not tell of the first failure, and of that alone: %s", logs.String())
		}
		wantStats(t, node, recovery.Stats{Unfinished: 1, Blocked: 1, Attempts: 50, Failures: 50})
		for range 3 {
			if err := node.RunOnce(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if len(r.asked[e.ID]) != 50 {
			t.Error("it was tried again although it is blocked")
		}
		wantStats(t, node, recovery.Stats{Unfinished: 1, Blocked: 1, Attempts: 50, Failures: 50})

		r.fails = nil
		if _, err := store.Apply(t.Context(), registry.Batch{Writes: []registry.Write{registry.Delete(registry.TaskKey(e.ID))}}); err != nil {
			t.Fatal(err)
		}
		if err := node.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if now(t, r.log, e).Exists() {
			t.Error("without its blocker it was not tried again")
		}
	})
}

// TestRecoveryPatience gives up after 5 minutes if each attempt takes long. Each attempt is ended
// after half a minute.
func TestRecoveryPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(rand.Reader)
		r := newResolver(store)
		e := r.begin(t, time.Now().Add(-time.Hour))
		began := time.Now()
		node := r.node(func(c *recovery.Config) {
			c.DeleteSurplus = func(ctx context.Context, e txlog.Transaction) error {
				<-ctx.Done() // a storage that does not answer
				return ctx.Err()
			}
		})
		if err := node.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		task, found := blocker(t, store, e)
		if took := time.Since(began); !found || took < 5*time.Minute || took > 6*time.Minute || task.Attempts != 10 {
			t.Errorf("given up: %t, after %s and %d attempts", found, took, task.Attempts)
		}
	})
}

// While other operations work on its tables, a transaction is retried, and is never given up for
// that reason.
func TestRecoveryBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(rand.Reader)
		r := newResolver(store)
		r.fails = func(attempt int) error {
			if attempt <= 200 {
				return recovery.ErrBusy
			}
			return nil
		}
		e := r.begin(t, time.Now().Add(-time.Hour))
		node := r.node()
		if err := node.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if now(t, r.log, e).Exists() || len(r.asked[e.ID]) != 201 {
			t.Errorf("left after %d attempts", len(r.asked[e.ID]))
		}
		wantStats(t, node, recovery.Stats{Attempts: 201, Recovered: 1})
	})
}

// A transaction that cannot be ended delays no other, not even one that becomes due in the
// meantime. Stop does not wait for it.
func TestRecoveryOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(rand.Reader)
		r := newResolver(store)
		stuck := r.begin(t, time.Now().Add(-time.Hour))
		node := r.node(func(c *recovery.Config) {
			c.DeleteSurplus = func(ctx context.Context, e txlog.Transaction) error {
				if e.ID == stuck.ID {
					return errors.New("stuck")
				}
				return r.deleteSurplus(ctx, e)
			}
		})
		node.Start()
		synctest.Wait()
		late := r.begin(t, time.Now().Add(-time.Hour))
		time.Sleep(2 * time.Second)
		if now(t, r.log, late).Exists() {
			t.Error("a transaction waited for another that is stuck")
		}
		began := time.Now()
		node.Stop()
		if took := time.Since(began); took != 0 {
			t.Errorf("Stop took %s", took)
		}
	})
}

// TestRecoveryKick ends transactions at once after a Kick, and periodically without one.
func TestRecoveryKick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newResolver(memory.New(rand.Reader))
		node := r.node()
		node.Start()
		defer node.Stop()
		synctest.Wait()
		met := r.begin(t, time.Now().Add(-time.Hour))
		node.Kick()
		synctest.Wait()
		if now(t, r.log, met).Exists() {
			t.Error("a kick was not heeded")
		}
		unmet := r.begin(t, time.Now().Add(-time.Hour))
		time.Sleep(90*time.Minute + time.Second)
		if now(t, r.log, unmet).Exists() {
			t.Error("nobody looked for an hour and a half")
		}
	})
}

// TestTwoRecoveries has two nodes end the same transactions at once, over every store. Each
// transaction is ended, and neither node fails.
func TestTwoRecoveries(t *testing.T) {
	t.Parallel()
	stores.Each(t, func(t *testing.T, store registry.Store) {
		r := newResolver(store)
		for range 20 {
			r.begin(t, time.Now().Add(-time.Hour))
		}
		var wg sync.WaitGroup
		nodes := []*recovery.Recovery{r.node(), r.node()}
		for _, node := range nodes {
			wg.Go(func() {
				if err := node.RunOnce(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if left, err := r.log.Unfinished(t.Context(), registry.ID{}, 100); err != nil || len(left) != 0 {
			t.Errorf("%d transactions are left (%v)", len(left), err)
		}
		for _, node := range nodes {
			if s := node.Stats(); s.Failures != 0 {
				t.Errorf("a node failed: %+v", s)
			}
		}
	})
}

// TestRecoveryCrash gives the k-th call of a recovery to the store a fault, for k = 0, 1, 2 …: the
// call fails, loses its answer, or the process dies there. A second recovery ends the remaining
// transactions. A transaction that has ended never gets a blocker.
func TestRecoveryCrash(t *testing.T) {
	t.Parallel()
	for _, stuck := range []bool{false, true} {
		for name, action := range map[string]registrytest.Action{
			"fail": registrytest.Fail, "lose": registrytest.Lose, "delay": registrytest.Delay, "die": registrytest.Die, "die after": registrytest.DieAfter,
		} {
			if stuck {
				name = "stuck, " + name
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					for k := 0; ; k++ {
						store := memory.New(rand.Reader)
						e := newResolver(store).begin(t, time.Now().Add(-time.Hour))
						faulty := registrytest.Faulty(store, registrytest.Nth(k, action))
						r := newResolver(faulty)
						if stuck {
							r.fails = func(int) error { return errors.New("stuck") }
						}
						_ = r.node().RunOnce(t.Context())
						faulty.Release(t.Context())
						again := newResolver(store)
						if err := again.node().RunOnce(t.Context()); err != nil {
							t.Fatal(err)
						}
						_, blocked := blocker(t, store, e)
						if exists := now(t, again.log, e).Exists(); exists != blocked || blocked && !stuck {
							t.Errorf("k = %d: in the log: %t, blocked: %t", k, exists, blocked)
						}
						if faulty.Calls() <= k {
							break
						}
					}
				})
			})
		}
	}
}
