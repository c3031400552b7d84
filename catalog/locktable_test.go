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
)

// contended makes change on a node that first loses so many races that it takes the pointer's
// lock. change sets a property of this name.
func (f *fixture) contended(change func(c catalog.Verbs, property string) error) error {
	store := &betweenStore{Store: f.store}
	races := 0
	var race func()
	race = func() {
		must(f.t, change(f, fmt.Sprint("race", races)))
		if races++; races < commit.RacesMax {
			store.between = race
		}
	}
	store.between = race
	return change(f.other(store), "a")
}

// Each operation takes exactly what the lock table says, in one call, sorted.
func TestOperationsTakeTheLocksOfTheTable(t *testing.T) {
	t.Parallel()
	ns := moorage.Namespace{"ns"}
	shard := func(name string) string { return fmt.Sprintf("W /w/ns/#%x", registry.Shard(name)) }
	pointer := func(f *fixture, name string) string {
		found, err := f.directory.Find(f.ctx, directory.Table(), ident(name))
		if err != nil {
			found, err = f.directory.Find(f.ctx, directory.View(), ident(name))
		}
		if err != nil {
			t.Fatal(err)
		}
		return "W /w/@" + found.Pointer.ID.String()
	}
	request := catalog.CreateTableRequest{Schema: []byte(testSchema)}
	tests := []struct {
		operation gate.Verb
		run       func(f *fixture) (want []string, err error)
	}{
		{gate.CreateWarehouse, func(f *fixture) ([]string, error) {
			_, err := f.Warehouses().Create(f.ctx, warehouses.Spec{Name: "x", Location: "file:///x"})
			return []string{"W /x"}, err
		}},
		{gate.DropWarehouse, func(f *fixture) ([]string, error) { return []string{"W /empty"}, f.Warehouses().Drop(f.ctx, "empty") }},
		{gate.CreateNamespace, func(f *fixture) ([]string, error) {
			_, err := f.CreateNamespace(f.ctx, testWarehouse, moorage.Namespace{"ns", "a", "b"}, nil)
			return []string{"W /w/ns/a"}, err
		}},
		{gate.DropNamespace, func(f *fixture) ([]string, error) {
			return []string{"W /w/empty"}, f.DropNamespace(f.ctx, testWarehouse, moorage.Namespace{"empty"})
		}},
		{gate.UpdateProperties, func(f *fixture) ([]string, error) {
			_, err := f.UpdateNamespaceProperties(f.ctx, testWarehouse, ns, catalog.PropertiesChange{Updates: map[string]string{"a": "b"}})
			return nil, err
		}},
		{gate.CreateTable, func(f *fixture) ([]string, error) {
			_, err := f.CreateTable(f.ctx, ident("new"), request)
			return []string{shard("new")}, err
		}},
		{gate.StageTable, func(f *fixture) ([]string, error) {
			staged := request
			staged.Stage = true
			_, err := f.CreateTable(f.ctx, ident("new"), staged)
			return nil, err
		}},
		{gate.CommitCreate, func(f *fixture) ([]string, error) {
			_, err := f.Commit(f.ctx, ident("new"), commitCreateRequest(t, "file:///wh/ns/new"))
			return []string{shard("new")}, err
		}},
		{gate.Register, func(f *fixture) ([]string, error) {
			last, err := f.UnregisterTable(f.ctx, ident("t"))
			if err != nil {
				return nil, err
			}
			f.locks.Reset()
			_, err = f.RegisterTable(f.ctx, ident("new"), catalog.RegisterRequest{MetadataLocation: last.MetadataLocation})
			return []string{shard("new")}, err
		}},
		{gate.RegisterOver, func(f *fixture) ([]string, error) {
			table, err := f.LoadTable(f.ctx, ident("t"))
			if err != nil {
				return nil, err
			}
			want := []string{shard("t"), pointer(f, "t")}
			_, err = f.RegisterTable(f.ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: table.MetadataLocation, Overwrite: true})
			return want, err
		}},
		{gate.DropTable, func(f *fixture) ([]string, error) {
			want := []string{shard("t"), pointer(f, "t")}
			return want, f.DropTable(f.ctx, ident("t"), catalog.DropOptions{})
		}},
		{gate.Unregister, func(f *fixture) ([]string, error) {
			want := []string{shard("t"), pointer(f, "t")}
			_, err := f.UnregisterTable(f.ctx, ident("t"))
			return want, err
		}},
		{gate.Expire, func(f *fixture) ([]string, error) {
			tables := f.Catalog.As(moorage.System("expire")).Tables()
			id, err := tables.Find(f.ctx, ident("t"))
			if err != nil {
				return nil, err
			}
			_, _, err = tables.Maintain(f.ctx, id, catalog.MaintenanceEdit{Verb: gate.Expire,
				Plan: func(base *metadata.Document, now time.Time) ([]metadata.Update, error) {
					return metadata.PlanExpire(base, metadata.Retention{MinSnapshots: 1}, now).Updates(), nil
				}})
			return nil, err
		}},
		{gate.Rename, func(f *fixture) ([]string, error) {
			want := []string{shard("t"), shard("new"), pointer(f, "t")}
			return want, f.RenameTable(f.ctx, ident("t"), ident("new"))
		}},
		{gate.Commit, func(f *fixture) ([]string, error) {
			_, err := f.Commit(f.ctx, ident("t"), setProperty(t, "a", "b"))
			return nil, err
		}},
		{"contended " + gate.Commit, func(f *fixture) ([]string, error) {
			err := f.contended(func(c catalog.Verbs, n string) error {
				_, err := c.Commit(f.ctx, ident("t"), setProperty(t, n, "1"))
				return err
			})
			return []string{pointer(f, "t")}, err
		}},
		{gate.CreateView, func(f *fixture) ([]string, error) {
			_, err := f.CreateView(f.ctx, ident("new"), viewRequest(""))
			return []string{shard("new")}, err
		}},
		{gate.RegisterView, func(f *fixture) ([]string, error) {
			_, err := f.RegisterView(f.ctx, ident("new"), looseView)
			return []string{shard("new")}, err
		}},
		{gate.DropView, func(f *fixture) ([]string, error) {
			want := []string{shard("v"), pointer(f, "v")}
			return want, f.DropView(f.ctx, ident("v"))
		}},
		{gate.RenameView, func(f *fixture) ([]string, error) {
			want := []string{shard("v"), shard("new"), pointer(f, "v")}
			return want, f.RenameView(f.ctx, ident("v"), ident("new"))
		}},
		{gate.Replace, func(f *fixture) ([]string, error) {
			_, err := f.ReplaceView(f.ctx, ident("v"), setViewProperty(t, "a", "b"))
			return nil, err
		}},
		{"contended " + gate.Replace, func(f *fixture) ([]string, error) {
			err := f.contended(func(c catalog.Verbs, n string) error {
				_, err := c.ReplaceView(f.ctx, ident("v"), setViewProperty(t, n, "1"))
				return err
			})
			return []string{pointer(f, "v")}, err
		}},
		{gate.Transaction, func(f *fixture) ([]string, error) {
			f.create("u")
			want := []string{pointer(f, "t"), pointer(f, "u")}
			f.locks.Reset()
			return want, f.transact(on("u", setProperty(t, "a", "b")), on("t", setProperty(t, "a", "b")))
		}},
		{gate.Purge, func(f *fixture) ([]string, error) {
			if err := f.DropTable(f.ctx, ident("t"), catalog.DropOptions{Purge: true}); err != nil {
				return nil, err
			}
			f.locks.Reset()
			return nil, f.purgeAll(f.ctx)
		}},
		{gate.EndWindow, func(f *fixture) ([]string, error) {
			if err := f.DropTable(f.ctx, ident("t"), catalog.DropOptions{}); err != nil {
				return nil, err
			}
			f.clock.Advance(undropWindow + 1)
			f.locks.Reset()
			return nil, f.endWindows(f.ctx)
		}},
		{gate.LoadTable, func(f *fixture) ([]string, error) {
			if _, err := f.LoadTable(f.ctx, ident("t")); err != nil {
				return nil, err
			}
			if _, err := f.LoadView(f.ctx, ident("v")); err != nil {
				return nil, err
			}
			_, _, err := f.ListTables(f.ctx, testWarehouse, ns, moorage.Page{})
			return nil, err
		}},
	}
	var covered []gate.Verb
	for _, test := range tests {
		covered = append(covered, test.operation)
		t.Run(string(test.operation), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.create("t")
			f.createView("v")
			f.createLooseView()
			if _, err := f.CreateNamespace(f.ctx, testWarehouse, moorage.Namespace{"empty"}, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := f.Warehouses().Create(f.ctx, warehouses.Spec{Name: "empty", Location: "file:///empty"}); err != nil {
				t.Fatal(err)
			}
			f.locks.Reset()
			want, err := test.run(f)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(want)
			calls := f.locks.Calls()
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

// commitCreateRequest returns a commit that makes a table at location.
func commitCreateRequest(t testing.TB, location string) catalog.CommitRequest {
	t.Helper()
	return createWithUUID(t, location, 1)
}

// createWithUUID returns a commit that makes a table; another one for each n.
func createWithUUID(t testing.TB, location string, n int) catalog.CommitRequest {
	t.Helper()
	return commitRequest(t, `[{"type":"assert-create"}]`, `[
		{"action":"assign-uuid","uuid":"`+fmt.Sprintf("f47ac10b-58cc-4372-a567-%012x", n)+`"},
		{"action":"upgrade-format-version","format-version":2},
		{"action":"add-schema","schema":`+testSchema+`},{"action":"set-current-schema","schema-id":-1},
		{"action":"add-spec","spec":{"spec-id":0,"fields":[]}},{"action":"set-default-spec","spec-id":-1},
		{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}},{"action":"set-default-sort-order","sort-order-id":-1},
		{"action":"set-location","location":"`+location+`"}]`)
}

// No lock is load-bearing: what the fixture's other tests show holds with a manager that grants
// everything at once.
func TestLifeWithoutLocks(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *catalog.Config) { c.Locks = locks.GrantAll{} })
	table := f.create("t")
	if _, err := f.Commit(f.ctx, ident("t"), appendSnapshot(t, table, 1, 0, 1)); err != nil {
		t.Fatal(err)
	}
	if err := f.RenameTable(f.ctx, ident("t"), ident("u")); err != nil {
		t.Fatal(err)
	}
	if err := f.DropTable(f.ctx, ident("u"), catalog.DropOptions{}); err != nil {
		t.Fatal(err)
	}
	f.wantClean()
}
