package catalog

import (
	"fmt"
	"slices"
	"testing"

	"moorage"
	"moorage/locks"
	"moorage/registry"
)

// Each operation takes exactly what the lock table says, in one call, sorted.
func TestOperationsTakeTheLocksOfTheTable(t *testing.T) {
	t.Parallel()
	ns := moorage.Namespace{"ns"}
	shard := func(name string) string { return fmt.Sprintf("W /w/ns/#%x", registry.Shard(name)) }
	pointer := func(f *fixture, name string) string {
		found, err := f.directory.Find(f.ctx, aTable.Kind, ident(name))
		if err != nil {
			found, err = f.directory.Find(f.ctx, aView.Kind, ident(name))
		}
		if err != nil {
			t.Fatal(err)
		}
		return "W /w/@" + found.Pointer.ID.String()
	}
	request := CreateTableRequest{Schema: []byte(testSchema)}
	tests := []struct {
		operation Operation
		run       func(f *fixture) (want []string, err error)
	}{
		{OpCreateWarehouse, func(f *fixture) ([]string, error) {
			_, err := f.CreateWarehouse(f.ctx, WarehouseSpec{Name: "x", Location: "file:///x"})
			return []string{"W /x"}, err
		}},
		{OpDropWarehouse, func(f *fixture) ([]string, error) { return []string{"W /empty"}, f.DropWarehouse(f.ctx, "empty") }},
		{OpCreateNamespace, func(f *fixture) ([]string, error) {
			_, err := f.CreateNamespace(f.ctx, testWarehouse, moorage.Namespace{"ns", "a", "b"}, nil)
			return []string{"W /w/ns/a"}, err
		}},
		{OpDropNamespace, func(f *fixture) ([]string, error) {
			return []string{"W /w/empty"}, f.DropNamespace(f.ctx, testWarehouse, moorage.Namespace{"empty"})
		}},
		{OpUpdateProperties, func(f *fixture) ([]string, error) {
			_, err := f.UpdateNamespaceProperties(f.ctx, testWarehouse, ns, PropertiesChange{Updates: map[string]string{"a": "b"}})
			return nil, err
		}},
		{OpCreateTable, func(f *fixture) ([]string, error) {
			_, err := f.CreateTable(f.ctx, ident("new"), request)
			return []string{shard("new")}, err
		}},
		{OpStageTable, func(f *fixture) ([]string, error) {
			staged := request
			staged.Stage = true
			_, err := f.CreateTable(f.ctx, ident("new"), staged)
			return nil, err
		}},
		{OpCommitCreate, func(f *fixture) ([]string, error) {
			_, err := f.Commit(f.ctx, ident("new"), commitCreateRequest(t, "file:///wh/ns/new"))
			return []string{shard("new")}, err
		}},
		{OpRegister, func(f *fixture) ([]string, error) {
			last, err := f.UnregisterTable(f.ctx, ident("t"))
			if err != nil {
				return nil, err
			}
			f.locks.Reset()
			_, err = f.RegisterTable(f.ctx, ident("new"), RegisterRequest{MetadataLocation: last.MetadataLocation})
			return []string{shard("new")}, err
		}},
		{OpRegisterOver, func(f *fixture) ([]string, error) {
			table, err := f.LoadTable(f.ctx, ident("t"))
			if err != nil {
				return nil, err
			}
			want := []string{shard("t"), pointer(f, "t")}
			_, err = f.RegisterTable(f.ctx, ident("t"), RegisterRequest{MetadataLocation: table.MetadataLocation, Overwrite: true})
			return want, err
		}},
		{OpDropTable, func(f *fixture) ([]string, error) {
			want := []string{shard("t"), pointer(f, "t")}
			return want, f.DropTable(f.ctx, ident("t"), DropOptions{})
		}},
		{OpUnregister, func(f *fixture) ([]string, error) {
			want := []string{shard("t"), pointer(f, "t")}
			_, err := f.UnregisterTable(f.ctx, ident("t"))
			return want, err
		}},
		{OpRename, func(f *fixture) ([]string, error) {
			want := []string{shard("t"), shard("new"), pointer(f, "t")}
			return want, f.RenameTable(f.ctx, ident("t"), ident("new"))
		}},
		{OpCommit, func(f *fixture) ([]string, error) {
			_, err := f.Commit(f.ctx, ident("t"), setProperty(t, "a", "b"))
			return nil, err
		}},
		{OpCommitContended, func(f *fixture) ([]string, error) {
			found, err := f.directory.Find(f.ctx, aTable.Kind, ident("t"))
			if err != nil {
				return nil, err
			}
			var edit tableEdit
			edit.steps = append(edit.steps, setProperty(t, "a", "b").step())
			_, err = f.tryCommitLocked(f.ctx, f.newCommit(aTable, ident("t"), &edit), found)
			return []string{pointer(f, "t")}, err
		}},
		{OpCreateView, func(f *fixture) ([]string, error) {
			_, err := f.CreateView(f.ctx, ident("new"), viewRequest(""))
			return []string{shard("new")}, err
		}},
		{OpRegisterView, func(f *fixture) ([]string, error) {
			_, err := f.RegisterView(f.ctx, ident("new"), looseView)
			return []string{shard("new")}, err
		}},
		{OpDropView, func(f *fixture) ([]string, error) {
			want := []string{shard("v"), pointer(f, "v")}
			return want, f.DropView(f.ctx, ident("v"))
		}},
		{OpRenameView, func(f *fixture) ([]string, error) {
			want := []string{shard("v"), shard("new"), pointer(f, "v")}
			return want, f.RenameView(f.ctx, ident("v"), ident("new"))
		}},
		{OpReplace, func(f *fixture) ([]string, error) {
			_, err := f.ReplaceView(f.ctx, ident("v"), setViewProperty(t, "a", "b"))
			return nil, err
		}},
		{OpReplaceContended, func(f *fixture) ([]string, error) {
			found, err := f.directory.Find(f.ctx, aView.Kind, ident("v"))
			if err != nil {
				return nil, err
			}
			_, err = f.tryCommitLocked(f.ctx, f.newCommit(aView, ident("v"), viewEdit(setViewProperty(t, "a", "b"))), found)
			return []string{pointer(f, "v")}, err
		}},
		{OpTransaction, func(f *fixture) ([]string, error) {
			f.create("u")
			want := []string{pointer(f, "t"), pointer(f, "u")}
			f.locks.Reset()
			return want, f.transact(on("u", setProperty(t, "a", "b")), on("t", setProperty(t, "a", "b")))
		}},
		{OpPurge, func(f *fixture) ([]string, error) {
			if err := f.DropTable(f.ctx, ident("t"), DropOptions{Purge: true}); err != nil {
				return nil, err
			}
			f.locks.Reset()
			return nil, f.purgeAll(f.ctx)
		}},
		{OpEndWindow, func(f *fixture) ([]string, error) {
			if err := f.DropTable(f.ctx, ident("t"), DropOptions{}); err != nil {
				return nil, err
			}
			f.clock.Advance(undropWindow + 1)
			f.locks.Reset()
			return nil, f.endWindows(f.ctx)
		}},
		{OpRead, func(f *fixture) ([]string, error) {
			if _, err := f.LoadTable(f.ctx, ident("t")); err != nil {
				return nil, err
			}
			if _, err := f.LoadView(f.ctx, ident("v")); err != nil {
				return nil, err
			}
			_, _, err := f.ListTables(f.ctx, testWarehouse, ns, Page{})
			return nil, err
		}},
	}
	var covered []Operation
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
			if _, err := f.CreateWarehouse(f.ctx, WarehouseSpec{Name: "empty", Location: "file:///empty"}); err != nil {
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
			if got, want := calls[0].Options.NonBlocking, test.operation == OpTransaction; got != want {
				t.Errorf("non-blocking: got %t, want %t", got, want)
			}
			creates := []Operation{OpCreateTable, OpCommitCreate, OpRegister, OpCreateView, OpRegisterView}
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
	for _, rule := range LockTable() {
		if !slices.Contains(covered, rule.Operation) {
			t.Errorf("no row for %s", rule.Operation)
		}
	}
}

// commitCreateRequest returns a commit that makes a table at location.
func commitCreateRequest(t testing.TB, location string) CommitRequest {
	t.Helper()
	return createWithUUID(t, location, 1)
}

// createWithUUID returns a commit that makes a table; another one for each n.
func createWithUUID(t testing.TB, location string, n int) CommitRequest {
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
	f := newFixture(t, func(c *Config) { c.Locks = locks.GrantAll{} })
	table := f.create("t")
	if _, err := f.Commit(f.ctx, ident("t"), appendSnapshot(t, table, 1, 0, 1)); err != nil {
		t.Fatal(err)
	}
	if err := f.RenameTable(f.ctx, ident("t"), ident("u")); err != nil {
		t.Fatal(err)
	}
	if err := f.DropTable(f.ctx, ident("u"), DropOptions{}); err != nil {
		t.Fatal(err)
	}
	f.wantClean()
}
