package directory_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/registry"
	"moorage/storage"
	"moorage/testkit/catalogkit"
)

// Every answer about a table has the configuration for access to its files.
func TestClientConfig(t *testing.T) {
	t.Parallel()
	f, _ := catalogkit.NewRemoteFixture(t)
	request := catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)}
	var location string
	for _, step := range []struct {
		name string
		make func() (*catalog.Table, error)
	}{
		{"stage", func() (*catalog.Table, error) {
			staged := request
			staged.Stage = true
			return f.CreateTable(f.Ctx, catalogkit.LakeIdent(), staged)
		}},
		{"create", func() (*catalog.Table, error) { return f.CreateTable(f.Ctx, catalogkit.LakeIdent(), request) }},
		{"load", func() (*catalog.Table, error) { return f.LoadTable(f.Ctx, catalogkit.LakeIdent()) }},
		{"commit", func() (*catalog.Table, error) {
			return f.Commit(f.Ctx, catalogkit.LakeIdent(), catalogkit.SetProperty(t, "a", "b"))
		}},
		{"commit that changes nothing", func() (*catalog.Table, error) {
			return f.Commit(f.Ctx, catalogkit.LakeIdent(), catalogkit.CommitRequest(t, "[]", "[]"))
		}},
		{"unregister", func() (*catalog.Table, error) { return f.UnregisterTable(f.Ctx, catalogkit.LakeIdent()) }},
		{"register", func() (*catalog.Table, error) {
			return f.RegisterTable(f.Ctx, catalogkit.LakeIdent(), catalog.RegisterRequest{MetadataLocation: location})
		}},
	} {
		table, err := step.make()
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if !maps.Equal(table.Config, map[string]string{"endpoint": "one"}) {
			t.Errorf("%s: config %v", step.name, table.Config)
		}
		location = table.MetadataLocation
	}
	if table := f.Create("t"); len(table.Config) > 0 {
		t.Errorf("a table of another warehouse: config %v", table.Config)
	}
}

// unreachable returns the reports of ProbeStorage.
func unreachable(f *catalogkit.Fixture) []string {
	f.T.Helper()
	var unreachable []string
	err := f.Warehouses().ProbeStorage(f.Ctx, func(warehouse, location string, err error) {
		unreachable = append(unreachable, fmt.Sprintf("warehouse %s at %s: %v", warehouse, location, err))
	})
	if err != nil {
		f.T.Fatal(err)
	}
	return unreachable
}

// A warehouse cannot be created in a place that cannot be reached. The message gives the reason.
func TestCreateWarehouseProbes(t *testing.T) {
	t.Parallel()
	f, servers := catalogkit.NewRemoteFixture(t)
	servers.Probes = errors.New("there is no bucket called nowhere")
	_, err := f.Warehouses().Create(f.Ctx, warehouses.Spec{Name: "new", Location: "s3://nowhere"})
	catalogkit.WantKind(t, err, moorage.KindBadRequest)
	if message := moorage.MessageOf(err); !strings.Contains(message, "no bucket called nowhere") {
		t.Errorf("message %q", message)
	}
	_, err = f.LoadWarehouse(f.Ctx, "new")
	catalogkit.WantKind(t, err, moorage.KindNoSuchWarehouse)
	if unreachable, want := unreachable(f), "warehouse lake at s3://bucket/lake: there is no bucket called nowhere"; !slices.Contains(unreachable, want) {
		t.Errorf("cannot be reached: %q, want %q", unreachable, want)
	}
	servers.Probes = nil
	if unreachable := unreachable(f); len(unreachable) > 0 {
		t.Errorf("cannot be reached: %q", unreachable)
	}
}

// A purge continues in the place of the files, whatever has happened to the warehouse since the
// drop.
func TestPurgeAfterTheWarehouse(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*catalogkit.Fixture){
		"gone":    func(*catalogkit.Fixture) {},
		"another": func(f *catalogkit.Fixture) { f.CreateLake(map[string]string{"endpoint": "two"}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, servers := catalogkit.NewRemoteFixture(t)
			table, err := f.CreateTable(f.Ctx, catalogkit.LakeIdent(), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
			if err != nil {
				t.Fatal(err)
			}
			// The other server has a file of the same name.
			if err := servers.At("two").Create(f.Ctx, table.MetadataLocation, table.Document.Raw()); err != nil {
				t.Fatal(err)
			}
			for _, err := range []error{
				f.DropTable(f.Ctx, catalogkit.LakeIdent(), catalog.DropOptions{Purge: true}),
				f.DropNamespace(f.Ctx, "lake", moorage.Namespace{"ns"}),
				f.Warehouses().Drop(f.Ctx, "lake"),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			change(f)
			if err := f.PurgeAll(f.Ctx); err != nil {
				t.Fatal(err)
			}
			if _, err := servers.At("one").Stat(f.Ctx, table.MetadataLocation); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("the table's file is still there (%v)", err)
			}
			if _, err := servers.At("two").Stat(f.Ctx, table.MetadataLocation); err != nil {
				t.Errorf("the other server's file: %v", err)
			}
			records, err := f.Store.List(f.Ctx, registry.TableTask, "", "", 10)
			if err != nil || len(records) > 0 {
				t.Errorf("tasks left: %d, %v", len(records), err)
			}
			f.WantClean()
		})
	}
}

// A storage that was opened for a single table is given back. Such a storage is needed if the
// table's warehouse is gone, or no longer includes the table's location.
func TestBorrowedStorages(t *testing.T) {
	t.Parallel()
	var opened, borrowed, back atomic.Int64
	f := catalogkit.New(t, func(c *catalog.Config) {
		open := c.OpenStorage
		c.OpenStorage = func(place storage.Place) (storage.Store, error) {
			opened.Add(1)
			return open(place)
		}
		c.BorrowStorage = func(place storage.Place) (storage.Store, func(), error) {
			borrowed.Add(1)
			store, err := open(place)
			return store, func() { back.Add(1) }, err
		}
	})
	for _, name := range []string{"a", "b", "c"} {
		warehouse := "gone-" + name
		ident := moorage.Identifier{Warehouse: warehouse, Namespace: moorage.Namespace{"ns"}, Name: "t"}
		_, err := f.Warehouses().Create(f.Ctx, warehouses.Spec{Name: warehouse, Location: "file:///" + warehouse})
		if err == nil {
			_, err = f.CreateNamespace(f.Ctx, warehouse, ident.Namespace, nil)
		}
		if err == nil {
			_, err = f.CreateTable(f.Ctx, ident, catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
		}
		if err == nil {
			err = f.DropTable(f.Ctx, ident, catalog.DropOptions{Purge: true})
		}
		if err == nil {
			err = f.DropNamespace(f.Ctx, warehouse, ident.Namespace)
		}
		if err == nil {
			err = f.Warehouses().Drop(f.Ctx, warehouse)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	before := opened.Load()
	if err := f.PurgeAll(f.Ctx); err != nil {
		t.Fatal(err)
	}
	f.WantClean()
	if opened.Load() != before || borrowed.Load() != 3 || back.Load() != 3 {
		t.Errorf("opened for good %d, borrowed %d, given back %d; want 0, 3 and 3", opened.Load()-before, borrowed.Load(), back.Load())
	}
	f.Create("t")
	f.Instance = f.Other(f.Store) // like a process that only runs checks
	f.WantClean()
	if opened.Load() != before || borrowed.Load() < 4 || back.Load() != borrowed.Load() {
		t.Errorf("after a check: opened for good %d, borrowed %d, given back %d", opened.Load()-before, borrowed.Load(), back.Load())
	}
}

// If checking a file for existence is not cheap, a load with a cached document does not check it. A
// load without the document reads the file.
func TestMissingRemoteMetadataFile(t *testing.T) {
	t.Parallel()
	f, _ := catalogkit.NewRemoteFixture(t)
	table, err := f.CreateTable(f.Ctx, catalogkit.LakeIdent(), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Files.Delete(f.Ctx, table.MetadataLocation); err != nil {
		t.Fatal(err)
	}
	if _, err := f.LoadTable(f.Ctx, catalogkit.LakeIdent()); err != nil {
		t.Errorf("load of a document that is kept: %v", err)
	}
	node, err := catalogkit.NewInstance(f.Config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = node.LoadTable(f.Ctx, catalogkit.LakeIdent())
	catalogkit.WantKind(t, err, moorage.KindNotFound)
}

// A commit that names its table by the uuid follows it to another name, but not into another
// warehouse.
func TestCommitStaysInItsWarehouse(t *testing.T) {
	t.Parallel()
	var meanwhile catalogkit.Hook
	f := catalogkit.New(t, meanwhile.OnCreate)
	lake := moorage.Identifier{Warehouse: "lake", Namespace: moorage.Namespace{"ns"}, Name: "t"}
	_, err := f.Warehouses().Create(f.Ctx, warehouses.Spec{Name: "lake", Location: "file:///lake"})
	if err == nil {
		_, err = f.CreateNamespace(f.Ctx, "lake", lake.Namespace, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	table := f.Create("t")
	const copied = "file:///lake/t/metadata/v1.metadata.json"
	raw := strings.ReplaceAll(string(table.Document.Raw()), table.Document.Location(), "file:///lake/t")
	if err := f.Files.Create(f.Ctx, copied, []byte(raw)); err != nil {
		t.Fatal(err)
	}
	meanwhile.Once(func() {
		if err := f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := f.RegisterTable(f.Ctx, lake, catalog.RegisterRequest{MetadataLocation: copied}); err != nil {
			t.Error(err)
		}
	})
	request := catalogkit.CommitRequest(t, `[{"type":"assert-table-uuid","uuid":"`+table.Document.UUID()+`"}]`, `[{"action":"set-properties","updates":{"a":"b"}}]`)
	_, err = f.Commit(f.Ctx, ident("t"), request)
	catalogkit.WantKind(t, err, moorage.KindNoSuchTable)
	loaded, err := f.LoadTable(f.Ctx, lake)
	if err != nil || loaded.MetadataLocation != copied {
		t.Errorf("loaded %+v, %v", loaded, err)
	}
	f.WantClean()
}

// A warehouse is dropped and recreated elsewhere under the same name, and a table is restored into
// it. The table is then written in the place of the new warehouse, even by a node that has cached
// the table.
func TestTableComesBackElsewhere(t *testing.T) {
	t.Parallel()
	f, servers := catalogkit.NewRemoteFixture(t)
	table, err := f.CreateTable(f.Ctx, catalogkit.LakeIdent(), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
	if err != nil {
		t.Fatal(err)
	}
	node := f.Other(f.Store) // it has cached the table, and sees none of the changes
	for _, do := range []func() error{
		func() error { _, err := node.LoadTable(f.Ctx, catalogkit.LakeIdent()); return err },
		func() error { return f.DropTable(f.Ctx, catalogkit.LakeIdent(), catalog.DropOptions{}) },
		func() error { return f.DropNamespace(f.Ctx, "lake", moorage.Namespace{"ns"}) },
		func() error { return f.Warehouses().Drop(f.Ctx, "lake") },
		func() error {
			return servers.At("two").Create(f.Ctx, table.MetadataLocation, table.Document.Raw())
		},
		func() error { f.CreateLake(map[string]string{"endpoint": "two"}); return nil },
		func() error {
			_, err := f.RegisterTable(f.Ctx, catalogkit.LakeIdent(), catalog.RegisterRequest{MetadataLocation: table.MetadataLocation})
			return err
		},
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	next, err := node.Commit(f.Ctx, catalogkit.LakeIdent(), catalogkit.SetProperty(t, "n", "1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := servers.At("two").Stat(f.Ctx, next.MetadataLocation); err != nil || !maps.Equal(next.Config, map[string]string{"endpoint": "two"}) {
		t.Errorf("the new version is not where the warehouse is: %v, and clients are sent to %v", err, next.Config)
	}
}
