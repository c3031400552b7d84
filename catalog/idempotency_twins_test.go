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
	"moorage/testkit/catalogkit"
	"moorage/testkit/storetest"
)

// twinsFixture returns a fixture and the catalogs of several nodes over its store. stores returns
// the store of the first node and the store of the others; if it is nil, all use one store. Nodes
// do not share their locks.
func twinsFixture(t *testing.T, operation gate.Verb, nodes int, stores func() (first, second registry.Store)) (f *catalogkit.Fixture, catalogs []*catalogkit.Instance, unregistered string) {
	t.Helper()
	var second registry.Store
	f, unregistered = newCrashFixture(t, operation, func(c *catalog.Config) {
		if stores != nil {
			c.Store, second = stores()
		} else {
			second = c.Store
		}
	})
	catalogs = []*catalogkit.Instance{f.Instance}
	for range nodes - 1 {
		config := f.Config
		config.Store, config.Locks = second, locks.NewLocal(locks.LocalConfig{})
		node, err := catalogkit.NewInstance(config)
		if err != nil {
			t.Fatal(err)
		}
		catalogs = append(catalogs, node)
	}
	return f, catalogs, unregistered
}

// Concurrent attempts of a mutation, on one node or on two, take effect once. All get the same
// answer.
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

// The same over PostgreSQL, where attempts can collide within the store.
func TestConcurrentTwinsPostgres(t *testing.T) {
	t.Parallel()
	for n, m := range keyedMutations(t, "") {
		t.Run(string(m.operation), func(t *testing.T) {
			t.Parallel()
			dsn, random := stores.NewDatabase(t), newLockedRandom(catalogkit.NewSeed(t))
			concurrentTwins(t, n, 2, 8, func() (first, second registry.Store) {
				return storetest.OpenNode(t, dsn, random), storetest.OpenNode(t, dsn, random)
			})
		})
	}
}

func concurrentTwins(t *testing.T, n, nodes, attempts int, stores func() (first, second registry.Store)) {
	t.Helper()
	f, catalogs, unregistered := twinsFixture(t, keyedMutations(t, "")[n].operation, nodes, stores)
	m := keyedMutations(t, unregistered)[n]
	before := count(f, m.operation)
	answers := make([]string, attempts)
	start := make(chan struct{})
	var group sync.WaitGroup
	for i := range attempts {
		group.Go(func() {
			<-start
			c := catalogs[i%nodes]
			outcome, err := c.Once(f.Ctx, catalogkit.KeyOf("a"), func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) { return m.run(ctx, c) })
			if err != nil {
				t.Error(err)
			}
			answers[i] = catalogkit.AnswerText(outcome, err)
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
	if got := count(f, m.operation) - before; got != want {
		t.Errorf("it happened %d times, want %d", got, want)
	}
	if stored := outcomes(f); len(stored) != 1 {
		t.Errorf("%d outcomes", len(stored))
	}
	f.WantClean()
}

// heldStore holds one Apply chosen by the test until it is released.
type heldStore struct {
	registry.Store

	mu      sync.Mutex // guards hold; a leaf
	hold    func(batch registry.Batch) bool
	held    chan struct{} // closed when the Apply is held
	release chan struct{} // closed when the Apply may continue
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

// isOf returns a function that reports whether a batch makes operation take effect.
func isOf(operation gate.Verb) func(registry.Batch) bool {
	return func(batch registry.Batch) bool {
		return batch.Change != nil && batch.Change.Operation == string(operation)
	}
}

// isOutcome reports whether batch stores an outcome without an effect.
func isOutcome(batch registry.Batch) bool {
	return batch.Change == nil && len(batch.Writes) == 1 && batch.Writes[0].Key.Table == registry.TableIdempotency
}

// twinCase is a mutation that is blocked by another one for a while.
type twinCase struct {
	operation gate.Verb
	run       func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error)
	block     func(f *catalogkit.Fixture, node *catalogkit.Instance) error // causes attempts to be refused
	unblock   func(f *catalogkit.Fixture, node *catalogkit.Instance) error // restores the previous state
	happened  func(f *catalogkit.Fixture, node *catalogkit.Instance) bool
}

func twinCases(unregistered string) []twinCase {
	outer := moorage.Namespace{"outer"}
	exists := func(f *catalogkit.Fixture, node *catalogkit.Instance) bool {
		return node.TableExists(f.Ctx, ident("new")) == nil
	}
	take := func(f *catalogkit.Fixture, node *catalogkit.Instance) error {
		_, err := node.CreateTable(f.Ctx, ident("new"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
		return err
	}
	give := func(f *catalogkit.Fixture, node *catalogkit.Instance) error {
		_, err := node.UnregisterTable(f.Ctx, ident("new"))
		return err
	}
	return []twinCase{
		{gate.CreateNamespace, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			properties, err := c.CreateNamespace(ctx, catalogkit.Warehouse, outer, nil)
			return catalogkit.Reply{Properties: properties}, err
		}, func(f *catalogkit.Fixture, node *catalogkit.Instance) error {
			_, err := node.CreateNamespace(f.Ctx, catalogkit.Warehouse, outer, nil)
			return err
		}, func(f *catalogkit.Fixture, node *catalogkit.Instance) error {
			return node.DropNamespace(f.Ctx, catalogkit.Warehouse, outer)
		}, func(f *catalogkit.Fixture, node *catalogkit.Instance) bool {
			_, err := node.LoadNamespace(f.Ctx, catalogkit.Warehouse, outer)
			return err == nil
		}},
		{gate.CreateTable, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			table, err := c.CreateTable(ctx, ident("new"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
			return catalogkit.Reply{Table: table}, err
		}, take, give, exists},
		{gate.Register, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			table, err := c.RegisterTable(ctx, ident("new"), catalog.RegisterRequest{MetadataLocation: unregistered})
			return catalogkit.Reply{Table: table}, err
		}, take, give, exists},
	}
}

// An attempt hangs before its Apply. Its retry on another node is refused, and then the reason for
// the refusal disappears. When the first attempt continues, it must not take effect, and it returns
// the answer of the retry.
func TestDelayedTwin(t *testing.T) {
	t.Parallel()
	for n, tc := range twinCases("") {
		t.Run(string(tc.operation), func(t *testing.T) {
			t.Parallel()
			f, store, node, unregistered := newHeldFixture(t, isOf(tc.operation))
			tc := twinCases(unregistered)[n]
			first := sendHeld(f, store, tc.run)
			must(t, tc.block(f, node))
			retried := catalogkit.AnswerText(node.Once(f.Ctx, catalogkit.KeyOf("a"), func(ctx context.Context, node catalog.Verbs) (catalogkit.Reply, error) { return tc.run(ctx, node) }))
			must(t, tc.unblock(f, node))
			close(store.release)
			if answer := <-first; answer != retried {
				t.Errorf("the retry is answered %q, the first attempt %q", retried, answer)
			}
			if tc.happened(f, node) {
				t.Errorf("it came true after %q", retried)
			}
			f.WantClean()
		})
	}
}

// The reverse of TestDelayedTwin: the first attempt is refused, but hangs before it has stored the
// refusal, and its retry succeeds. When the first attempt continues, it returns the answer of the
// retry.
func TestDelayedRefusal(t *testing.T) {
	t.Parallel()
	for n, tc := range twinCases("") {
		t.Run(string(tc.operation), func(t *testing.T) {
			t.Parallel()
			f, store, node, unregistered := newHeldFixture(t, isOutcome)
			tc := twinCases(unregistered)[n]
			must(t, tc.block(f, node))
			first := sendHeld(f, store, tc.run)
			must(t, tc.unblock(f, node))
			retried := catalogkit.AnswerText(node.Once(f.Ctx, catalogkit.KeyOf("a"), func(ctx context.Context, node catalog.Verbs) (catalogkit.Reply, error) { return tc.run(ctx, node) }))
			if !tc.happened(f, node) {
				t.Fatalf("the retry is answered %q", retried)
			}
			close(store.release)
			if answer := <-first; answer != retried {
				t.Errorf("the retry is answered %q, the first attempt %q", retried, answer)
			}
			f.WantClean()
		})
	}
}

// twinOfTransaction holds a transaction before its one Apply. again makes another attempt of the
// transaction, on a node that shares its locks. TestDelayedTwinOfTransaction and
// TestTwinOfTransactionWaits use twinOfTransaction.
func twinOfTransaction(t *testing.T) (f *catalogkit.Fixture, store *heldStore, first <-chan string, again func(ctx context.Context) error) {
	t.Helper()
	f, store, _, _ = newHeldFixture(t, isOf(gate.Transaction))
	f.Create("u")
	run := func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
		return catalogkit.Reply{}, c.CommitTransaction(ctx, catalogkit.Warehouse, []catalog.TableChange{catalogkit.On("t", catalogkit.SetProperty(t, "mine", "yes")), catalogkit.On("u", catalogkit.SetProperty(t, "mine", "yes"))})
	}
	first = sendHeld(f, store, run)
	shared := f.Config
	shared.Store = store.Store
	node, err := catalogkit.NewInstance(shared)
	must(t, err)
	return f, store, first, func(ctx context.Context) error {
		_, err := node.Once(ctx, catalogkit.KeyOf("a"), run)
		return err
	}
}

// A transaction hangs before its one Apply. Its retry waits for its locks, and is refused after
// some time. The refused transaction must not take effect later.
func TestDelayedTwinOfTransaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, store, first, again := twinOfTransaction(t)
		began := time.Now()
		err := again(f.Ctx)
		catalogkit.WantKind(t, err, moorage.KindCommitFailed)
		// The locks of a dead node's attempt must become free within that time.
		if waited := time.Since(began); waited <= locks.SilenceMax || waited > commit.DuplicateWaitMax+time.Second {
			t.Errorf("it waited %s, want %s", waited, commit.DuplicateWaitMax)
		}
		close(store.release)
		if answer, want := <-first, catalogkit.AnswerText(catalogkit.Reply{}, err); answer != want {
			t.Errorf("the retry is answered %q, the first attempt %q", want, answer)
		}
		f.WantProperty("t", "mine", "")
		f.WantProperty("u", "mine", "")
		f.WantNoTransactions()
		f.WantClean()
	})
}

// If a transaction is in progress on another node, its retry waits for it and gets its answer. A
// retry whose client disconnects in the meantime decides nothing.
func TestTwinOfTransactionWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, store, first, again := twinOfTransaction(t)
		before := count(f, gate.Transaction)
		gone, cancel := context.WithTimeout(f.Ctx, time.Second)
		defer cancel()
		catalogkit.WantKind(t, again(gone), moorage.KindUnavailable)
		second := make(chan error, 1)
		go func() { second <- again(f.Ctx) }()
		time.Sleep(commit.DuplicateWaitMax - time.Second)
		if len(second) > 0 {
			t.Fatalf("the second attempt did not wait: %v", <-second)
		}
		close(store.release)
		if answer, want := <-first, catalogkit.AnswerText(catalogkit.Reply{}, nil); answer != want {
			t.Errorf("the first attempt is answered %q, want %q", answer, want)
		}
		if err := <-second; err != nil {
			t.Errorf("the second attempt: %v", err)
		}
		if got := count(f, gate.Transaction) - before; got != 1 {
			t.Errorf("it happened %d times", got)
		}
		f.WantProperty("t", "mine", "yes")
		f.WantProperty("u", "mine", "yes")
		f.WantNoTransactions()
		f.WantClean()
	})
}

// newHeldFixture returns a fixture whose store holds the next Apply that hold chooses. It also
// returns another node, whose store holds none.
func newHeldFixture(t *testing.T, hold func(registry.Batch) bool) (f *catalogkit.Fixture, store *heldStore, node *catalogkit.Instance, unregistered string) {
	t.Helper()
	store = &heldStore{held: make(chan struct{}), release: make(chan struct{})}
	f, unregistered = newCrashFixture(t, gate.CreateTable, func(c *catalog.Config) {
		store.Store = c.Store
		c.Store = store
	})
	config := f.Config
	config.Store, config.Locks = store.Store, locks.NewLocal(locks.LocalConfig{})
	node, err := catalogkit.NewInstance(config)
	must(t, err)
	store.hold = hold
	return f, store, node, unregistered
}

// sendHeld sends a mutation with a key, and waits until its Apply is held. It returns the channel
// of the answer.
func sendHeld(f *catalogkit.Fixture, store *heldStore, run func(context.Context, catalog.Verbs) (catalogkit.Reply, error)) <-chan string {
	f.T.Helper()
	answered := make(chan string, 1)
	go func() {
		answered <- catalogkit.AnswerText(f.Once(f.Ctx, catalogkit.KeyOf("a"), func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) { return run(ctx, c) }))
	}()
	select {
	case <-store.held:
	case answer := <-answered:
		f.T.Fatalf("answered %q without being held", answer)
	}
	return answered
}

var must = testkit.Must

// A retry on the node where the first attempt is in progress waits for it, and does nothing itself.
func TestTwinInTheProcessWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, store, _, _ := newHeldFixture(t, isOf(gate.Commit))
		first := sendHeld(f, store, func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			table, err := c.Commit(ctx, ident("t"), catalogkit.SetProperty(t, "mine", "yes"))
			return catalogkit.Reply{Table: table}, err
		})
		second := make(chan string, 1)
		before := count(f, gate.Commit) // the first attempt has not got that far
		again := func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
			table, err := c.Commit(ctx, ident("t"), catalogkit.SetProperty(t, "mine", "yes"))
			return catalogkit.Reply{Table: table}, err
		}
		go func() { second <- catalogkit.AnswerText(f.Once(f.Ctx, catalogkit.KeyOf("a"), again)) }()
		synctest.Wait()
		if len(second) > 0 {
			t.Error("the second attempt did not wait")
		}
		ctx, cancel := context.WithCancel(f.Ctx)
		cancel()
		_, err := f.Once(ctx, catalogkit.KeyOf("a"), again)
		catalogkit.WantKind(t, err, moorage.KindUnavailable) // a retry with a short deadline need not wait
		close(store.release)
		if a, b := <-first, <-second; a != b {
			t.Errorf("the first is answered\n%s\nthe second\n%s", a, b)
		}
		synctest.Wait()
		if got := count(f, gate.Commit) - before; got != 1 {
			t.Errorf("%d commits, want 1", got)
		}
	})
}

// A retry waits for another attempt. If that attempt leaves no outcome, the retry is carried out.
// If that attempt is refused for good, the retry gets the same refusal.
func TestTwinInTheProcessWaitedForFailure(t *testing.T) {
	t.Parallel()
	for _, kind := range []moorage.Kind{moorage.KindUnavailable, moorage.KindCommitFailed} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				slow := &slowStore{release: release}
				f := catalogkit.New(t, func(c *catalog.Config) { slow.Store, c.Store = c.Store, slow })
				f.Create("t")
				first, second := make(chan string, 1), make(chan string, 1)
				refused := catalogkit.CommitRequest(t, `[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":7}]`, `[]`)
				if kind == moorage.KindUnavailable {
					slow.fail = registry.ErrUnavailable
				}
				slow.armed.Store(true)
				go func() {
					first <- catalogkit.AnswerText(f.Once(f.Ctx, catalogkit.KeyOf("a"), func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
						_, err := c.Commit(ctx, ident("t"), refused)
						return catalogkit.Reply{}, err
					}))
				}()
				synctest.Wait()
				go func() {
					second <- catalogkit.AnswerText(f.Once(f.Ctx, catalogkit.KeyOf("a"), func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
						_, err := c.Commit(ctx, ident("t"), catalogkit.SetProperty(t, "mine", "yes"))
						return catalogkit.Reply{}, err
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
					f.WantProperty("t", "mine", "")
				} else {
					if got, want := <-second, catalogkit.AnswerText(catalogkit.Reply{}, nil); got != want {
						t.Errorf("the second is answered %q, want %q", got, want)
					}
					f.WantProperty("t", "mine", "yes")
				}
			})
		})
	}
}

// Once armed, slowStore holds the next Get until it is released. That Get then fails with fail.
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
