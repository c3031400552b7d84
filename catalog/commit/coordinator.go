package commit

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"moorage"
	"moorage/catalog/directory"
	"moorage/catalog/documents"
	"moorage/internal/trace"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
	"moorage/txlog"
)

// errVersionsMoved means that a version on which a transaction was built is no longer current.
// Nothing was changed.
var errVersionsMoved = errors.New("commit: versions moved")

// coordinator carries out one attempt of a transaction, under one commit ID and with one record. It
// ends the transaction, unless it dies or cannot find out the outcome of its one Apply. It belongs
// to one goroutine.
type coordinator struct {
	*Pipeline
	t      *transaction
	change registry.Change
	record txlog.Entry // zero until the transaction has begun

	applied bool             // the transaction has committed
	last    []documents.File // the files of the last recorded try

	mu      sync.Mutex // guards foreign while files are written; no lock is taken under it
	foreign []string   // recorded files whose names were already in use
}

// try makes one attempt with a commit id of its own. It returns ledger.ErrRetry if another process
// has fenced that ID. If stale is true, it first rereads the tables of t.
func (t *transaction) try(ctx context.Context, stale bool) error {
	p := t.Pipeline
	change, err := t.change(ctx, p.ledger, moorage.Identifier{Warehouse: t.warehouse})
	if err != nil {
		return err
	}
	o := &coordinator{Pipeline: p, t: t, change: change}
	err = o.run(ctx, stale)
	switch {
	case o.applied:
		o.finish(ctx)
	case moorage.KindOf(err) == moorage.KindCommitUnknown:
		p.kickRecovery() // after the deadline, recovery finds the outcome in the record
	default:
		o.rollBack(ctx)
	}
	return err
}

// run builds the transaction and applies it. It retries, up to TransactionTriesMax times, if only
// versions of tables have changed.
func (o *coordinator) run(ctx context.Context, stale bool) error {
	release := func() {}
	defer func() { release() }()
	for try := 1; ; try++ {
		err := o.step(ctx, stale)
		if !errors.Is(err, errVersionsMoved) {
			return err
		}
		if try == TransactionTriesMax || o.ledger.Pause(ctx, try) != nil {
			return moorage.Errorf(moorage.KindCommitFailed,
				"Gave up after %d attempts: other commits to these tables were always faster; nothing was changed", try)
		}
		stale = true
		if try == 1 {
			release = o.takeTurns(ctx)
		}
	}
}

// takeTurns waits for a turn at each table of the transaction, ahead of single-table commits that
// have not begun. It waits at most transactionTurnsMax in all, then continues without the missing
// turns.
func (o *coordinator) takeTurns(ctx context.Context) (release func()) {
	ctx, cancel := context.WithTimeout(ctx, transactionTurnsMax)
	defer cancel()
	release, _ = o.queue.takeAll(ctx, o.t.pointers())
	return release
}

// step checks, builds, records, writes and applies once. It returns errVersionsMoved if a version
// changed since the transaction was built.
func (o *coordinator) step(ctx context.Context, stale bool) error {
	if stale {
		if err := o.t.readParticipants(ctx); err != nil {
			return movedIfAgain(err)
		}
		if o.t.replayed() {
			return nil
		}
	}
	building, span := trace.Start(ctx, "build")
	err := o.t.buildParticipants(building, o.change)
	span.End(err)
	if err != nil {
		return movedIfAgain(err)
	}
	files := o.t.files()
	if len(files) == 0 {
		return o.verifyUnchanged(ctx)
	}
	if err := o.leases.check(ctx, o.t.work); err != nil {
		return err
	}
	batch, err := o.t.batch()
	if err != nil {
		return err
	}
	if err := o.recordIntent(ctx, files); err != nil {
		return err
	}
	o.last = files
	writing, span := trace.Start(ctx, "write")
	err = o.write(writing, files)
	span.End(err)
	if err != nil {
		return err
	}
	return o.applyOnce(ctx, files, batch)
}

func movedIfAgain(err error) error {
	if errors.Is(err, ledger.ErrRetry) {
		return errVersionsMoved
	}
	return err
}

// verifyUnchanged handles a transaction that writes nothing. It returns nil if all requirements
// held at the same moment. It returns errVersionsMoved if this is not certain.
func (o *coordinator) verifyUnchanged(ctx context.Context) error {
	var known []*directory.Found
	for _, p := range o.t.parts {
		known = append(known, p.found)
	}
	now, err := o.directory.RereadAll(ctx, known)
	if err == nil && !slices.Equal(now, known) {
		err = errVersionsMoved
	}
	return err
}

// recordIntent records the files that the coordinator is about to write, and the tables' expected
// versions.
func (o *coordinator) recordIntent(ctx context.Context, files []documents.File) error {
	var next txlog.Entry
	var err error
	if !o.record.Exists() {
		began := o.now()
		place, placeErr := recorded(o.t.parts[0].place)
		if placeErr != nil {
			return moorage.E("commit.recordIntent", o.t.warehouse, moorage.KindInternal, placeErr)
		}
		next, err = o.transactions.Begin(ctx, txlog.Transaction{
			ID: o.change.ID, Warehouse: o.t.warehouse, Place: place,
			Participants: o.t.participants(), Files: locationsOf(files),
			Began: began, Deadline: began.Add(TransactionDeadline),
			Principal: o.change.Principal, RequestID: o.change.RequestID,
		})
	} else {
		next, err = o.transactions.Extend(ctx, o.record, o.t.participants(), locationsOf(files))
	}
	if err != nil { // even if the outcome is unknown: no Apply follows
		return moorage.E("commit.recordIntent", o.t.warehouse, moorage.KindUnavailable, err)
	}
	o.record = next
	return nil
}

// write stores files. A storage that implements storage.Batcher gets all files in one call.
// Otherwise several files are written concurrently.
func (o *coordinator) write(ctx context.Context, files []documents.File) error {
	if batcher, ok := files[0].Storage.(storage.Batcher); ok && inOneStore(files) {
		return o.writeTogether(ctx, batcher, files)
	}
	together := make(map[storage.Batcher][]documents.File)
	var others []documents.File
	for _, file := range files {
		if batcher, ok := file.Storage.(storage.Batcher); ok {
			together[batcher] = append(together[batcher], file)
			continue
		}
		others = append(others, file)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(FilesAtOnce)
	for _, file := range others {
		group.Go(func() error { return o.noteWriteError(file, safely(ctx, file.Write)) })
	}
	for batcher, files := range together {
		group.Go(func() error {
			return safely(ctx, func(ctx context.Context) error { return o.writeTogether(ctx, batcher, files) })
		})
	}
	return group.Wait()
}

// inOneStore reports whether all files are in the storage of the first file. They nearly always
// are, because it is the storage of their warehouse.
func inOneStore(files []documents.File) bool {
	return !slices.ContainsFunc(files, func(file documents.File) bool { return file.Storage != files[0].Storage })
}

// writeTogether stores files. They must all be in the storage of batcher. It returns the error
// of the first file that could not be stored.
func (o *coordinator) writeTogether(ctx context.Context, batcher storage.Batcher, files []documents.File) error {
	bodies, err := contents(ctx, files)
	if err != nil {
		return err
	}
	var first error
	for i, err := range batcher.CreateAll(ctx, bodies) {
		if err = o.noteWriteError(files[i], documents.CreateError(files[i].Location, err)); first == nil {
			first = err
		}
	}
	return first
}

// contents returns the locations and encoded bytes of files.
func contents(ctx context.Context, files []documents.File) ([]storage.File, error) {
	bodies := make([]storage.File, len(files))
	fill := func(i int) (err error) {
		bodies[i].Location = files[i].Location
		bodies[i].Body, err = files[i].Content()
		return err
	}
	if slices.ContainsFunc(files, documents.File.IsCompressed) {
		var group errgroup.Group
		group.SetLimit(runtime.GOMAXPROCS(0)) // compression is CPU-bound
		for i := range files {
			group.Go(func() error { return safely(ctx, func(context.Context) error { return fill(i) }) })
		}
		return bodies, group.Wait()
	}
	for i := range files {
		if err := fill(i); err != nil {
			return nil, err
		}
	}
	return bodies, nil
}

// noteWriteError adds the name of the table to err, the result of writing file. It adds the file to
// foreign if a file of that name existed already.
func (o *coordinator) noteWriteError(file documents.File, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, storage.ErrExists) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.foreign = append(o.foreign, file.Location)
	}
	i := slices.IndexFunc(o.t.parts, func(p *participant) bool { return p.next.Location == file.Location })
	return OfTable(o.t.parts[i].Ident, err)
}

// applyOnce commits the transaction with its one Apply.
func (o *coordinator) applyOnce(ctx context.Context, files []documents.File, batch registry.Batch) error {
	published := locationsOf(files)
	condition, write, err := o.record.Commit(published)
	if err != nil {
		return moorage.E("commit.applyOnce", o.t.warehouse, moorage.KindInternal, err)
	}
	batch.Conditions = append([]registry.Condition{condition}, batch.Conditions...)
	batch.Writes = append(batch.Writes, write)
	change := o.change
	for _, p := range o.t.parts {
		change.Items = append(change.Items, p.plan.Items...)
	}
	etags, err := o.apply(ctx, ledger.Mutation{
		Change: change, Conditions: batch.Conditions, Writes: batch.Writes,
	}, effect{work: o.t.work})
	failed, isFailed := registry.FailedCondition(err)
	switch {
	case err == nil:
		o.applied, o.record.Published = true, published
		for _, p := range o.t.parts {
			if p.writes() {
				o.t.noteHead(p.next.Pointer, p.next.Document)
			}
		}
		o.cacheResult(etags)
		return nil
	case isFailed && failed.Key == condition.Key:
		return moorage.Errorf(moorage.KindUnavailable,
			"The transaction took too long and was aborted; nothing was changed")
	case isFailed:
		return errVersionsMoved
	}
	return err
}

// cacheResult caches the new versions of the tables. etags are the ETags of the writes, or empty if
// unknown.
func (o *coordinator) cacheResult(etags []registry.ETag) {
	for _, p := range o.t.parts {
		if !p.writes() {
			continue
		}
		o.documents.Keep(p.next.Pointer, p.next.Location, p.next.Document)
		if p.Create == nil && len(etags) > 0 {
			o.directory.RememberMove(p.to, p.plan.Writes[0], etags[p.toWrite])
		}
	}
}

// finish cleans up after a committed transaction. It deletes the files of earlier tries. It also
// deletes files that are no longer in the metadata log of a table, if the table has enabled this.
func (o *coordinator) finish(ctx context.Context) {
	if len(o.record.Surplus()) > 0 {
		o.cleanUp(ctx)
	}
	fallen := make([]documents.Trimmed, 0, len(o.t.parts))
	for _, p := range o.t.parts {
		if p.Create == nil && p.writes() {
			p.plan.Trimmed.Table = directory.Latest(p.found, p.to)
			fallen = append(fallen, p.plan.Trimmed)
		}
	}
	o.documents.DeleteTrimmed(ctx, o.now(), fallen)
}

// rollBack ends a transaction that did not commit and never will, or that had nothing to do. It
// deletes the files first, then the record.
func (o *coordinator) rollBack(ctx context.Context) {
	if o.record.Exists() {
		o.cleanUp(ctx)
	}
}

// cleanUp deletes the recorded files that no pointer names, then the record. If another process has
// ended the transaction, it calls cleanUpAfterOthers instead. Recovery repeats a deletion that
// fails.
func (o *coordinator) cleanUp(ctx context.Context) {
	ctx, cancel := moorage.Detached(ctx, SettleTimeout)
	defer cancel()
	record, changed := registry.TransactionKey(o.record.ID), registry.ChangeKey(o.record.ID)
	records, err := o.ledger.Get(ctx, record, changed)
	if err == nil && !records[0].Exists() {
		o.cleanUpAfterOthers(ctx, records[1])
		return
	}
	if err == nil {
		left := o.record
		left.Files = slices.DeleteFunc(slices.Clone(left.Files), func(file string) bool {
			return slices.Contains(o.foreign, file)
		})
		err = o.documents.DeleteSurplus(ctx, PlaceOf(left.Place), left.Transaction.Surplus())
	}
	if err == nil {
		err = o.transactions.Finish(ctx, o.record)
	}
	if err != nil {
		o.log.WarnContext(ctx, "could not clean up after a transaction, recovery will",
			"commit", o.record.ID, "error", moorage.OneLine(err.Error()))
		o.kickRecovery()
	}
}

// cleanUpAfterOthers deletes leftover files after another process has ended the transaction. change
// is the change record of the transaction. Nothing is left if the transaction committed. If an
// operator removed the transaction from the log, the coordinator must not delete its files.
//
// If the other process aborted the transaction, it deleted the files that it found. This
// coordinator may have written files of its last try after that. A client may have registered those
// files, so the coordinator deletes a file only if no pointer names it.
func (o *coordinator) cleanUpAfterOthers(ctx context.Context, change registry.Record) {
	if o.applied || change.State == registry.StateVoid {
		return
	}
	for _, file := range o.last {
		if ctx.Err() != nil {
			o.log.WarnContext(ctx,
				"could not delete all files of a transaction that others have ended, they stay",
				"commit", o.record.ID, "error", ctx.Err())
			return
		}
		if !slices.Contains(o.foreign, file.Location) {
			o.documents.DeleteLost(ctx, documents.Lost{File: file})
		}
	}
}
