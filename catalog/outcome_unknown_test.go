package catalog_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/registry"
	"moorage/testkit/catalogkit"
	"moorage/testkit/registrytest"
)

// losingStore loses the answer of one Apply. It applies the batch, or keeps it back. Then it calls
// the hook meanwhile, and returns ErrUnknown.
type losingStore struct {
	registry.Store

	mu        sync.Mutex
	operation string // of the change whose answer is lost; empty if none
	keepBack  bool   // keep the batch instead of applying it
	kept      *registry.Batch
	meanwhile func()
}

func (s *losingStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	s.mu.Lock()
	hit := batch.Change != nil && s.operation != "" && batch.Change.Operation == s.operation
	keepBack, meanwhile := s.keepBack, s.meanwhile
	if hit {
		s.operation = ""
		if keepBack {
			s.kept = &batch
		}
	}
	s.mu.Unlock()
	if !hit {
		return s.Store.Apply(ctx, batch)
	}
	if !keepBack {
		if etags, err := s.Store.Apply(ctx, batch); err != nil {
			return etags, err
		}
	}
	if meanwhile != nil {
		meanwhile()
	}
	return nil, registry.ErrUnknown
}

// lose arms the store for the next Apply of operation.
func (s *losingStore) lose(operation gate.Verb, keepBack bool, meanwhile func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.operation, s.keepBack, s.meanwhile = string(operation), keepBack, meanwhile
}

func newLosingFixture(t *testing.T) (*catalogkit.Fixture, *losingStore) {
	losing := new(losingStore)
	f := catalogkit.New(t, func(c *catalog.Config) {
		losing.Store = c.Store
		c.Store = losing
	})
	return f, losing
}

// The answer of a commit is lost. Another node commits three times, with a metadata log that keeps
// one entry. Then the first node looks for its commit, and must find that it happened.
func TestLostAnswerOfCommit(t *testing.T) {
	t.Parallel()
	f, losing := newLosingFixture(t)
	f.Create("t")
	if _, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "write.metadata.previous-versions-max", "1")); err != nil {
		t.Fatal(err)
	}
	node := f.Other(losing.Store)
	losing.lose(gate.Commit, false, func() {
		for i := range 3 {
			if _, err := node.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "other", fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		}
	})
	mine, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "mine", "yes"))
	if err != nil {
		t.Fatalf("the commit happened, but was answered %v", err)
	}
	last, err := f.LoadTable(f.Ctx, ident("t"))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"mine": "yes", "other": "2"} {
		if got, _ := last.Document.Property(key); got != want {
			t.Errorf("property %s is %q, want %q", key, got, want)
		}
	}
	if mine.MetadataLocation == last.MetadataLocation {
		t.Errorf("answered %s, which is another commit's", mine.MetadataLocation)
	}
	for _, entry := range last.Document.MetadataLog() {
		if entry.MetadataLocation == mine.MetadataLocation {
			t.Errorf("the metadata log names %s, so it could have shown the outcome", mine.MetadataLocation)
		}
	}
	f.WantClean()
}

// The same for every operation, whether or not its Apply has happened.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for n, m := range mutations(t, "") {
		if m.operation == gate.EndWindow || m.operation == gate.Purge {
			continue // workers: enumerated by TestCrashEveryCall
		}
		for _, keepBack := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/kept back %t", m.operation, keepBack), func(t *testing.T) {
				t.Parallel()
				losing := new(losingStore)
				f, unregistered := newCrashFixture(t, m.operation, func(c *catalog.Config) {
					losing.Store = c.Store
					c.Store = losing
				})
				m := mutations(t, unregistered)[n]
				losing.lose(m.operation, keepBack, nil)
				if _, err := m.run(f.Ctx, f.Instance); err != nil {
					t.Fatalf("answered %v", err)
				}
				if losing.operation != "" {
					t.Fatalf("no Apply of %s was seen", m.operation)
				}
				if !m.happened(f.Ctx, f.Instance) {
					t.Error("answered success, but it did not happen")
				}
				if losing.kept != nil { // the first try continues; it must be fenced
					if _, err := losing.Store.Apply(f.Ctx, *losing.kept); err == nil {
						t.Error("the first try came true after its second one")
					}
				}
				f.WantClean()
			})
		}
	}
}

// overtakenStore answers the next Apply of operation with ErrUnknown, and applies it just before
// its fence is written.
type overtakenStore struct {
	registry.Store

	mu        sync.Mutex // guards the fields below; leaf
	operation gate.Verb  // empty if none, or already seen
	kept      *registry.Batch
	late      error // the result of the late Apply
}

func (s *overtakenStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if batch.Change != nil && s.operation != "" && batch.Change.Operation == string(s.operation) {
		s.operation, s.kept = "", &batch
		return nil, registry.ErrUnknown
	}
	if s.kept != nil && slices.ContainsFunc(batch.Writes, func(w registry.Write) bool { return w.State == registry.StateVoid }) {
		_, s.late = s.Store.Apply(ctx, *s.kept)
		s.kept = nil
	}
	return s.Store.Apply(ctx, batch)
}

// If an Apply takes effect after the node has looked for it and before its fence, the operation has
// happened exactly once. This holds for every operation.
func TestFenceComesTooLate(t *testing.T) {
	t.Parallel()
	for n, m := range mutations(t, "") {
		if m.operation == gate.EndWindow || m.operation == gate.Purge {
			continue // workers: enumerated by TestCrashEveryCall
		}
		t.Run(string(m.operation), func(t *testing.T) {
			t.Parallel()
			late := new(overtakenStore)
			f, unregistered := newCrashFixture(t, m.operation, func(c *catalog.Config) {
				late.Store = c.Store
				c.Store = late
			})
			before := count(f, m.operation)
			m := mutations(t, unregistered)[n]
			late.operation = m.operation
			if _, err := m.run(f.Ctx, f.Instance); err != nil {
				t.Errorf("answered %v", err)
			}
			if late.operation != "" || late.kept != nil || late.late != nil {
				t.Fatalf("no Apply of %s came before its fence: %v", m.operation, late.late)
			}
			if !m.happened(f.Ctx, f.Instance) {
				t.Error("answered success, but it did not happen")
			}
			if got := count(f, m.operation) - before; got != 1 {
				t.Errorf("it happened %d times", got)
			}
			f.WantClean()
		})
	}
}

// If the store refuses an Apply, the request fails with KindUnavailable and has no effect.
func TestRefusedApply(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	f.Create("t")
	node := f.Other(registrytest.Faulty(f.Store, registrytest.NthApply(0, registrytest.Fail)))
	_, err := node.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "a", "b"))
	catalogkit.WantKind(t, err, moorage.KindUnavailable)
	f.WantProperty("t", "a", "")
	f.WantClean()
}

// If the store never answers, the request's outcome is unknown, and the file stays.
func TestUnknownStaysUnknown(t *testing.T) {
	t.Parallel()
	silent := &silentStore{}
	f := catalogkit.New(t, func(c *catalog.Config) {
		silent.Store = c.Store
		c.Store = silent
	})
	f.Create("t")
	silent.arm(string(gate.Commit))
	_, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "a", "b"))
	catalogkit.WantKind(t, err, moorage.KindCommitUnknown)
	silent.disarm()
	table, err := f.LoadTable(f.Ctx, ident("t"))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := table.Document.Property("a"); got != "b" {
		t.Errorf("the commit happened, but the property is %q", got)
	}
	f.WantClean()
}

// silentStore applies one batch, loses its answer, and then refuses all calls with ErrFailed, like
// an embedded store whose disk is full.
type silentStore struct {
	registry.Store

	mu        sync.Mutex
	operation string
	failed    bool
}

// unconfirmedStore shows the effect of an Apply whose answer was lost. A call that waits for it to
// be durable gets no answer.
type unconfirmedStore struct {
	registry.Store
	stalled   atomic.Bool
	operation string
}

func (s *unconfirmedStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	if s.stalled.Load() {
		return nil, registry.ErrUnknown
	}
	etags, err := s.Store.Apply(ctx, batch)
	if err == nil && batch.Change != nil && batch.Change.Operation == s.operation {
		s.stalled.Store(true)
		return nil, registry.ErrUnknown
	}
	return etags, err
}

// A database that has not heard from its standby already shows a commit that it would lose with its
// disk. The commit must not be acknowledged, with or without a key, before the standby has it.
func TestUnconfirmedIsUnknown(t *testing.T) {
	t.Parallel()
	for _, keyed := range []bool{false, true} {
		t.Run(fmt.Sprintf("keyed %t", keyed), func(t *testing.T) {
			t.Parallel()
			store := &unconfirmedStore{operation: string(gate.Commit)}
			f := catalogkit.New(t, func(c *catalog.Config) {
				store.Store = c.Store
				c.Store = store
			})
			catalog.SetSettleTimeout(f.Catalog, 20*time.Millisecond)
			f.Create("t")
			commit := func(ctx context.Context, c catalog.Verbs) (catalogkit.Reply, error) {
				table, err := c.Commit(ctx, ident("t"), catalogkit.SetProperty(t, "a", "1"))
				return catalogkit.Reply{Table: table}, err
			}
			try := func() (catalogkit.Reply, error) {
				if keyed {
					return f.Once(f.Ctx, catalog.Key{ID: "k", Warehouse: catalogkit.Warehouse}, commit)
				}
				return commit(f.Ctx, f.Instance)
			}
			_, err := try()
			catalogkit.WantKind(t, err, moorage.KindCommitUnknown)
			if keyed { // again
				_, err := try()
				catalogkit.WantKind(t, err, moorage.KindCommitUnknown)
			}
			store.stalled.Store(false)
			store.operation = ""
			if _, err := try(); err != nil {
				t.Error(err)
			}
			f.WantClean()
		})
	}
}

func (s *silentStore) arm(operation string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.operation = operation
}

func (s *silentStore) disarm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = false
}

func (s *silentStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed {
		return nil, registry.ErrFailed
	}
	etags, err := s.Store.Apply(ctx, batch)
	if err == nil && batch.Change != nil && batch.Change.Operation == s.operation {
		s.failed = true
		return nil, registry.ErrUnknown
	}
	return etags, err
}

func (s *silentStore) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed {
		return nil, registry.ErrFailed
	}
	return s.Store.Get(ctx, keys...)
}
