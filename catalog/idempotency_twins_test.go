package catalog_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/commit"
	"moorage/catalog/gate"
	"moorage/locks"
	"moorage/registry"
	"moorage/testkit"
)

// twinsFixture returns a fixture and the catalogs of so many nodes over its store. stores returns
// the store of the first node and that of the others; nil stands for one store. Nodes do not share
// their locks.
func twinsFixture(t *testing.T, operation gate.Verb, nodes int, stores func() (first, second registry.Store)) (f *fixture, catalogs []*instance, unregistered string) {
	t.Helper()
	var second registry.Store
	f, unregistered = newCrashFixture(t, operation, func(c *catalog.Config) {
		if stores != nil {
			c.Store, second = stores()
		} else {
			second = c.Store
		}
	})
	catalogs = []*instance{f.instance}
	for range nodes - 1 {
		config := f.config
		config.Store, config.Locks = second, locks.NewLocal(locks.LocalConfig{})
		node, err := newInstance(config)
		if err != nil {
			t.Fatal(err)
		}
		catalogs = append(catalogs, node)
	}
	return f, catalogs, unregistered
}

// Attempts of every mutation that are made at the same time, on one node or on two, have one
// effect. All get the same answer.
func TestConcurrentTwins(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{1, 2} {
		for _, attempts := range []int{2, 3, 8} {
			for n, m := range keyedMutations(t, "") {
				t.Run(fmt.Sprintf("%d nodes/%d attempts/%s", nodes, attempts, m.operation), func(t *testing.T) {
					t.Parallel()
					concurrentTwins(t, n, nodes, attempts, nil)
				})
			}
		}
	}
}

// The same over PostgreSQL, which lets attempts meet within the store.
func TestConcurrentTwinsPostgres(t *testing.T) {
	t.Parallel()
	for n, m := range keyedMutations(t, "") {
		t.Run(string(m.operation), func(t *testing.T) {
			t.Parallel()
			dsn, random := newDatabase(t), newLockedRandom(newSeed(t))
			concurrentTwins(t, n, 2, 8, func() (first, second registry.Store) {
				return openPostgres(t, dsn, random), openPostgres(t, dsn, random)
			})
		})
	}
}

func concurrentTwins(t *testing.T, n, nodes, attempts int, stores func() (first, second registry.Store)) {
	t.Helper()
	f, catalogs, unregistered := twinsFixture(t, keyedMutations(t, "")[n].operation, nodes, stores)
	m := keyedMutations(t, unregistered)[n]
	before := f.count(m.operation)
	answers := make([]string, attempts)
	start := make(chan struct{})
	var group sync.WaitGroup
	for i := range attempts {
		group.Go(func() {
			<-start
			c := catalogs[i%nodes]
			outcome, err := c.once(f.ctx, keyOf("a"), func(ctx context.Context, c catalog.Verbs) (reply, error) { return m.run(ctx, c) })
			if err != nil {
				t.Error(err)
			}
			answers[i] = answerText(outcome, err)
		})
	}
	close(start)
	group.Wait()
	for _, answer := range answers[1:] {
		if answer != answers[0] {
			t.Errorf("one is answered\n%s\nanother\n%s", answers[0], answer)
		}
	}
	want := 1
	if m.operation == opNothing {
		want = 0
	}
	if got := f.count(m.operation) - before; got != want {
		t.Errorf("it happened %d times, want %d", got, want)
	}
	if stored := f.outcomes(); len(stored) != 1 {
		t.Errorf("%d outcomes", len(stored))
	}
	f.wantClean()
}

// heldStore holds one Apply, which the test chooses, until it is released.
type heldStore struct {
	registry.Store

	mu      sync.Mutex // guards hold; a leaf
	hold    func(batch registry.Batch) bool
	held    chan struct{} // closed when it has come
	release chan struct{} // closed when it may go on
}

func (s *heldStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	s.mu.Lock()
	hit := s.hold != nil && s.hold(batch)
	if hit {
		s.hold = nil
	}
	s.mu.Unlock()
	if hit {
		close(s.held)
		<-s.release
	}
	return s.Store.Apply(ctx, batch)
}

// isOf returns a function that reports whether a batch makes operation true.
func isOf(operation gate.Verb) func(registry.Batch) bool {
	return func(batch registry.Batch) bool {
		return batch.Change != nil && batch.Change.Operation == string(operation)
	}
}

// isOutcome reports whether batch stores an outcome without an effect.
func isOutcome(batch registry.Batch) bool {
	return batch.Change == nil && len(batch.Writes) == 1 && batch.Writes[0].Key.Table == registry.TableIdempotency
}

// twinCase is a mutation that another one is in the way of for a while.
type twinCase struct {
	operation gate.Verb
	run       func(ctx context.Context, c catalog.Verbs) (reply, error)
	block     func(f *fixture, node *instance) error // makes attempts be refused
	unblock   func(f *fixture, node *instance) error // puts everything back as it was
	happened  func(f *fixture, node *instance) bool
}

func twinCases(unregistered string) []twinCase {
	outer := moorage.Namespace{"outer"}
	exists := func(f *fixture, node *instance) bool { return node.TableExists(f.ctx, ident("new")) == nil }
	take := func(f *fixture, node *instance) error {
		_, err := node.CreateTable(f.ctx, ident("new"), catalog.CreateTableRequest{Schema: []byte(testSchema)})
		return err
	}
	give := func(f *fixture, node *instance) error {
		_, err := node.UnregisterTable(f.ctx, ident("new"))
		return err
	}
	return []twinCase{
		{gate.CreateNamespace, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			properties, err := c.CreateNamespace(ctx, testWarehouse, outer, nil)
			return reply{Properties: properties}, err
		}, func(f *fixture, node *instance) error {
			_, err := node.CreateNamespace(f.ctx, testWarehouse, outer, nil)
			return err
		}, func(f *fixture, node *instance) error {
			return node.DropNamespace(f.ctx, testWarehouse, outer)
		}, func(f *fixture, node *instance) bool {
			_, err := node.LoadNamespace(f.ctx, testWarehouse, outer)
			return err == nil
		}},
		{gate.CreateTable, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			table, err := c.CreateTable(ctx, ident("new"), catalog.CreateTableRequest{Schema: []byte(testSchema)})
			return reply{Table: table}, err
		}, take, give, exists},
		{gate.Register, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			table, err := c.RegisterTable(ctx, ident("new"), catalog.RegisterRequest{MetadataLocation: unregistered})
			return reply{Table: table}, err
		}, take, give, exists},
	}
}

// An attempt hangs before its Apply. Its retry on another node is refused, and the reason of the
// refusal goes away. Then the first attempt goes on. It must not come true, and has the answer of
// the retry.
func TestDelayedTwin(t *testing.T) {
	t.Parallel()
	for n, tc := range twinCases("") {
		t.Run(string(tc.operation), func(t *testing.T) {
			t.Parallel()
			f, store, node, unregistered := newHeldFixture(t, isOf(tc.operation))
			tc := twinCases(unregistered)[n]
			first := f.sendHeld(store, tc.run)
			must(t, tc.block(f, node))
			retried := answerText(node.once(f.ctx, keyOf("a"), func(ctx context.Context, node catalog.Verbs) (reply, error) { return tc.run(ctx, node) }))
			must(t, tc.unblock(f, node))
			close(store.release)
			if answer := <-first; answer != retried {
				t.Errorf("the retry is answered %q, the first attempt %q", retried, answer)
			}
			if tc.happened(f, node) {
				t.Errorf("it came true after %q", retried)
			}
			f.wantClean()
		})
	}
}

// This is the other way round. The first attempt is refused, but hangs before it has stored that,
// and its retry comes true. Then the first attempt goes on, and has the answer of the retry.
func TestDelayedRefusal(t *testing.T) {
	t.Parallel()
	for n, tc := range twinCases("") {
		t.Run(string(tc.operation), func(t *testing.T) {
			t.Parallel()
			f, store, node, unregistered := newHeldFixture(t, isOutcome)
			tc := twinCases(unregistered)[n]
			must(t, tc.block(f, node))
			first := f.sendHeld(store, tc.run)
			must(t, tc.unblock(f, node))
			retried := answerText(node.once(f.ctx, keyOf("a"), func(ctx context.Context, node catalog.Verbs) (reply, error) { return tc.run(ctx, node) }))
			if !tc.happened(f, node) {
				t.Fatalf("the retry is answered %q", retried)
			}
			close(store.release)
			if answer := <-first; answer != retried {
				t.Errorf("the retry is answered %q, the first attempt %q", retried, answer)
			}
			f.wantClean()
		})
	}
}

// twinOfTransaction holds a transaction before its one Apply. again makes another attempt of it, on
// a node that shares its locks. TestDelayedTwinOfTransaction and TestTwinOfTransactionWaits use it.
func twinOfTransaction(t *testing.T) (f *fixture, store *heldStore, first <-chan string, again func(ctx context.Context) error) {
	t.Helper()
	f, store, _, _ = newHeldFixture(t, isOf(gate.Transaction))
	f.create("u")
	run := func(ctx context.Context, c catalog.Verbs) (reply, error) {
		return reply{}, c.CommitTransaction(ctx, testWarehouse, []catalog.TableChange{on("t", setProperty(t, "mine", "yes")), on("u", setProperty(t, "mine", "yes"))})
	}
	first = f.sendHeld(store, run)
	shared := f.config
	shared.Store = store.Store
	node, err := newInstance(shared)
	must(t, err)
	return f, store, first, func(ctx context.Context) error {
		_, err := node.once(ctx, keyOf("a"), run)
		return err
	}
}

// A transaction hangs before its one Apply. Its retry meets its locks, and is refused when it has
// waited long enough. What was refused must not come true.
func TestDelayedTwinOfTransaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, store, first, again := twinOfTransaction(t)
		began := time.Now()
		err := again(f.ctx)
		wantKind(t, err, moorage.KindCommitFailed)
		// The locks of an attempt whose node died must become free before.
		if waited := time.Since(began); waited <= locks.SilenceMax || waited > commit.DuplicateWaitMax+time.Second {
			t.Errorf("it waited %s, want %s", waited, commit.DuplicateWaitMax)
		}
		close(store.release)
		if answer, want := <-first, answerText(reply{}, err); answer != want {
			t.Errorf("the retry is answered %q, the first attempt %q", want, answer)
		}
		f.wantProperty("t", "mine", "")
		f.wantProperty("u", "mine", "")
		f.wantNoTransactions()
		f.wantClean()
	})
}

// A retry of a transaction that is under way on another node waits for it, and gets its answer. A
// retry whose client goes meanwhile decides nothing.
func TestTwinOfTransactionWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, store, first, again := twinOfTransaction(t)
		before := f.count(gate.Transaction)
		gone, cancel := context.WithTimeout(f.ctx, time.Second)
		defer cancel()
		wantKind(t, again(gone), moorage.KindUnavailable)
		second := make(chan error, 1)
		go func() { second <- again(f.ctx) }()
		time.Sleep(commit.DuplicateWaitMax - time.Second)
		if len(second) > 0 {
			t.Fatalf("the second attempt did not wait: %v", <-second)
		}
		close(store.release)
		if answer, want := <-first, answerText(reply{}, nil); answer != want {
			t.Errorf("the first attempt is answered %q, want %q", answer, want)
		}
		if err := <-second; err != nil {
			t.Errorf("the second attempt: %v", err)
		}
		if got := f.count(gate.Transaction) - before; got != 1 {
			t.Errorf("it happened %d times", got)
		}
		f.wantProperty("t", "mine", "yes")
		f.wantProperty("u", "mine", "yes")
		f.wantNoTransactions()
		f.wantClean()
	})
}

// newHeldFixture returns a fixture whose store holds the next Apply that hold chooses. It also
// returns another node, whose store holds none.
func newHeldFixture(t *testing.T, hold func(registry.Batch) bool) (f *fixture, store *heldStore, node *instance, unregistered string) {
	t.Helper()
	store = &heldStore{held: make(chan struct{}), release: make(chan struct{})}
	f, unregistered = newCrashFixture(t, gate.CreateTable, func(c *catalog.Config) {
		store.Store = c.Store
		c.Store = store
	})
	config := f.config
	config.Store, config.Locks = store.Store, locks.NewLocal(locks.LocalConfig{})
	node, err := newInstance(config)
	must(t, err)
	store.hold = hold
	return f, store, node, unregistered
}

// sendHeld sends a mutation with a key until it is held, and returns where its answer will come.
func (f *fixture) sendHeld(store *heldStore, run func(context.Context, catalog.Verbs) (reply, error)) <-chan string {
	f.t.Helper()
	answered := make(chan string, 1)
	go func() {
		answered <- answerText(f.once(f.ctx, keyOf("a"), func(ctx context.Context, c catalog.Verbs) (reply, error) { return run(ctx, c) }))
	}()
	select {
	case <-store.held:
	case answer := <-answered:
		f.t.Fatalf("answered %q without being held", answer)
	}
	return answered
}

var must = testkit.Must

// A retry that comes to the node on which the first attempt is under way waits for it, and does
// nothing itself.
func TestTwinInTheProcessWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, store, _, _ := newHeldFixture(t, isOf(gate.Commit))
		first := f.sendHeld(store, func(ctx context.Context, c catalog.Verbs) (reply, error) {
			table, err := c.Commit(ctx, ident("t"), setProperty(t, "mine", "yes"))
			return reply{Table: table}, err
		})
		second := make(chan string, 1)
		before := f.count(gate.Commit) // the first attempt has not come so far
		again := func(ctx context.Context, c catalog.Verbs) (reply, error) {
			table, err := c.Commit(ctx, ident("t"), setProperty(t, "mine", "yes"))
			return reply{Table: table}, err
		}
		go func() { second <- answerText(f.once(f.ctx, keyOf("a"), again)) }()
		synctest.Wait()
		if len(second) > 0 {
			t.Error("the second attempt did not wait")
		}
		ctx, cancel := context.WithCancel(f.ctx)
		cancel()
		_, err := f.once(ctx, keyOf("a"), again)
		wantKind(t, err, moorage.KindUnavailable) // who does not want to wait need not
		close(store.release)
		if a, b := <-first, <-second; a != b {
			t.Errorf("the first is answered\n%s\nthe second\n%s", a, b)
		}
		synctest.Wait()
		if got := f.count(gate.Commit) - before; got != 1 {
			t.Errorf("%d commits, want 1", got)
		}
	})
}

// A retry waited for another attempt. If that left nothing behind, the retry is made. If that was
// refused for good, the retry gets the same refusal.
func TestTwinInTheProcessWaitedForFailure(t *testing.T) {
	t.Parallel()
	for _, kind := range []moorage.Kind{moorage.KindUnavailable, moorage.KindCommitFailed} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				slow := &slowStore{release: release}
				f := newFixture(t, func(c *catalog.Config) { slow.Store, c.Store = c.Store, slow })
				f.create("t")
				first, second := make(chan string, 1), make(chan string, 1)
				refused := commitRequest(t, `[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":7}]`, `[]`)
				if kind == moorage.KindUnavailable {
					slow.fail = registry.ErrUnavailable
				}
				slow.armed.Store(true)
				go func() {
					first <- answerText(f.once(f.ctx, keyOf("a"), func(ctx context.Context, c catalog.Verbs) (reply, error) {
						_, err := c.Commit(ctx, ident("t"), refused)
						return reply{}, err
					}))
				}()
				synctest.Wait()
				go func() {
					second <- answerText(f.once(f.ctx, keyOf("a"), func(ctx context.Context, c catalog.Verbs) (reply, error) {
						_, err := c.Commit(ctx, ident("t"), setProperty(t, "mine", "yes"))
						return reply{}, err
					}))
				}()
				synctest.Wait()
				close(release)
				answered := <-first
				if !strings.HasPrefix(answered, kind.String()+":") {
					t.Errorf("the first is answered %q, want a refusal of kind %s", answered, kind)
				}
				if kind.Final() {
					if got := <-second; got != answered {
						t.Errorf("the second is answered %q, want %q", got, answered)
					}
					f.wantProperty("t", "mine", "")
				} else {
					if got, want := <-second, answerText(reply{}, nil); got != want {
						t.Errorf("the second is answered %q, want %q", got, want)
					}
					f.wantProperty("t", "mine", "yes")
				}
			})
		})
	}
}

// slowStore holds its first Get after it was armed until it is released. That Get fails with fail.
type slowStore struct {
	registry.Store
	release chan struct{}
	fail    error
	armed   atomic.Bool
}

func (s *slowStore) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	if s.armed.CompareAndSwap(true, false) {
		if <-s.release; s.fail != nil {
			return nil, s.fail
		}
	}
	return s.Store.Get(ctx, keys...)
}
