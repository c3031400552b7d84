package jobs

import (
	"context"
	"errors"

	"moorage"
	"moorage/metadata"
	"moorage/registry"
)

// Plan describes what Expire would do.
type Plan struct {
	Table  moorage.Identifier
	Expiry metadata.Expiry
	// Held explains why Expire is not allowed to run. It is empty if Expire may run.
	Held string
}

// PlanSnapshots returns what Expire would do. It changes nothing.
func (j *Jobs) PlanSnapshots(ctx context.Context, pointer registry.ID, s SnapshotSettings) (Plan, error) {
	version, table, err := j.tables.TableByID(ctx, pointer)
	if err != nil {
		return Plan{}, err
	}
	if why := frozen(table); why != "" {
		return Plan{Table: version.Ident, Held: why}, nil
	}
	now, err := j.ledger.Time(ctx)
	if err != nil {
		return Plan{}, err
	}
	plan := Plan{Table: version.Ident}
	plan.Expiry, err = planExpiry(version.Document.(*metadata.Document), s, now)
	if why, ok := errors.AsType[*HeldError](err); ok {
		plan.Held, err = why.Why, nil
	}
	return plan, err
}

// DryRun describes what a job would do now, and what it would read to do so.
type DryRun struct {
	Plan           // for orphans, only Table and Held are set
	Blocked string // why the job would be blocked at once; empty if it would not
	Reach   string // how the files are found; empty if there are none to find
	Cost    readCost
	Files   int64 // number of files that would be deleted
	Bytes   int64 // only for orphans, because the size of expired files is unknown
	Kept    []registry.KeptOf
	Sample  []Listed // the first of the files
	More    bool     // only for leftovers: there are more files than Files
	LeftOut []string // only for leftovers: folders of other warehouses, in order
}

// sampler is the sink of a dry run. It may receive a file several times.
type sampler struct {
	run  *DryRun
	most int // maximum number of files in the sample
	met  *pathSet
}

func (s *sampler) add(_ context.Context, _ string, file Listed) error {
	if s.met.Has(file.Path) {
		return nil
	}
	s.met.Add(file.Path)
	s.run.Files, s.run.Bytes = s.run.Files+1, s.run.Bytes+file.Bytes
	if len(s.run.Sample) < s.most {
		s.run.Sample = append(s.run.Sample, file)
	}
	return nil
}

// DryRunSnapshots returns what Expire and its job would do now. It lists at most sample of the
// files to delete. It reads the same files as the job, and changes nothing.
//
// Errors: as for TableByID. A failure that would block the job is reported in the result, not as an
// error.
func DryRunSnapshots(ctx context.Context, j *Jobs, pointer registry.ID, s SnapshotSettings, sample int) (
	DryRun, error) {
	const op = "jobs.DryRunSnapshots"
	plan, err := j.PlanSnapshots(ctx, pointer, s)
	run := DryRun{Plan: plan}
	if err != nil || plan.Held != "" || len(plan.Expiry.Snapshots) == 0 || s.KeepFiles {
		return run, moorage.Annotate(op, pointer.String(), err)
	}
	look, before, err := rehearse(ctx, j, pointer, s)
	if err != nil {
		return run, moorage.Annotate(op, pointer.String(), err)
	}
	in := inputOf(before, look.document)
	set, err := run.live(ctx, j, look, in)
	if err == nil && run.Blocked == "" {
		var kept keptCounts
		kept, err = doomedOf(ctx, look, in, set, &sampler{&run, sample, newPathSet(0)})
		run.Kept = keptOf(map[string]int64{keptOutside: kept.Outside, keptUnreadable: kept.Skipped})
	}
	return run, moorage.Annotate(op, pointer.String(), err)
}

// rehearse returns a table as Expire would leave it, and the present document.
func rehearse(ctx context.Context, j *Jobs, pointer registry.ID, s SnapshotSettings) (
	*look, *metadata.Document, error) {
	look, err := lookByID(ctx, j, pointer)
	if err != nil {
		return nil, nil, asHeld(err)
	}
	now, err := j.ledger.Time(ctx)
	if err != nil {
		return nil, nil, err
	}
	before := look.document
	expiry, err := planExpiry(before, s, now)
	if err != nil {
		return nil, nil, err
	}
	look.document, err = before.Apply(expiry.Updates(), metadata.Env{Now: now, BaseLocation: look.version.Location})
	return look, before, err
}

// lookByID reads a table as a job that begins now would. Errors: as for look.
func lookByID(ctx context.Context, j *Jobs, pointer registry.ID) (*look, error) {
	_, table, err := j.tables.TableByID(ctx, pointer)
	if err != nil {
		return nil, err
	}
	return j.look(ctx, &job{value: registry.Job{Pointer: pointer, UUID: table.TableUUID}}, input{})
}

// live finds the files that the current version reaches, for a dry run. If a file is unreadable,
// live records that the job would be blocked, and why.
func (r *DryRun) live(ctx context.Context, j *Jobs, look *look, in input) (set *pathSet, err error) {
	r.Reach = reachFull
	set, r.Cost, err = j.live(ctx, look, in)
	if isLasting(err) {
		r.Blocked, err = err.Error(), nil
	}
	return set, err
}

// DryRunOrphans returns what the job of FindOrphans would find now. It lists at most sample of the
// files. It reads the same files as the job, and changes nothing.
func DryRunOrphans(ctx context.Context, j *Jobs, pointer registry.ID, s OrphanSettings, sample int) (
	DryRun, error) {
	const op = "jobs.DryRunOrphans"
	run := DryRun{}
	look, err := lookByID(ctx, j, pointer)
	if called, ok := errors.AsType[*calledOff](err); ok {
		run.Held = called.why
		return run, nil
	}
	if err != nil {
		return run, moorage.Annotate(op, pointer.String(), err)
	}
	run.Table = look.version.Ident
	if err := checkOrphans(s); err != nil {
		return run, err
	}
	if run.Blocked, err = foreign(ctx, j, look.table.Warehouse); err != nil || run.Blocked != "" {
		return run, moorage.Annotate(op, pointer.String(), err)
	}
	set, err := run.live(ctx, j, look, input{Orphans: &s})
	if err != nil || run.Blocked != "" {
		return run, moorage.Annotate(op, pointer.String(), err)
	}
	run.Kept, err = j.mark(ctx, look, s, set, &sampler{&run, sample, newPathSet(0)})
	if blocked, ok := errors.AsType[*BlockedError](err); ok {
		run.Blocked, err = blocked.Why, nil
	}
	if called, ok := errors.AsType[*calledOff](err); ok {
		run.Held, err = called.why, nil
	}
	return run, moorage.Annotate(op, pointer.String(), err)
}
