package jobs

import (
	"context"
	"errors"
	"time"

	"moorage"
	"moorage/maintenance/reach"
	"moorage/registry"
	"moorage/storage"
)

// leftoverAgeMin is how old a leftover of a warehouse is at least. A table that is being created
// has files outside of all locations that are claimed.
const leftoverAgeMin = 7 * 24 * time.Hour

// DefaultLeftovers returns the settings of somebody who says nothing.
func DefaultLeftovers() OrphanSettings {
	s := DefaultOrphans()
	s.OlderThan = leftoverAgeMin
	return s
}

// FindLeftovers makes a job that lists the files of a warehouse which are outside the locations of
// all tables and views, also of those that were dropped, and that no table reaches. Writers that
// failed leave them, where they make tables in one step. It deletes them when the quarantine is
// over, if all that holds still.
//
// Errors: those of FindOrphans; KindNoSuchWarehouse.
func FindLeftovers(ctx context.Context, j *Jobs, warehouse string, s OrphanSettings) (Began, error) {
	const op = "jobs.FindLeftovers"
	if err := checkLeftovers(s); err != nil {
		return Began{}, err
	}
	if _, _, err := j.tables.WarehouseLocation(ctx, warehouse); err != nil {
		return Began{}, moorage.Annotate(op, warehouse, err)
	}
	at, err := homeOf(ctx, j, warehouse, registry.ID{})
	if err != nil {
		return Began{}, asHeld(err)
	}
	if err := ownFolder(ctx, j, at.store, at.location); err != nil {
		return Began{}, err
	}
	if err := raiseFormat(ctx, j.ledger); err != nil {
		return Began{}, moorage.Annotate(op, warehouse, err)
	}
	id, err := j.ledger.NewID()
	if err != nil {
		return Began{}, err
	}
	folder, err := jobsFolder(ctx, j.ledger, at.location)
	if err != nil {
		return Began{}, moorage.Annotate(op, warehouse, err)
	}
	value := registry.Job{
		ID: id, Kind: KindOrphans, Pointer: at.id, Warehouse: warehouse, Caller: s.Caller,
		Folder: storage.Join(folder, id.String()), Node: j.owner,
	}
	began := Began{Table: moorage.Identifier{Warehouse: warehouse}, Job: id}
	return began, j.beginOrphans(ctx, value, at.store, s, nil)
}

func checkLeftovers(s OrphanSettings) error {
	if s.OlderThan < leftoverAgeMin && !s.Unsafe {
		return moorage.Errorf(moorage.KindIllegalArgument,
			"Files outside of all tables are at least seven days old: a younger one may belong to a table "+
				"that is being made")
	}
	return nil
}

// DryRunLeftovers returns what the job of FindLeftovers would find now, with sample of the files at
// most. It reads what the job would read, and changes nothing.
func DryRunLeftovers(ctx context.Context, j *Jobs, warehouse string, s OrphanSettings, sample int) (DryRun, error) {
	const op = "jobs.DryRunLeftovers"
	run := DryRun{Plan: Plan{Table: moorage.Identifier{Warehouse: warehouse}}, Reach: reachFull}
	if err := checkLeftovers(s); err != nil {
		return run, err
	}
	var err error
	if run.Blocked, err = foreign(ctx, j, warehouse); err != nil || run.Blocked != "" {
		return run, moorage.Annotate(op, warehouse, err)
	}
	at, err := homeOf(ctx, j, warehouse, registry.ID{})
	if err != nil {
		return run, asHeld(err)
	}
	found, err := markLeftovers(ctx, j, at, s, &sampler{&run, sample, reach.NewSet(0)})
	run.Kept, run.Cost = found.kept, found.cost
	if unreadable, ok := errors.AsType[*reach.UnreadableError](err); ok {
		run.Blocked, err = unreadable.Error(), nil
	}
	if blocked, ok := errors.AsType[*BlockedError](err); ok {
		run.Blocked, err = blocked.Why, nil
	}
	return run, moorage.Annotate(op, warehouse, err)
}

// readLeftoversJob returns the input of the job of a warehouse, and the warehouse. Errors: those of
// readInput and of homeOf.
func readLeftoversJob(ctx context.Context, j *Jobs, store storage.Store, at *job) (in input, place home, err error) {
	if in, err = readInput(ctx, j, store, at); err != nil {
		return input{}, home{}, err
	}
	place, err = homeOf(ctx, j, at.value.Warehouse, at.value.Pointer)
	return in, place, err
}

// collectLeftovers is collect for the job of a warehouse.
func (j *Jobs) collectLeftovers(ctx context.Context, at *job, store storage.Store) error {
	in, place, err := readLeftoversJob(ctx, j, store, at)
	if err != nil {
		return err
	}
	writing := &lists{jobs: j, store: store, folder: at.value.Folder}
	found, err := markLeftovers(ctx, j, place, *in.Orphans, writing)
	if err == nil {
		err = writing.flush(ctx)
	}
	if err != nil {
		return err // lists that were written stay in the folder until the sweep
	}
	at.value.Reach, at.value.Lists, at.value.Progress = reachFull, writing.written, registry.JobProgress{}
	at.value.Totals.Read, at.value.Totals.Kept = found.cost.Bytes, found.kept
	at.value.Tries, at.value.Laters, at.value.LastError = 0, 0, ""
	if len(writing.written) == 0 {
		return j.endWith(ctx, at, store, OutcomeDone, "")
	}
	return j.put(ctx, at, registry.StateWaiting)
}

// foundLeftovers is what a look for leftovers has found beside them.
type foundLeftovers struct {
	kept []registry.KeptOf
	cost reach.Cost
}
