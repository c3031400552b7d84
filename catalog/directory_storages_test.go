package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/registry"
	"moorage/storage"
	memorystorage "moorage/storage/memory"
)

// servers are the object stores of a test, by their endpoint. They hold the same names.
type servers struct {
	mu     sync.Mutex
	files  map[string]*memorystorage.Store
	probes error // what each probe answers
}

func newServers() *servers { return &servers{files: make(map[string]*memorystorage.Store)} }

// at returns the files of a server.
func (s *servers) at(endpoint string) *memorystorage.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[endpoint] == nil {
		s.files[endpoint] = memorystorage.New()
	}
	return s.files[endpoint]
}

func (s *servers) open(place storage.Place) (storage.Store, error) {
	store, err := s.at(place.Options["endpoint"]).Within(place.Roots)
	return remoteFiles{store, place.Options, s}, err
}

// remoteFiles are the files of one server. Of them a Stat is not cheap.
type remoteFiles struct {
	storage.Store
	options map[string]string
	servers *servers
}

func (r remoteFiles) Probe(context.Context) error     { return r.servers.probes }
func (r remoteFiles) ClientConfig() map[string]string { return r.options }

// newRemoteFixture returns a fixture with a further warehouse "lake" on the server one.
func newRemoteFixture(t *testing.T) (*fixture, *servers) {
	t.Helper()
	servers := newServers()
	f := newFixture(t, func(c *catalog.Config) { c.OpenStorage = servers.open })
	f.files = servers.at("one")
	f.createLake(map[string]string{"endpoint": "one"})
	return f, servers
}

func (f *fixture) createLake(options map[string]string) {
	f.t.Helper()
	_, err := f.Warehouses().Create(f.ctx, warehouses.Spec{Name: "lake", Location: "s3://bucket/lake", Storage: options})
	if err == nil {
		_, err = f.CreateNamespace(f.ctx, "lake", moorage.Namespace{"ns"}, nil)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func lakeIdent() moorage.Identifier {
	return moorage.Identifier{Warehouse: "lake", Namespace: moorage.Namespace{"ns"}, Name: "t"}
}

// Every answer about a table says how its files are reached.
func TestClientConfig(t *testing.T) {
	t.Parallel()
	f, _ := newRemoteFixture(t)
	request := catalog.CreateTableRequest{Schema: []byte(testSchema)}
	var location string
	for _, step := range []struct {
		name string
		make func() (*catalog.Table, error)
	}{
		{"stage", func() (*catalog.Table, error) {
			staged := request
			staged.Stage = true
			return f.CreateTable(f.ctx, lakeIdent(), staged)
		}},
		{"create", func() (*catalog.Table, error) { return f.CreateTable(f.ctx, lakeIdent(), request) }},
		{"load", func() (*catalog.Table, error) { return f.LoadTable(f.ctx, lakeIdent()) }},
		{"commit", func() (*catalog.Table, error) { return f.Commit(f.ctx, lakeIdent(), setProperty(t, "a", "b")) }},
		{"commit that changes nothing", func() (*catalog.Table, error) { return f.Commit(f.ctx, lakeIdent(), commitRequest(t, "[]", "[]")) }},
		{"unregister", func() (*catalog.Table, error) { return f.UnregisterTable(f.ctx, lakeIdent()) }},
		{"register", func() (*catalog.Table, error) {
			return f.RegisterTable(f.ctx, lakeIdent(), catalog.RegisterRequest{MetadataLocation: location})
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
	if table := f.create("t"); len(table.Config) > 0 {
		t.Errorf("a table of another warehouse: config %v", table.Config)
	}
}

// unreachable returns what ProbeStorage reports.
func (f *fixture) unreachable() []string {
	f.t.Helper()
	var unreachable []string
	err := f.Warehouses().ProbeStorage(f.ctx, func(warehouse, location string, err error) {
		unreachable = append(unreachable, fmt.Sprintf("warehouse %s at %s: %v", warehouse, location, err))
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return unreachable
}

// A place that cannot be reached is no place for a warehouse; the message says why.
func TestCreateWarehouseProbes(t *testing.T) {
	t.Parallel()
	f, servers := newRemoteFixture(t)
	servers.probes = errors.New("there is no bucket called nowhere")
	_, err := f.Warehouses().Create(f.ctx, warehouses.Spec{Name: "new", Location: "s3://nowhere"})
	wantKind(t, err, moorage.KindBadRequest)
	if message := moorage.MessageOf(err); !strings.Contains(message, "no bucket called nowhere") {
		t.Errorf("message %q", message)
	}
	_, err = f.LoadWarehouse(f.ctx, "new")
	wantKind(t, err, moorage.KindNoSuchWarehouse)
	if unreachable, want := f.unreachable(), "warehouse lake at s3://bucket/lake: there is no bucket called nowhere"; !slices.Contains(unreachable, want) {
		t.Errorf("cannot be reached: %q, want %q", unreachable, want)
	}
	servers.probes = nil
	if unreachable := f.unreachable(); len(unreachable) > 0 {
		t.Errorf("cannot be reached: %q", unreachable)
	}
}

// A purge goes on where the files are, whatever became of the warehouse since the drop.
func TestPurgeAfterTheWarehouse(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fixture){
		"gone":    func(*fixture) {},
		"another": func(f *fixture) { f.createLake(map[string]string{"endpoint": "two"}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, servers := newRemoteFixture(t)
			table, err := f.CreateTable(f.ctx, lakeIdent(), catalog.CreateTableRequest{Schema: []byte(testSchema)})
			if err != nil {
				t.Fatal(err)
			}
			// The other server has a file of the same name.
			if err := servers.at("two").Create(f.ctx, table.MetadataLocation, table.Document.Raw()); err != nil {
				t.Fatal(err)
			}
			for _, err := range []error{
				f.DropTable(f.ctx, lakeIdent(), catalog.DropOptions{Purge: true}),
				f.DropNamespace(f.ctx, "lake", moorage.Namespace{"ns"}),
				f.Warehouses().Drop(f.ctx, "lake"),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			change(f)
			if err := f.purgeAll(f.ctx); err != nil {
				t.Fatal(err)
			}
			if _, err := servers.at("one").Stat(f.ctx, table.MetadataLocation); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("the table's file is still there (%v)", err)
			}
			if _, err := servers.at("two").Stat(f.ctx, table.MetadataLocation); err != nil {
				t.Errorf("the other server's file: %v", err)
			}
			records, err := f.store.List(f.ctx, registry.TableTask, "", "", 10)
			if err != nil || len(records) > 0 {
				t.Errorf("tasks left: %d, %v", len(records), err)
			}
			f.wantClean()
		})
	}
}

// A storage that is opened for one table is given back. The table's warehouse is gone or no longer
// says where the table is.
func TestBorrowedStorages(t *testing.T) {
	t.Parallel()
	var opened, borrowed, back atomic.Int64
	f := newFixture(t, func(c *catalog.Config) {
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
		_, err := f.Warehouses().Create(f.ctx, warehouses.Spec{Name: warehouse, Location: "file:///" + warehouse})
		if err == nil {
			_, err = f.CreateNamespace(f.ctx, warehouse, ident.Namespace, nil)
		}
		if err == nil {
			_, err = f.CreateTable(f.ctx, ident, catalog.CreateTableRequest{Schema: []byte(testSchema)})
		}
		if err == nil {
			err = f.DropTable(f.ctx, ident, catalog.DropOptions{Purge: true})
		}
		if err == nil {
			err = f.DropNamespace(f.ctx, warehouse, ident.Namespace)
		}
		if err == nil {
			err = f.Warehouses().Drop(f.ctx, warehouse)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	before := opened.Load()
	if err := f.purgeAll(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.wantClean()
	if opened.Load() != before || borrowed.Load() != 3 || back.Load() != 3 {
		t.Errorf("opened for good %d, borrowed %d, given back %d; want 0, 3 and 3", opened.Load()-before, borrowed.Load(), back.Load())
	}
	f.create("t")
	f.instance = f.other(f.store) // as in a process that checks and does nothing else
	f.wantClean()
	if opened.Load() != before || borrowed.Load() < 4 || back.Load() != borrowed.Load() {
		t.Errorf("after a check: opened for good %d, borrowed %d, given back %d", opened.Load()-before, borrowed.Load(), back.Load())
	}
}

// Where a look at a file is not cheap, a load that has the document asks for no file. A load
// without the document reads the file.
func TestMissingRemoteMetadataFile(t *testing.T) {
	t.Parallel()
	f, _ := newRemoteFixture(t)
	table, err := f.CreateTable(f.ctx, lakeIdent(), catalog.CreateTableRequest{Schema: []byte(testSchema)})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.files.Delete(f.ctx, table.MetadataLocation); err != nil {
		t.Fatal(err)
	}
	if _, err := f.LoadTable(f.ctx, lakeIdent()); err != nil {
		t.Errorf("load of a document that is kept: %v", err)
	}
	node, err := newInstance(f.config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = node.LoadTable(f.ctx, lakeIdent())
	wantKind(t, err, moorage.KindNotFound)
}

// A commit that names its table by the uuid follows it to another name, but not into another
// warehouse.
func TestCommitStaysInItsWarehouse(t *testing.T) {
	t.Parallel()
	var meanwhile hook
	f := newFixture(t, meanwhile.onCreate)
	lake := moorage.Identifier{Warehouse: "lake", Namespace: moorage.Namespace{"ns"}, Name: "t"}
	_, err := f.Warehouses().Create(f.ctx, warehouses.Spec{Name: "lake", Location: "file:///lake"})
	if err == nil {
		_, err = f.CreateNamespace(f.ctx, "lake", lake.Namespace, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	table := f.create("t")
	const copied = "file:///lake/t/metadata/v1.metadata.json"
	raw := strings.ReplaceAll(string(table.Document.Raw()), table.Document.Location(), "file:///lake/t")
	if err := f.files.Create(f.ctx, copied, []byte(raw)); err != nil {
		t.Fatal(err)
	}
	meanwhile.once(func() {
		if err := f.DropTable(f.ctx, ident("t"), catalog.DropOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := f.RegisterTable(f.ctx, lake, catalog.RegisterRequest{MetadataLocation: copied}); err != nil {
			t.Error(err)
		}
	})
	request := commitRequest(t, `[{"type":"assert-table-uuid","uuid":"`+table.Document.UUID()+`"}]`, `[{"action":"set-properties","updates":{"a":"b"}}]`)
	_, err = f.Commit(f.ctx, ident("t"), request)
	wantKind(t, err, moorage.KindNoSuchTable)
	loaded, err := f.LoadTable(f.ctx, lake)
	if err != nil || loaded.MetadataLocation != copied {
		t.Errorf("loaded %+v, %v", loaded, err)
	}
	f.wantClean()
}

// A warehouse is dropped and made again under its name, elsewhere, and a table comes back in it.
// The table is written where the new warehouse is, also by a node that knew the table before.
func TestTableComesBackElsewhere(t *testing.T) {
	t.Parallel()
	f, servers := newRemoteFixture(t)
	table, err := f.CreateTable(f.ctx, lakeIdent(), catalog.CreateTableRequest{Schema: []byte(testSchema)})
	if err != nil {
		t.Fatal(err)
	}
	node := f.other(f.store) // knows the table, and none of what happens to it
	for _, do := range []func() error{
		func() error { _, err := node.LoadTable(f.ctx, lakeIdent()); return err },
		func() error { return f.DropTable(f.ctx, lakeIdent(), catalog.DropOptions{}) },
		func() error { return f.DropNamespace(f.ctx, "lake", moorage.Namespace{"ns"}) },
		func() error { return f.Warehouses().Drop(f.ctx, "lake") },
		func() error {
			return servers.at("two").Create(f.ctx, table.MetadataLocation, table.Document.Raw())
		},
		func() error { f.createLake(map[string]string{"endpoint": "two"}); return nil },
		func() error {
			_, err := f.RegisterTable(f.ctx, lakeIdent(), catalog.RegisterRequest{MetadataLocation: table.MetadataLocation})
			return err
		},
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	next, err := node.Commit(f.ctx, lakeIdent(), setProperty(t, "n", "1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := servers.at("two").Stat(f.ctx, next.MetadataLocation); err != nil || !maps.Equal(next.Config, map[string]string{"endpoint": "two"}) {
		t.Errorf("the new version is not where the warehouse is: %v, and clients are sent to %v", err, next.Config)
	}
}
