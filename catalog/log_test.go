package catalog_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/registry"
	"moorage/testkit"
	"moorage/testkit/catalogkit"
)

// kept is a store that remembers the value of every version ever written.
type kept struct {
	registry.Store
	mu     sync.Mutex // guards values; no other lock is taken under it
	values map[registry.ETag]registry.Record
}

func (s *kept) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	etags, err := s.Store.Apply(ctx, batch)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, etag := range etags {
		s.values[etag] = registry.Record{State: batch.Writes[i].State, Value: batch.Writes[i].Value}
	}
	return etags, err
}

// TestLogGivesEarlierValues applies random operations to names in two namespaces. Then it walks
// back from the present records through the changes. It must find each earlier value, and the Last
// in each value must be the change that wrote it.
func TestLogGivesEarlierValues(t *testing.T) {
	t.Parallel()
	stores.Each(t, func(t *testing.T, store registry.Store) {
		recorder := &kept{Store: store, values: map[registry.ETag]registry.Record{}}
		f := catalogkit.New(t, func(c *catalog.Config) { c.Store = recorder })
		doRandomly(f, rand.New(rand.NewPCG(1, 0)), 120)
		changes, err := f.Store.Changes(f.Ctx, 0, registry.ListLimitMax)
		testkit.Must(t, err)
		recorder.wantLog(t, changes)
		wantDroppedRecords(f)
	})
}

// wantDroppedRecords fails the test unless exactly the dropped pointers have dropped records that
// have not ended.
func wantDroppedRecords(f *catalogkit.Fixture) {
	f.T.Helper()
	want := map[registry.Key]registry.ID{}
	testkit.Must(f.T, f.Ledger.Scan(f.Ctx, registry.TablePointer, "", "", func(record registry.Record) (bool, error) {
		pointer, err := registry.Decode[registry.Pointer](record)
		if record.State.IsDropped() {
			want[pointer.DroppedKey(record.State)] = pointer.ID
		}
		return true, err
	}))
	met, ended := 0, map[string]int{}
	testkit.Must(f.T, f.Ledger.Scan(f.Ctx, registry.TableDropped, "", "", func(record registry.Record) (bool, error) {
		dropped, err := registry.Decode[registry.Dropped](record)
		if record.State == registry.StateEnded {
			ended[dropped.How]++
			return true, err
		}
		if met++; want[record.Key] != dropped.ID || dropped.By == "" || dropped.Change.IsZero() {
			f.T.Errorf("%s has %+v, and the dropped pointers are %v", record.Key, dropped, want)
		}
		return true, err
	}))
	if met != len(want) || met == 0 || ended[registry.EndedUnregister] == 0 {
		f.T.Errorf("%d dropped records for %d dropped pointers, and %v ended", met, len(want), ended)
	}
}

// doRandomly runs count random operations on the tables, views and properties of f. Many of them
// fail.
func doRandomly(f *catalogkit.Fixture, random *rand.Rand, count int) {
	_, err := f.CreateNamespace(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"other"}, map[string]string{"a": "1"})
	testkit.Must(f.T, err)
	name := func() moorage.Identifier {
		return moorage.Identifier{
			Warehouse: catalogkit.Warehouse, Namespace: moorage.Namespace{[]string{"ns", "other"}[random.IntN(2)]},
			Name: fmt.Sprintf("t%d", random.IntN(3)),
		}
	}
	var files []string
	for n := range count {
		ctx, at := moorage.WithRequestID(f.Ctx, fmt.Sprint(n)), name()
		switch random.IntN(10) {
		case 0, 1:
			_, _ = f.CreateTable(ctx, at, catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
		case 2, 3, 4:
			if table, err := f.Commit(ctx, at, catalogkit.SetProperty(f.T, "p", fmt.Sprint(n))); err == nil {
				files = append(files, table.MetadataLocation)
			}
		case 5:
			_ = f.RenameTable(ctx, at, name())
		case 6:
			if random.IntN(3) == 0 {
				_, _ = f.UnregisterTable(ctx, at)
				continue
			}
			_ = f.DropTable(ctx, at, catalog.DropOptions{Purge: random.IntN(2) == 0})
		case 7:
			if len(files) > 0 {
				request := catalog.RegisterRequest{MetadataLocation: files[random.IntN(len(files))], Overwrite: random.IntN(2) == 0}
				_, _ = f.RegisterTable(ctx, at, request)
			}
		case 8:
			_, _ = f.UpdateNamespaceProperties(ctx, catalogkit.Warehouse, at.Namespace, catalog.PropertiesChange{
				Updates: map[string]string{"n": fmt.Sprint(n)}, Removals: []string{"a"},
			})
		case 9:
			_, _ = f.Warehouses().Change(ctx, catalogkit.Warehouse, warehouses.Change{
				Properties: map[string]*string{"n": new(fmt.Sprint(n))},
			})
			_ = f.DropNamespace(ctx, catalogkit.Warehouse, at.Namespace) // usually refused, because it is rarely empty
			_, _ = f.CreateNamespace(ctx, catalogkit.Warehouse, at.Namespace, nil)
		}
	}
}

// wantLog walks back from the present records through changes, and checks each value.
func (s *kept) wantLog(t *testing.T, changes []registry.PositionedChange) {
	t.Helper()
	now := map[registry.Key]registry.Record{}
	seen := 0
	for i := len(changes) - 1; i >= 0; i-- {
		change := changes[i].Change
		for _, version := range change.Versions {
			switch version.Key.Table {
			case registry.TableWarehouse, registry.TableNamespace, registry.TableEntry, registry.TablePointer:
			default:
				continue
			}
			record, met := now[version.Key]
			if !met {
				records, err := s.Get(t.Context(), version.Key)
				testkit.Must(t, err)
				record = records[0]
			}
			if record.ETag != version.New {
				t.Fatalf("%s leaves %s at %s, and the change behind it replaced %s", change.Operation, version.Key, version.New, record.ETag)
			}
			if last := lastIn(record); version.Key.Table != registry.TableEntry && !version.New.IsZero() && last.Change != change.ID {
				t.Errorf("%s wrote %s, whose last change is %+v", change.Operation, version.Key, last)
			}
			if version.Old.IsZero() != (version.Before == nil) {
				t.Fatalf("%s replaced version %s of %s, and has %+v", change.Operation, version.Old, version.Key, version.Before)
			}
			now[version.Key] = registry.Record{Key: version.Key}
			if version.Before == nil {
				continue
			}
			was, ok, err := version.Earlier(record.Value)
			want := s.values[version.Old]
			if err != nil || !ok || !equalJSON(was, want.Value) || version.Before.State != want.State {
				t.Errorf("%s gives back %s as %s, %v; it was %s", change.Operation, version.Key, was, err, want.Value)
			}
			now[version.Key] = registry.Record{Key: version.Key, ETag: version.Old, State: version.Before.State, Value: was}
			seen++
		}
	}
	for key, record := range now {
		if record.Exists() {
			t.Errorf("%s exists before the first change", key)
		}
	}
	if seen < 50 {
		t.Errorf("only %d values were replaced", seen)
	}
}

// lastIn returns the Last in a record of a warehouse, namespace or pointer.
func lastIn(record registry.Record) registry.Last {
	value, _ := registry.DecodePart[struct {
		Last registry.Last `json:"last"`
	}](record)
	return value.Last
}

// equalJSON reports whether two JSON texts have the same value.
func equalJSON(a, b []byte) bool {
	var values [2]any
	return json.Unmarshal(a, &values[0]) == nil && json.Unmarshal(b, &values[1]) == nil && reflect.DeepEqual(values[0], values[1])
}
