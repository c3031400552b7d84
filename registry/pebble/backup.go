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

// unfinishedEnding is what the name of a folder ends in while a backup is written to it.
const unfinishedEnding = ".unfinished"

// errWithin says that a backup is asked for in the folder of the store, where the engine may take
// it for a file of its own.
var errWithin = errors.New("it lies within the folder of the store")

// Backup is Store.Backup.
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
		// Opening moves the changes from the engine's log to a table. Opening would notice a lost
		// table, but not a lost log, and some tools leave out files that are called so when they
		// copy a folder.
		err = s.prepare(ctx, copied, func(context.Context, registry.Store) error { return nil })
	}
	if err == nil {
		records, err = s.verify(copied)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = checkAbsent(files, dir) // a rename would replace an empty folder made meanwhile
	}
	if err == nil {
		err = moveDurably(files, unfinished, dir)
	}
	if err != nil {
		return 0, errors.Join(err, files.RemoveAll(unfinished))
	}
	return records, nil
}

// IsUnfinished reports whether dir, as Open takes it, is in the folder of a backup that was not
// completed. Such a copy may still hold records that make a server delete files of the original
// store.
func IsUnfinished(dir string) bool {
	absolute, err := filepath.Abs(dir)
	return err == nil && strings.HasSuffix(filepath.Dir(absolute), unfinishedEnding)
}

// unfinishedName draws the name under which the backup dir is written.
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

// checkAbsent returns fs.ErrExist if there is something at name.
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

// checkpoint lets the committer copy the engine's files to the folder name in the new folder dir.
// An error leaves nothing there. If the store has failed, nothing is left once the store is closed.
//
// The committer does it because the engine's log then holds nothing that is not on disk. A copy of
// a log that grows meanwhile may have new pages behind old ones, which looks like damage. For the
// same reason the engine need not flush its log first.
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
			err = failed // what the engine believes to have written may not be there
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
		return s.failure.get() // the committer may be held up until the store is closed
	}
	select {
	case err := <-r.answer:
		return err
	case <-s.failure.happened:
		return s.failure.get()
	}
}

// checkpointEngine writes what the engine needs to open again to the folder name in the new folder
// dir.
func (s *instance) checkpointEngine(dir, name string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
	}()
	// The engine would sync the folder that contains dir, and take an error there for one of its
	// own.
	if err := s.guard.FS.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return s.db.Checkpoint(s.guard.FS.PathJoin(dir, name))
}

// panicked returns what the engine panicked with, which for some errors of the file system is that
// error.
func panicked(reason any) error {
	if err, ok := reason.(error); ok {
		return fmt.Errorf("the engine panicked: %w", err)
	}
	return fmt.Errorf("the engine panicked: %v", reason)
}

// prepare lets do change the copy of the store in dir, durably.
func (s *instance) prepare(ctx context.Context, dir string, do func(context.Context, registry.Store) error) error {
	// A copy that fails must stay so: one that opened itself again could lack what do did.
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

// verify opens the copy of the store in dir, reads all of it and returns how many records it holds.
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

// countRecords reads all that db holds and returns how many records there are; none is an error,
// because every store has some.
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

// moveDurably gives the folder from the name to, in the same folder. An error leaves nothing at to.
func moveDurably(files vfs.FS, from, to string) error {
	if err := syncFolder(files, from); err != nil {
		return err
	}
	if err := files.Rename(from, to); err != nil {
		return err
	}
	if err := syncFolder(files, files.PathDir(to)); err != nil {
		return errors.Join(err, files.RemoveAll(to))
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
