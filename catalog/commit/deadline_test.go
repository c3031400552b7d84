package commit_test

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
	"moorage/testkit/catalogkit"
)

// A drop that runs out of time removes its mark at once. Creators need not wait until the mark is
// stale.
func TestDropOutOfTimePutsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hanging := new(catalogkit.HangingStore)
		f := catalogkit.New(t, func(c *catalog.Config) {
			hanging.Store = c.Store
			c.Store = hanging
		})
		hanging.Hangs = true
		catalogkit.WantKind(t, f.DropNamespace(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}), moorage.KindUnavailable)
		hanging.Hangs = false
		ch, err := f.Directory.Path(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"ns"})
		if err != nil || ch.Record().State != registry.StateLive {
			t.Errorf("the namespace is %v, %v", ch.Record().State, err)
		}
	})
}

// contestedFiles makes another commit win against each of the first tries, when it sees the file of
// the try. Then it hangs.
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

// The try under the pointer's lock gets only the rest of the request's time.
func TestContendedCommitKeepsItsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		contested := new(contestedFiles)
		f := catalogkit.New(t, func(c *catalog.Config) {
			open := c.OpenStorage
			c.OpenStorage = func(place storage.Place) (_ storage.Store, err error) {
				contested.Store, err = open(place)
				return contested, err
			}
		})
		f.Create("t")
		node := f.Other(f.Store)
		contested.race = func() {
			time.Sleep(5 * time.Second)
			if _, err := node.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "faster", "yes")); err != nil {
				t.Error(err)
			}
		}
		begin := time.Now()
		_, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "a", "b"))
		catalogkit.WantKind(t, err, moorage.KindUnavailable)
		if took := time.Since(begin); contested.tries != commit.RacesMax || took > commit.RequestTimeout {
			t.Errorf("after %d lost races the commit took %s, at most %s are allowed", contested.tries, took, commit.RequestTimeout)
		}
	})
}

// In a damaged store, an entry's pointer may be missing. A reader of such an entry does not loop
// for ever.
func TestLoadOfADamagedNameEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := catalogkit.New(t)
		f.Create("t")
		found, err := f.Directory.Find(f.Ctx, directory.Table(), ident("t"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Store.Apply(f.Ctx, registry.Batch{Writes: []registry.Write{registry.Delete(found.Record.Key)}}); err != nil {
			t.Fatal(err)
		}
		_, err = f.LoadTable(f.Ctx, ident("t"))
		catalogkit.WantKind(t, err, moorage.KindUnavailable)
	})
}
