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
)

// newDiskFixture returns a fixture over real files, with the warehouse "lake" in one folder. Its
// table has this location and these properties, or none.
func newDiskFixture(t *testing.T, location string, properties map[string]string, allowed ...string) (f *fixture, root string, table *catalog.Table) {
	t.Helper()
	root = t.TempDir()
	f = newFixture(t, func(c *catalog.Config) {
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
	f.makeLake(filepath.Join(root, "first"))
	for _, folder := range allowed {
		must(t, os.MkdirAll(filepath.Join(root, folder), 0o755))
		f.allow("lake", "file://"+filepath.Join(root, folder))
	}
	request := catalog.CreateTableRequest{Schema: []byte(testSchema), Properties: map[string]string{}}
	if location != "" {
		request.Location = "file://" + filepath.Join(root, location)
	}
	for name, folder := range properties {
		request.Properties[name] = "file://" + filepath.Join(root, folder)
	}
	key := keyOf("create")
	key.ID = "create"
	_, err := f.once(f.ctx, key, func(ctx context.Context, c catalog.Verbs) (_ reply, err error) {
		table, err = c.CreateTable(ctx, lakeIdent(), request)
		return reply{Table: table}, err
	})
	must(t, err)
	return f, root, table
}

func (f *fixture) makeLake(folder string) {
	f.t.Helper()
	_, err := f.Warehouses().Create(f.ctx, warehouses.Spec{Name: "lake", Location: "file://" + folder})
	must(f.t, err)
	_, err = f.CreateNamespace(f.ctx, "lake", moorage.Namespace{"ns"}, nil)
	must(f.t, err)
}

func (f *fixture) dropLake() {
	f.t.Helper()
	must(f.t, f.DropNamespace(f.ctx, "lake", moorage.Namespace{"ns"}))
	must(f.t, f.Warehouses().Drop(f.ctx, "lake"))
}

// A purge finds the files of its table where they are, whatever is allowed to other tables by now.
// So does a purge that was given up.
func TestPurgeFollowsTheStorageOfItsTable(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		location   string
		properties map[string]string
		allowed    []string
		meanwhile  func(f *fixture, root string)
	}{
		"warehouse made again elsewhere": {meanwhile: func(f *fixture, root string) {
			f.dropLake()
			f.makeLake(filepath.Join(root, "second"))
		}},
		"warehouse gone": {meanwhile: func(f *fixture, _ string) { f.dropLake() }},
		"location allowed no more": {location: "extra/t", allowed: []string{"extra"}, meanwhile: func(f *fixture, _ string) {
			f.disallow("lake")
		}},
		"metadata elsewhere, warehouse gone": {properties: map[string]string{"write.metadata.path": "first/elsewhere"}, meanwhile: func(f *fixture, _ string) {
			f.dropLake()
		}},
		"given up": {meanwhile: func(f *fixture, root string) {
			f.dropLake()
			f.makeLake(filepath.Join(root, "second"))
			for _, record := range (tampering{f}).list(registry.TableTask) {
				task, err := registry.Decode[registry.Task](record)
				must(f.t, err)
				task.Attempts = purge.AttemptsMax
				tampering{f}.put(record.Key, registry.StateBlocked, task)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, root, table := newDiskFixture(t, row.location, row.properties, row.allowed...)
			must(t, f.DropTable(f.ctx, lakeIdent(), catalog.DropOptions{Purge: true}))
			row.meanwhile(f, root)
			f.clock.Advance(f.keyLife())
			node := f.other(f.store)
			must(t, node.purgeAll(f.ctx))
			for _, record := range (tampering{f}).list(registry.TableTask) {
				t.Errorf("the purge did not finish: %s", record.Value)
			}
			_, err := os.Stat(table.MetadataLocation[len("file://"):])
			if _, outside := row.properties["write.metadata.path"]; !outside && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the metadata file is left: %v", err)
			}
			wantClean(t, node)
		})
	}
}

// A warehouse with the server's default storage is dropped, and one of that name is made elsewhere.
// Purges of the first do not go to the second's storage.
func TestPurgeFromADefaultServer(t *testing.T) {
	t.Parallel()
	servers := newServers()
	f := newFixture(t, func(c *catalog.Config) { c.OpenStorage = servers.open })
	f.createLake(nil)
	table, err := f.CreateTable(f.ctx, lakeIdent(), catalog.CreateTableRequest{Schema: []byte(testSchema)})
	must(t, err)
	must(t, servers.at("two").Create(f.ctx, table.MetadataLocation, table.Document.Raw()))
	must(t, f.DropTable(f.ctx, lakeIdent(), catalog.DropOptions{Purge: true}))
	f.dropLake()
	f.createLake(map[string]string{"endpoint": "two"})
	must(t, f.purgeAll(f.ctx))
	if _, err := servers.at("").Stat(f.ctx, table.MetadataLocation); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("the file is left: %v", err)
	}
	if _, err := servers.at("two").Stat(f.ctx, table.MetadataLocation); err != nil {
		t.Errorf("the other server's file: %v", err)
	}
}

// A request that is sent again is answered from where its table is.
func TestReplayFollowsTheStorageOfItsTable(t *testing.T) {
	t.Parallel()
	for name, remake := range map[string]bool{"warehouse gone": false, "warehouse made again elsewhere": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, root, table := newDiskFixture(t, "", nil)
			must(t, f.DropTable(f.ctx, lakeIdent(), catalog.DropOptions{Purge: true}))
			f.dropLake()
			if remake {
				f.makeLake(filepath.Join(root, "second"))
			}
			must(t, f.purgeAll(f.ctx)) // it waits for its keys
			key := keyOf("create")
			key.ID = "create"
			node := f.other(f.store)
			again, err := node.once(f.ctx, key, func(ctx context.Context, node catalog.Verbs) (reply, error) {
				table, err := node.CreateTable(ctx, lakeIdent(), catalog.CreateTableRequest{Schema: []byte(testSchema)})
				return reply{Table: table}, err
			})
			if err != nil || again.Table == nil || again.Table.MetadataLocation != table.MetadataLocation {
				t.Errorf("answered %+v, %v; want %s", again.Table, err, table.MetadataLocation)
			}
		})
	}
}

// A node finds out whether a file of a lost commit is in use, also for a table whose location is no
// longer allowed.
func TestDiscardFollowsTheStorageOfItsTable(t *testing.T) {
	t.Parallel()
	f, _, first := newDiskFixture(t, "extra/t", nil, "extra")
	must(t, commitTable(lakeIdent(), setProperty(t, "a", "1"))(f.ctx, f.instance))
	f.disallow("lake")
	node := f.other(f.store)
	pointers := tampering{f}.list(registry.TablePointer)
	pointer, err := registry.Decode[registry.Pointer](pointers[0])
	must(t, err)
	for location, want := range map[string]bool{first.MetadataLocation: true, pointer.MetadataLocation: true, first.MetadataLocation + "x": false} {
		file := documents.Lost{File: documents.File{Pointer: pointer.ID, Location: location, Document: first.Document}, Base: "none"}
		if named, err := node.Documents().IsNamed(f.ctx, file); err != nil || named != want {
			t.Errorf("%s is named: %t, %v; want %t", location, named, err, want)
		}
	}
}

// list returns all records of a table.
func (f tampering) list(table registry.Table) []registry.Record {
	f.t.Helper()
	records, err := f.store.List(f.ctx, table, "", "", registry.ListLimitMax)
	must(f.t, err)
	return records
}
