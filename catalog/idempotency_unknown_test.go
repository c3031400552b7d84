package catalog_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
	"moorage/testkit/registrytest"
	"moorage/testkit/storagetest"
)

// blindStore cannot read what became of mutations with keys while it is blind.
type blindStore struct {
	registry.Store
	blind atomic.Bool
}

func (s *blindStore) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	for _, key := range keys {
		if s.blind.Load() && key.Table == registry.TableIdempotency {
			return nil, registry.ErrUnavailable
		}
	}
	return s.Store.Get(ctx, keys...)
}

// A client sends again a request that has happened. The node that gets it cannot read its outcome,
// because it is damaged or the store is away, or in the end cannot read its answer. It answers that
// the outcome is unknown. A client that hears that nothing was changed would delete the files of
// the commit.
func TestOnceCannotTell(t *testing.T) {
	t.Parallel()
	repeats := map[string]func(f *fixture, node catalog.Verbs) (reply, error){
		"it loses on its key": func(f *fixture, node catalog.Verbs) (reply, error) {
			table, err := node.Commit(f.ctx, ident("t"), setProperty(f.t, "n", "1"))
			return reply{Table: table}, err
		},
		"it is refused": func(f *fixture, node catalog.Verbs) (reply, error) {
			return refusal(moorage.Errorf(moorage.KindCommitFailed, "no"))(f.ctx, node)
		},
		"it has nothing to change": func(f *fixture, node catalog.Verbs) (reply, error) { return nothing(f.ctx, node) },
		"the node can do nothing now": func(f *fixture, node catalog.Verbs) (reply, error) {
			return refusal(moorage.Errorf(moorage.KindUnavailable, "no"))(f.ctx, node)
		},
		"the node has no room now": func(f *fixture, node catalog.Verbs) (reply, error) {
			return refusal(moorage.Errorf(moorage.KindTooManyRequests, "no"))(f.ctx, node)
		},
	}
	for name, repeat := range repeats {
		for _, what := range []string{"outcome", "record", "answer"} {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					store, broken := &blindStore{}, &atomic.Bool{}
					f := newFixture(t, func(c *catalog.Config) {
						store.Store, c.Store = c.Store, store
						wrapStorage(c, func(inner storage.Store) storage.Store {
							return storagetest.Faulty(inner, func(_ int, method string) storagetest.Action {
								if broken.Load() && method == storagetest.MethodOpen {
									return storagetest.Fail
								}
								return storagetest.Pass
							})
						})
					})
					f.create("t")
					send := func(node *instance, mutate func(*fixture, catalog.Verbs) (reply, error)) error {
						_, err := node.once(f.ctx, keyOf("a"), func(ctx context.Context, node catalog.Verbs) (reply, error) {
							inner := *f
							inner.ctx = ctx
							return mutate(&inner, node)
						})
						return err
					}
					commit := repeats["it loses on its key"]
					if err := send(f.instance, commit); err != nil {
						t.Fatal(err)
					}
					node := f.other(f.store)
					if _, err := node.LoadTable(f.ctx, ident("t")); err != nil {
						t.Fatal(err)
					}
					store.blind.Store(what == "outcome")
					kept := tampering{f}.record(registry.TableIdempotency, "", registry.StateNone)
					if what == "record" {
						tampering{f}.write(registry.Put(kept.Key, kept.State, []byte("{")))
					}
					if what == "answer" {
						node.Documents().ForgetAll()
						broken.Store(true)
					}
					err := send(node, repeat)
					wantKind(t, err, moorage.KindCommitUnknown)
					store.blind.Store(false)
					broken.Store(false)
					tampering{f}.write(registry.Put(kept.Key, kept.State, kept.Value))
					if err := send(node, repeat); err != nil {
						t.Errorf("once it can be read: %v", err)
					}
					if got := f.count(gate.Commit); got != 1 {
						t.Errorf("%d commits, want 1", got)
					}
					f.wantClean()
				})
			})
		}
	}
}

// A store that fails for a moment is asked again. Where it says that there is no outcome, the
// attempt's own failure is the answer.
func TestOnceLooksAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &blindStore{}
		f := newFixture(t, func(c *catalog.Config) { store.Store, c.Store = c.Store, store })
		_, err := f.once(f.ctx, keyOf("a"), func(context.Context, catalog.Verbs) (reply, error) {
			store.blind.Store(true)
			go func() {
				_ = f.ledger.Pause(f.ctx, 10)
				store.blind.Store(false)
			}()
			return reply{}, moorage.E("test", "", moorage.KindUnavailable, errors.New("no"))
		})
		wantKind(t, err, moorage.KindUnavailable)
		if stored := f.outcomes(); len(stored) != 0 {
			t.Errorf("stored: %+v", stored)
		}
	})
}

// A refusal is answered once it is stored. If the store does not answer whether it is, the node
// finds out. The refusal is answered unchanged and stored once.
func TestRefusalWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		plan    registrytest.Plan
		applies int
	}{
		"it is stored":     {registrytest.NthApply(0, registrytest.Lose), 1},
		"it is not stored": {registrytest.NthApply(0, registrytest.Delay), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				store := &appliesStore{Store: registrytest.Faulty(f.store, tc.plan)}
				node := f.other(store)
				_, err := node.once(f.ctx, keyOf("a"), refusal(moorage.Errorf(moorage.KindCommitFailed, "no")))
				if got, want := answerText(reply{}, err), moorage.KindCommitFailed.String()+": no"; got != want {
					t.Errorf("answered %q, want %q", got, want)
				}
				if got := len(f.outcomes()); got != 1 {
					t.Errorf("%d outcomes, want 1", got)
				}
				if got := int(store.applies.Load()); got != tc.applies {
					t.Errorf("asked to store it %d times, want %d", got, tc.applies)
				}
			})
		})
	}
}

// appliesStore counts the calls of Apply that write.
type appliesStore struct {
	registry.Store
	applies atomic.Int32
}

func (s *appliesStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	if len(batch.Writes) > 0 {
		s.applies.Add(1)
	}
	return s.Store.Apply(ctx, batch)
}

// An attempt loses to another one whose outcome is forgotten before the attempt looks for it.
// Something happened, and nobody can say what.
func TestOutcomeForgottenBeforeItIsTold(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("t")
	commit := func(ctx context.Context, c catalog.Verbs) (reply, error) {
		table, err := c.Commit(ctx, ident("t"), setProperty(t, "n", "1"))
		return reply{Table: table}, err
	}
	overtaken := &aroundFirstApply{Store: f.store, before: func() {
		_, err := f.once(f.ctx, keyOf("a"), commit)
		must(t, err)
	}, after: func() {
		key := tampering{f}.record(registry.TableIdempotency, "", registry.StateNone).Key
		_, err := f.store.Apply(f.ctx, registry.Batch{Writes: []registry.Write{registry.Delete(key)}})
		must(t, err)
	}}
	_, err := f.other(overtaken).once(f.ctx, keyOf("a"), commit)
	if !errors.Is(err, ledger.ErrAnswered) {
		t.Errorf("the attempt ended with %v, want %v", err, ledger.ErrAnswered)
	}
	wantKind(t, err, moorage.KindCommitUnknown)
	if got := f.count(gate.Commit); got != 1 {
		t.Errorf("%d commits, want 1", got)
	}
}

// What happened cannot be answered again from a file that is damaged by now. That is no refusal of
// the request: a client that got a refusal would delete the files of the commit.
func TestAnswerThatCannotBeRead(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("t")
	first, err := f.keyedCommit(f.instance, "1", setProperty(t, "n", "1"))
	must(t, err)
	_, err = f.Commit(f.ctx, ident("t"), setProperty(t, "n", "2"))
	must(t, err)
	f.rewrite(first.MetadataLocation, []byte(`{"torn`))
	_, err = f.keyedCommit(f.other(f.store), "1", setProperty(t, "n", "1"))
	wantKind(t, err, moorage.KindCommitUnknown)
	f.rewrite(first.MetadataLocation, first.Document.Raw())
	again, err := f.keyedCommit(f.instance, "1", setProperty(t, "n", "1"))
	if err != nil || again.MetadataLocation != first.MetadataLocation {
		t.Errorf("once it can be read: %+v (%v)", again, err)
	}
	f.wantClean()
}

// What happened is answered again on a node that does not allow the table's location any more.
func TestAnswerFromALocationThatIsAllowedNoMore(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.allow(testWarehouse, "file:///extra")
	f.createAt("t", "file:///extra/t")
	first, err := f.keyedCommit(f.instance, "1", setProperty(t, "n", "1"))
	must(t, err)
	_, err = f.Commit(f.ctx, ident("t"), setProperty(t, "n", "2"))
	must(t, err)
	f.disallow(testWarehouse)
	again, err := f.keyedCommit(f.other(f.store), "1", setProperty(t, "n", "1"))
	if err != nil || again.MetadataLocation != first.MetadataLocation {
		t.Errorf("answered %+v (%v), want the first version", again, err)
	}
	f.allow(testWarehouse, "file:///extra")
	f.wantClean()
}

// aroundFirstApply calls before ahead of the first Apply, and after behind it.
type aroundFirstApply struct {
	registry.Store
	applied       atomic.Bool
	before, after func()
}

func (s *aroundFirstApply) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	if !s.applied.CompareAndSwap(false, true) {
		return s.Store.Apply(ctx, batch)
	}
	s.before()
	defer s.after()
	return s.Store.Apply(ctx, batch)
}
