package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

const (
	// leftoverAgeMin is the minimum age of a leftover. A younger file may belong to a table that is
	// being created and has not claimed its location yet. An operator may set a different age.
	leftoverAgeMin = 7 * 24 * time.Hour
	// leftoversMax bounds the leftovers that one search finds. They stay in memory until the files
	// are checked again, and take about 20 MB.
	leftoversMax = 100_000
	// leftOutMax is the maximum number of other warehouses' folders in a report.
	leftOutMax = 1000
	// roundsMax is the maximum number of times that the found files are checked again because
	// tables have changed.
	roundsMax = 5
)

// LeftoverSettings decide which files of a warehouse are reported.
type LeftoverSettings struct {
	OlderThan time.Duration // the minimum age of a file
	Unsafe    bool          // accepts files younger than seven days
	most      int           // maximum number of files that one search finds; default leftoversMax
}

// DefaultLeftovers returns the default settings.
func DefaultLeftovers() LeftoverSettings { return LeftoverSettings{OlderThan: leftoverAgeMin} }

// Leftovers reports the files of a warehouse outside the locations of all tables and views. It
// omits files that a table or view of the store reaches. Unreached files remain, for example, when
// the creation of a table fails. Leftovers changes nothing, and no job deletes the reported files.
// The report lists at most sample of them.
//
// It searches the location of the warehouse, not the other locations that the warehouse allows.
// Leftovers may report files that are in use: the files of another catalog's table with its
// metadata elsewhere, and files that a table reaches through a link. So an operator must check
// before deleting anything.
//
// # Why a file is free
//
// The search records the end of the log of changes. It then reads the tables and views of the
// store, and after that lists the files. During the search, a table may claim a location that
// contains a listed file. So at the end, the search reads the claims again and finds the claim of
// that table. A table may also begin to refer to a listed file. The log then contains a change of
// that table. So the search reads the log, and the files of the changed tables, until there are no
// further changes. A file that was reached at any time during the search counts as reached.
//
// If a file that a table reaches cannot be read, Blocked holds the reason, and no file is reported.
//
// Errors: KindNoSuchWarehouse; KindIllegalArgument for a minimum age that is too low;
// KindTooManyRequests while another search runs in this process; KindUnavailable.
func Leftovers(ctx context.Context, j *Jobs, warehouse string, s LeftoverSettings, sample int) (DryRun, error) {
	const op = "jobs.Leftovers"
	run := DryRun{Plan: Plan{Table: moorage.Identifier{Warehouse: warehouse}}}
	if s.OlderThan < leftoverAgeMin && !s.Unsafe {
		return run, moorage.Errorf(moorage.KindIllegalArgument, "Files outside of all tables are at least seven "+
			"days old: a younger one may belong to a table that is being made")
	}
	if !j.looking.TryLock() { // each search holds a set of all paths in memory
		return run, moorage.Errorf(moorage.KindTooManyRequests, "This server is already searching a warehouse")
	}
	defer j.looking.Unlock()
	look, err := lookForLeftovers(ctx, j, warehouse, s)
	if blocked, ok := errors.AsType[*BlockedError](err); ok {
		run.Blocked = blocked.Why
		return run, nil
	}
	if err != nil {
		return run, moorage.Annotate(op, warehouse, err)
	}
	run.Kept, run.LeftOut, run.More = keptOf(look.kept), look.others.first(leftOutMax), look.more
	if look.reached != nil {
		run.Reach, run.Cost = reachFull, look.reached.cost
	}
	for _, file := range look.found {
		run.Files, run.Bytes = run.Files+1, run.Bytes+file.Bytes
		if len(run.Sample) < sample {
			run.Sample = append(run.Sample, Listed{Path: file.Location, Bytes: file.Bytes, Modified: file.Modified})
		}
	}
	return run, nil
}

// leftoverLook is one call of Leftovers.
type leftoverLook struct {
	jobs      *Jobs
	warehouse string
	location  string // of the warehouse
	root      storage.Location
	store     storage.Store
	lister    storage.Lister
	olderThan time.Duration
	most      int // maximum number of files found

	others       folders // folders of the store's other warehouses
	unregistered unregistered
	reached      *reached  // nil until a file is outside all claimed locations
	now          time.Time // by the clock that dates the files

	found []storage.Listed
	more  bool // there are more leftovers than in found
	kept  map[string]int64
}

// lookForLeftovers searches a warehouse. Errors: as for Leftovers, and BlockedError.
func lookForLeftovers(ctx context.Context, j *Jobs, warehouse string, s LeftoverSettings) (*leftoverLook, error) {
	location, store, err := j.tables.WarehouseLocation(ctx, warehouse)
	if err != nil {
		return nil, err
	}
	why, err := foreign(ctx, j, warehouse)
	if err == nil && why != "" {
		err = &BlockedError{why}
	}
	if err != nil {
		return nil, err
	}
	root, err := storage.Parse(location)
	if err != nil {
		return nil, moorage.E("jobs.lookForLeftovers", location, moorage.KindInternal, err)
	}
	lister, ok := store.(storage.Lister)
	if !ok {
		return nil, &BlockedError{"the storage cannot list files"}
	}
	l := &leftoverLook{
		jobs: j, warehouse: warehouse, location: location, root: root, store: store, lister: lister,
		olderThan: s.OlderThan, most: cmp.Or(s.most, leftoversMax), others: make(folders),
		unregistered: unregistered{known: make(map[string]bool), folders: make(folders)},
	}
	return l, l.run(ctx)
}

// run finds the leftovers. It reads the files of tables only if there are possible leftovers.
func (l *leftoverLook) run(ctx context.Context) error {
	reached, err := newReached(ctx, l.jobs, l.warehouse)
	if err != nil {
		return err
	}
	if err := l.addWarehouses(ctx); err != nil {
		return err
	}
	if err := l.list(ctx); err != nil || len(l.found) == 0 {
		return err
	}
	if err := reached.readAll(ctx); err != nil {
		return err
	}
	l.reached = reached
	if _, err := l.readUnregistered(ctx); err != nil {
		return err
	}
	if err := l.list(ctx); err != nil {
		return err
	}
	return l.settle(ctx)
}

// addWarehouses records the folders of the store's other warehouses within this one.
func (l *leftoverLook) addWarehouses(ctx context.Context) error {
	return l.jobs.ledger.Scan(ctx, registry.TableWarehouse, "", "", func(record registry.Record) (bool, error) {
		other, err := ledger.Decode[registry.Warehouse](record)
		if err != nil {
			return false, &BlockedError{"the record of another warehouse cannot be read"}
		}
		if place, err := storage.Parse(other.Location); err == nil && place != l.root && l.root.Contains(place) {
			l.others.add(place)
		}
		return true, ctx.Err()
	})
}

// settle checks the found files again until no table has changed since the last check, at most
// roundsMax times. If settle succeeds, the files were free a moment ago.
func (l *leftoverLook) settle(ctx context.Context) error {
	for range roundsMax {
		changed, forgotten, err := l.reached.catchUp(ctx)
		if err != nil {
			return err
		}
		for _, file := range forgotten {
			l.unregistered.add(file)
		}
		read, err := l.readUnregistered(ctx)
		if err != nil {
			return err
		}
		if err := l.addWarehouses(ctx); err != nil {
			return err
		}
		if err := l.lookAgain(ctx); err != nil {
			return err
		}
		if !changed && !read {
			return nil
		}
	}
	if l.reached.behind {
		return moorage.Errorf(moorage.KindUnavailable, "Tables change faster than they can be read; try again")
	}
	return nil
}

// lookAgain removes from found the files that are now claimed or reached.
func (l *leftoverLook) lookAgain(ctx context.Context) error {
	still, claims := l.found[:0], newClaimed(l.jobs)
	for part := range slices.Chunk(l.found, listPage) {
		free, err := claims.free(ctx, part)
		if err != nil {
			return err
		}
		for _, file := range free {
			if l.mayBeLeft(file) {
				still = append(still, file)
			}
		}
	}
	l.found = still
	return nil
}

// readUnregistered reads the unread metadata files that are outside all locations. It reports
// whether there were any.
func (l *leftoverLook) readUnregistered(ctx context.Context) (bool, error) {
	unread := l.unregistered.unread
	l.unregistered.unread = nil
	for _, file := range unread {
		if set := l.reached.set; set.IsExact() && set.Has(file) {
			continue // a table of the store refers to it
		}
		document, err := l.jobs.tables.Unregistered(ctx, l.warehouse, file)
		if err != nil && moorage.KindOf(err) == moorage.KindNotFound {
			continue // it was deleted in the meantime
		}
		if err == nil && document != nil {
			l.unregistered.folders.addText(document.Location())
			err = l.reached.addUnregistered(ctx, reaching{l.jobs.budget.reader(l.store), document, file, l.warehouse})
		}
		if err != nil {
			return false, asBlocked(ctx, err, fmt.Sprintf("%s may be the "+
				"metadata of an unregistered table, and its files cannot be read: %s. Move it away if it is not needed",
				file, wordsOf(err)))
		}
	}
	return len(unread) > 0, nil
}

// wordsOf returns the text for an error in a report.
func wordsOf(err error) string { return cmp.Or(moorage.MessageOf(err), err.Error()) }

// asBlocked returns err if it may be temporary. Otherwise it returns a BlockedError with the
// reason.
func asBlocked(ctx context.Context, err error, why string) error {
	switch kind := moorage.KindOf(err); {
	case ctx.Err() != nil:
		return ctx.Err()
	case kind == moorage.KindUnavailable, kind == moorage.KindTooManyRequests:
		return err
	}
	return &BlockedError{why}
}
