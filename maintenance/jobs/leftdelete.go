package jobs

import (
	"context"
	"time"

	"moorage/catalog/documents"
	"moorage/registry"
	"moorage/storage"
)

// deleteLeftovers is deleteAll for the job of a warehouse.
func (j *Jobs) deleteLeftovers(ctx context.Context, at *job, store storage.Store) error {
	in, place, err := readLeftoversJob(ctx, j, store, at)
	if err != nil {
		return err
	}
	if err := ownFolder(ctx, j, store, place.location); err != nil {
		return err
	}
	left, err := newLeftovers(j, place, *in.Orphans, nil)
	if err != nil {
		return err
	}
	// Tables may have come and gone since the files were listed.
	if err := left.list(ctx, func(storage.Listed, time.Time) error { return nil }); err != nil {
		return err
	}
	all, err := reachAll(ctx, j)
	if err != nil {
		return err
	}
	g := &leftGuard{home: place, all: all, left: left, guard: guard{
		jobs: j, in: in, set: all.set, look: left.look, kept: make(map[string]int64),
	}}
	return deleteLists(ctx, j, at, store, g.kept, func(ctx context.Context, batch []Listed) error {
		return g.deleteBatch(ctx, at, batch)
	})
}

// leftGuard knows, during the deletions of the job of a warehouse, what may not go.
type leftGuard struct {
	guard
	home home
	all  *reached
	left *leftovers
}

// deleteBatch deletes those files of a batch that may go.
func (g *leftGuard) deleteBatch(ctx context.Context, at *job, batch []Listed) error {
	j := g.jobs
	if err := j.budget.Delete(ctx, g.home.location, len(batch)); err != nil {
		return err
	}
	if err := mayGoOn(ctx, j, at, registry.Pointer{Warehouse: g.home.name}); err != nil {
		return err
	}
	if err := g.all.catchUp(ctx); err != nil {
		return err
	}
	free, err := unclaimed(ctx, newClaimed(j), batch, func(file Listed) string { return file.Path })
	if err != nil {
		return err
	}
	g.kept[keptNamedAgain] += int64(len(batch) - len(free))
	going := free[:0]
	for _, file := range free {
		switch {
		case g.left.isInTable(file.Path):
			g.kept[keptTable]++
		case g.mayGo(file):
			going = append(going, file)
		}
	}
	going, err = asListed(ctx, &g.guard, g.home.store, going)
	if err != nil || len(going) == 0 {
		return err
	}
	if err := documents.DeleteLeftovers(ctx, g.home.store, pathsOf(going)); err != nil {
		return j.budget.Note(g.home.location, err)
	}
	noteDeleted(j, at, going)
	return nil
}
