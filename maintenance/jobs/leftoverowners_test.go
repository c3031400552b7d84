package jobs_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/internal/jsontext"
	"moorage/maintenance/jobs"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
	filestorage "moorage/storage/file"
	memorystorage "moorage/storage/memory"
	"moorage/testkit/tablefiles"
)

// wantBlocked fails the test unless a report lists no file and gives this reason.
func wantBlocked(t testing.TB, run jobs.DryRun, why string) {
	t.Helper()
	if run.Files != 0 || len(run.Sample) != 0 || !strings.Contains(run.Blocked, why) {
		t.Errorf("%d files are reported, and %q; want none, and %q", run.Files, run.Blocked, why)
	}
}

// A dropped table is read through the storage of its former warehouse, even if that warehouse was
// deleted or replaced by one of the same name.
func TestLeftoversOfADroppedWarehouse(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprintf("another one: %v", again), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, inMemory, 1, 3)
			w.leave()
			second := memorystorage.NewWithClock(w.clock.Now)
			w.node = w.newNodeOver(w.store, func(place storage.Place) (storage.Store, error) {
				if strings.HasPrefix(place.Roots[0], "file:///second") {
					return second, nil
				}
				return w.files, nil
			})
			away := moorage.Identifier{Warehouse: "second", Namespace: moorage.Namespace{"ns"}, Name: "away"}
			_, err := w.ann().Warehouses().Create(w.ctx, warehouses.Spec{Name: "second", Location: "file:///second"})
			must(t, err)
			_, err = w.ann().CreateNamespace(w.ctx, "second", away.Namespace, nil)
			must(t, err)
			w.create(away, "")
			w.update(away, stats(1, leftAt()[0]))
			must(t, w.ann().DropTable(w.ctx, away, catalog.DropOptions{}))
			must(t, w.ann().DropNamespace(w.ctx, "second", away.Namespace))
			must(t, w.ann().Warehouses().Drop(w.ctx, "second"))
			if again {
				_, err := w.ann().Warehouses().Create(w.ctx, warehouses.Spec{Name: "second", Location: "file:///third"})
				must(t, err)
			}
			wantLeft(t, w.leftovers(w.node), leftAt()[1:]...)
			page, err := second.List(w.ctx, "file:///second", "", 100)
			must(t, err)
			for _, file := range page.Files {
				must(t, second.Delete(w.ctx, file.Location))
			}
			run := w.leftovers(w.node)
			if wantBlocked(t, run, "a table of another warehouse"); strings.Contains(run.Blocked, "away") {
				t.Errorf("the name of a table elsewhere is told: %s", run.Blocked)
			}
		})
	}
}

// unregistered writes a table that no catalog knows, with its metadata file at path and its data
// below lake. It returns the table's history.
func (w *world) unregistered(path, lake string) *tablefiles.History {
	w.t.Helper()
	env := metadata.Env{Now: w.clock.Now(), NewUUID: func() string { return "9c12d441-03fe-4693-9a96-a0705ddf69c1" }}
	document, err := metadata.Create(metadata.CreateTable{Location: "file:///wh/exported", Schema: []byte(intSchema)}, env)
	must(w.t, err)
	history := tablefiles.New(w.t, w.files, lake, rand.New(rand.NewPCG(5, 5)), w.clock.Now().UnixMilli())
	for range 3 {
		checked, err := jsontext.Check([]byte("[" + strings.Join(history.Append("main", 1), ",") + "]"))
		must(w.t, err)
		updates, err := metadata.DecodeUpdates(checked)
		must(w.t, err)
		document, err = document.Apply(updates, metadata.Env{Now: time.UnixMilli(history.NowMS()), BaseLocation: path})
		must(w.t, err)
	}
	must(w.t, w.files.Create(w.ctx, path, document.Raw()))
	return history
}

// Files that an unregistered metadata file refers to stay, wherever they are. So do all files
// beside the metadata file.
func TestLeftoversOfTablesThatCouldBeRegistered(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"file:///wh/copied/metadata/00003-x.metadata.json", "file:///wh/copied/metadata/v1.metadata.json",
		"file:///wh/copied/00003-x.gz.metadata.json", "file:///wh/copied/v3.metadata.json.gz",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, inMemory, 1, 3)
			w.file("file:///wh/copied/data/1.parquet")
			w.file("file:///wh/exported/data/1.parquet") // in the table's location
			history := w.unregistered(path, "file:///wh/lake")
			w.leave()
			run := w.leftovers(w.node)
			wantLeft(t, run, leftAt()...)
			kept := keptBy(run)
			if n := int64(len(history.Files)); kept["of a table that could be registered"] != 2 ||
				kept["a metadata file"] != 2 || kept["reached by a table"] != 2+n {
				t.Errorf("kept %v, of %d files below file:///wh/lake", kept, n)
			}
			list := slices.IndexFunc(history.Files, func(path string) bool { return strings.Contains(path, "/snap-") })
			must(t, w.files.Delete(w.ctx, history.Files[list])) // its snapshot has expired
			if run = w.leftovers(w.node); run.Blocked != "" || run.Files < 3 {
				t.Errorf("without the list of an old snapshot: %+v", run)
			}
			last := history.Files[len(history.Files)-1]
			must(t, w.files.Delete(w.ctx, last))
			w.file(last)
			wantBlocked(t, w.leftovers(w.node), path)
		})
	}
	t.Run("unreadable", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, inMemory, 1, 3)
		w.file("file:///wh/copied/metadata/v1.metadata.json")
		w.leave()
		wantBlocked(t, w.leftovers(w.node), "file:///wh/copied/metadata/v1.metadata.json")
	})
}

// The metadata files of views stay, wherever they are.
func TestLeftoversOfViews(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 3)
	const version = `{"version-id":1,"schema-id":0,"timestamp-ms":1700000000000,"summary":{},"default-namespace":["ns"],` +
		`"representations":[{"type":"sql","sql":"SELECT 1","dialect":"spark"}]}`
	request := catalog.CreateViewRequest{
		Schema: []byte(intSchema), Version: []byte(version), Properties: map[string]string{"write.metadata.path": "file:///wh/views"},
	}
	_, err := w.ann().CreateView(w.ctx, identOf("v"), request)
	must(t, err)
	checked, err := jsontext.Check([]byte(`[{"action":"set-properties","updates":{"a":"b"}}]`))
	must(t, err)
	updates, err := metadata.DecodeViewUpdates(checked)
	must(t, err)
	_, err = w.ann().ReplaceView(w.ctx, identOf("v"), catalog.ReplaceViewRequest{Updates: updates})
	must(t, err)
	document, err := metadata.NewView(metadata.CreateView{
		Location: "file:///wh/ns/odd", Schema: []byte(intSchema), Version: []byte(version),
	}, metadata.Env{Now: w.clock.Now(), NewUUID: func() string { return "9c12d441-03fe-4693-9a96-a0705ddf69c2" }})
	must(t, err)
	for _, name := range []string{"odd", "dropped"} {
		raw := strings.ReplaceAll(string(document.Raw()), "file:///wh/ns/odd", "file:///wh/ns/"+name)
		if name == "dropped" {
			raw = strings.Replace(raw, "69c2", "69c3", 1)
		}
		must(t, w.files.Create(w.ctx, "file:///wh/odd/"+name+".metadata.json", []byte(raw)))
		_, err = w.ann().RegisterView(w.ctx, identOf(name), "file:///wh/odd/"+name+".metadata.json")
		must(t, err)
	}
	must(t, w.ann().DropView(w.ctx, identOf("dropped")))
	w.leave()
	run := w.leftovers(w.node)
	wantLeft(t, run, leftAt()...)
	if kept := keptBy(run); kept["a metadata file"] != 5 || kept["reached by a table"] != 2 {
		t.Errorf("kept %v", kept)
	}
}

// Folders of other warehouses are left out. Such a warehouse belongs to this store, or to another
// store that has left an owner file.
func TestLeftoversInOtherWarehouses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 3)
	_, err := w.ann().Warehouses().Create(w.ctx, warehouses.Spec{Name: "inner", Location: "file:///wh/inner"})
	must(t, err)
	for _, path := range []string{
		"file:///wh/inner/a.parquet", "file:///wh/other/a.parquet", "file:///wh/other/ns/t/data/a.parquet",
		"file:///wh/other/~moorage/owner", "file:///wh/zebra/a.parquet", "file:///wh/zebra/~moorage/jobs/1",
		"file:///wh/innermost/a.parquet",
	} {
		w.file(path)
	}
	w.leave()
	run := w.leftovers(w.node)
	wantLeft(t, run, append(leftAt(), "file:///wh/innermost/a.parquet")...)
	if want := []string{"file:///wh/inner", "file:///wh/other", "file:///wh/zebra"}; !slices.Equal(run.LeftOut, want) ||
		keptBy(run)["in another warehouse"] != 4 {
		t.Errorf("left out %q, kept %v", run.LeftOut, run.Kept)
	}
	must(t, w.files.Create(w.ctx, "file:///wh/~moorage/owner", []byte("another")))
	wantBlocked(t, w.leftovers(w.node), "another")
}

// If a file that a table reaches cannot be read, it is unknown which files are free.
func TestLeftoversWithoutAManifest(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"snap-", ".avro", ".metadata.json"} {
		for _, at := range []string{"live", "dropped"} {
			t.Run(what+" "+at, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, inMemory, 1, 3)
				w.leave()
				must(t, w.damage(what))
				if at == "dropped" {
					w.node = w.newNode(w.store, w.files)
					must(t, w.ann().DropTable(w.ctx, ident(), catalog.DropOptions{}))
				}
				run := w.leftovers(w.newNode(w.store, w.files))
				wantBlocked(t, run, "the files of ns.t cannot be read")
			})
		}
	}
}

// damage deletes a file of the table whose name contains what.
func (w *world) damage(what string) error {
	table, err := w.ann().LoadTable(w.ctx, ident())
	must(w.t, err)
	if what == ".metadata.json" {
		return w.files.Delete(w.ctx, table.MetadataLocation)
	}
	live := w.history.Reach(w.present(w.node))
	for path := range live {
		if strings.Contains(path, what) && (what == "snap-" || !strings.Contains(path, "snap-")) {
			return w.files.Delete(w.ctx, path)
		}
	}
	return fmt.Errorf("no file has %s in its name", what)
}

// A dropped table lost its location to a second table, which has since been deleted. The dropped
// table may be restored there.
func TestLeftoversWhereADroppedTableLived(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 3)
	w.leave()
	const at = "file:///wh/ns/ctas"
	_, err := w.ann().CreateTable(w.ctx, identOf("first"), catalog.CreateTableRequest{
		Schema: []byte(intSchema), Location: at, Properties: map[string]string{"write.metadata.path": "file:///wh/meta"},
	})
	must(t, err)
	must(t, w.ann().DropTable(w.ctx, identOf("first"), catalog.DropOptions{}))
	w.create(identOf("second"), at)
	table, err := w.ann().UnregisterTable(w.ctx, identOf("second"))
	must(t, err)
	must(t, w.files.Delete(w.ctx, table.MetadataLocation))
	records, err := w.store.Get(w.ctx, registry.LocationKey(at))
	must(t, err)
	if records[0].State == registry.StateOwner {
		t.Fatalf("%s is claimed", at)
	}
	run := w.leftovers(w.node)
	if wantLeft(t, run, leftAt()[0]); keptBy(run)["where a dropped table lived"] != 2 {
		t.Errorf("kept %v", run.Kept)
	}
}

// On disk, the report is the same. It does not follow links.
func TestLeftoversOnADisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 3)
	root := t.TempDir()
	files, err := filestorage.New([]string{"file://" + root})
	must(t, err)
	w.node = w.newNodeOver(w.store, func(place storage.Place) (storage.Store, error) {
		if strings.HasPrefix(place.Roots[0], "file://"+root) {
			return files, nil
		}
		return w.files, nil
	})
	_, err = w.ann().Warehouses().Create(w.ctx, warehouses.Spec{Name: "disk", Location: "file://" + root + "/disk"})
	must(t, err)
	_, err = w.ann().CreateNamespace(w.ctx, "disk", moorage.Namespace{"ns"}, nil)
	must(t, err)
	table := moorage.Identifier{Warehouse: "disk", Namespace: moorage.Namespace{"ns"}, Name: "t"}
	w.create(table, "")
	old := time.Now().Add(-8 * 24 * time.Hour)
	for _, name := range []string{"disk/ns/ctas/1.parquet", "disk/ns/t/data/1.parquet", "disk/raw/1.stats", "outside/1.parquet"} {
		path := filepath.Join(root, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte("left"), 0o600))
		must(t, os.Chtimes(path, old, old))
	}
	must(t, os.Symlink(filepath.Join(root, "outside"), filepath.Join(root, "disk", "linked")))
	w.update(table, stats(1, "file://"+root+"/disk/raw/1.stats"))
	run, err := jobs.Leftovers(w.ctx, w.jobs, "disk", jobs.DefaultLeftovers(), 1000)
	must(t, err)
	wantLeft(t, run, "file://"+root+"/disk/ns/ctas/1.parquet")
}
