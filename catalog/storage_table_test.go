package catalog_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/documents"
	"moorage/catalog/warehouses"
	"moorage/maintenance/purge"
	"moorage/registry"
	"moorage/storage"
	"moorage/storage/file"
	"moorage/testkit/catalogkit"
)

// newDiskFixture returns a fixture over real files, with the warehouse "lake" in one folder. Its
// table has this location and these properties; both may be empty.
func newDiskFixture(t *testing.T, location string, properties map[string]string, allowed ...string) (f *catalogkit.Fixture, root string, table *catalog.Table) {
	t.Helper()
	root = t.TempDir()
	f = catalogkit.New(t, func(c *catalog.Config) {
		inMemory := c.OpenStorage // the fixture's own warehouse has no folder on the disk
		open := func(openRoots func([]string) (*file.Store, error)) func(storage.Place) (storage.Store, func(), error) {
			return func(place storage.Place) (storage.Store, func(), error) {
				if slices.Contains(place.Roots, "file:///wh") {
					store, err := inMemory(place)
					return store, func() {}, err
				}
				store, err := openRoots(place.Roots)
				return store, func() { _ = store.Close() }, err
			}
		}
		c.OpenStorage = func(place storage.Place) (storage.Store, error) {
			store, giveBack, err := open(file.New)(place)
			t.Cleanup(giveBack)
			return store, err
		}
		c.BorrowStorage = open(file.NewExisting)
	})
	makeLake(f, filepath.Join(root, "first"))
	for _, folder := range allowed {
		must(t, os.MkdirAll(filepath.Join(root, folder), 0o755))
		f.Allow("lake", "file://"+filepath.Join(root, folder))
	}
	request := catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Properties: map[string]string{}}
	if location != "" {
		request.Location = "file://" + filepath.Join(root, location)
	}
	for name, folder := range properties {
		request.Properties[name] = "file://" + filepath.Join(root, folder)
	}
	key := catalogkit.KeyOf("create")
	key.ID = "create"
	_, err := f.Once(f.Ctx, key, func(ctx context.Context, c catalog.Verbs) (_ catalogkit.Reply, err error) {
		table, err = c.CreateTable(ctx, catalogkit.LakeIdent(), request)
		return catalogkit.Reply{Table: table}, err
	})
	must(t, err)
	return f, root, table
}

func makeLake(f *catalogkit.Fixture, folder string) {
	f.T.Helper()
	_, err := f.Warehouses().Create(f.Ctx, warehouses.Spec{Name: "lake", Location: "file://" + folder})
	must(f.T, err)
	_, err = f.CreateNamespace(f.Ctx, "lake", moorage.Namespace{"ns"}, nil)
	must(f.T, err)
}

func dropLake(f *catalogkit.Fixture) {
	f.T.Helper()
	must(f.T, f.DropNamespace(f.Ctx, "lake", moorage.Namespace{"ns"}))
	must(f.T, f.Warehouses().Drop(f.Ctx, "lake"))
}

// A purge finds the files of its table where they are, even if new tables may no longer be there.
// The same holds for a blocked purge.
func TestPurgeFollowsTheStorageOfItsTable(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		location   string
		properties map[string]string
		allowed    []string
		meanwhile  func(f *catalogkit.Fixture, root string)
	}{
		"warehouse made again elsewhere": {meanwhile: func(f *catalogkit.Fixture, root string) {
			dropLake(f)
			makeLake(f, filepath.Join(root, "second"))
		}},
		"warehouse gone": {meanwhile: func(f *catalogkit.Fixture, _ string) { dropLake(f) }},
		"location allowed no more": {location: "extra/t", allowed: []string{"extra"}, meanwhile: func(f *catalogkit.Fixture, _ string) {
			f.Disallow("lake")
		}},
		"metadata elsewhere, warehouse gone": {properties: map[string]string{"write.metadata.path": "first/elsewhere"}, meanwhile: func(f *catalogkit.Fixture, _ string) {
			dropLake(f)
		}},
		"given up": {meanwhile: func(f *catalogkit.Fixture, root string) {
			dropLake(f)
			makeLake(f, filepath.Join(root, "second"))
			for _, record := range catalogkit.Tamper(f).List(registry.TableTask) {
				task, err := registry.Decode[registry.Task](record)
				must(f.T, err)
				task.Attempts = purge.AttemptsMax
				catalogkit.Tamper(f).Put(record.Key, registry.StateBlocked, task)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, root, table := newDiskFixture(t, row.location, row.properties, row.allowed...)
			must(t, f.DropTable(f.Ctx, catalogkit.LakeIdent(), catalog.DropOptions{Purge: true}))
			row.meanwhile(f, root)
			f.Clock.Advance(f.KeyLife())
			node := f.Other(f.Store)
			must(t, node.PurgeAll(f.Ctx))
			for _, record := range catalogkit.Tamper(f).List(registry.TableTask) {
				t.Errorf("the purge did not finish: %s", record.Value)
			}
			_, err := os.Stat(table.MetadataLocation[len("file://"):])
			if _, outside := row.properties["write.metadata.path"]; !outside && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the metadata file is left: %v", err)
			}
			catalogkit.WantClean(t, node)
		})
	}
}

// A warehouse with the server's default storage is dropped, and another of the same name is created
// elsewhere. Purges of the first warehouse do not use the storage of the second.
func TestPurgeFromADefaultServer(t *testing.T) {
	t.Parallel()
	servers := catalogkit.NewServers()
	f := catalogkit.New(t, func(c *catalog.Config) { c.OpenStorage = servers.Open })
	f.CreateLake(nil)
	table, err := f.CreateTable(f.Ctx, catalogkit.LakeIdent(), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
	must(t, err)
	must(t, servers.At("two").Create(f.Ctx, table.MetadataLocation, table.Document.Raw()))
	must(t, f.DropTable(f.Ctx, catalogkit.LakeIdent(), catalog.DropOptions{Purge: true}))
	dropLake(f)
	f.CreateLake(map[string]string{"endpoint": "two"})
	must(t, f.PurgeAll(f.Ctx))
	if _, err := servers.At("").Stat(f.Ctx, table.MetadataLocation); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("the file is left: %v", err)
	}
	if _, err := servers.At("two").Stat(f.Ctx, table.MetadataLocation); err != nil {
		t.Errorf("the other server's file: %v", err)
	}
}

// A repeated request is answered from the place where its table is.
func TestReplayFollowsTheStorageOfItsTable(t *testing.T) {
	t.Parallel()
	for name, remake := range map[string]bool{"warehouse gone": false, "warehouse made again elsewhere": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, root, table := newDiskFixture(t, "", nil)
			must(t, f.DropTable(f.Ctx, catalogkit.LakeIdent(), catalog.DropOptions{Purge: true}))
			dropLake(f)
			if remake {
				makeLake(f, filepath.Join(root, "second"))
			}
			must(t, f.PurgeAll(f.Ctx)) // the purge waits for keys
			key := catalogkit.KeyOf("create")
			key.ID = "create"
			node := f.Other(f.Store)
			again, err := node.Once(f.Ctx, key, func(ctx context.Context, node catalog.Verbs) (catalogkit.Reply, error) {
				table, err := node.CreateTable(ctx, catalogkit.LakeIdent(), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
				return catalogkit.Reply{Table: table}, err
			})
			if err != nil || again.Table == nil || again.Table.MetadataLocation != table.MetadataLocation {
				t.Errorf("answered %+v, %v; want %s", again.Table, err, table.MetadataLocation)
			}
		})
	}
}

// A node finds out whether a file of a lost commit is in use, even if the table's location is no
// longer allowed.
func TestDiscardFollowsTheStorageOfItsTable(t *testing.T) {
	t.Parallel()
	f, _, first := newDiskFixture(t, "extra/t", nil, "extra")
	must(t, catalogkit.CommitTable(catalogkit.LakeIdent(), catalogkit.SetProperty(t, "a", "1"))(f.Ctx, f.Instance))
	f.Disallow("lake")
	node := f.Other(f.Store)
	pointers := catalogkit.Tamper(f).List(registry.TablePointer)
	pointer, err := registry.Decode[registry.Pointer](pointers[0])
	must(t, err)
	for location, want := range map[string]bool{first.MetadataLocation: true, pointer.MetadataLocation: true, first.MetadataLocation + "x": false} {
		file := documents.Lost{File: documents.File{Pointer: pointer.ID, Location: location, Document: first.Document}, Base: "none"}
		if named, err := node.Documents().IsNamed(f.Ctx, file); err != nil || named != want {
			t.Errorf("%s is named: %t, %v; want %t", location, named, err, want)
		}
	}
}
