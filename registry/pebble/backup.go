package pebble

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"

	engine "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"moorage/registry"
)

// unfinishedEnding is the suffix of a backup's folder while the backup is being written.
const unfinishedEnding = ".unfinished"

// errWithin means that the backup would be in the folder of the store, where the engine might take
// it for one of its own files.
var errWithin = errors.New("it lies within the folder of the store")

// Backup implements Store.Backup.
func (s *instance) Backup(ctx context.Context, dir, name string,
	prepare func(context.Context, registry.Store) error) (records int, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("back up to %s: %w", dir, err)
		}
	}()
	if s.guard.FS == vfs.Default {
		if dir, err = filepath.Abs(dir); err != nil { // isApart compares names
			return 0, err
		}
	}
	s.backupMu.Lock()
	defer s.backupMu.Unlock()
	files := s.guard.FS
	unfinished, err := s.unfinishedName(dir)
	if err != nil {
		return 0, err
	}
	if err := s.checkpoint(ctx, unfinished, name); err != nil {
		return 0, err
	}
	copied := files.PathJoin(unfinished, name)
	if prepare != nil {
		err = s.prepare(ctx, copied, prepare)
	}
	if err == nil && prepare != nil {
		// This opening moves the changes from the engine's log to a table. A later opening would
		// notice a lost table, but not a lost log. Some tools that copy folders leave out log
		// files.
		err = s.prepare(ctx, copied, func(context.Context, registry.Store) error { return nil })
	}
	if err == nil {
		records, err = s.verify(copied)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = checkAbsent(files, dir) // the rename would replace an empty folder created after the first check
	}
	if err == nil {
		err = moveDurably(files, unfinished, dir)
	}
	if err != nil {
		return 0, errors.Join(err, files.RemoveAll(unfinished))
	}
	return records, nil
}

// IsUnfinished reports whether dir, as passed to Open, is in the folder of an incomplete backup.
// Such a copy may still hold records that make a server delete files of the original store.
func IsUnfinished(dir string) bool {
	absolute, err := filepath.Abs(dir)
	return err == nil && strings.HasSuffix(filepath.Dir(absolute), unfinishedEnding)
}

// unfinishedName draws the temporary name of the backup dir.
func (s *instance) unfinishedName(dir string) (string, error) {
	var unique [8]byte
	s.randomMu.Lock()
	_, err := io.ReadFull(s.random, unique[:])
	s.randomMu.Unlock()
	if err != nil {
		return "", fmt.Errorf("draw a name: %w", err)
	}
	if err := checkAbsent(s.guard.FS, dir); err != nil {
		return "", err
	}
	if strings.HasPrefix(dir, s.dir+string(filepath.Separator)) {
		return "", errWithin
	}
	if _, err := s.guard.FS.Stat(s.guard.FS.PathDir(dir)); err != nil {
		return "", err
	}
	return dir + "." + hex.EncodeToString(unique[:]) + unfinishedEnding, nil
}

// checkAbsent returns fs.ErrExist if name exists.
func checkAbsent(files vfs.FS, name string) error {
	switch _, err := files.Stat(name); {
	case err == nil:
		return fs.ErrExist
	case errors.Is(err, fs.ErrNotExist):
		return nil
	default:
		return err
	}
}

// checkpoint makes the committer copy the engine's files to a folder called name in the new folder
// dir. After an error, nothing is left in dir. If the store has failed, this holds only after the
// store is closed.
//
// The committer makes the copy because between two groups all of the engine's log is on disk. If
// the log grew during the copy, the copy could have newer pages of the log without older ones,
// which looks like damage. Because all of the log is on disk, the engine need not flush it first.
func (s *instance) checkpoint(ctx context.Context, dir, name string) error {
	r := &request{answer: make(chan error, 1)}
	r.alone = func() error {
		if err := s.failure.get(); err != nil {
			return err
		}
		s.guard.apart.Store(&dir)
		defer s.guard.apart.Store(nil)
		err := s.checkpointEngine(dir, name)
		if failed := s.failure.get(); failed != nil {
			err = failed // the engine may report data that it failed to write
		}
		if err != nil {
			err = errors.Join(err, s.guard.FS.RemoveAll(dir))
		}
		return err
	}
	if err := s.queue.add(r); err != nil {
		return err
	}
	select {
	case err := <-r.answer:
		return err
	case <-ctx.Done():
		if s.queue.withdraw(r) {
			return ctx.Err()
		}
	case <-s.failure.happened:
		s.queue.withdraw(r)
		return s.failure.get() // the committer may be blocked until the store is closed
	}
	select {
	case err := <-r.answer:
		return err
	case <-s.failure.happened:
		return s.failure.get()
	}
}

// checkpointEngine writes the files that the engine needs to open again. It writes them to a folder
// called name in the new folder dir.
func (s *instance) checkpointEngine(dir, name string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
	}()
	// If the engine made dir, it would sync the parent folder, and would fail if that sync failed.
	if err := s.guard.FS.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return s.db.Checkpoint(s.guard.FS.PathJoin(dir, name))
}

// panicked returns the error of an engine's panic. The engine panics with some errors of the file
// system as the value.
func panicked(reason any) error {
	if err, ok := reason.(error); ok {
		return fmt.Errorf("the engine panicked: %w", err)
	}
	return fmt.Errorf("the engine panicked: %v", reason)
}

// prepare calls the function do on the copy of the store in dir. Its changes are durable.
func (s *instance) prepare(ctx context.Context, dir string, do func(context.Context, registry.Store) error) error {
	// A copy that fails must stay failed: if it reopened itself, it could lack changes made by the
	// function do.
	copied, err := open(dir, Options{FS: s.guard.FS}, func(*engine.Options) {})
	if err != nil {
		return fmt.Errorf("open the copy: %w", err)
	}
	err = do(ctx, copied)
	if err = errors.Join(err, copied.Close(), copied.Healthy(ctx)); err != nil {
		return fmt.Errorf("prepare the copy: %w", err)
	}
	return nil
}

// verify opens the copy of the store in dir, reads all of it and returns the number of records.
func (s *instance) verify(dir string) (records int, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
	}()
	var fault sync.Once
	var fatal error
	db, err := engine.Open(dir, &engine.Options{
		FS: s.guard.FS, ReadOnly: true, ErrorIfNotExists: true, FormatMajorVersion: engineFormat,
		MemTableSize: memTableBytes,
		MaxOpenFiles: openFilesMax,
		Logger: engineLogger{slog.New(slog.DiscardHandler),
			func(reason error) { fault.Do(func() { fatal = reason }) }},
	})
	if err != nil {
		return 0, fmt.Errorf("open the copy: %w", err)
	}
	records, err = countRecords(db)
	if err = errors.Join(err, db.Close(), fatal); err != nil {
		return 0, fmt.Errorf("read the copy: %w", err)
	}
	return records, nil
}

// countRecords reads all of db and returns the number of records. Zero is an error, because no
// store is empty.
func countRecords(db *engine.DB) (records int, err error) {
	iter, err := db.NewIter(nil)
	if err != nil {
		return 0, err
	}
	for valid := iter.First(); valid; valid = iter.Next() {
		if _, err := iter.ValueAndErr(); err != nil {
			return 0, errors.Join(err, iter.Close())
		}
		if iter.Key()[0] == spaceRecord {
			records++
		}
	}
	if err := iter.Close(); err != nil {
		return 0, err
	}
	if records == 0 {
		return 0, errors.New("it is empty")
	}
	return records, nil
}

// moveDurably renames oldDir to newDir. Both have the same parent folder. After an error, newDir
// does not exist.
func moveDurably(files vfs.FS, oldDir, newDir string) error {
	if err := syncFolder(files, oldDir); err != nil {
		return err
	}
	if err := files.Rename(oldDir, newDir); err != nil {
		return err
	}
	if err := syncFolder(files, files.PathDir(newDir)); err != nil {
		return errors.Join(err, files.RemoveAll(newDir))
	}
	return nil
}

// syncFolder makes the names in a folder durable.
func syncFolder(files vfs.FS, name string) error {
	folder, err := files.OpenDir(name)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
