package retention_test

import (
	"context"
	"testing"

	"moorage"
	"moorage/maintenance/retention"
	"moorage/registry"
	"moorage/storage"
	"moorage/testkit/registrytest"
)

// folder returns the record of a folder or location.
func (f *fixture) folder(location string) registry.Record {
	f.t.Helper()
	records, err := f.store.Get(f.ctx, registry.LocationKey(location))
	if err != nil {
		f.t.Fatal(err)
	}
	return records[0]
}

// A folder without tables can become a table's location again. A folder with tables stays.
func TestSweepFolders(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.createAt("keeps", "file:///wh/full/t")
	f.createAt("near", "file:///wh/empty-not/t") // sorts between the folder "empty" and its contents
	f.createAt("goes", "file:///wh/empty/a/t")
	f.leave("goes")
	wantKind(t, f.tryCreate("new", "file:///wh/full"), moorage.KindBadRequest)
	for range 3 {
		if err := f.RunOnce(f.ctx, retention.Folders); err != nil {
			t.Fatal(err)
		}
	}
	for location, want := range map[string]registry.State{
		"/wh/full": registry.StateBelow, "/wh/empty-not": registry.StateBelow, "/wh": registry.StateBelow,
		"/wh/empty": registry.StateNone, "/wh/empty/a": registry.StateNone,
	} {
		normalised := normalisedFile(t, location)
		if got := f.folder(normalised); got.State != want || got.Exists() != (want != registry.StateNone) {
			t.Errorf("%s is %s, want %s", normalised, got.State, want)
		}
	}
	f.createAt("new", "file:///wh/empty")
	f.wantClean()
}

// normalisedFile returns the location of a path on disk in the form used for claims.
func normalisedFile(t *testing.T, path string) string {
	t.Helper()
	normalised, err := storage.Normalise("file://" + path)
	if err != nil {
		t.Fatal(err)
	}
	return normalised
}

// betweenStore is a store that calls between, once, before the n-th Apply.
type betweenStore struct {
	registry.Store
	n       int
	between func()
}

func (s *betweenStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	if between := s.between; between != nil {
		if s.n--; s.n < 0 {
			s.between = nil
			between()
		}
	}
	return s.Store.Apply(ctx, batch)
}

// A table is created while the sweep searches its folder, at any point. The folder's record then
// stays.
func TestSweepFolderWhileATableComes(t *testing.T) {
	t.Parallel()
	for step, when := range []string{"before the mark", "before the folder goes"} {
		between := new(betweenStore)
		f := newFixture(t, func(c *retention.Config) {
			between.Store = c.Store
			c.Store = between
		})
		f.createAt("goes", "file:///wh/a/t")
		f.leave("goes")
		between.n = step
		between.between = func() { f.createAt("comes", "file:///wh/a/u") }
		if err := f.RunOnce(f.ctx, retention.Folders); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if got := f.folder(normalisedFile(t, "/wh/a")); got.State != registry.StateBelow {
			t.Errorf("%s: the folder is %s, exists: %t", when, got.State, got.Exists())
		}
		wantKind(t, f.tryCreate("outer", "file:///wh/a"), moorage.KindBadRequest)
		f.wantClean()
	}
}

// A table that was planned before its folder was removed is planned again.
func TestTableComesWhileItsFolderGoes(t *testing.T) {
	t.Parallel()
	between := new(betweenStore)
	f := newFixture(t, func(c *retention.Config) {
		between.Store = c.Store
		c.Store = between
	})
	f.createAt("goes", "file:///wh/a/t")
	f.leave("goes")
	between.between = func() {
		if err := f.RunOnce(f.ctx, retention.Folders); err != nil {
			t.Error(err)
		}
		f.createAt("outer", "file:///wh/a") // the former folder
	}
	wantKind(t, f.tryCreate("inner", "file:///wh/a/u"), moorage.KindBadRequest)
	f.wantClean()
}

// A sweep that fails or dies at any call does not block the folder for tables forever, and does not
// leave the folder's record forever.
func TestSweepFolderFails(t *testing.T) {
	t.Parallel()
	for _, action := range []registrytest.Action{registrytest.Fail, registrytest.Lose, registrytest.Die, registrytest.DieAfter} {
		for _, back := range []bool{false, true} { // whether a table comes before the next sweep
			survived := false
			for k := 0; !survived; k++ {
				f := newFixture(t)
				f.createAt("goes", "file:///wh/a/t")
				f.leave("goes")
				faulty := registrytest.Faulty(f.store, registrytest.Nth(k, action))
				err := f.other(faulty).RunOnce(f.ctx, retention.Folders)
				survived = faulty.Calls() <= k
				if survived && err != nil {
					t.Fatalf("without a fault: %v", err)
				}
				want := registry.StateNone
				if back {
					f.createAt("back", "file:///wh/a/u")
					want = registry.StateBelow
				}
				if err := f.RunOnce(f.ctx, retention.Folders); err != nil {
					t.Fatal(err)
				}
				if got := f.folder(normalisedFile(t, "/wh/a")); got.State != want || got.Exists() != back {
					t.Errorf("action %d at call %d, back %t: the folder is %s, exists: %t", action, k, back, got.State, got.Exists())
				}
				f.wantClean()
			}
		}
	}
}
