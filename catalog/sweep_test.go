package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

// endlessStore has more pointers and changes than anybody can read. It counts what was asked for.
type endlessStore struct {
	registry.Store
	read map[registry.Table]int
	from map[registry.Table][]string
}

func (s *endlessStore) List(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	if table != registry.TablePointer {
		return s.Store.List(ctx, table, prefix, after, limit)
	}
	return s.page(table, after, limit), nil
}

func (s *endlessStore) ListKeys(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	if table != registry.TableChange {
		return s.Store.ListKeys(ctx, table, prefix, after, limit)
	}
	return s.page(table, after, limit), nil
}

func (s *endlessStore) page(table registry.Table, after string, limit int) []registry.Record {
	s.from[table] = append(s.from[table], after)
	records := make([]registry.Record, limit)
	for i := range records {
		s.read[table]++
		key := registry.Key{Table: table, ID: fmt.Sprintf("%032x", s.read[table])}
		records[i] = registry.Record{Key: key, ETag: registry.ETag{1}, State: registry.StateLive}
	}
	return records
}

// A round of the sweep reads a bounded part of what there is, and the next one goes on behind it.
func TestSweepReadsAPart(t *testing.T) {
	t.Parallel()
	endless := &endlessStore{read: map[registry.Table]int{}, from: map[registry.Table][]string{}}
	f := newFixture(t, func(c *Config) {
		endless.Store = c.Store
		c.Store = endless
	})
	const records = sweepPages * ledger.ScanPage
	for round := 1; round <= 2; round++ {
		if err := f.sweepAll(f.ctx); err != nil {
			t.Fatal(err)
		}
		for _, table := range []registry.Table{registry.TablePointer, registry.TableChange} {
			if got, want := endless.read[table], round*records; got != want {
				t.Errorf("round %d has read %d records of %s, want %d", round, got, table, want)
			}
		}
	}
	for table, from := range endless.from {
		if got, want := from[sweepPages], fmt.Sprintf("%032x", records); got != want {
			t.Errorf("the second round reads %s from %q, want %q", table, got, want)
		}
	}
}

// Changes and fences live for the retention and until they were seen for a while. Dropped tables
// live for the window. None live longer.
func TestSweepEndsWhatIsOld(t *testing.T) {
	t.Parallel()
	f, losing := newLosingFixture(t)
	f.create("t")
	losing.lose(OpCommit, true, nil)
	if _, err := f.Commit(f.ctx, ident("t"), setProperty(t, "a", "b")); err != nil {
		t.Fatal(err)
	}
	if err := f.DropTable(f.ctx, ident("t"), DropOptions{}); err != nil {
		t.Fatal(err)
	}
	count := func(table registry.Table) int {
		records, err := f.store.List(f.ctx, table, "", "", 100)
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
		{2 * time.Second, 0, 2}, // the fence, and the change of the pointer's end
		{keptMin, 0, 1},
		{7 * 24 * time.Hour, 0, 0},
	} {
		f.clock.Advance(step.advance)
		if err := f.sweepAll(f.ctx); err != nil {
			t.Fatal(err)
		}
		if p, c := count(registry.TablePointer), count(registry.TableChange); p != step.pointers || c != step.changes {
			t.Errorf("%d pointers and %d changes are left, want %d and %d", p, c, step.pointers, step.changes)
		}
	}
	if _, err := f.LoadNamespace(f.ctx, testWarehouse, moorage.Namespace{"ns"}); err != nil {
		t.Fatal(err)
	}
	f.wantClean()
}

// Each round reports a record that cannot be read. Such a record keeps no round from what comes
// behind it. It may be a pointer, the claim of a pointer, or the outcome of a change.
func TestSweepGoesOnBehindUnreadable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		f.create(name)
		if err := f.DropTable(f.ctx, ident(name), DropOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f.create("t")
	for _, id := range []string{"1", "2", "3"} {
		if _, err := f.keyedCommit(f.Catalog, id, setProperty(t, "a", id)); err != nil {
			t.Fatal(err)
		}
	}
	// The first of each, as lists have them.
	list := func(table registry.Table, states ...registry.State) (found []registry.Record) {
		records, err := f.store.List(f.ctx, table, "", "", registry.ListLimitMax)
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
	claims, err := f.ledger.Get(f.ctx, registry.LocationKey(second.Claims[0]))
	if err != nil {
		t.Fatal(err)
	}
	damaged := []registry.Record{dropped[0], claims[0], list(registry.TableIdempotency, registry.StateNone)[0]}
	for _, record := range damaged {
		tampering{f}.write(registry.Put(record.Key, record.State, []byte("{")))
	}
	f.clock.Advance(f.undropWindow + f.keyLifetime + keyGrace + time.Second)
	for range 2 {
		err := f.sweepAll(f.ctx)
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
		tampering{f}.write(registry.Put(record.Key, record.State, record.Value))
	}
	if err := f.sweepAll(f.ctx); err != nil {
		t.Error(err)
	}
	if got := left(); len(got) > 0 {
		t.Errorf("left with the records mended: %v", got)
	}
	f.wantClean()
}

// Nor do more of them than one page keep it from those of the next.
func TestSweepGoesOnBehindUnreadablePage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var writes []registry.Write
	for i := range ledger.ScanPage {
		writes = append(writes, registry.Put(registry.IdempotencyKey(registry.Hash{0: byte(i >> 8), 1: byte(i)}), registry.StateNone, []byte("{")))
	}
	for part := range slices.Chunk(writes, 500) {
		tampering{f}.write(part...)
	}
	last := registry.IdempotencyKey(registry.Hash{0: 255})
	tampering{f}.put(last, registry.StateNone, registry.Idempotency{Expires: f.clock.Now().Add(-time.Hour)})
	if err := f.forgetKeys(f.ctx); err == nil || !strings.Contains(err.Error(), writes[0].Key.String()) {
		t.Errorf("the sweep says nothing of the first: %v", err)
	}
	records, err := f.store.Get(f.ctx, writes[0].Key, last)
	if err != nil || !records[0].Exists() || records[1].Exists() {
		t.Errorf("left are %v (%v)", records, err)
	}
}

// damagedChanges has changes that cannot be read.
type damagedChanges struct {
	registry.Store
	damaged map[registry.ID]bool
}

func (s *damagedChanges) Changes(ctx context.Context, after registry.Position, limit int) ([]registry.PositionedChange, error) {
	changes, err := s.Store.Changes(ctx, after, limit)
	for i, change := range changes {
		if s.damaged[change.Change.ID] {
			changes[i] = registry.PositionedChange{Position: change.Position, Change: registry.Change{ID: change.Change.ID}, Unreadable: errDamaged}
		}
	}
	return changes, err
}

var errDamaged = errors.New("damaged")

// How old a change is its place says, so that one which cannot be read goes with those beside it.
func TestSweepForgetsUnreadableChanges(t *testing.T) {
	t.Parallel()
	damaged := &damagedChanges{damaged: map[registry.ID]bool{}}
	f := newFixture(t, func(c *Config) {
		damaged.Store = c.Store
		c.Store = damaged
	})
	const count = forgetPage + 10
	f.addChanges(1, count)
	for _, n := range []int{1, 2, 500, count} {
		damaged.damaged[numbered(n)] = true
	}
	must(t, f.forgetChanges(f.ctx))
	f.wantChanges(1, count)
	f.clock.Advance(f.changeRetention)
	must(t, f.forgetChanges(f.ctx))
	f.wantChanges(1, 0)
}

// listingStore calls listed, once, when pointers were listed.
type listingStore struct {
	registry.Store
	listed func()
}

func (s *listingStore) List(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	records, err := s.Store.List(ctx, table, prefix, after, limit)
	if listed := s.listed; listed != nil && table == registry.TablePointer {
		s.listed = nil
		listed()
	}
	return records, err
}

// A table comes back in the moment in which its window ends, and is dropped once more. It has
// another window, or is purged.
func TestWindowBeginsAnew(t *testing.T) {
	t.Parallel()
	for _, purge := range []bool{false, true} {
		t.Run(fmt.Sprintf("purge %t", purge), func(t *testing.T) {
			t.Parallel()
			listing := new(listingStore)
			f := newFixture(t, func(c *Config) {
				listing.Store = c.Store
				c.Store = listing
			})
			table := f.create("t")
			if err := f.DropTable(f.ctx, ident("t"), DropOptions{}); err != nil {
				t.Fatal(err)
			}
			f.clock.Advance(f.undropWindow + time.Second)
			again := RegisterRequest{MetadataLocation: table.MetadataLocation}
			listing.listed = func() {
				if _, err := f.RegisterTable(f.ctx, ident("t"), again); err != nil {
					t.Error(err)
				}
				if err := f.DropTable(f.ctx, ident("t"), DropOptions{Purge: purge}); err != nil {
					t.Error(err)
				}
			}
			if err := f.endWindows(f.ctx); err != nil {
				t.Fatal(err)
			}
			if back, err := f.RegisterTable(f.ctx, ident("t"), again); err != nil || back.pointer != table.pointer {
				t.Errorf("the table does not come back: %v", err)
			}
			f.wantClean()
		})
	}
}

// refusingFolders cannot remove one of its folders.
type refusingFolders struct {
	storage.Store
	refused string
	removed []string
}

var errRefused = errors.New("refused")

func (s *refusingFolders) MakeFolder(context.Context, string) error { return nil }

func (s *refusingFolders) RemoveEmptyFolder(_ context.Context, location string, _ time.Duration) (bool, error) {
	if location == s.refused {
		return false, errRefused
	}
	s.removed = append(s.removed, location)
	return true, nil
}

// A folder of a staged table that cannot be removed does not keep the others there. The memory of
// staged folders is bounded.
func TestSweepOfStagedFolders(t *testing.T) {
	t.Parallel()
	store := &refusingFolders{refused: "1"}
	staged, now := newStagedFolders(), newClock().Now()
	for i := range 3 {
		if err := staged.make(t.Context(), "w", store, fmt.Sprint(i), now); err != nil {
			t.Fatal(err)
		}
	}
	if err := staged.sweep(t.Context(), now.Add(stagedFolderAge+1)); !errors.Is(err, errRefused) {
		t.Errorf("got %v, want what kept a folder there", err)
	}
	if got := fmt.Sprint(store.removed); got != "[0 2]" {
		t.Errorf("removed %s, want [0 2]", got)
	}
	for range stagedFoldersMax + 1 {
		if err := staged.make(t.Context(), "w", store, "folder", now); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(staged.made); got > stagedFoldersMax {
		t.Errorf("%d folders are remembered, want at most %d", got, stagedFoldersMax)
	}
}
