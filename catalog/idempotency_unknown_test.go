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
	"moorage/testkit/catalogkit"
	"moorage/testkit/registrytest"
	"moorage/testkit/storagetest"
)

// While it is blind, blindStore cannot read the outcomes of keys.
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

// A client repeats a request that has taken effect. The node cannot read its outcome, because the
// record is damaged or the store is unreachable, or it cannot read the answer. Then it answers that
// the outcome is unknown. If it answered that nothing was changed, the client would delete the
// files of the commit.
func TestOnceCannotTell(t *testing.T) {
	t.Parallel()
	repeats := map[string]func(f *catalogkit.Fixture, node catalog.Verbs) (catalogkit.Reply, error){
		"it loses on its key": func(f *catalogkit.Fixture, node catalog.Verbs) (catalogkit.Reply, error) {
			table, err := node.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(f.T, "n", "1"))
			return catalogkit.Reply{Table: table}, err
		},
		"it is refused": func(f *catalogkit.Fixture, node catalog.Verbs) (catalogkit.Reply, error) {
			return refusal(moorage.Errorf(moorage.KindCommitFailed, "no"))(f.Ctx, node)
		},
		"it has nothing to change": func(f *catalogkit.Fixture, node catalog.Verbs) (catalogkit.Reply, error) { return nothing(f.Ctx, node) },
		"the node can do nothing now": func(f *catalogkit.Fixture, node catalog.Verbs) (catalogkit.Reply, error) {
			return refusal(moorage.Errorf(moorage.KindUnavailable, "no"))(f.Ctx, node)
		},
		"the node has no room now": func(f *catalogkit.Fixture, node catalog.Verbs) (catalogkit.Reply, error) {
			return refusal(moorage.Errorf(moorage.KindTooManyRequests, "no"))(f.Ctx, node)
		},
	}
	for name, repeat := range repeats {
		for _, what := range []string{"outcome", "record", "answer"} {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					store, broken := &blindStore{}, &atomic.Bool{}
					f := catalogkit.New(t, func(c *catalog.Config) {
						store.Store, c.Store = c.Store, store
						catalogkit.WrapStorage(c, func(inner storage.Store) storage.Store {
							return storagetest.Faulty(inner, func(_ int, method string) storagetest.Action {
								if broken.Load() && method == storagetest.MethodOpen {
									return storagetest.Fail
								}
								return storagetest.Pass
							})
						})
					})
					f.Create("t")
					send := func(node *catalogkit.Instance, mutate func(*catalogkit.Fixture, catalog.Verbs) (catalogkit.Reply, error)) error {
						_, err := node.Once(f.Ctx, catalogkit.KeyOf("a"), func(ctx context.Context, node catalog.Verbs) (catalogkit.Reply, error) {
							inner := *f
							inner.Ctx = ctx
							return mutate(&inner, node)
						})
						return err
					}
					commit := repeats["it loses on its key"]
					if err := send(f.Instance, commit); err != nil {
						t.Fatal(err)
					}
					node := f.Other(f.Store)
					if _, err := node.LoadTable(f.Ctx, ident("t")); err != nil {
						t.Fatal(err)
					}
					store.blind.Store(what == "outcome")
					kept := catalogkit.Tamper(f).Record(registry.TableIdempotency, "", registry.StateNone)
					if what == "record" {
						catalogkit.Tamper(f).Write(registry.Put(kept.Key, kept.State, []byte("{")))
					}
					if what == "answer" {
						node.Documents().ForgetAll()
						broken.Store(true)
					}
					err := send(node, repeat)
					catalogkit.WantKind(t, err, moorage.KindCommitUnknown)
					store.blind.Store(false)
					broken.Store(false)
					catalogkit.Tamper(f).Write(registry.Put(kept.Key, kept.State, kept.Value))
					if err := send(node, repeat); err != nil {
						t.Errorf("once it can be read: %v", err)
					}
					if got := count(f, gate.Commit); got != 1 {
						t.Errorf("%d commits, want 1", got)
					}
					f.WantClean()
				})
			})
		}
	}
}

// If the store fails for a moment, the node asks again. If there is no outcome, the attempt's own
// failure is the answer.
func TestOnceLooksAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &blindStore{}
		f := catalogkit.New(t, func(c *catalog.Config) { store.Store, c.Store = c.Store, store })
		_, err := f.Once(f.Ctx, catalogkit.KeyOf("a"), func(context.Context, catalog.Verbs) (catalogkit.Reply, error) {
			store.blind.Store(true)
			go func() {
				_ = f.Ledger.Pause(f.Ctx, 10)
				store.blind.Store(false)
			}()
			return catalogkit.Reply{}, moorage.E("test", "", moorage.KindUnavailable, errors.New("no"))
		})
		catalogkit.WantKind(t, err, moorage.KindUnavailable)
		if stored := outcomes(f); len(stored) != 0 {
			t.Errorf("stored: %+v", stored)
		}
	})
}

// A refusal is stored before it is returned. If the store's answer is lost, the node finds out
// whether the refusal was stored. The refusal is returned unchanged and stored once.
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
				f := catalogkit.New(t)
				store := &appliesStore{Store: registrytest.Faulty(f.Store, tc.plan)}
				node := f.Other(store)
				_, err := node.Once(f.Ctx, catalogkit.KeyOf("a"), refusal(moorage.Errorf(moorage.KindCommitFailed, "no")))
				if got, want := catalogkit.AnswerText(catalogkit.Reply{}, err), moorage.KindCommitFailed.String()+": no"; got != want {
					t.Errorf("answered %q, want %q", got, want)
				}
				if got := len(outcomes(f)); got != 1 {
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

// An attempt loses to another attempt, and that one's outcome is deleted before the first can read
// it. The request may have taken effect, but its outcome can no longer be determined.
func TestOutcomeForgottenBeforeItIsTold(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	commit := func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
		table, err := c.Commit(ctx, ident("t"), catalogkit.SetProperty(t, "n", "1"))
		return catalogkit.Reply{Table: table}, err
	}
	overtaken := &aroundFirstApply{Store: f.Store, before: func() {
		_, err := f.Once(f.Ctx, catalogkit.KeyOf("a"), commit)
		must(t, err)
	}, after: func() {
		key := catalogkit.Tamper(f).Record(registry.TableIdempotency, "", registry.StateNone).Key
		_, err := f.Store.Apply(f.Ctx, registry.Batch{Writes: []registry.Write{registry.Delete(key)}})
		must(t, err)
	}}
	_, err := f.Other(overtaken).Once(f.Ctx, catalogkit.KeyOf("a"), commit)
	if !errors.Is(err, ledger.ErrAnswered) {
		t.Errorf("the attempt ended with %v, want %v", err, ledger.ErrAnswered)
	}
	catalogkit.WantKind(t, err, moorage.KindCommitUnknown)
	if got := count(f, gate.Commit); got != 1 {
		t.Errorf("%d commits, want 1", got)
	}
}

// If the file of a successful request is now damaged, its answer cannot be returned again. The
// request is not refused, because then the client would delete the files of the commit.
func TestAnswerThatCannotBeRead(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	first, err := keyedCommit(f, f.Instance, "1", catalogkit.SetProperty(t, "n", "1"))
	must(t, err)
	_, err = f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "n", "2"))
	must(t, err)
	f.Rewrite(first.MetadataLocation, []byte(`{"torn`))
	_, err = keyedCommit(f, f.Other(f.Store), "1", catalogkit.SetProperty(t, "n", "1"))
	catalogkit.WantKind(t, err, moorage.KindCommitUnknown)
	f.Rewrite(first.MetadataLocation, first.Document.Raw())
	again, err := keyedCommit(f, f.Instance, "1", catalogkit.SetProperty(t, "n", "1"))
	if err != nil || again.MetadataLocation != first.MetadataLocation {
		t.Errorf("once it can be read: %+v (%v)", again, err)
	}
	f.WantClean()
}

// A node repeats the answer of a successful request even if it no longer allows the table's
// location.
func TestAnswerFromALocationThatIsAllowedNoMore(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Allow(catalogkit.Warehouse, "file:///extra")
	f.CreateAt("t", "file:///extra/t")
	first, err := keyedCommit(f, f.Instance, "1", catalogkit.SetProperty(t, "n", "1"))
	must(t, err)
	_, err = f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "n", "2"))
	must(t, err)
	f.Disallow(catalogkit.Warehouse)
	again, err := keyedCommit(f, f.Other(f.Store), "1", catalogkit.SetProperty(t, "n", "1"))
	if err != nil || again.MetadataLocation != first.MetadataLocation {
		t.Errorf("answered %+v (%v), want the first version", again, err)
	}
	f.Allow(catalogkit.Warehouse, "file:///extra")
	f.WantClean()
}

// aroundFirstApply is a store that calls its hooks directly before and after the first Apply.
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
