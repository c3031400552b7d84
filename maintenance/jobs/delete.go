package jobs

import (
	"context"
	"maps"
	"time"

	"moorage/catalog/documents"
	"moorage/internal/worker"
	"moorage/registry"
	"moorage/storage"
)

// deleteAll deletes the remaining files in a job's lists, batch by batch, and ends the job.
func (j *Jobs) deleteAll(ctx context.Context, at *job, store storage.Store) error {
	in, err := j.readInput(ctx, store, at)
	if err != nil {
		return err
	}
	if in.Orphans != nil {
		warehouse, store, err := j.storeOf(ctx, at)
		if err != nil {
			return err
		}
		if err := ownFolder(ctx, j, store, warehouse); err != nil {
			return err
		}
	}
	g, err := guardOf(ctx, j, at, in)
	if err != nil {
		return err
	}
	batches := 0
	for at.value.Progress.List < len(at.value.Lists) {
		list, err := j.readList(ctx, store, at.value.Lists[at.value.Progress.List])
		if err != nil {
			return err
		}
		for line := at.value.Progress.Line; line < int64(len(list)); {
			batch := list[line:min(line+batchMax, int64(len(list)))]
			if err := j.deleteBatch(ctx, at, g, batch); err != nil {
				return err
			}
			line += int64(len(batch))
			at.value.Progress.Line = line
			at.value.Totals.Kept = mergeKept(at.value.Totals.Kept, g.kept)
			clear(g.kept)
			at.clearFailures()
			if batches++; batches%progressEvery == 0 {
				if err := j.put(ctx, at, registry.StateDeleting); err != nil {
					return err
				}
			}
		}
		at.value.Progress = registry.JobProgress{List: at.value.Progress.List + 1}
	}
	return j.endWith(ctx, at, store, OutcomeDone, "")
}

// deleteBatch deletes the files of a batch that may be deleted. In the meantime, a commit may add a
// reference to one of them. So if the deletion takes too long after a check, deleteBatch checks
// again and continues with the rest.
func (j *Jobs) deleteBatch(ctx context.Context, at *job, g *guard, batch []Listed) error {
	if err := giveWay(ctx, j, at.value.Pointer); err != nil {
		return err
	}
	if err := j.budget.Delete(ctx, g.look.version.Location, len(batch)); err != nil {
		return err
	}
	return deleteInTime(ctx, checkMax, batch, func(part []Listed, look func() context.Context) error {
		return j.deletePart(ctx, at, g, part, look)
	})
}

// deletePart checks which files of a batch may be deleted, and deletes them while the check is
// recent.
func (j *Jobs) deletePart(ctx context.Context, at *job, g *guard, batch []Listed, look func() context.Context) (
	err error) {
	kept := maps.Clone(g.kept)
	defer func() {
		if err != nil {
			g.kept = kept // the next check counts these files again
		}
	}()
	location := g.look.version.Location
	if g.in.Orphans != nil {
		if err := mayGoOn(ctx, j, at, g.look.table); err != nil {
			return err
		}
		if batch, err = g.asListed(ctx, batch); err != nil || len(batch) == 0 {
			return err
		}
	}
	// Nothing slow may happen between this check and the deletion.
	within := look()
	if err := g.check(ctx, at); err != nil {
		return err
	}
	files, bytes := make([]string, 0, len(batch)), int64(0)
	for _, file := range batch {
		if !g.mayGo(file) {
			continue
		}
		files, bytes = append(files, file.Path), bytes+file.Bytes
	}
	if len(files) == 0 {
		return nil
	}
	remove := documents.DeleteExpired
	if g.in.Orphans != nil {
		remove = documents.DeleteOrphans
	}
	if err := remove(within, g.look.version.Storage, files); err != nil {
		return j.budget.Note(location, err)
	}
	j.stats.deleted(len(files), bytes)
	at.value.Totals.Files += int64(len(files))
	at.value.Totals.Bytes += bytes
	return nil
}

const (
	// giveWayMax is the maximum time that a batch waits for the commits of its table. On a busy
	// table, a commit may always be waiting.
	giveWayMax = 30 * time.Second
	// giveWayPause is the pause between two checks for waiting commits.
	giveWayPause = 200 * time.Millisecond
)

// giveWay waits while commits of the table are waiting for their turn. It fails only with the
// context's error.
func giveWay(ctx context.Context, j *Jobs, table registry.ID) error {
	for waited := time.Duration(0); waited < giveWayMax && j.tables.Waiting(table); waited += giveWayPause {
		if !worker.Sleep(ctx, giveWayPause) {
			break
		}
	}
	return ctx.Err()
}

// endWith ends a job and deletes the job's own files.
func (j *Jobs) endWith(ctx context.Context, at *job, store storage.Store, outcome, why string) error {
	if err := j.end(ctx, at, outcome, why); err != nil {
		return err
	}
	j.stats.kept(at.value.Totals.Kept)
	deleteOwn(ctx, j, store, at.value)
	return nil
}

// mergeKept returns the counts of a record with counts added.
func mergeKept(before []registry.KeptOf, counts map[string]int64) []registry.KeptOf {
	all := make(map[string]int64, len(counts))
	for reason, n := range counts {
		all[reason] = n
	}
	for _, kept := range before {
		all[kept.Reason] += kept.Files
	}
	return keptOf(all)
}
