package jobs_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/ledger"
	"moorage/maintenance/jobs"
	"moorage/maintenance/purge"
	"moorage/maintenance/retention"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
	"moorage/testkit/registrytest"
	"moorage/testkit/scale"
)

// Times used in the table of fates. A purge waits longer than any job, and a dropped table can be
// restored for even longer.
const (
	fateDelay  = 30 * 24 * time.Hour
	fateWindow = 60 * 24 * time.Hour
	day        = 24 * time.Hour
)

const plainSchema = `{"type":"struct","fields":[{"id":1,"name":"id","type":"long","required":false}]}`

// fated is a world with a table whose jobs have promised to delete files. The test then changes the
// table, for example drops it.
type fated struct {
	*world
	location string   // of the metadata file of the table
	orphans  bool     // the promise belongs to a quarantine of orphans
	before   []string // the files that existed when the promise was made
}

// newFated returns a world whose table has a job in state.
func newFated(t *testing.T, orphaned bool, state registry.State) *fated {
	t.Helper()
	f := &fated{world: newWorld(t, inMemory, 4, 12), orphans: orphaned}
	_, err := f.ann().Warehouses().Change(f.ctx, "w", warehouses.Change{
		Properties: map[string]*string{metadata.PropPurgeDelay: new(fateDelay.String())},
	})
	must(t, err)
	if orphaned {
		f.strays()
		_, err = f.jobs.FindOrphans(f.ctx, f.table, orphanSettings(), nil)
	} else {
		var began jobs.Began
		if began, err = f.jobs.Expire(f.ctx, f.table, settings(3*time.Second), nil); began.Snapshots == 0 {
			t.Fatalf("nothing expires: %v", err)
		}
	}
	must(t, err)
	if state != registry.StateCollecting {
		must(t, f.jobs.RunOnce(f.ctx))
	}
	switch state {
	case registry.StateBlocked:
		must(t, f.jobs.Quarantine(f.ctx, f.job().ID, "look", "ann"))
	case registry.StateDeleting:
		f.clock.Advance(11 * day)
		most := 1 // expired data files are gone, but their manifests are not
		if orphaned {
			most = 0
		}
		f.continueJob(f.job().Kind, &sparing{Store: f.files, most: most})
	}
	if got := f.job().State; got != state {
		t.Fatalf("the job is %s, want %s", got, state)
	}
	loaded, err := f.ann().LoadTable(f.ctx, ident())
	must(t, err)
	f.location, f.before = loaded.MetadataLocation, f.there()
	return f
}

// sparing is a storage that fails after a few deletions.
type sparing struct {
	storage.Store
	most int
}

// Delete implements storage.Store.
func (s *sparing) Delete(ctx context.Context, locations ...string) error {
	if s.most--; s.most < 0 {
		return fmt.Errorf("spared: %w", storage.ErrUnavailable)
	}
	return s.Store.Delete(ctx, locations...)
}

// List implements storage.Lister.
func (s *sparing) List(ctx context.Context, folder, after string, limit int) (storage.Page, error) {
	return s.Store.(storage.Lister).List(ctx, folder, after, limit)
}

func (f *fated) ann() *catalog.Catalog { return f.catalog.As(moorage.Anonymous()) }

// until advances time. Every worker runs once a day.
func (f *fated) until(d time.Duration) {
	f.t.Helper()
	for ; d > 0; d -= day {
		f.clock.Advance(min(d, day))
		f.work()
	}
}

// work runs every worker once.
func (f *fated) work() {
	f.t.Helper()
	must(f.t, f.jobs.RunOnce(f.ctx))
	purges, err := purge.New(purge.Config{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: f.store, Alone: true, Now: f.clock.Now, Random: f.random}), Tables: f.catalog.Documents(),
	})
	must(f.t, err)
	must(f.t, purges.RunOnce(f.ctx))
	windows, err := retention.New(retention.Config{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: f.store, Alone: true, Now: f.clock.Now, Random: f.random}), KeyLife: time.Hour, UndropWindow: fateWindow,
	})
	must(f.t, err)
	must(f.t, windows.RunOnce(f.ctx, retention.Windows))
}

func (f *fated) drop(purge bool) {
	f.t.Helper()
	must(f.t, f.ann().DropTable(f.ctx, ident(), catalog.DropOptions{Purge: purge}))
	f.work()
}

func (f *fated) unregister() {
	f.t.Helper()
	_, err := f.ann().UnregisterTable(f.ctx, ident())
	must(f.t, err)
	f.work()
}

// register registers the table's metadata file under its name.
func (f *fated) register(overwrite bool) error {
	request := catalog.RegisterRequest{MetadataLocation: f.location, Overwrite: overwrite}
	_, err := f.ann().RegisterTable(f.ctx, ident(), request)
	return err
}

func (f *fated) undrop() {
	f.t.Helper()
	must(f.t, f.register(false))
}

// rename renames the table, advances time, and restores its name.
func (f *fated) rename(d time.Duration) {
	f.t.Helper()
	to := ident()
	to.Name = "renamed"
	must(f.t, f.ann().RenameTable(f.ctx, ident(), to))
	f.until(d)
	must(f.t, f.ann().RenameTable(f.ctx, to, ident()))
}

// replace registers another table under the name of the table.
func (f *fated) replace() {
	f.t.Helper()
	other := ident()
	other.Name = "other"
	made, err := f.ann().CreateTable(f.ctx, other, catalog.CreateTableRequest{Schema: []byte(plainSchema)})
	must(f.t, err)
	_, err = f.ann().UnregisterTable(f.ctx, other)
	must(f.t, err)
	_, err = f.ann().RegisterTable(f.ctx, ident(), catalog.RegisterRequest{
		MetadataLocation: made.MetadataLocation, Overwrite: true,
	})
	must(f.t, err)
	f.work()
}

// takeLocation requests a new table at the location of the dropped one. That begins the purge of
// the dropped table.
func (f *fated) takeLocation() {
	f.t.Helper()
	_, err := f.ann().CreateTable(f.ctx, ident(), catalog.CreateTableRequest{Schema: []byte(plainSchema), Location: tableAt})
	if moorage.KindOf(err) != moorage.KindUnavailable {
		f.t.Errorf("a table at the location: %v", err)
	}
	if moorage.KindOf(f.register(false)) != moorage.KindAlreadyExists {
		f.t.Error("the dropped table is back, although its purge has begun")
	}
	f.work()
}

// dropWarehouse drops the table's namespace and its warehouse.
func (f *fated) dropWarehouse() {
	f.t.Helper()
	must(f.t, f.ann().DropNamespace(f.ctx, "w", moorage.Namespace{"ns"}))
	must(f.t, f.ann().Warehouses().Drop(f.ctx, "w"))
}

// stage stages a table with the name of the dropped one.
func (f *fated) stage() {
	f.t.Helper()
	_, err := f.ann().CreateTable(f.ctx, ident(), catalog.CreateTableRequest{Schema: []byte(plainSchema), Stage: true})
	must(f.t, err)
	f.work()
}

// there returns the existing files among the orphans and the files that a version of the table
// reached.
func (f *fated) there() (found []string) {
	for path := range f.history.Reach(f.all()) {
		if f.exists(path) {
			found = append(found, path)
		}
	}
	for _, path := range orphans() {
		if f.exists(path) {
			found = append(found, path)
		}
	}
	slices.Sort(found)
	return found
}

// fate says what happens to the files of a table, and to the files that its job has promised to
// delete.
type fate string

const (
	kept  fate = "kept"  // the promised files are deleted, the table's stay
	gone  fate = "gone"  // promised files, and all that any version reached, are deleted
	left  fate = "left"  // all stay, and nothing deletes them any more
	waits fate = "waits" // all stay, and the job waits: the table can be restored
)

// settle fails the test unless the table and its job have this fate. The job was in state.
func (f *fated) settle(want fate, state registry.State) {
	f.t.Helper()
	switch want {
	case kept:
		if job := f.job(); job != nil && job.State == registry.StateBlocked {
			must(f.t, f.jobs.Retry(f.ctx, job.ID, jobs.Retrying{}))
		}
		f.until(15 * day)
		f.judge(f.node, !f.orphans, "in the end")
		if f.orphans {
			f.judgeStrays(true, "in the end")
		}
	case gone:
		f.work()
		if found := f.there(); len(found) > 0 || f.exists(f.location) {
			f.t.Errorf("left: %q, %s", found, f.location)
		}
	case left, waits:
		f.until(15 * day)
		if found := f.there(); !slices.Equal(found, f.before) {
			f.t.Errorf("left: %q, want %q", found, f.before)
		}
	}
	switch job := f.job(); {
	case want == waits && (job == nil || job.State != state):
		f.t.Errorf("the job is %+v, want one that is %s", job, state)
	case want == waits:
	case job != nil:
		f.t.Errorf("the job is left: %+v", job)
	case want == left: // a sweep deletes the job's own files
	case slices.ContainsFunc(f.own(), func(file string) bool { return file != "file:///wh/~moorage/owner" }):
		f.t.Errorf("the job has left %q", f.own())
	}
}

// TestFatesOfPromises: jobs of expiry and of quarantines, in each of their states, have promised to
// delete files. The test combines each of them with everything that can happen to a table.
func TestFatesOfPromises(t *testing.T) {
	t.Parallel()
	const later = fateDelay + 2*day
	rows := []struct {
		name string
		do   func(f *fated)
		want fate
	}{
		{"nothing", func(*fated) {}, kept},
		{"rename", func(f *fated) { f.rename(day) }, kept},
		{"set-location", func(f *fated) { f.commit(`{"action":"set-location","location":"file:///wh/ns/moved"}`) }, kept},
		{"drop", func(f *fated) { f.drop(false) }, waits},
		{"drop, stage another", func(f *fated) { f.drop(false); f.stage() }, waits},
		{"drop, undrop at once", func(f *fated) { f.drop(false); f.undrop() }, kept},
		{"drop, undrop when the job was due", func(f *fated) { f.drop(false); f.until(later); f.undrop() }, kept},
		{"drop, end of the window", func(f *fated) { f.drop(false); f.until(fateWindow + 2*day) }, left},
		{"purge that waits", func(f *fated) { f.drop(true) }, waits},
		{"purge that waits, stage another", func(f *fated) { f.drop(true); f.stage() }, waits},
		{"purge that waits, undrop", func(f *fated) { f.drop(true); f.until(fateDelay - 2*day); f.undrop() }, kept},
		{"purge, begun by time", func(f *fated) { f.drop(true); f.until(later) }, gone},
		{"purge, begun by a create", func(f *fated) { f.drop(true); f.takeLocation() }, gone},
		{"purge, its warehouse gone", func(f *fated) { f.drop(true); f.dropWarehouse(); f.until(later) }, gone},
		{"unregister", func(f *fated) { f.unregister() }, left},
		{"unregister, register", func(f *fated) { f.unregister(); f.undrop() }, left},
		{"register over itself", func(f *fated) { must(f.t, f.register(true)) }, kept},
		{"register over by another", func(f *fated) { f.replace() }, waits},
		{"register over by another, end of the window", func(f *fated) { f.replace(); f.until(fateWindow + 2*day) }, left},
	}
	for _, promise := range []struct {
		name    string
		orphans bool
		state   registry.State
		long    bool // only with -every
	}{
		{"expiry, collecting", false, registry.StateCollecting, false},
		{"expiry, waiting", false, registry.StateWaiting, true},
		{"expiry, deleting", false, registry.StateDeleting, false},
		{"expiry, blocked", false, registry.StateBlocked, true},
		{"orphans, in quarantine", true, registry.StateWaiting, false},
		{"orphans, deleting", true, registry.StateDeleting, true},
	} {
		if promise.long && !scale.Every() {
			continue
		}
		for _, row := range rows {
			t.Run(promise.name+"/"+row.name, func(t *testing.T) {
				t.Parallel()
				f := newFated(t, promise.orphans, promise.state)
				row.do(f)
				f.settle(row.want, promise.state)
			})
		}
	}
}

// TestFatesOfRecords: combines the records of a table's schedule, of leases, and of work that
// outside programs hold, with the same events. The records stay as long as the table can be
// restored, and are deleted with it.
func TestFatesOfRecords(t *testing.T) {
	t.Parallel()
	records := map[string]func(id registry.ID) (registry.Key, registry.State, registry.Value){
		"lease": func(id registry.ID) (registry.Key, registry.State, registry.Value) {
			return registry.LeaseKey(id), registry.StateNone, registry.Lease{Last: 7}
		},
		"work in other hands": func(id registry.ID) (registry.Key, registry.State, registry.Value) {
			const kind = "compaction"
			return registry.JobKey(id, kind), registry.StateAssigned, registry.Job{ID: registry.ID{9}, Kind: kind, Pointer: id}
		},
		"schedule": func(id registry.ID) (registry.Key, registry.State, registry.Value) {
			return registry.ScheduleKey(id), registry.StateNone, registry.Schedule{}
		},
		"rule": func(id registry.ID) (registry.Key, registry.State, registry.Value) {
			key := registry.MaintenancePolicyKey(registry.TableScope(id))
			return key, registry.StateNone, registry.MaintenancePolicy{}
		},
	}
	rows := []struct {
		name  string
		do    func(f *fated)
		stays bool
	}{
		{"rename", func(f *fated) { f.rename(day) }, true},
		{"drop", func(f *fated) { f.drop(false) }, true},
		{"drop, undrop", func(f *fated) { f.drop(false); f.undrop() }, true},
		{"drop, end of the window", func(f *fated) { f.drop(false); f.until(fateWindow + 2*day) }, false},
		{"purge that waits", func(f *fated) { f.drop(true) }, true},
		{"purge that waits, undrop", func(f *fated) { f.drop(true); f.undrop() }, true},
		{"purge", func(f *fated) { f.drop(true); f.until(fateDelay + 2*day) }, false},
		{"unregister", func(f *fated) { f.unregister() }, false},
		{"register over itself", func(f *fated) { must(f.t, f.register(true)) }, true},
		{"register over by another", func(f *fated) { f.replace() }, true},
	}
	for name, record := range records {
		for _, row := range rows {
			t.Run(name+"/"+row.name, func(t *testing.T) {
				t.Parallel()
				f := newFated(t, false, registry.StateWaiting)
				key, state, value := record(f.table)
				encoded, err := registry.Encode(value)
				must(t, err)
				_, err = f.store.Apply(f.ctx, registry.Batch{Writes: []registry.Write{registry.Put(key, state, encoded)}})
				must(t, err)
				row.do(f)
				f.work()
				found, err := f.store.Get(f.ctx, key)
				must(t, err)
				if found[0].Exists() != row.stays {
					t.Errorf("the record is there: %t, want %t", found[0].Exists(), row.stays)
				}
			})
		}
	}
}
