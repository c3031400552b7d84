package check_test

import (
	"slices"
	"strings"
	"testing"

	"moorage/registry"
)

// grantOn writes grants on an object with the given ancestors.
func (f *fixture) grantOn(object registry.ID, kind string, ancestors ...registry.ID) {
	f.t.Helper()
	f.put(registry.GrantsKey(object), registry.StateNone, registry.Grants{
		Kind: kind, Ancestors: ancestors,
		Grants: []registry.Grant{{Grantee: "corp:ann", Privileges: []string{"read"}, By: "corp:bob", At: f.clock.Now()}},
	})
}

// turnOn writes the records of a store with access control on.
func (f *fixture) turnOn() {
	f.t.Helper()
	f.put(registry.EpochKey(), registry.StateNone, registry.Epoch{Number: 1})
}

// grantSoundly writes grants on the table "t" and its namespace as a node would. It returns the ids
// of the table, its namespace and its warehouse.
func (f *fixture) grantSoundly() (table, ns, warehouse registry.ID) {
	f.t.Helper()
	f.turnOn()
	f.change(func(p *registry.Pointer) { p.Granted = true })
	_, pointer := f.pointer()
	record := f.record(registry.TableNamespace, "/ns", registry.StateLive)
	value, err := registry.Decode[registry.Namespace](record)
	f.must(value, err)
	value.Granted = true
	f.put(record.Key, record.State, value)
	home, err := registry.Decode[registry.Warehouse](f.record(registry.TableWarehouse, testWarehouse, registry.StateLive))
	f.must(home, err)
	f.grantOn(pointer.ID, "table", pointer.NamespaceID, home.ID)
	f.grantOn(pointer.NamespaceID, "namespace", home.ID)
	f.grantOn(registry.ID{}, "server")
	return pointer.ID, pointer.NamespaceID, home.ID
}

// Check finds access policy that has no effect, and grants that do not fit their object. It finds
// nothing before the damage.
func TestCheckFindsDamagedPolicy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		damage func(f *fixture, table, ns, warehouse registry.ID)
		want   []string // parts of all problems
	}{
		{"access off", func(f *fixture, _, _, _ registry.ID) {
			f.remove(f.get(registry.EpochKey()))
		}, []string{"there are 3 records of access, and access/epoch is missing: they have no effect"}},
		{"object gone", func(f *fixture, _, _, warehouse registry.ID) {
			f.grantOn(registry.ID{7}, "table", warehouse)
		}, []string{registry.GrantsKey(registry.ID{7}).String() + " is on an object that does not exist"}},
		{"table without its mark", func(f *fixture, _, _, _ registry.ID) {
			f.change(func(p *registry.Pointer) { p.Granted = false })
		}, []string{"is on an object that does not record it"}},
		{"warehouse without its mark", func(f *fixture, _, _, warehouse registry.ID) {
			f.grantOn(warehouse, "warehouse")
		}, []string{"is on an object that does not record it"}},
		{"table elsewhere", func(f *fixture, table, _, warehouse registry.ID) {
			f.grantOn(table, "table", warehouse)
		}, []string{"is not where its grants record it"}},
		{"namespace elsewhere", func(f *fixture, _, ns, warehouse registry.ID) {
			f.grantOn(ns, "namespace", registry.ID{7}, warehouse)
		}, []string{"is not where its grants record it"}},
		{"epoch that cannot be read", func(f *fixture, _, _, _ registry.ID) {
			f.write(registry.Put(registry.EpochKey(), registry.StateNone, []byte("{")))
		}, []string{"(whether access is on, or what nodes share for it; "}},
		{"grants that cannot be read", func(f *fixture, table, _, _ registry.ID) {
			f.write(registry.Put(registry.GrantsKey(table), registry.StateNone, []byte("{")))
		}, []string{"(access policy: it grants nothing; "}},
		{"namespace that cannot be read", func(f *fixture, _, _, warehouse registry.ID) {
			f.grantOn(registry.ID{7}, "namespace", warehouse)
			f.write(registry.Put(f.record(registry.TableNamespace, "/ns", registry.StateLive).Key, registry.StateLive, []byte("{")))
		}, []string{"cannot be read"}},
		{"record that is not known", func(f *fixture, _, _, _ registry.ID) {
			f.write(registry.Put(registry.Key{Table: registry.TableAccess, ID: "odd"}, registry.StateNone, []byte("{}")))
		}, []string{"access/odd is not known"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.create("t")
			table, ns, warehouse := f.grantSoundly()
			f.wantClean()
			tt.damage(f, table, ns, warehouse)
			report, err := f.Check(f.ctx)
			f.must(report, err)
			if !slices.EqualFunc(report.Problems, tt.want, strings.Contains) {
				t.Errorf("found %q, want %q", report.Problems, tt.want)
			}
		})
	}
}

// A dropped table keeps its grants, even if its namespace and warehouse have changed or are gone.
func TestCheckLeavesGrantsOfDroppedTables(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create("t")
	f.grantSoundly()
	f.drop("t", false)
	f.wantClean()
}
