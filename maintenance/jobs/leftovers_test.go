package jobs_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/internal/jsontext"
	"moorage/maintenance/jobs"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
	memorystorage "moorage/storage/memory"
)

const (
	intSchema = `{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","type":"long","required":false}]}`
	youngLeft = "file:///wh/ns/ctas/data/young.parquet"
)

// leftAt returns files outside of all tables.
func leftAt() []string {
	return []string{"file:///wh/l3.parquet", "file:///wh/ns/ctas/data/l1.parquet", "file:///wh/ns/ctas/metadata/l2.avro"}
}

// stayAt returns files outside of the table that stay, each with the reason.
func stayAt() map[string]string {
	return map[string]string{
		"file:///wh/ns/ctas/_temporary/1.parquet": "a hidden name",
		"file:///wh/ns/ctas/version-hint.text":    "a metadata file",
		"file:///wh/raw/added.stats":              "reached by a table",
		"file:///wh/raw/gone.stats":               "reached by a table",
		"file:///wh/raw/Added.stats":              "look-alike",
		youngLeft:                                 "too young",
	}
}

func identOf(name string) moorage.Identifier {
	return moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"ns"}, Name: name}
}

func (w *world) ann() *catalog.Catalog { return w.catalog.As(moorage.Anonymous()) }

func (w *world) file(path string) {
	w.t.Helper()
	must(w.t, w.files.Create(w.ctx, path, []byte("left")))
}

func (w *world) create(ident moorage.Identifier, location string) {
	w.t.Helper()
	_, err := w.ann().CreateTable(w.ctx, ident, catalog.CreateTableRequest{Schema: []byte(intSchema), Location: location})
	must(w.t, err)
}

// stats returns an update that adds the file at path as the statistics of snapshot id.
func stats(id int, path string) string {
	return fmt.Sprintf(`{"action":"set-partition-statistics","partition-statistics":{"snapshot-id":%d,"statistics-path":%q,"file-size-in-bytes":5}}`,
		id, path)
}

func decodeUpdates(t testing.TB, updates ...string) []metadata.Update {
	t.Helper()
	checked, err := jsontext.Check([]byte("[" + strings.Join(updates, ",") + "]"))
	must(t, err)
	decoded, err := metadata.DecodeUpdates(checked)
	must(t, err)
	return decoded
}

func (w *world) update(ident moorage.Identifier, updates ...string) {
	w.t.Helper()
	_, err := w.ann().Commit(w.ctx, ident, catalog.CommitRequest{Updates: decodeUpdates(w.t, updates...)})
	must(w.t, err)
}

// leave makes the files and a dropped table, and then advances the clock until they are old.
func (w *world) leave() {
	w.t.Helper()
	w.update(ident(), stats(1, "file:///wh/raw/added.stats"))
	w.create(identOf("gone"), "")
	w.update(identOf("gone"), stats(1, "file:///wh/raw/gone.stats"))
	for _, path := range leftAt() {
		w.file(path)
	}
	for path := range stayAt() {
		if path != youngLeft {
			w.file(path)
		}
	}
	w.file("file:///wh/ns/gone/data/1.parquet") // in the location of the dropped table
	w.file(tableAt + "/data/stray.parquet")     // in the location of the table
	w.file("file:///elsewhere/1.parquet")       // in no warehouse
	w.clock.Advance(8 * 24 * time.Hour)
	must(w.t, w.ann().DropTable(w.ctx, identOf("gone"), catalog.DropOptions{}))
	w.file(youngLeft)
}

func (w *world) leftovers(n node) jobs.DryRun {
	w.t.Helper()
	run, err := jobs.Leftovers(w.ctx, n.jobs, "w", jobs.DefaultLeftovers(), 1000)
	must(w.t, err)
	return run
}

// wantLeft fails the test unless a report lists these files.
func wantLeft(t testing.TB, run jobs.DryRun, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := paths(run.Sample); run.Blocked != "" || run.Files != int64(len(want)) || !slices.Equal(got, want) {
		t.Errorf("%d files are reported, %q (%s), want %q", run.Files, got, run.Blocked, want)
	}
}

// keptBy returns the number of files that stay, by reason.
func keptBy(run jobs.DryRun) map[string]int64 {
	counts := map[string]int64{}
	for _, kept := range run.Kept {
		counts[kept.Reason] = kept.Files
	}
	return counts
}

// Files outside of all tables are reported, others are kept and counted, and nothing is changed.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 6)
	w.leave()
	before := w.everything()
	run := w.leftovers(w.node)
	if after := w.everything(); !slices.Equal(before, after) {
		t.Errorf("the report has made %q of %q", after, before)
	}
	wantLeft(t, run, leftAt()...)
	want := map[string]int64{}
	for _, why := range stayAt() {
		want[why]++
	}
	if got := keptBy(run); !maps.Equal(got, want) || run.Bytes != 12 || run.Cost.Manifests == 0 || run.More {
		t.Errorf("kept %v, want %v; %+v", got, want, run)
	}
	some := jobs.DefaultLeftovers()
	some.FindMost(2)
	if run, err := jobs.Leftovers(w.ctx, w.jobs, "w", some, 1); err != nil || !run.More || run.Files != 2 || len(run.Sample) != 1 {
		t.Errorf("of two at most: %+v, %v", run, err)
	}
}

// A file younger than seven days is reported only if the caller sets Unsafe.
func TestLeftoversOfLessThanSevenDays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 3)
	w.leave()
	for kind, asked := range map[moorage.Kind]struct {
		warehouse string
		settings  jobs.LeftoverSettings
	}{
		moorage.KindIllegalArgument: {"w", jobs.LeftoverSettings{OlderThan: 7*24*time.Hour - time.Second}},
		moorage.KindNoSuchWarehouse: {"none", jobs.DefaultLeftovers()},
	} {
		if _, err := jobs.Leftovers(w.ctx, w.jobs, asked.warehouse, asked.settings, 1); err == nil || moorage.KindOf(err) != kind {
			t.Errorf("%+v: %v, want %v", asked, err, kind)
		}
	}
	run, err := jobs.Leftovers(w.ctx, w.jobs, "w", jobs.LeftoverSettings{Unsafe: true}, 1000)
	must(t, err)
	wantLeft(t, run, append(leftAt(), youngLeft)...)
}

// watched is a storage that calls functions before and after it lists a page. For some files, it
// does not know when they were written.
type watched struct {
	*memorystorage.Store
	before, after map[int]func() // by page number
	undated       string
	pages         int
}

// List implements storage.Lister.
func (f *watched) List(ctx context.Context, folder, after string, limit int) (storage.Page, error) {
	f.pages++
	if do := f.before[f.pages]; do != nil {
		do()
	}
	page, err := f.Store.List(ctx, folder, after, limit)
	for i := range page.Files {
		if page.Files[i].Location == f.undated {
			page.Files[i].Modified = time.Time{}
		}
	}
	if do := f.after[f.pages]; do != nil {
		do()
	}
	return page, err
}

// A file of unknown age stays.
func TestLeftoversWithoutATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 3)
	w.leave()
	run := w.leftovers(w.newNode(w.store, &watched{Store: w.files, undated: leftAt()[0]}))
	wantLeft(t, run, leftAt()[1:]...)
	if keptBy(run)["without a time"] != 1 {
		t.Errorf("kept %v", run.Kept)
	}
}

// watchedLog is a store that calls a function before it returns changes, after files were listed
// twice.
type watchedLog struct {
	registry.Store
	files *watched
	do    func()
}

// Changes implements registry.Store.
func (l *watchedLog) Changes(ctx context.Context, after registry.Position, limit int) ([]registry.PositionedChange, error) {
	if do := l.do; l.files.pages == 2 && do != nil {
		l.do = nil
		do()
	}
	return l.Store.Changes(ctx, after, limit)
}

// Tables are created, dropped or moved during the search. Their locations, and the files that they
// refer to, are not reported. Such a change may happen before the files are listed, between the two
// lists, when the claims are read, or after that.
func TestLeftoversOfTablesThatChange(t *testing.T) {
	t.Parallel()
	left := leftAt()
	for name, tt := range map[string]struct {
		do    func(w *world)
		stays []string // in addition to the files that always stay
	}{
		"created": {func(w *world) { w.create(identOf("ctas"), "file:///wh/ns/ctas") }, left[1:]},
		"changed": {func(w *world) { w.update(ident(), stats(2, left[0])) }, left[:1]},
		"created and dropped": {func(w *world) {
			w.create(identOf("new"), "")
			w.update(identOf("new"), stats(2, left[0]))
			must(w.t, w.ann().DropTable(w.ctx, identOf("new"), catalog.DropOptions{}))
		}, left[:1]},
		"dropped": {func(w *world) { must(w.t, w.ann().DropTable(w.ctx, ident(), catalog.DropOptions{})) }, nil},
		"forgotten": {func(w *world) {
			_, err := w.ann().UnregisterTable(w.ctx, ident())
			must(w.t, err)
		}, nil},
		"made, changed and forgotten": {func(w *world) {
			w.create(identOf("new"), "")
			w.update(identOf("new"), stats(2, left[0]))
			_, err := w.ann().UnregisterTable(w.ctx, identOf("new"))
			must(w.t, err)
		}, left[:1]},
		"brought back": {func(w *world) { w.bringBack("gone") }, nil},
		"renamed":      {func(w *world) { must(w.t, w.ann().RenameTable(w.ctx, ident(), identOf("other"))) }, nil},
	} {
		for _, at := range []string{"before both lists", "between both lists", "before the claims", "behind the claims"} {
			t.Run(name+" "+at, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, inMemory, 1, 4)
				w.leave()
				files := &watched{Store: w.files, before: map[int]func(){}, after: map[int]func(){}}
				store := &watchedLog{Store: w.store, files: files}
				done := false
				do := func() { tt.do(w); done = true }
				switch at {
				case "before both lists":
					files.before[1] = do
				case "between both lists":
					files.after[1] = do
				case "before the claims":
					files.after[2] = do
				default:
					store.do = do
				}
				run := w.leftovers(w.newNode(store, files))
				want := slices.DeleteFunc(leftAt(), func(path string) bool { return slices.Contains(tt.stays, path) })
				if wantLeft(t, run, want...); !done {
					t.Error("nothing was done meanwhile")
				}
			})
		}
	}
}

// bringBack registers the last version of a dropped table again.
func (w *world) bringBack(name string) {
	w.t.Helper()
	records, err := w.store.List(w.ctx, registry.TablePointer, "", "", 100)
	must(w.t, err)
	for _, record := range records {
		pointer, err := registry.Decode[registry.Pointer](record)
		must(w.t, err)
		if pointer.Name != name {
			continue
		}
		_, err = w.ann().RegisterTable(w.ctx, identOf(name), catalog.RegisterRequest{MetadataLocation: pointer.MetadataLocation})
		must(w.t, err)
		return
	}
	w.t.Fatalf("there is no table called %s", name)
}

// A file that was reached once counts as reached, even if its table drops it during the search. A
// reader of the earlier version may still need it.
func TestLeftoversThatWereReached(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 4)
	w.leave()
	files := &watched{Store: w.files, after: map[int]func(){2: func() {
		w.update(ident(), `{"action":"remove-partition-statistics","snapshot-id":1}`)
	}}}
	wantLeft(t, w.leftovers(w.newNode(w.store, files)), leftAt()...)
	wantLeft(t, w.leftovers(w.node), append(leftAt(), "file:///wh/raw/added.stats", "file:///wh/raw/Added.stats")...)
}
