package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/maintenance/jobs"
	"moorage/registry"
	"moorage/testkit/registrytest"
	"moorage/testkit/scale"
	"moorage/testkit/storagetest"
)

// formerKept is the time for which metadata files stay after they left the log.
const formerKept = 24 * time.Hour

// versions makes n versions of the table, a minute apart. It returns their files.
func (w *world) versions(n int) (files []string) {
	w.t.Helper()
	for i := range n {
		w.clock.Advance(time.Minute)
		w.commit(fmt.Sprintf(`{"action":"set-properties","updates":{"n":"%d"}}`, i))
		files = append(files, w.pointer().MetadataLocation)
	}
	return files
}

// set sets a property of the table, and returns the file of that version.
func (w *world) set(property, value string) string {
	w.t.Helper()
	w.commit(fmt.Sprintf(`{"action":"set-properties","updates":{%q:%q}}`, property, value))
	return w.pointer().MetadataLocation
}

func (w *world) pointerRecord() registry.Record {
	w.t.Helper()
	records, err := w.store.Get(w.ctx, registry.PointerKey(w.table))
	must(w.t, err)
	return records[0]
}

func (w *world) pointer() registry.Pointer {
	w.t.Helper()
	pointer, err := registry.Decode[registry.Pointer](w.pointerRecord())
	must(w.t, err)
	return pointer
}

// metadataFiles returns all metadata files of the table.
func (w *world) metadataFiles() (files []string) {
	w.t.Helper()
	for after := ""; ; {
		page, err := w.files.List(w.ctx, w.pointer().Claims[0], after, 1000)
		must(w.t, err)
		for _, file := range page.Files {
			if strings.HasSuffix(file.Location, ".metadata.json") {
				files = append(files, file.Location)
			}
		}
		if after = page.Next; after == "" {
			return files
		}
	}
}

// trim calls TrimFormer. count files must be deleted, or already be gone.
func (w *world) trim(count int) catalog.Former {
	w.t.Helper()
	former, err := w.jobs.TrimFormer(w.ctx, w.table, nil)
	must(w.t, err)
	if former.Files != count {
		w.t.Errorf("%d files are deleted, want %d", former.Files, count)
	}
	return former
}

// wantFiles fails the test unless the table has exactly these metadata files.
func (w *world) wantFiles(at string, want []string) {
	w.t.Helper()
	got := w.metadataFiles()
	slices.Sort(got)
	if want = slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
		w.t.Errorf("%s: there are %d metadata files, want %d", at, len(got), len(want))
	}
}

// A table keeps the metadata files in its log. It also keeps the files that left the log, for as
// long as change records refer to them. The other files are deleted, without a new version of the
// table.
func TestTrimFormer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 0)
	all := append([]string{w.pointer().MetadataLocation}, w.versions(200)...)
	if former := w.trim(0); former != (catalog.Former{Next: former.Next}) || former.Next.IsZero() {
		t.Errorf("at first it returns %+v", former)
	}
	w.clock.Advance(formerKept)
	all = append(all, w.versions(50)...)
	w.wantFiles("before", all)
	former := w.trim(100) // the files that are not in the log of the last old version, the 201st
	w.wantFiles("the first time", all[100:])
	w.trim(0)
	w.clock.Advance(former.Next.Sub(w.clock.Now()) - time.Second)
	w.trim(100) // 51 are gone already
	w.wantFiles("a second before the last goes", all[149:])
	w.clock.Advance(2 * time.Second)
	if former := w.trim(100); !former.Next.IsZero() {
		t.Errorf("it is to be done again at %s", former.Next)
	}
	w.wantFiles("in the end", all[150:])
	if last := w.pointer().MetadataLocation; last != all[250] {
		t.Errorf("the table is at %s, want %s", last, all[250])
	}
	before := w.pointerRecord()
	if former := w.trim(0); former != (catalog.Former{}) {
		t.Errorf("in the end it returns %+v", former)
	}
	if now := w.pointerRecord(); now.ETag != before.ETag {
		t.Error("it writes although there is nothing to do")
	}
}

// One run deletes more files than one Apply announces, in several folders.
func TestTrimFormerInRounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 0)
	w.set("write.metadata.previous-versions-max", "30")
	for i := range 12 {
		w.set("write.metadata.path", fmt.Sprintf("%s/m%d", w.pointer().Claims[0], i))
		w.versions(100)
	}
	w.clock.Advance(2 * formerKept)
	w.trim(len(w.metadataFiles()) - 31)
	if left := w.metadataFiles(); len(left) != 31 {
		t.Errorf("%d files are left, want the log and the present one", len(left))
	}
}

// Files that a register brought back into the log stay, and so do files that were current a short
// time ago. Files that the table brought from elsewhere are never deleted.
func TestTrimFormerAfterARegister(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 0)
	first := w.set("write.metadata.previous-versions-max", "3")
	all := append([]string{first}, w.versions(20)...)
	w.clock.Advance(2 * formerKept)
	register := func(file string) {
		_, err := w.catalog.As(moorage.Anonymous()).RegisterTable(w.ctx, ident(), catalog.RegisterRequest{
			MetadataLocation: file, Overwrite: true,
		})
		must(t, err)
	}
	register(all[10])
	w.clock.Advance(time.Minute)
	register(all[20])
	before := w.metadataFiles()
	w.trim(0)
	w.wantFiles("after a register", before)
	w.clock.Advance(formerKept + 10*time.Minute)
	w.trim(18) // including the first one, which created the table
	w.wantFiles("a day later", all[17:])

	foreign := w.pointer().Claims[0] + "/metadata/00001-9c12d441-03fe-4693-9a96-a0705ddf69c1.metadata.json"
	loaded, err := w.catalog.As(moorage.Anonymous()).LoadTable(w.ctx, ident())
	must(t, err)
	must(t, w.files.Create(w.ctx, foreign, loaded.Document.Raw()))
	register(foreign)
	w.versions(10)
	w.clock.Advance(2 * formerKept)
	_, err = w.jobs.TrimFormer(w.ctx, w.table, nil)
	must(t, err)
	if !w.exists(foreign) {
		t.Error("the file of another catalog is gone")
	}
}

// If commits delete the files that leave the log, a run deletes the files that had left it earlier.
func TestTrimFormerWithDeleteAfterCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 0)
	w.set("write.metadata.previous-versions-max", "10")
	w.versions(30)
	w.set("write.metadata.delete-after-commit.enabled", "true")
	w.versions(5)
	w.clock.Advance(2 * formerKept)
	_, err := w.jobs.TrimFormer(w.ctx, w.table, nil)
	must(t, err)
	if left := w.metadataFiles(); len(left) != 11 {
		t.Errorf("%d files are left, want the log and the present one", len(left))
	}
	w.versions(20)
	w.clock.Advance(2 * formerKept)
	w.trim(0)
	if left := w.metadataFiles(); len(left) != 11 {
		t.Errorf("later %d files are left, want the log and the present one", len(left))
	}
}

// TestCrashEveryCallOfTrimFormer gives each call of a run a fault: the call fails, loses its
// answer, or is the last one of its process. The files that must stay exist at any time. Another
// process deletes all others.
func TestCrashEveryCallOfTrimFormer(t *testing.T) {
	t.Parallel()
	for _, action := range []storagetest.Action{storagetest.Fail, storagetest.Lose, storagetest.Die, storagetest.DieAfter} {
		if !scale.Every() && action != storagetest.Lose && action != storagetest.DieAfter {
			continue
		}
		t.Run(fmt.Sprint(action), func(t *testing.T) {
			t.Parallel()
			for k := 0; ; k++ {
				survived := false
				synctest.Test(t, func(t *testing.T) { survived = crashTrim(t, k, int(action)) })
				if survived || t.Failed() {
					if k < 20 {
						t.Errorf("only %d calls were met", k)
					}
					return
				}
			}
		})
	}
}

// crashTrim gives call k a fault. It reports whether the run ended without the fault, because it
// makes fewer calls.
func crashTrim(t *testing.T, k, action int) (survived bool) {
	t.Helper()
	w := newWorld(t, inMemory, 1, 0)
	all := []string{w.set("write.metadata.previous-versions-max", "4")}
	all = append(all, w.versions(20)...)
	w.clock.Advance(formerKept)
	all = append(all, w.versions(10)...)
	plan := &oneFault{k: k, action: action}
	first := w.newNode(
		registrytest.Faulty(w.store, func(_ int, method string) registrytest.Action {
			return registrytest.Action(plan.next(method))
		}),
		storagetest.Faulty(w.files, func(_ int, method string) storagetest.Action {
			return storagetest.Action(plan.next(method))
		}))
	_, _ = first.jobs.TrimFormer(w.ctx, w.table, nil)
	hit := plan.disarm()
	at := fmt.Sprintf("call %d (%s)", k, hit)
	for _, file := range all[16:] {
		if !w.exists(file) {
			t.Errorf("%s: %s is gone", at, file)
		}
	}
	w.node = w.newNode(w.store, w.files)
	_, err := w.jobs.TrimFormer(w.ctx, w.table, nil)
	must(t, err)
	w.wantFiles(at, all[16:])
	return hit == ""
}

// meddler is a store in which something happens before and after an Apply. Each happens once.
type meddler struct {
	registry.Store
	before, after func()
}

func (m *meddler) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	before, after := m.before, m.after
	m.before, m.after = func() {}, func() {}
	before()
	etags, err := m.Store.Apply(ctx, batch)
	after()
	return etags, err
}

// TestForbiddenWhileTrimming: a table is held or paused, or forbids deletions, right before or
// after the Apply that announces its former metadata files. Then none of them is deleted.
func TestForbiddenWhileTrimming(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		forbid func(w *world)
		why    string
	}{
		"hold": {func(w *world) { w.set("moorage.maintenance.hold", "true") }, "hold is true"},
		"gc":   {func(w *world) { w.set("gc.enabled", "false") }, "gc.enabled is not true"},
		"pause": {func(w *world) {
			value, err := registry.Encode(registry.Pauses{Pauses: []registry.Pause{{Scope: registry.TableScope(w.table)}}})
			must(w.t, err)
			_, err = w.store.Apply(w.ctx, registry.Batch{Writes: []registry.Write{
				registry.Put(registry.PauseKey(), registry.StateNone, value),
			}})
			must(w.t, err)
		}, "paused"},
	} {
		for _, when := range []string{"before", "after"} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, inMemory, 1, 0)
				w.set("write.metadata.previous-versions-max", "4")
				w.versions(20)
				w.clock.Advance(2 * formerKept)
				all := w.metadataFiles()
				around := &meddler{w.store, func() {}, func() {}}
				if forbid := func() { test.forbid(w) }; when == "before" {
					around.before = forbid
				} else {
					around.after = forbid
				}
				_, err := w.newNode(around, w.files).jobs.TrimFormer(w.ctx, w.table, nil)
				if held, ok := errors.AsType[*jobs.HeldError](err); !ok || !strings.Contains(held.Why, test.why) {
					t.Errorf("the error is %v", err)
				}
				for _, file := range all {
					if !w.exists(file) {
						t.Errorf("%s is gone", file)
					}
				}
			})
		}
	}
}
