package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/manifests"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// look reads the table of a job. It fails unless the table is live, is the job's table, and allows
// deletions.
func (j *Jobs) look(ctx context.Context, at *job, in input) (*look, error) {
	version, table, err := j.tables.TableByID(ctx, at.value.Pointer)
	switch {
	case moorage.KindOf(err) == moorage.KindNoSuchTable:
		return nil, absent(ctx, j, at.value.Pointer)
	case err != nil:
		return nil, err
	case table.TableUUID != at.value.UUID:
		return nil, &calledOff{"another table has its pointer"}
	}
	if why := frozen(table); why != "" {
		return nil, &calledOff{why}
	}
	found := &look{
		version: version, files: j.budget.reader(version.Storage), document: version.Document.(*metadata.Document),
		table: table,
	}
	if why := held(found.document); why != "" {
		return nil, &calledOff{why}
	}
	for _, e := range in.Expired {
		if found.document.HasSnapshot(e.ID) {
			return nil, &calledOff{fmt.Sprintf("the snapshot %d is back", e.ID)}
		}
	}
	for _, claim := range table.Claims {
		parsed, err := storage.Parse(claim)
		if err != nil {
			return nil, moorage.E("jobs.look", claim, moorage.KindInternal, err)
		}
		found.claims = append(found.claims, parsed)
	}
	return found, nil
}

// frozen explains why no file of a mirror may be deleted: the mirrored catalog may still need every
// file. It returns "" if the table is not a mirror.
func frozen(table registry.Pointer) string {
	if table.Frozen == "" {
		return ""
	}
	return "the table is a mirror of " + table.Frozen
}

// home is one location of a table, with the table's claim on it.
type home struct {
	location storage.Location
	claim    registry.LocationClaim
}

// homes holds all locations of a table.
type homes []home

// keep reports whether a file may belong to an earlier table at the same location. written is when
// the file was written.
func (h homes) keep(file string, written time.Time) bool {
	place, err := storage.ParseFile(file)
	if err != nil {
		return true
	}
	for _, home := range h {
		if home.location.Contains(place) {
			return home.claim.Keeps(written)
		}
	}
	return true // the file is in none of the locations
}

// absent returns the error that stops a job whose table is not live. The error is errDropped if the
// table can be restored or a purge takes over the job, and calledOff otherwise.
func absent(ctx context.Context, j *Jobs, table registry.ID) error {
	records, err := j.ledger.Get(ctx, registry.PointerKey(table))
	switch {
	case err != nil:
		return err
	case records[0].State.IsDropped():
		return errDropped
	case records[0].Exists():
		return errMoved // the table is live again
	}
	return &calledOff{"the table is gone"}
}

// errDropped means that the table of a job was dropped. The job pauses, and continues if the table
// is restored. A purge deletes the files that the job would have deleted (see Promise). If the
// undrop window ends without a purge, the job ends too. The files that it would have deleted stay,
// like all files of the table.
var errDropped = moorage.Errorf(moorage.KindNoSuchTable,
	"The table of the job was dropped. The job continues if the table is restored")

// guard decides which files must stay while a job deletes.
type guard struct {
	jobs *Jobs
	in   input
	set  *pathSet // the files reached by versions that are newer than the lists
	look *look    // the last result of look
	// known contains the snapshots whose manifests were read, either when the lists were made or by
	// this guard.
	known map[version]bool
	kept  map[string]int64
	homes homes // the claims of the table; only for orphans
}

// version identifies a snapshot by its id and its manifest list, because a client may use an id
// again.
type version struct {
	id   int64
	list string
}

func versionOf(s metadata.Snapshot) version { return version{s.ID, s.ManifestList} }

// guardOf returns the guard of a job that begins or continues to delete. If the table has changed
// since the lists were made, guardOf reads all files that the current version reaches. For orphans,
// it always reads them, because the lists are days old.
func guardOf(ctx context.Context, j *Jobs, at *job, in input) (*guard, error) {
	look, err := j.look(ctx, at, in)
	if err != nil {
		return nil, err
	}
	g := &guard{jobs: j, in: in, look: look, known: make(map[version]bool), kept: make(map[string]int64)}
	if look.version.Location == at.value.Looked && in.Orphans == nil {
		g.set = newPathSet(0)
		eachNamed(look.document, look.version.Location, g.set.Add)
	} else if g.set, _, err = j.live(ctx, look, in); err != nil {
		return nil, err
	}
	if in.Orphans != nil {
		if g.homes, err = j.mayMark(ctx, look, g.set); err != nil {
			return nil, err
		}
		// Another catalog may have started to use the folder since the lists were made.
		if err := g.noForeign(ctx); err != nil {
			return nil, err
		}
	}
	g.note(look)
	return g, nil
}

func (g *guard) note(look *look) {
	for snapshot := range look.document.Snapshots() {
		g.known[versionOf(snapshot)] = true
	}
	g.look = look
}

// check is called before a batch. It reads the job, the pauses, and the commits since check was
// last called. It returns errMoved if another process has changed the job, and calledOff if the job
// must end.
func (g *guard) check(ctx context.Context, at *job) error {
	if err := mayGoOn(ctx, g.jobs, at, g.look.table); err != nil {
		return err
	}
	now, err := g.jobs.look(ctx, at, g.in)
	if err != nil || now.version.Location == g.look.version.Location {
		return err
	}
	eachNamed(now.document, now.version.Location, g.set.Add)
	isNew := func(s metadata.Snapshot) bool { return !g.known[versionOf(s)] }
	isKnown := func(s metadata.Snapshot) bool { return g.known[versionOf(s)] }
	added, _, err := readManifests(ctx, now.files, now.document, isNew)
	if err != nil {
		return unlessMoved(ctx, g.jobs, now, err)
	}
	if len(added) > 0 {
		old, _, err := readManifests(ctx, now.files, now.document, isKnown)
		if err != nil {
			return unlessMoved(ctx, g.jobs, now, err)
		}
		met := make(map[string]bool, len(old))
		for _, m := range old {
			met[m.Path()] = true
		}
		for _, m := range added {
			g.set.Add(m.Path())
		}
		added = slices.DeleteFunc(added, func(m manifests.Listed) bool { return met[m.Path()] })
		if err := addLive(ctx, now.files, added, g.set); err != nil {
			return unlessMoved(ctx, g.jobs, now, err)
		}
	}
	g.note(now)
	return nil
}

// mayGoOn returns nil if a job may delete its next batch. Otherwise it returns errMoved or
// errPaused.
func mayGoOn(ctx context.Context, j *Jobs, at *job, table registry.Pointer) error {
	records, err := j.ledger.Get(ctx, at.record.Key, registry.PauseKey())
	if err != nil {
		return err
	}
	if records[0].ETag != at.record.ETag {
		return errMoved
	}
	if at.value.Paused {
		return errPaused
	}
	if isPaused(ctx, j, records[1], table) {
		return errPaused
	}
	return nil
}

// isPaused calls IsPaused for a job. If the pauses cannot be read, it returns true.
func isPaused(ctx context.Context, j *Jobs, record registry.Record, table registry.Pointer) bool {
	paused, err := IsPaused(record, table)
	if err != nil {
		j.log.WarnContext(ctx, "the pauses of maintenance cannot be read, so all of it is paused", "error", err)
	}
	return paused || err != nil
}

// IsPaused reports whether the pauses in record cover a table. record is the one at PauseKey, and
// may be missing.
func IsPaused(record registry.Record, table registry.Pointer) (bool, error) {
	if !record.Exists() {
		return false, nil
	}
	pauses, err := ledger.Decode[registry.Pauses](record)
	if err != nil {
		return false, err
	}
	for _, pause := range pauses.Pauses {
		if pause.Covers(table) {
			return true, nil
		}
	}
	return false, nil
}

// RequirePauses returns the condition that the pauses are still those in record, which was read at
// PauseKey. If there was no record, it puts an empty one, because the absence of a record can be
// required only by an Apply that puts it.
//
// Errors: ErrBusy if there was no record, and a scope has been paused since.
func RequirePauses(ctx context.Context, l *ledger.Ledger, record registry.Record) (registry.Condition, error) {
	key := registry.PauseKey()
	if record.Exists() {
		return ledger.Unchanged(record), nil
	}
	writes, err := ledger.Encode(ledger.Put(key, registry.StateNone, registry.Pauses{}))
	if err != nil {
		return registry.Condition{}, err
	}
	_, err = l.Step(ctx, registry.Batch{Conditions: []registry.Condition{registry.Absent(key)}, Writes: writes})
	if _, failed := registry.FailedCondition(err); err != nil && !failed {
		return registry.Condition{}, ledger.StepError("jobs.RequirePauses", err)
	}
	records, err := l.Get(ctx, key)
	if err != nil {
		return registry.Condition{}, err
	}
	pauses, err := ledger.Decode[registry.Pauses](records[0])
	if err == nil && len(pauses.Pauses) > 0 {
		err = ErrBusy
	}
	return ledger.Unchanged(records[0]), err
}

// errPaused means that an operator has paused the scope of a job.
var errPaused = errors.New("jobs: paused")

// mayGo reports whether a listed file may be deleted. If not, it counts the reason.
func (g *guard) mayGo(file Listed) bool {
	switch {
	case !isOwn(g.look.claims, file.Path):
		g.kept[keptOutside]++
	case g.in.Orphans != nil && g.homes.keep(file.Path, file.Modified):
		g.kept[keptBefore]++
	case g.set.Has(file.Path):
		g.kept[keptNamedAgain]++
	case g.set.HasElsewhere(file.Path), g.set.LooksLike(file.Path):
		g.kept[keptLookAlike]++
	default:
		return true
	}
	return false
}
