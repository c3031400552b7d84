package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/maintenance/jobs"
	"moorage/registry"
	"moorage/storage"
	"moorage/storage/memory"
	"moorage/testkit/scale"
	"moorage/testkit/tablefiles"
)

// TestKeepFiles expires snapshots with KeepFiles, which deletes nothing.
func TestKeepFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 5, 8)
	s := settings(3 * time.Second)
	s.KeepFiles = true
	began, err := w.jobs.Expire(w.ctx, w.table, s, nil)
	if err != nil || began.Outcome != jobs.OutcomeDone || began.Snapshots == 0 || w.job() != nil {
		t.Fatalf("Expire = %+v, %v; the job is %v", began, err, w.job())
	}
	w.clock.Advance(48 * time.Hour)
	must(t, w.jobs.RunOnce(w.ctx))
	if gone := w.judge(w.node, false, "with files kept"); gone > 0 {
		t.Errorf("%d files are gone", gone)
	}
}

// TestOneJobOfAKind: while a table has a job, an attempt to begin a second job of the same kind
// changes nothing.
func TestOneJobOfAKind(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 5, 8)
	began, err := w.jobs.Expire(w.ctx, w.table, settings(3*time.Second), nil)
	must(t, err)
	for range 3 {
		w.clock.Advance(time.Second)
		w.commit(w.history.AddAgain("main", w.history.Files[0])...)
	}
	before := len(w.present(w.node))
	if _, err := w.jobs.Expire(w.ctx, w.table, settings(0), nil); !errors.Is(err, jobs.ErrBusy) {
		t.Errorf("a second job: %v", err)
	}
	if after := len(w.present(w.node)); after != before || w.job().ID != began.Job {
		t.Errorf("%d snapshots are left of %d; the job is %s", after, before, w.job().ID)
	}
	if own := w.own(); len(own) != 1 {
		t.Errorf("the refused job has left %q", own)
	}
}

// hooked is a storage that calls a hook before each read of a file whose location contains part.
type hooked struct {
	*memory.Store
	part   string
	before func(location string)
}

// These are parts of the locations of lists: of jobs' lists of files, and of snapshots' manifest
// lists.
const (
	listsOfJobs      = "/list-"
	listsOfSnapshots = "/snap-"
)

// Open implements storage.Store.
func (h hooked) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	if strings.Contains(location, h.part) {
		h.before(location)
	}
	return h.Store.Open(ctx, location)
}

// scenario is a way to lose a file that only one check prevents.
type scenario struct {
	check string
	// lose tries to lose the file. It reports whether the file is lost.
	lose func(w *world) bool
}

// due begins an expiry, and advances to the moment at which its files may be deleted.
func (w *world) due() (doomed []jobs.Listed) {
	w.t.Helper()
	_, err := w.jobs.Expire(w.ctx, w.table, settings(3*time.Second), nil)
	must(w.t, err)
	must(w.t, w.jobs.RunOnce(w.ctx))
	doomed, err = w.jobs.Files(w.ctx, w.job().ID, 0, 1000)
	must(w.t, err)
	w.clock.Advance(time.Hour)
	return doomed
}

// continueJob has another node continue the job of the table.
func (w *world) continueJob(kind string, files storage.Store) {
	n := w.newNode(w.store, files)
	_ = n.jobs.Step(w.ctx, registry.JobKey(w.table, kind))
}

// contentOf returns the first data file of a list.
func contentOf(doomed []jobs.Listed) string {
	for _, file := range doomed {
		if strings.HasSuffix(file.Path, ".parquet") {
			return file.Path
		}
	}
	return doomed[0].Path
}

// doctor edits the record at key in a way that no request can.
func doctor[T registry.Value](w *world, key registry.Key, change func(*T)) {
	w.t.Helper()
	records, err := w.store.Get(w.ctx, key)
	must(w.t, err)
	value, err := registry.Decode[T](records[0])
	must(w.t, err)
	change(&value)
	encoded, err := registry.Encode(value)
	must(w.t, err)
	_, err = w.store.Apply(w.ctx, registry.Batch{Writes: []registry.Write{registry.Put(key, records[0].State, encoded)}})
	must(w.t, err)
}

// bringSnapshotBack commits a snapshot with the id of an expired one. It has the same files as the
// head.
func (w *world) bringSnapshotBack() {
	w.t.Helper()
	present, head := w.present(w.node), w.history.Heads["main"]
	at := slices.IndexFunc(w.history.Snapshots, func(s *tablefiles.Snapshot) bool { return !present[s.ID] })
	w.commit(fmt.Sprintf(`{"action":"add-snapshot","snapshot":{"snapshot-id":%d,"parent-snapshot-id":%d,"sequence-number":%d,`+
		`"timestamp-ms":%d,"manifest-list":%q,"summary":{"operation":"append"},"schema-id":0}}`,
		w.history.Snapshots[at].ID, head.ID, len(w.history.Snapshots)+1, w.history.NowMS(), head.List))
}

func scenarios() []scenario {
	property := func(name, value string) string {
		return `{"action":"set-properties","updates":{"` + name + `":"` + value + `"}}`
	}
	orphan := func(change func(w *world), s func(*jobs.OrphanSettings), victim string) func(*world) bool {
		return func(w *world) bool {
			w.strays()
			change(w)
			settings := orphanSettings()
			settings.Quarantine = 0
			s(&settings)
			n := w.newNode(w.store, w.files)
			_, _ = n.jobs.FindOrphans(w.ctx, w.table, settings, nil)
			w.continueJob(jobs.KindOrphans, w.files)
			return !w.exists(victim)
		}
	}
	nothing, usual := func(*world) {}, func(*jobs.OrphanSettings) {}
	return []scenario{
		{"list has changed", func(w *world) bool {
			w.due()
			list, live := w.job().Lists[0].Location, ""
			for path := range w.history.Reach(w.present(w.node)) {
				if strings.HasSuffix(path, ".parquet") {
					live = path
				}
			}
			must(w.t, w.files.Delete(w.ctx, list))
			must(w.t, w.files.Create(w.ctx, list, []byte(strings.Repeat(`{"path":"`+live+`"}`+"\n", int(w.job().Lists[0].Count)))))
			w.continueJob(jobs.KindSnapshots, w.files)
			return !w.exists(live)
		}},
		{"list has another length", func(w *world) bool {
			victim := contentOf(w.due())
			doctor(w, registry.JobKey(w.table, jobs.KindSnapshots), func(job *registry.Job) { job.Lists[0].Count++ })
			w.continueJob(jobs.KindSnapshots, w.files)
			return !w.exists(victim)
		}},
		{"same table", func(w *world) bool {
			victim := contentOf(w.due())
			doctor(w, registry.PointerKey(w.table), func(table *registry.Pointer) {
				table.TableUUID = "00000000-0000-4000-8000-000000000001"
			})
			w.continueJob(jobs.KindSnapshots, w.files)
			return !w.exists(victim)
		}},
		{"expired snapshot is back", func(w *world) bool {
			victim := contentOf(w.due())
			w.bringSnapshotBack()
			w.continueJob(jobs.KindSnapshots, w.files)
			return !w.exists(victim)
		}},
		{"not before its time", func(w *world) bool {
			_, err := w.jobs.Expire(w.ctx, w.table, settings(3*time.Second), nil)
			must(w.t, err)
			must(w.t, w.jobs.RunOnce(w.ctx))
			w.clock.Advance(time.Hour - time.Minute)
			w.continueJob(jobs.KindSnapshots, w.files)
			return w.judge(w.node, false, "before its time") > 0
		}},
		{"record of the job", func(w *world) bool {
			victim := contentOf(w.due())
			id := w.job().ID
			w.continueJob(jobs.KindSnapshots, hooked{w.files, listsOfJobs, func(string) { must(w.t, w.jobs.Quarantine(w.ctx, id, "look", "ann")) }})
			return !w.exists(victim)
		}},
		{"paused", func(w *world) bool {
			victim := contentOf(w.due())
			value, err := registry.Encode(registry.Pauses{Pauses: []registry.Pause{{Scope: "w/1", Ident: moorage.Identifier{Warehouse: "w"}}}})
			must(w.t, err)
			_, err = w.store.Apply(w.ctx, registry.Batch{Writes: []registry.Write{registry.Put(registry.PauseKey(), registry.StateNone, value)}})
			must(w.t, err)
			w.continueJob(jobs.KindSnapshots, w.files)
			return !w.exists(victim)
		}},
		{"held", func(w *world) bool {
			victim := contentOf(w.due())
			w.commit(property("gc.enabled", "false"))
			w.continueJob(jobs.KindSnapshots, w.files)
			return !w.exists(victim)
		}},
		{"new snapshots", func(w *world) bool {
			victim := contentOf(w.due())
			w.continueJob(jobs.KindSnapshots, hooked{w.files, listsOfJobs, func(string) {
				w.clock.Advance(time.Second)
				w.commit(w.history.AddAgain("main", victim)...)
			}})
			return !w.exists(victim)
		}},
		{"named by the document", func(w *world) bool {
			victim := contentOf(w.due())
			w.commit(w.history.AddAgain("main", victim)...)
			w.continueJob(jobs.KindSnapshots, w.files)
			return !w.exists(victim)
		}},
		{"claims and metadata files", orphan(nothing, usual, strangers()[0])},
		{"young orphan", orphan(nothing, usual, young)},
		{"older than the policy", orphan(nothing, func(s *jobs.OrphanSettings) { s.Since = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC) }, orphans()[0])},
		{"owner of the folder", orphan(func(w *world) {
			must(w.t, w.files.Create(w.ctx, "file:///wh/~moorage/owner", []byte("another")))
		}, usual, orphans()[0])},
		{"share of orphans", orphan(func(w *world) {
			for i := range 120 {
				must(w.t, w.files.Create(w.ctx, storage.Join(tableAt, "data", strings.Repeat("x", i+1)), make([]byte, 1000)))
			}
			w.clock.Advance(4 * 24 * time.Hour)
		}, usual, orphans()[0])},
		{"look-alike", orphan(func(w *world) {
			w.commit(`{"action":"set-partition-statistics","partition-statistics":{"snapshot-id":1001,"statistics-path":"` +
				tableAt + `/data/%6f1.parquet","file-size-in-bytes":5}}`)
		}, usual, orphans()[0])},
		{"young file of a job", func(w *world) bool {
			w.due()
			ours, _, _ := strings.Cut(w.job().Folder, "/"+w.job().ID.String())
			begins := ours + "/" + registry.ID{15: 1}.String() + "/input.json"
			must(w.t, w.files.Create(w.ctx, begins, nil))
			n := w.newNode(w.store, w.files)
			must(w.t, n.jobs.Sweep(w.ctx))
			return !w.exists(begins)
		}},
		{"dropped table in the folder", func(w *world) bool {
			return w.settled(func(at string) {
				w.withoutMetadata()
				doctor(w, registry.LocationKey(at), func(c *registry.LocationClaim) { c.Adopted = w.clock.Now() })
			})
		}},
		{"metadata file of another table", func(w *world) bool {
			return w.settled(func(at string) {
				w.write(registry.Delete(registry.TombstoneKey(at)))
				doctor(w, registry.LocationKey(at), func(c *registry.LocationClaim) { c.Adopted = w.clock.Now() })
			})
		}},
		{"file from before the claim", func(w *world) bool {
			return w.settled(func(at string) {
				w.withoutMetadata()
				w.write(registry.Delete(registry.TombstoneKey(at)))
			})
		}},
		{"orphan as listed", func(w *world) bool {
			w.strays()
			_, err := w.jobs.FindOrphans(w.ctx, w.table, orphanSettings(), nil)
			must(w.t, err)
			must(w.t, w.jobs.RunOnce(w.ctx))
			w.clock.Advance(10 * 24 * time.Hour)
			must(w.t, w.files.Delete(w.ctx, orphans()[0]))
			must(w.t, w.files.Create(w.ctx, orphans()[0], []byte("new")))
			w.continueJob(jobs.KindOrphans, w.files)
			return !w.exists(orphans()[0])
		}},
	}
}

// withoutMetadata deletes the metadata files of all tables except the present table.
func (w *world) withoutMetadata() {
	w.t.Helper()
	version, err := w.catalog.As(moorage.Anonymous()).LoadTable(w.ctx, ident())
	must(w.t, err)
	page, err := w.files.List(w.ctx, tableAt, "", 10_000)
	must(w.t, err)
	for _, file := range page.Files {
		if strings.Contains(file.Location, ".metadata.json") && file.Location != version.MetadataLocation {
			must(w.t, w.files.Delete(w.ctx, file.Location))
		}
	}
}

func (w *world) write(writes ...registry.Write) {
	w.t.Helper()
	_, err := w.store.Apply(w.ctx, registry.Batch{Writes: writes})
	must(w.t, err)
}

// settled makes a new table at the location of the dropped table's files. It calls prepare, and
// then removes orphans there. It reports whether a file of the dropped table is lost.
func (w *world) settled(prepare func(at string)) bool {
	w.t.Helper()
	ann := w.catalog.As(moorage.Anonymous())
	w.strays()
	must(w.t, ann.DropTable(w.ctx, ident(), catalog.DropOptions{}))
	_, err := ann.CreateTable(w.ctx, ident(), catalog.CreateTableRequest{
		Location: tableAt, Schema: []byte(`{"type":"struct","fields":[{"id":1,"name":"id","type":"long","required":false}]}`),
	})
	must(w.t, err)
	prepare(tableAt)
	n := w.newNode(w.store, w.files)
	if w.table, err = n.jobs.Find(w.ctx, ident()); err != nil {
		w.t.Fatal(err)
	}
	s := orphanSettings()
	s.Quarantine = 0
	_, _ = n.jobs.FindOrphans(w.ctx, w.table, s, nil)
	w.continueJob(jobs.KindOrphans, w.files)
	return !w.exists(w.history.Files[0])
}

// lost is the message of TestEachCheckKeepsItsFile that TestEveryCheckIsNeeded expects of a mutant.
const lost = "the file that this check keeps is lost"

// TestEachCheckKeepsItsFile runs each scenario with the unmodified code: no file is lost.
func TestEachCheckKeepsItsFile(t *testing.T) {
	t.Parallel()
	for name, open := range storesOfChecks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, s := range scenarios() {
				t.Run(s.check, func(t *testing.T) {
					t.Parallel()
					if s.lose(newWorld(t, open, 5, 7)) {
						t.Error(lost)
					}
				})
			}
		})
	}
}

// storesOfChecks returns the stores over which the scenarios run, by name.
func storesOfChecks() map[string]newStore {
	stores := map[string]newStore{"memory": inMemory}
	if scale.Every() {
		stores["pebble"], stores["postgres"] = inPebble, inPostgres
	}
	return stores
}
