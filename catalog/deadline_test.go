package catalog_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/registry"
	"moorage/storage"
)

// hangingStore does not answer List and ListKeys while hangs is set, until the context ends.
type hangingStore struct {
	registry.Store
	hangs bool
}

func (s *hangingStore) List(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	if s.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Store.List(ctx, table, prefix, after, limit)
}

func (s *hangingStore) ListKeys(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	if s.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Store.ListKeys(ctx, table, prefix, after, limit)
}

// A drop that ran out of time puts the namespace back at once. Creators need not wait until its
// mark is stale.
func TestDropOutOfTimePutsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hanging := new(hangingStore)
		f := newFixture(t, func(c *catalog.Config) {
			hanging.Store = c.Store
			c.Store = hanging
		})
		hanging.hangs = true
		wantKind(t, f.DropNamespace(f.ctx, testWarehouse, moorage.Namespace{"ns"}), moorage.KindUnavailable)
		hanging.hangs = false
		ch, err := f.directory.Path(f.ctx, testWarehouse, moorage.Namespace{"ns"})
		if err != nil || ch.Record().State != registry.StateLive {
			t.Errorf("the namespace is %v, %v", ch.Record().State, err)
		}
	})
}

// contestedFiles lets another commit be faster than each of the first tries, whose files it sees.
// Then it hangs.
type contestedFiles struct {
	storage.Store
	tries int
	race  func()
}

func (s *contestedFiles) Create(ctx context.Context, location string, body []byte) error {
	switch {
	case s.race == nil:
	case s.tries == commit.RacesMax:
		<-ctx.Done()
		return ctx.Err()
	default:
		race := s.race
		s.race = nil
		race()
		s.race = race
		s.tries++
	}
	return s.Store.Create(ctx, location, body)
}

// The try under the pointer's lock has what is left of the request's time, and no more.
func TestContendedCommitKeepsItsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		contested := new(contestedFiles)
		f := newFixture(t, func(c *catalog.Config) {
			open := c.OpenStorage
			c.OpenStorage = func(place storage.Place) (_ storage.Store, err error) {
				contested.Store, err = open(place)
				return contested, err
			}
		})
		f.create("t")
		node := f.other(f.store)
		contested.race = func() {
			time.Sleep(5 * time.Second)
			if _, err := node.Commit(f.ctx, ident("t"), setProperty(t, "faster", "yes")); err != nil {
				t.Error(err)
			}
		}
		begin := time.Now()
		_, err := f.Commit(f.ctx, ident("t"), setProperty(t, "a", "b"))
		wantKind(t, err, moorage.KindUnavailable)
		if took := time.Since(begin); contested.tries != commit.RacesMax || took > commit.RequestTimeout {
			t.Errorf("after %d lost races the commit took %s, at most %s are allowed", contested.tries, took, commit.RequestTimeout)
		}
	})
}

// An entry whose pointer is gone, as only a damaged store has it, does not keep a reader for ever.
func TestLoadOfADamagedNameEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.create("t")
		found, err := f.directory.Find(f.ctx, directory.Table(), ident("t"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.store.Apply(f.ctx, registry.Batch{Writes: []registry.Write{registry.Delete(found.Record.Key)}}); err != nil {
			t.Fatal(err)
		}
		_, err = f.LoadTable(f.ctx, ident("t"))
		wantKind(t, err, moorage.KindUnavailable)
	})
}
