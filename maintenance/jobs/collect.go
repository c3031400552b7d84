package jobs

import (
	"context"
	"errors"

	"moorage"
	"moorage/catalog"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// collect finds the files to delete and writes their lists. The job then waits for its time.
func (j *Jobs) collect(ctx context.Context, at *job, store storage.Store) error {
	in, err := j.readInput(ctx, store, at)
	if err != nil {
		return err
	}
	look, err := j.look(ctx, at, in)
	if err != nil {
		return err
	}
	writing := &lists{jobs: j, store: store, folder: at.value.Folder}
	set, cost, err := j.live(ctx, look, in)
	if err != nil {
		return err
	}
	next := *at // at must stay unchanged until the step is recorded
	value := &next.value
	value.Reach, value.Looked = reachFull, look.version.Location
	value.Totals.Read, value.Totals.Kept = cost.Bytes, nil
	if in.Orphans != nil {
		asked := *in.Orphans
		asked.Confirmed = asked.Confirmed || value.Confirmed
		value.Totals.Kept, err = j.mark(ctx, look, asked, set, writing)
	} else {
		var kept keptCounts
		kept, err = doomedOf(ctx, look, in, set, writing)
		for _, why := range kept.Unreadable {
			j.log.WarnContext(ctx, "maintenance: a list or manifest of an expired snapshot is skipped; "+
				"files that only it names are left behind", "job", value.ID, "pointer", value.Pointer, "error", why)
		}
		value.Totals.Kept = keptOf(map[string]int64{keptOutside: kept.Outside, keptUnreadable: kept.Skipped})
	}
	if err == nil {
		err = writing.flush(ctx)
	}
	if err != nil {
		return err // the sweep deletes lists that were already written
	}
	value.Lists, value.Progress = writing.written, registry.JobProgress{}
	next.clearFailures()
	if len(writing.written) == 0 {
		return j.endWith(ctx, &next, store, OutcomeDone, "")
	}
	if in.Orphans != nil {
		// The job may have waited for days before it found the files.
		found, err := j.ledger.Time(ctx)
		if err != nil {
			return err
		}
		value.NotBefore, value.WaitsFrom = found.Add(in.Orphans.Quarantine), found
	}
	if err := j.put(ctx, &next, registry.StateWaiting); err != nil {
		return err
	}
	*at = next
	return nil
}

// reachFull means that all manifests of the live versions were read.
const reachFull = "full"

// live returns all files that the version found by look reaches.
func (j *Jobs) live(ctx context.Context, look *look, in input) (*pathSet, readCost, error) {
	listed, cost, err := readManifests(ctx, look.files, look.document, nil)
	if err != nil {
		return nil, cost, unlessMoved(ctx, j, look, err)
	}
	set := newPathSet(cost.Files + cost.Manifests)
	if in.Orphans != nil {
		set = newLookAlikeSet(cost.Files + cost.Manifests)
	}
	err = addReached(ctx, look.files, look.document, look.version.Location, listed, set)
	return set, cost, unlessMoved(ctx, j, look, err)
}

// unlessMoved returns err, the failure to read the files of the version found by look. If a file is
// unreadable and the table has a newer version, unlessMoved returns a temporary failure. An engine
// or another job may have expired the snapshot and deleted the file. The next try reads the newer
// version.
func unlessMoved(ctx context.Context, j *Jobs, look *look, err error) error {
	unreadable, ok := errors.AsType[*unreadableError](err)
	if !ok {
		return err
	}
	version, _, failed := j.tables.TableByID(ctx, look.table.ID)
	if failed != nil {
		return failed
	}
	if version.Location == look.version.Location {
		return err
	}
	return moorage.Errorf(moorage.KindUnavailable, "The table changed while it was read: %s", unreadable)
}

// doomedOf sends the files that only expired snapshots reach to a sink.
func doomedOf(ctx context.Context, look *look, in input, set *pathSet, to sink) (keptCounts, error) {
	return eachDoomed(ctx, look.files, in.reach(), set, look.claims, func(f doomedFile) error {
		return to.add(ctx, string(f.Kind), Listed{Path: f.Location})
	})
}

// Reasons why files stay, as spelled in records.
const (
	keptOutside    = "outside"
	keptUnreadable = "unreadable"
	keptNamedAgain = "named again"
	keptLookAlike  = "look-alike"
	keptChanged    = "changed"
	keptBefore     = "from before the table lived there"

	// Reasons for files outside all tables of a warehouse.
	keptReached   = "reached by a table"
	keptMetadata  = "a metadata file"
	keptBeside    = "of a table that could be registered"
	keptHidden    = "a hidden name"
	keptYoung     = "too young"
	keptUndated   = "without a time"
	keptWarehouse = "in another warehouse"
	keptDropped   = "where a dropped table lived"
)

// keptOf returns the nonzero counts, ordered by reason.
func keptOf(counts map[string]int64) (all []registry.KeptOf) {
	for _, reason := range []string{
		keptOutside, keptUnreadable, keptNamedAgain, keptLookAlike, keptChanged, keptBefore, keptReached,
		keptMetadata, keptBeside,
		keptHidden, keptYoung, keptUndated, keptWarehouse, keptDropped,
	} {
		if counts[reason] > 0 {
			all = append(all, registry.KeptOf{Reason: reason, Files: counts[reason]})
		}
	}
	return all
}

// look is the state of a table that a job has just read, within the job's budget.
type look struct {
	version  *catalog.Version
	files    opener // opens the files of the version
	document *metadata.Document
	table    registry.Pointer
	claims   []storage.Location
	foreign  int // number of metadata files of other servers that were read
}

// calledOff is the error that ends a job without further deletions.
type calledOff struct{ why string }

// Error returns the text of the error.
func (e *calledOff) Error() string { return "called off: " + e.why }
