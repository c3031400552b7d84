package retention_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/ledger"
	"moorage/maintenance/retention"
	"moorage/recovery"
	"moorage/registry"
	"moorage/testkit/registrytest"
)

// unwalkedStore is a store that lists no pointers, so that no walk finds one.
type unwalkedStore struct{ registry.Store }

func (s unwalkedStore) List(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	if table == registry.TablePointer {
		return nil, nil
	}
	return s.Store.List(ctx, table, prefix, after, limit)
}

// newUnwalked returns a fixture whose node does no walks.
func newUnwalked(t testing.TB, change ...func(*retention.Config)) *fixture {
	t.Helper()
	f := newFixture(t, change...)
	f.Retention = f.other(unwalkedStore{f.store})
	return f
}

// pointers returns the pointers of the store by name.
func (f *fixture) pointers() map[string]registry.Record {
	f.t.Helper()
	named := make(map[string]registry.Record)
	for _, record := range f.list(registry.TablePointer, "") {
		named[f.pointer(record).Name] = record
	}
	return named
}

func (f *fixture) pointer(record registry.Record) registry.Pointer {
	f.t.Helper()
	pointer, err := ledger.Decode[registry.Pointer](record)
	must(f.t, err)
	return pointer
}

// named returns the pointer with this name.
func (f *fixture) named(name string) registry.Pointer {
	f.t.Helper()
	record, ok := f.pointers()[name]
	if !ok {
		f.t.Fatalf("there is no pointer of %s", name)
	}
	return f.pointer(record)
}

func (f *fixture) drop(name string) {
	f.t.Helper()
	must(f.t, f.catalog.DropTable(f.ctx, ident(name), catalog.DropOptions{}))
}

func (f *fixture) register(name, file string, overwrite bool) {
	f.t.Helper()
	_, err := f.catalog.RegisterTable(f.ctx, ident(name), catalog.RegisterRequest{MetadataLocation: file, Overwrite: overwrite})
	must(f.t, err)
}

// wantWindows fails the test unless the store has exactly the pointers with these names, and the
// given number of drop records.
func (f *fixture) wantWindows(records int, names ...string) {
	f.t.Helper()
	var got []string
	for name := range f.pointers() {
		got = append(got, name)
	}
	slices.Sort(got)
	if left := f.list(registry.TableDue, ""); !slices.Equal(got, names) || len(left) != records {
		f.t.Errorf("there are the pointers %q and %d records of drops, want %q and %d", got, len(left), names, records)
	}
}

func (f *fixture) endWindows() { f.t.Helper(); must(f.t, f.RunOnce(f.ctx, retention.Windows)) }

// Every way to drop a table or view writes the record that ends its window. The window ends without
// a walk, at its time and not before.
func TestWindowEndsByItsRecord(t *testing.T) {
	t.Parallel()
	for name, drop := range map[string]func(f *fixture){
		"table": func(f *fixture) { f.create("t"); f.drop("t") },
		"view": func(f *fixture) {
			_, err := f.catalog.CreateView(f.ctx, ident("t"), catalog.CreateViewRequest{
				Schema: []byte(testSchema), Version: []byte(`{"version-id":1,"timestamp-ms":1,"schema-id":0,"summary":{},` +
					`"default-namespace":["ns"],"representations":[{"type":"sql","sql":"select 1","dialect":"spark"}]}`),
			})
			must(f.t, err)
			must(f.t, f.catalog.DropView(f.ctx, ident("t")))
		},
		"register over it": func(f *fixture) {
			f.create("other")
			file := f.named("other").MetadataLocation
			f.unregister("other")
			f.create("t")
			f.register("t", file, true)
			f.unregister("t")
		},
		"purge that was cancelled": func(f *fixture) {
			f.create("t")
			must(f.t, f.catalog.DropTable(f.ctx, ident("t"), catalog.DropOptions{Purge: true}))
			_, err := recovery.CancelDeletions(f.ctx, registrytest.Ledger(f.store), f.clock.Now())
			must(f.t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newUnwalked(t)
			drop(f)
			for _, pause := range []time.Duration{0, week - time.Second, time.Second} {
				f.clock.Advance(pause)
				f.endWindows()
				f.wantWindows(1, "t") // even at the very end
			}
			f.clock.Advance(time.Nanosecond)
			f.endWindows()
			f.wantWindows(0)
			f.wantClean()
		})
	}
}

// A table that is restored and dropped again has a new window, with a new record.
func TestWindowOfTheLastDrop(t *testing.T) {
	t.Parallel()
	f := newUnwalked(t)
	f.create("t")
	file := f.named("t").MetadataLocation
	f.drop("t")
	f.clock.Advance(week / 2)
	f.register("t", file, false)
	f.wantWindows(0, "t")
	f.drop("t")
	for range 2 {
		f.wantWindows(1, "t")
		f.clock.Advance(week/2 + time.Second)
		f.endWindows()
	}
	f.wantWindows(0)
	f.wantClean()
}

// The length of the window is the setting of the sweeping process, even for tables that were
// dropped earlier.
func TestWindowThatIsChanged(t *testing.T) {
	t.Parallel()
	f := newUnwalked(t)
	f.create("t")
	f.drop("t")
	f.clock.Advance(week - time.Hour)
	for _, row := range []struct {
		window time.Duration
		ended  bool
	}{{2 * week, false}, {week, false}, {week - time.Hour, false}, {week - time.Hour - time.Second, true}} {
		f.config.UndropWindow = row.window
		must(t, f.other(unwalkedStore{f.store}).RunOnce(f.ctx, retention.Windows))
		if ended := len(f.pointers()) == 0; ended != row.ended {
			t.Errorf("with a window of %s it has ended is %t, want %t", row.window, ended, row.ended)
		}
	}
}

// A record that was left behind is removed at its time, and does not end a window.
func TestRecordOfADropLeftBehind(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(f *fixture, file string){
		"live": func(f *fixture, file string) { f.register("t", file, false) },
		"gone": func(f *fixture, file string) { f.register("t", file, false); f.unregister("t") },
		"dropped later": func(f *fixture, file string) {
			f.register("t", file, false)
			f.drop("t")
		},
		"dropped later without a record": func(f *fixture, file string) {
			f.register("t", file, false)
			f.drop("t")
			f.write(registry.Delete(f.named("t").EndKey()))
		},
		"awaits a purge": func(f *fixture, file string) {
			f.register("t", file, false)
			must(f.t, f.catalog.DropTable(f.ctx, ident("t"), catalog.DropOptions{Purge: true}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newUnwalked(t)
			f.create("t")
			f.drop("t")
			left := f.list(registry.TableDue, "")[0]
			f.clock.Advance(time.Minute)
			change(f, f.named("t").MetadataLocation)
			before := f.pointers()
			f.write(registry.Put(left.Key, left.State, left.Value)) // as if nothing had removed it
			f.wantClean()
			f.clock.Advance(week - time.Second)
			f.endWindows()
			if after := f.pointers(); fmt.Sprint(after) != fmt.Sprint(before) {
				t.Errorf("%v has become %v", before, after)
			}
			for _, record := range f.list(registry.TableDue, "") {
				if record.Key == left.Key {
					t.Error("the record is left")
				}
			}
			f.wantClean()
		})
	}
}

// gotStore is a store that calls got after each Get of a pointer.
type gotStore struct {
	registry.Store
	got *func()
}

func (s gotStore) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	records, err := s.Store.Get(ctx, keys...)
	if keys[0].Table == registry.TablePointer {
		(*s.got)()
	}
	return records, err
}

// The store's clock is set back to the second of an earlier drop. Then the table is dropped again
// while the record of that drop is about to be removed. The record then stays, because it belongs
// to the new drop.
func TestDropKeepsItsRecord(t *testing.T) {
	t.Parallel()
	got := func() {}
	f := newUnwalked(t, func(c *retention.Config) { c.Store = gotStore{c.Store, &got} })
	f.create("t")
	f.put(registry.WindowKey(f.named("t").ID, f.clock.Now()), registry.StateNone, registry.Due{})
	f.clock.Advance(week + time.Second)
	got = func() {
		got = func() {}
		f.clock.Advance(-week - time.Second)
		f.drop("t")
	}
	f.endWindows()
	f.wantWindows(1, "t")
	f.clock.Advance(week + time.Second)
	f.endWindows()
	f.wantWindows(0)
}

// If a record or its pointer cannot be read, each round reports that. The record stays, and other
// windows still end.
func TestUnreadableDrop(t *testing.T) {
	t.Parallel()
	f := newUnwalked(t)
	for _, name := range []string{"a", "b"} {
		f.create(name)
		f.drop(name)
	}
	damaged := f.pointers()["a"]
	malformed := registry.Key{Table: registry.TableDue, ID: registry.WindowPrefix() + "000000001/" + strings.Repeat("0", 31)}
	f.put(malformed, registry.StateNone, registry.Due{})
	f.write(registry.Put(damaged.Key, damaged.State, []byte("{")))
	f.clock.Advance(week + time.Second)
	for range 2 {
		if err := f.RunOnce(f.ctx, retention.Windows); err == nil || !strings.Contains(err.Error(), malformed.String()) {
			t.Errorf("a round reports %v, want %s", err, malformed)
		}
	}
	f.write(registry.Delete(malformed))
	err := f.RunOnce(f.ctx, retention.Windows)
	if err == nil || !strings.Contains(err.Error(), damaged.Key.String()) {
		t.Errorf("a round reports %v, want %s", err, damaged.Key)
	}
	f.write(registry.Put(damaged.Key, damaged.State, damaged.Value))
	f.wantWindows(1, "a")
	f.endWindows()
	f.wantWindows(0)
	f.wantClean()
}

// A drop may lack a record. The walk after a process starts finds the drop, and so does the daily
// walk of a running process. A clock that is set back delays neither walk.
func TestWalkFindsDropsWithoutRecords(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	dropUnrecorded := func(name string) {
		f.create(name)
		f.drop(name)
		f.write(registry.Delete(f.named(name).EndKey()))
		f.clock.Advance(week)
		f.endWindows()
		f.wantWindows(0, name)
		f.clock.Advance(time.Second)
	}
	dropUnrecorded("started")
	must(t, f.other(f.store).RunOnce(f.ctx, retention.Windows))
	f.wantWindows(0)
	dropUnrecorded("daily")
	f.endWindows()
	f.wantWindows(0, "daily") // its last walk was a moment ago
	f.clock.Advance(retention.WalkEvery)
	f.endWindows()
	f.wantWindows(0)
	f.clock.Advance(100 * week)
	f.endWindows()
	f.clock.Advance(-100 * week)
	dropUnrecorded("set back")
	f.clock.Advance(retention.WalkEvery)
	f.endWindows()
	f.wantWindows(0)
	f.wantClean()
}

// Two nodes end each window once.
func TestTwoNodesEndWindows(t *testing.T) {
	t.Parallel()
	stores.Each(t, func(t *testing.T, store registry.Store) {
		f := newFixture(t, func(c *retention.Config) { c.Store = timedStore{store, c.Now} })
		const tables = 20
		var names []string
		for n := range tables {
			name := fmt.Sprintf("t%02d", n)
			f.create(name)
			f.drop(name)
			names = append(names, name)
		}
		f.wantWindows(tables, names...)
		f.clock.Advance(week + time.Second)
		var nodes sync.WaitGroup
		for range 2 {
			node := f.other(unwalkedStore{f.store})
			nodes.Go(func() {
				if err := node.RunOnce(f.ctx, retention.Windows); err != nil {
					t.Error(err)
				}
			})
		}
		nodes.Wait()
		f.wantWindows(0)
		ended := 0
		for _, record := range f.list(registry.TableChange, "") {
			if change, err := registry.Decode[registry.Change](record); err == nil && change.Operation == "end-undrop-window" {
				ended++
			}
		}
		if ended != tables {
			t.Errorf("%d windows have ended, want %d", ended, tables)
		}
		f.wantClean()
	})
}

// timedStore is a store with the tests' clock.
type timedStore struct {
	registry.Store
	now func() time.Time
}

func (s timedStore) Time(context.Context) (time.Time, error) { return s.now(), nil }

// recordingStore is a store that records its calls.
type recordingStore struct {
	registry.Store
	calls []string
}

func (s *recordingStore) note(format string, args ...any) {
	s.calls = append(s.calls, fmt.Sprintf(format, args...))
}

func (s *recordingStore) Time(ctx context.Context) (time.Time, error) {
	s.note("Time")
	return s.Store.Time(ctx)
}

func (s *recordingStore) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	s.note("Get %v", keys)
	return s.Store.Get(ctx, keys...)
}

func (s *recordingStore) List(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	s.note("List %s %q %q %d", table, prefix, after, limit)
	return s.Store.List(ctx, table, prefix, after, limit)
}

func (s *recordingStore) ListKeys(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	s.note("ListKeys %s %q %q %d", table, prefix, after, limit)
	return s.Store.ListKeys(ctx, table, prefix, after, limit)
}

func (s *recordingStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	s.note("Apply %d", len(batch.Writes))
	return s.Store.Apply(ctx, batch)
}

// Between two walks, the windows of an idle store cost two calls per round, however many tables
// there are.
func TestIdleTablesCostNoWindows(t *testing.T) {
	t.Parallel()
	hour := func(tables int) []string {
		store := new(recordingStore)
		f := newFixture(t, func(c *retention.Config) {
			store.Store = c.Store
			c.Store = store
		})
		random := newBits(7)
		for range tables / 1000 {
			var batch registry.Batch
			for range 1000 {
				id, err := registry.NewID(random)
				must(t, err)
				value, err := registry.Encode(registry.Pointer{ID: id, Warehouse: "w", Namespace: moorage.Namespace{"ns"}})
				must(t, err)
				batch.Writes = append(batch.Writes, registry.Put(registry.PointerKey(id), registry.StateLive, value))
			}
			f.write(batch.Writes...)
		}
		for range 2 + tables/ledger.ScanPage/retention.ScanPages { // the walk of the start
			f.endWindows()
		}
		store.calls = nil
		for range 60 {
			f.clock.Advance(time.Minute)
			f.endWindows()
		}
		return store.calls
	}
	few, many := hour(0), hour(10_000)
	if !slices.Equal(few, many) || len(few) != 2*60 {
		t.Errorf("an hour asks an empty store\n%q\nand one of 10,000 tables\n%q", few, many)
	}
}

// TestWindowOfTheFuture: a table that was dropped while the clock was a year ahead can be restored
// for as long as any other, and no longer.
func TestWindowOfTheFuture(t *testing.T) {
	t.Parallel()
	const year, window = 365 * 24 * time.Hour, 7 * 24 * time.Hour
	f := newFixture(t)
	f.create("a")
	f.clock.Advance(year)
	f.drop("a")
	f.clock.Advance(-year)
	must(t, f.RunOnce(f.ctx, retention.Windows))
	f.clock.Advance(window)
	must(t, f.RunOnce(f.ctx, retention.Windows))
	f.wantWindows(1, "a")
	f.clock.Advance(2 * time.Second)
	must(t, f.RunOnce(f.ctx, retention.Windows))
	f.wantWindows(0)
	f.wantClean()
}

// TestDoubt: while the clock is in doubt, nothing is removed because of its age.
func TestDoubt(t *testing.T) {
	t.Parallel()
	why := "in doubt"
	f := newFixture(t, func(c *retention.Config) {
		c.Doubt = func(context.Context) (string, error) { return why, nil }
	})
	f.create("a")
	f.drop("a")
	f.write(f.keyed("k"))
	f.clock.Advance(365 * 24 * time.Hour)
	for range 3 {
		must(t, f.RunOnce(f.ctx))
	}
	f.wantWindows(1, "a")
	if got := len(f.outcomes()); got != 1 {
		t.Errorf("%d outcomes are left", got)
	}
	why = ""
	must(t, f.RunOnce(f.ctx))
	f.wantWindows(0)
}
