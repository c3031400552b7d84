package catalog_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/catalog/warehouses"
	"moorage/locks"
	"moorage/metadata"
	"moorage/registry"
	"moorage/testkit/catalogkit"
)

// contended calls change on a node that loses enough races to make it take the pointer's lock.
// change must set the named property.
func contended(f *catalogkit.Fixture, change func(c catalog.Verbs, property string) error) error {
	store := &betweenStore{Store: f.Store}
	races := 0
	var race func()
	race = func() {
		must(f.T, change(f, fmt.Sprint("race", races)))
		if races++; races < commit.RacesMax {
			store.between = race
		}
	}
	store.between = race
	return change(f.Other(store), "a")
}

// Each operation takes exactly the locks in the lock table, in one call and in order.
func TestOperationsTakeTheLocksOfTheTable(t *testing.T) {
	t.Parallel()
	ns := moorage.Namespace{"ns"}
	shard := func(name string) string { return fmt.Sprintf("W /w/ns/#%x", registry.Shard(name)) }
	pointer := func(f *catalogkit.Fixture, name string) string {
		found, err := f.Directory.Find(f.Ctx, directory.Table(), ident(name))
		if err != nil {
			found, err = f.Directory.Find(f.Ctx, directory.View(), ident(name))
		}
		if err != nil {
			t.Fatal(err)
		}
		return "W /w/@" + found.Pointer.ID.String()
	}
	request := catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)}
	tests := []struct {
		operation gate.Verb
		run       func(f *catalogkit.Fixture) (want []string, err error)
	}{
		{gate.CreateWarehouse, func(f *catalogkit.Fixture) ([]string, error) {
			_, err := f.Warehouses().Create(f.Ctx, warehouses.Spec{Name: "x", Location: "file:///x"})
			return []string{"W /x"}, err
		}},
		{gate.DropWarehouse, func(f *catalogkit.Fixture) ([]string, error) {
			return []string{"W /empty"}, f.Warehouses().Drop(f.Ctx, "empty")
		}},
		{gate.CreateNamespace, func(f *catalogkit.Fixture) ([]string, error) {
			_, err := f.CreateNamespace(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"ns", "a", "b"}, nil)
			return []string{"W /w/ns/a"}, err
		}},
		{gate.DropNamespace, func(f *catalogkit.Fixture) ([]string, error) {
			return []string{"W /w/empty"}, f.DropNamespace(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"empty"})
		}},
		{gate.UpdateProperties, func(f *catalogkit.Fixture) ([]string, error) {
			_, err := f.UpdateNamespaceProperties(f.Ctx, catalogkit.Warehouse, ns, catalog.PropertiesChange{Updates: map[string]string{"a": "b"}})
			return nil, err
		}},
		{gate.CreateTable, func(f *catalogkit.Fixture) ([]string, error) {
			_, err := f.CreateTable(f.Ctx, ident("new"), request)
			return []string{shard("new")}, err
		}},
		{gate.StageTable, func(f *catalogkit.Fixture) ([]string, error) {
			staged := request
			staged.Stage = true
			_, err := f.CreateTable(f.Ctx, ident("new"), staged)
			return nil, err
		}},
		{gate.CommitCreate, func(f *catalogkit.Fixture) ([]string, error) {
			_, err := f.Commit(f.Ctx, ident("new"), catalogkit.CommitCreateRequest(t, "file:///wh/ns/new"))
			return []string{shard("new")}, err
		}},
		{gate.Register, func(f *catalogkit.Fixture) ([]string, error) {
			last, err := f.UnregisterTable(f.Ctx, ident("t"))
			if err != nil {
				return nil, err
			}
			f.Locks.Reset()
			_, err = f.RegisterTable(f.Ctx, ident("new"), catalog.RegisterRequest{MetadataLocation: last.MetadataLocation})
			return []string{shard("new")}, err
		}},
		{gate.RegisterOver, func(f *catalogkit.Fixture) ([]string, error) {
			table, err := f.LoadTable(f.Ctx, ident("t"))
			if err != nil {
				return nil, err
			}
			want := []string{shard("t"), pointer(f, "t")}
			_, err = f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: table.MetadataLocation, Overwrite: true})
			return want, err
		}},
		{gate.Undrop, func(f *catalogkit.Fixture) ([]string, error) {
			want := []string{shard("new"), pointer(f, "t")}
			dropOf(f, "t")
			f.Locks.Reset()
			asked, as := called("t"), ident("new")
			asked.As = &as
			_, err := f.Dropped().Undrop(f.Ctx, asked)
			return want, err
		}},
		{gate.Forget, func(f *catalogkit.Fixture) ([]string, error) {
			want := []string{pointer(f, "t")}
			dropOf(f, "t")
			f.Locks.Reset()
			return want, f.Dropped().Forget(f.Ctx, called("t").DroppedName)
		}},
		{gate.PurgeDropped, func(f *catalogkit.Fixture) ([]string, error) {
			want := []string{pointer(f, "t")}
			dropOf(f, "t")
			f.Locks.Reset()
			return want, f.Dropped().Purge(f.Ctx, called("t").DroppedName)
		}},
		{gate.DropTable, func(f *catalogkit.Fixture) ([]string, error) {
			want := []string{shard("t"), pointer(f, "t")}
			return want, f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{})
		}},
		{gate.Unregister, func(f *catalogkit.Fixture) ([]string, error) {
			want := []string{shard("t"), pointer(f, "t")}
			_, err := f.UnregisterTable(f.Ctx, ident("t"))
			return want, err
		}},
		{gate.Expire, func(f *catalogkit.Fixture) ([]string, error) {
			tables := f.Catalog.As(moorage.System("expire")).Tables()
			id, err := tables.Find(f.Ctx, ident("t"))
			if err != nil {
				return nil, err
			}
			_, _, err = tables.Maintain(f.Ctx, id, catalog.MaintenanceEdit{Verb: gate.Expire,
				Plan: func(base *metadata.Document, now time.Time) ([]metadata.Update, error) {
					return metadata.PlanExpire(base, metadata.Retention{MinSnapshots: 1}, now).Updates(), nil
				}})
			return nil, err
		}},
		{gate.Rename, func(f *catalogkit.Fixture) ([]string, error) {
			want := []string{shard("t"), shard("new"), pointer(f, "t")}
			return want, f.RenameTable(f.Ctx, ident("t"), ident("new"))
		}},
		{gate.Commit, func(f *catalogkit.Fixture) ([]string, error) {
			_, err := f.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, "a", "b"))
			return nil, err
		}},
		{"contended " + gate.Commit, func(f *catalogkit.Fixture) ([]string, error) {
			err := contended(f, func(c catalog.Verbs, n string) error {
				_, err := c.Commit(f.Ctx, ident("t"), catalogkit.SetProperty(t, n, "1"))
				return err
			})
			return []string{pointer(f, "t")}, err
		}},
		{gate.CreateView, func(f *catalogkit.Fixture) ([]string, error) {
			_, err := f.CreateView(f.Ctx, ident("new"), catalogkit.ViewRequest(""))
			return []string{shard("new")}, err
		}},
		{gate.RegisterView, func(f *catalogkit.Fixture) ([]string, error) {
			_, err := f.RegisterView(f.Ctx, ident("new"), looseView)
			return []string{shard("new")}, err
		}},
		{gate.DropView, func(f *catalogkit.Fixture) ([]string, error) {
			want := []string{shard("v"), pointer(f, "v")}
			return want, f.DropView(f.Ctx, ident("v"))
		}},
		{gate.RenameView, func(f *catalogkit.Fixture) ([]string, error) {
			want := []string{shard("v"), shard("new"), pointer(f, "v")}
			return want, f.RenameView(f.Ctx, ident("v"), ident("new"))
		}},
		{gate.Replace, func(f *catalogkit.Fixture) ([]string, error) {
			_, err := f.ReplaceView(f.Ctx, ident("v"), catalogkit.SetViewProperty(t, "a", "b"))
			return nil, err
		}},
		{"contended " + gate.Replace, func(f *catalogkit.Fixture) ([]string, error) {
			err := contended(f, func(c catalog.Verbs, n string) error {
				_, err := c.ReplaceView(f.Ctx, ident("v"), catalogkit.SetViewProperty(t, n, "1"))
				return err
			})
			return []string{pointer(f, "v")}, err
		}},
		{gate.Transaction, func(f *catalogkit.Fixture) ([]string, error) {
			f.Create("u")
			want := []string{pointer(f, "t"), pointer(f, "u")}
			f.Locks.Reset()
			return want, f.Transact(catalogkit.On("u", catalogkit.SetProperty(t, "a", "b")), catalogkit.On("t", catalogkit.SetProperty(t, "a", "b")))
		}},
		{gate.Purge, func(f *catalogkit.Fixture) ([]string, error) {
			if err := f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{Purge: true}); err != nil {
				return nil, err
			}
			f.Locks.Reset()
			return nil, f.PurgeAll(f.Ctx)
		}},
		{gate.EndWindow, func(f *catalogkit.Fixture) ([]string, error) {
			if err := f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{}); err != nil {
				return nil, err
			}
			f.Clock.Advance(catalogkit.UndropWindow + 1)
			f.Locks.Reset()
			return nil, f.EndWindows(f.Ctx)
		}},
		{gate.LoadTable, func(f *catalogkit.Fixture) ([]string, error) {
			if _, err := f.LoadTable(f.Ctx, ident("t")); err != nil {
				return nil, err
			}
			if _, err := f.LoadView(f.Ctx, ident("v")); err != nil {
				return nil, err
			}
			_, _, err := f.ListTables(f.Ctx, catalogkit.Warehouse, ns, moorage.Page{})
			return nil, err
		}},
	}
	var covered []gate.Verb
	for _, test := range tests {
		covered = append(covered, test.operation)
		t.Run(string(test.operation), func(t *testing.T) {
			t.Parallel()
			f := catalogkit.New(t)
			f.Create("t")
			f.MakeView("v")
			createLooseView(f)
			if _, err := f.CreateNamespace(f.Ctx, catalogkit.Warehouse, moorage.Namespace{"empty"}, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := f.Warehouses().Create(f.Ctx, warehouses.Spec{Name: "empty", Location: "file:///empty"}); err != nil {
				t.Fatal(err)
			}
			f.Locks.Reset()
			want, err := test.run(f)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(want)
			calls := f.Locks.Calls()
			if want == nil {
				if len(calls) > 0 {
					t.Errorf("took locks: %v", calls[0].Named())
				}
				return
			}
			if len(calls) != 1 || calls[0].Nested {
				t.Fatalf("%d calls of Acquire, want one: %v", len(calls), calls)
			}
			if got, want := calls[0].Options.NonBlocking, test.operation == gate.Transaction; got != want {
				t.Errorf("non-blocking: got %t, want %t", got, want)
			}
			creates := []gate.Verb{gate.CreateTable, gate.CommitCreate, gate.Register, gate.CreateView, gate.RegisterView}
			if got, want := calls[0].Options.InProcess, slices.Contains(creates, test.operation); got != want {
				t.Errorf("in the process only: got %t, want %t", got, want)
			}
			got := calls[0].Named()
			slices.Sort(got)
			if !slices.Equal(got, slices.Compact(want)) {
				t.Errorf("took %v, want %v", got, want)
			}
		})
	}
	for _, row := range gate.Table() {
		if !row.Reads && len(row.Management) == 0 && !slices.Contains(covered, row.Verb) {
			t.Errorf("no case for %s", row.Verb)
		}
	}
}

// No lock is needed for correctness: the life of a table works the same with a manager that grants
// every lock at once.
func TestLifeWithoutLocks(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t, func(c *catalog.Config) { c.Locks = locks.GrantAll{} })
	table := f.Create("t")
	if _, err := f.Commit(f.Ctx, ident("t"), catalogkit.AppendSnapshot(t, table, 1, 0, 1)); err != nil {
		t.Fatal(err)
	}
	if err := f.RenameTable(f.Ctx, ident("t"), ident("u")); err != nil {
		t.Fatal(err)
	}
	if err := f.DropTable(f.Ctx, ident("u"), catalog.DropOptions{}); err != nil {
		t.Fatal(err)
	}
	f.WantClean()
}
