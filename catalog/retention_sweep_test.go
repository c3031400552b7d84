package catalog_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
	"moorage/testkit/catalogkit"
)

// Changes and fences are kept for the retention, and until some time after a sweep has first seen
// them. Dropped tables are kept for the window. Nothing is kept longer.
func TestSweepEndsWhatIsOld(t *testing.T) {
	t.Parallel()
	f, losing := newLosingFixture(t)
	f.Create("t")
	losing.lose(gate.Commit, true, nil)
	if _, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "a", "b")); err != nil {
		t.Fatal(err)
	}
	if err := f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{}); err != nil {
		t.Fatal(err)
	}
	count := func(table registry.Table) int {
		records, err := f.Store.List(f.Ctx, table, "", "", 100)
		if err != nil {
			t.Fatal(err)
		}
		return len(records)
	}
	before := count(registry.TableChange)
	for _, step := range []struct {
		advance           time.Duration
		pointers, changes int
	}{
		{0, 1, before},
		{7*24*time.Hour - time.Second, 1, before},
		{2 * time.Second, 0, 2}, // the fence, and the change that ended the pointer
		{catalogkit.KeptMin, 0, 1},
		{7 * 24 * time.Hour, 0, 0},
	} {
		f.Clock.Advance(step.advance)
		if err := f.SweepAll(f.Ctx); err != nil {
			t.Fatal(err)
		}
		if p, c := count(registry.TablePointer), count(registry.TableChange); p != step.pointers || c != step.changes {
			t.Errorf("%d pointers and %d changes are left, want %d and %d", p, c, step.pointers, step.changes)
		}
	}
	if _, err := f.LoadNamespace(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}); err != nil {
		t.Fatal(err)
	}
	f.WantClean()
}

// Each round reports an unreadable record, and still handles the records after it. The record may
// be a pointer, a pointer's claim, or the outcome of a change.
func TestSweepGoesOnBehindUnreadable(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		f.Create(name)
		if err := f.DropTable(f.Ctx, ident(name), catalog.DropOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f.Create("t")
	for _, id := range []string{"1", "2", "3"} {
		if _, err := keyedCommit(f, f.Instance, id, catalogkit.SetProperty(t, "a", id)); err != nil {
			t.Fatal(err)
		}
	}
	// These sort before all other records of their tables.
	list := func(table registry.Table, states ...registry.State) (found []registry.Record) {
		records, err := f.Store.List(f.Ctx, table, "", "", registry.ListLimitMax)
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(records, func(r registry.Record) bool { return !slices.Contains(states, r.State) })
	}
	dropped := list(registry.TablePointer, registry.StateDropped)
	second, err := ledger.Decode[registry.Pointer](dropped[1])
	if err != nil {
		t.Fatal(err)
	}
	claims, err := f.Ledger.Get(f.Ctx, registry.LocationKey(second.Claims[0]))
	if err != nil {
		t.Fatal(err)
	}
	damaged := []registry.Record{dropped[0], claims[0], list(registry.TableIdempotency, registry.StateNone)[0]}
	for _, record := range damaged {
		catalogkit.Tamper(f).Write(registry.Put(record.Key, record.State, []byte("{")))
	}
	f.Clock.Advance(catalogkit.UndropWindow + f.KeyLife() + time.Second)
	for range 2 {
		err := f.SweepAll(f.Ctx)
		for _, record := range []registry.Record{damaged[0], damaged[2]} {
			if err == nil || !strings.Contains(err.Error(), record.Key.String()) {
				t.Errorf("the sweep says nothing of %s: %v", record.Key, err)
			}
		}
	}
	left := func() (keys []registry.Key) {
		for _, record := range append(list(registry.TablePointer, registry.StateDropped), list(registry.TableIdempotency, registry.StateNone)...) {
			keys = append(keys, record.Key)
		}
		return keys
	}
	if got, want := left(), []registry.Key{dropped[0].Key, dropped[1].Key, damaged[2].Key}; !slices.Equal(got, want) {
		t.Errorf("left are %v, want %v", got, want)
	}
	for _, record := range damaged {
		catalogkit.Tamper(f).Write(registry.Put(record.Key, record.State, record.Value))
	}
	if err := f.SweepAll(f.Ctx); err != nil {
		t.Error(err)
	}
	if got := left(); len(got) > 0 {
		t.Errorf("left with the records mended: %v", got)
	}
	f.WantClean()
}

// listingStore calls listed once, after the records of a table were listed. It hides the records of
// drops unless the test waits for a list of them.
type listingStore struct {
	registry.Store
	table  registry.Table
	listed func()
}

func (s *listingStore) List(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	records, err := s.Store.List(ctx, table, prefix, after, limit)
	if listed := s.listed; listed != nil && table == s.table {
		s.listed = nil
		listed()
	}
	if table == registry.TableDue && s.table != table {
		return nil, err
	}
	return records, err
}

// At the moment when its window ends, a table is restored and dropped again. It then has a new
// window, or is purged. This holds whether the end of the window is found by the pointer or by the
// record of the drop.
func TestWindowBeginsAnew(t *testing.T) {
	t.Parallel()
	for _, table := range []registry.Table{registry.TablePointer, registry.TableDue} {
		for _, purge := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, purge %t", table, purge), func(t *testing.T) {
				t.Parallel()
				listing := &listingStore{table: table}
				f := catalogkit.New(t, func(c *catalog.Config) {
					listing.Store = c.Store
					c.Store = listing
				})
				made := f.Create("t")
				if err := f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{}); err != nil {
					t.Fatal(err)
				}
				f.Clock.Advance(catalogkit.UndropWindow + time.Second)
				again := catalog.RegisterRequest{MetadataLocation: made.MetadataLocation}
				listing.listed = func() {
					if _, err := f.RegisterTable(f.Ctx, ident("t"), again); err != nil {
						t.Error(err)
					}
					if err := f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{Purge: purge}); err != nil {
						t.Error(err)
					}
				}
				if err := f.EndWindows(f.Ctx); err != nil {
					t.Fatal(err)
				}
				if back, err := f.RegisterTable(f.Ctx, ident("t"), again); err != nil || back.PointerID() != made.PointerID() {
					t.Errorf("the table does not come back: %v", err)
				}
				f.WantClean()
			})
		}
	}
}
