package documents

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"moorage"
	"moorage/catalog/directory"
	"moorage/ledger"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

const (
	// formerReadsMax bounds the metadata files that one walk reads. With logs of 100 files, the
	// default, the walk gets as far back as a purge does.
	formerReadsMax = 1000
	// formerFilesMax bounds the files that one run deletes. formerRoundMax bounds the files that
	// one Apply announces.
	formerFilesMax = 10_000
	formerRoundMax = 1000
	// formerFoldersMax bounds the folders that one Apply announces. Few tables have files in more
	// than one folder.
	formerFoldersMax = 8
	// formerMargin covers the time from drawing the name of a version to its Apply, and the
	// difference between the clocks of nodes.
	formerMargin = 5 * time.Minute
)

// Former is the result of TrimFormer.
type Former struct {
	// Files is the number of files that were deleted, or had been deleted before.
	Files int
	// Next is when the next files will have been out of the log for long enough. It is zero if no
	// such files are left.
	Next time.Time
}

// Allows returns an error if no file of a table may be deleted. document is the one that table
// names.
type Allows func(ctx context.Context, table *directory.Found, document *metadata.Document) error

// TrimFormer deletes metadata files of a live table that left its metadata log longer ago than the
// duration kept. now is the store's time. It makes no version. Before each announcement and before
// each deletion, it calls allows with the table's present version. It deletes a file only if all
// three conditions hold: the file is within the claims of the table, a server over this store drew
// its name for the table, and a log names it. Other files stay, such as files that the table
// brought from another catalog.
//
// That is safe because no version younger than kept names or logs such a file. The walk finds the
// last older version, and takes only files that are not in the log of that version or of a later
// one. Versions that a register skipped are not in the logs, so no file is deleted until the last
// register is older than kept. The Apply that announces the files requires that there was no
// register since the walk. registry.Trim fences registers while the files are deleted.
//
// The oldest files are deleted first, and a file is deleted after the files that its log names. So
// if a run is interrupted at any point, or reaches its bounds, the next walk finds the remaining
// files.
//
// Errors: the errors of Current, of allows and of the storage; KindUnavailable. The result is valid
// even with an error.
func (d *Documents) TrimFormer(ctx context.Context, found *directory.Found, now time.Time, kept time.Duration,
	allows Allows) (Former, error) {
	present, err := d.Current(ctx, found)
	if err != nil {
		return Former{}, err
	}
	table, isTable := present.(*metadata.Document)
	if !isTable {
		return Former{}, nil
	}
	kept += formerMargin
	w := &formerWalk{documents: d, found: found, before: now.Add(-kept), met: make(map[string]bool)}
	logs, err := w.logs(ctx, table)
	if err != nil {
		return Former{}, err
	}
	var former Former
	if w.isYoung {
		former.Next = w.lastAt(now).Add(kept)
	}
	for _, round := range rounds(logs) {
		if former.Files >= formerFilesMax {
			former.Next = now
			break
		}
		if found, err = d.trimRound(ctx, found, round, allows); err != nil || found == nil {
			former.Next = now
			return former, err
		}
		for _, batch := range round {
			former.Files += len(batch.files)
		}
	}
	return former, nil
}

// formerWalk follows the metadata logs of a table backwards from its current version.
type formerWalk struct {
	documents *Documents
	found     *directory.Found
	before    time.Time
	met       map[string]bool // the files in the logs read so far, normalised
	isYoung   bool            // some files have left the log too recently to be deleted
	reads     int
	last      string // the file that was read last, and its document
	document  *metadata.Document
}

// logs returns the deletable files, grouped by the logs that name them. The log with the oldest
// files comes last. In each log the oldest file comes first.
func (w *formerWalk) logs(ctx context.Context, present *metadata.Document) ([][]string, error) {
	log := w.note(present)
	if len(log) == 0 {
		return nil, nil
	}
	oldest, err := w.read(ctx, log[0])
	if err != nil || oldest == nil {
		return nil, err
	}
	w.isYoung = slices.ContainsFunc(oldest.MetadataLog(), func(entry metadata.MetadataLogEntry) bool {
		return !w.met[Normalised(entry.MetadataLocation)]
	})
	if !w.isYoung || !w.found.Pointer.Since.Before(w.before) {
		return nil, nil
	}
	base, err := w.base(ctx, present)
	if err != nil || base == nil {
		return nil, err
	}
	w.isYoung = base != present
	if log = w.note(base); len(log) == 0 {
		return nil, nil
	}
	var logs [][]string
	for rung := log[0]; ; {
		document, err := w.read(ctx, rung)
		if err != nil || document == nil {
			return logs, err
		}
		files := w.deletable(document)
		if len(files) == 0 {
			return logs, nil
		}
		if len(logs) == 0 {
			if gone, err := w.areGone(ctx, files[0], files[len(files)-1]); gone || err != nil {
				return nil, err
			}
		}
		if logs = append(logs, files); w.reads >= formerReadsMax {
			w.documents.log.WarnContext(ctx, "a table has too many earlier metadata files; the oldest are left behind",
				"ident", w.found.Pointer.Identifier(), "logs", len(logs))
			return logs, nil
		}
		rung = document.MetadataLog()[0].MetadataLocation
	}
}

// base returns the last version of the table that was made before the time w.before. It returns nil
// if the walk does not get that far.
func (w *formerWalk) base(ctx context.Context, present *metadata.Document) (*metadata.Document, error) {
	pointer := w.found.Pointer
	if !pointer.Registration.IsZero() || w.isOld(pointer.MetadataLocation) {
		return present, nil
	}
	for document := present; document != nil && w.reads < formerReadsMax; {
		log := w.note(document)
		if len(log) == 0 {
			return nil, nil
		}
		for _, file := range slices.Backward(log) {
			if w.isOld(file) {
				return w.read(ctx, file)
			}
		}
		var err error
		if document, err = w.read(ctx, log[0]); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// isOld reports whether the version in a file was made before the time w.before. A file from
// another catalog counts as old, because the last register was before that time.
func (w *formerWalk) isOld(file string) bool {
	at, ok := drawnAt(file)
	return !ok || at.Before(w.before)
}

// lastAt returns the latest time at which a file can have left the log: the time of the current
// version, or of the last register.
func (w *formerWalk) lastAt(now time.Time) time.Time {
	at, ok := drawnAt(w.found.Pointer.MetadataLocation)
	if since := w.found.Pointer.Since; !ok || at.Before(since) {
		at = since
	}
	if at.After(now) {
		return now
	}
	return at
}

// note records the files in the log of document, and returns them, oldest first.
func (w *formerWalk) note(document *metadata.Document) []string {
	var files []string
	for _, entry := range document.MetadataLog() {
		w.met[Normalised(entry.MetadataLocation)] = true
		files = append(files, entry.MetadataLocation)
	}
	return files
}

// deletable returns the deletable files in the log of document that no later version logs.
func (w *formerWalk) deletable(document *metadata.Document) []string {
	pointer := w.found.Pointer
	var files []string
	for _, entry := range document.MetadataLog() {
		file := entry.MetadataLocation
		if place := Normalised(file); !w.met[place] && place != Normalised(pointer.MetadataLocation) {
			w.met[place] = true
			if WroteFor(w.found.Warehouse, pointer.TableUUID, file) && WithinClaims(pointer.Claims, file) {
				files = append(files, file)
			}
		}
	}
	return files
}

// areGone reports whether none of files exists any more.
func (w *formerWalk) areGone(ctx context.Context, files ...string) (bool, error) {
	for _, file := range files {
		_, err := w.found.Storage.Stat(ctx, file)
		switch {
		case err == nil:
			return false, nil
		case !errors.Is(err, storage.ErrNotFound):
			return false, FileError(file, err)
		}
	}
	return true, nil
}

// read returns an earlier version of the table. It returns nil if the file is gone, or is not a
// file of that table within its claims.
func (w *formerWalk) read(ctx context.Context, file string) (*metadata.Document, error) {
	if w.last == file {
		return w.document, nil
	}
	if !WithinClaims(w.found.Pointer.Claims, file) {
		return nil, nil
	}
	w.reads++
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	read, err := w.documents.Read(ctx, directory.Table(), w.found.Pointer.Warehouse, w.found.Storage, file)
	switch moorage.KindOf(err) {
	case moorage.KindNotFound, moorage.KindBadRequest, moorage.KindIllegalArgument, moorage.KindValidation:
		return nil, nil // a file that is missing stays missing
	}
	if err != nil {
		return nil, err
	}
	document := read.(*metadata.Document)
	if !strings.EqualFold(document.UUID(), w.found.Pointer.TableUUID) {
		return nil, nil
	}
	w.last, w.document = file, document
	return document, nil
}

// formerBatch is a set of files to delete with one call of the storage.
type formerBatch struct {
	folder string
	files  []string
}

// rounds splits the files of logs into groups that are announced together. The last file of the
// first log is deleted alone and last, because it shows whether other files are left.
func rounds(logs [][]string) [][]formerBatch {
	var batches []formerBatch
	for i, log := range slices.Backward(logs) {
		begins := true
		for j, file := range log {
			folder, _ := splitName(Normalised(file))
			last := len(batches) - 1
			if begins || batches[last].folder != folder || len(batches[last].files) == formerRoundMax ||
				i == 0 && j == len(log)-1 {
				batches = append(batches, formerBatch{folder: folder})
				last++
			}
			batches[last].files, begins = append(batches[last].files, file), false
		}
	}
	var all [][]formerBatch
	count, folders := 0, make(map[string]bool)
	for _, batch := range batches {
		folders[batch.folder] = true
		count += len(batch.files)
		if len(all) == 0 || count > formerRoundMax || len(folders) > formerFoldersMax {
			all = append(all, nil)
			count, folders = len(batch.files), map[string]bool{batch.folder: true}
		}
		all[len(all)-1] = append(all[len(all)-1], batch)
	}
	return all
}

// trimRound announces the files of round and deletes them. It returns the resulting table. It
// returns nil if the table was registered again since the walk, or no longer exists.
func (d *Documents) trimRound(ctx context.Context, found *directory.Found, round []formerBatch, allows Allows) (
	to *directory.Found, err error) {
	trims, err := d.formerTrims(round)
	if err != nil {
		return nil, err
	}
	since := found.Pointer.Since
	err = d.ledger.Retry(ctx, moorage.KindUnavailable, func(attempt int) error {
		to = nil
		if attempt > 0 {
			if found, err = d.directory.FindPointer(ctx, found.Pointer.ID); err != nil {
				return err
			}
		}
		if !found.Pointer.Since.Equal(since) {
			return nil
		}
		if err := d.checkAllowed(ctx, found, allows); err != nil {
			return err
		}
		now := d.now()
		moved := *found
		for i := range trims {
			trims[i].At = now
		}
		d.trims.begin(trims[0])
		moved.Pointer.Trims = append(d.underTrims(moved.Pointer.Trims, now), trims...)
		writes, err := ledger.Encode(ledger.Replace(found.Record, registry.StateLive, moved.Pointer))
		if err != nil {
			return err
		}
		etags, err := d.ledger.Step(ctx, registry.Batch{
			Conditions: []registry.Condition{ledger.Unchanged(found.Record)}, Writes: writes,
		})
		if _, failed := registry.FailedCondition(err); failed {
			return ledger.ErrRetry
		}
		if err != nil {
			return ledger.StepError("documents.trimRound", err)
		}
		moved.Record.ETag, moved.Record.Value = etags[0], writes[0].Value
		to = &moved
		return nil
	})
	if err != nil || to == nil {
		d.trims.end(trims[0].ID)
		return nil, err
	}
	if err = d.deleteFormer(ctx, to, trims[0], round, allows); err != nil {
		return nil, err
	}
	return to, nil
}

// checkAllowed calls allows with the document that found names.
func (d *Documents) checkAllowed(ctx context.Context, found *directory.Found, allows Allows) error {
	document, err := d.Current(ctx, found)
	if err != nil {
		return err
	}
	return allows(ctx, found, document.(*metadata.Document))
}

// formerTrims returns one announcement for each folder that has files of this round. The
// announcement covers the folder's files whose names were drawn no later than the name of its last
// file in the round.
func (d *Documents) formerTrims(round []formerBatch) ([]registry.Trim, error) {
	node, err := d.trims.nodeID(d.ledger.NewID)
	if err != nil {
		return nil, err
	}
	id, err := d.ledger.NewID()
	if err != nil {
		return nil, err
	}
	var trims []registry.Trim
	for _, batch := range round {
		i := slices.IndexFunc(trims, func(t registry.Trim) bool { return t.Folder == batch.folder })
		if i < 0 {
			i = len(trims)
			trims = append(trims, registry.Trim{ID: id, Node: node, Folder: batch.folder})
		}
		for _, file := range batch.files {
			if at, _ := drawnAt(file); !at.Before(trims[i].Before) {
				trims[i].Before = at.Add(time.Second)
			}
		}
	}
	return trims, nil
}

// deleteFormer deletes the files of round, which trim announced with the Apply that made table. It
// deletes no file if there was a register after that Apply, or if allows refuses it by now.
func (d *Documents) deleteFormer(ctx context.Context, table *directory.Found, trim registry.Trim,
	round []formerBatch, allows Allows) error {
	if d.now().Sub(trim.At) > trimBeginMax {
		return moorage.Errorf(moorage.KindUnavailable, "Announcing the metadata files to delete took too long")
	}
	ctx, cancel := context.WithTimeout(ctx, trimTimeout)
	defer cancel()
	now, err := d.directory.Reread(ctx, table)
	if err != nil {
		return err
	}
	if now == nil || !now.Pointer.Since.Equal(table.Pointer.Since) {
		d.trims.end(trim.ID)
		return nil
	}
	if err := d.checkAllowed(ctx, now, allows); err != nil {
		d.trims.end(trim.ID)
		return err
	}
	for _, batch := range round {
		if err := deleteFiles(ctx, table.Storage, batch.files); err != nil {
			return FileError(batch.files[0], err)
		}
	}
	d.trims.end(trim.ID)
	return nil
}
