package pebble

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// watchPause is the pause between two checks of a store's disk.
	watchPause = time.Second
	// spareBytesMin is the free disk space that a healthy store needs. It is enough to flush the
	// engine's memory, and for the metadata file of nearly every commit.
	spareBytesMin = 2 * memTableBytes
	// Opening a store writes the content of the engine's logs, and up to reopenSpareBytes more: a
	// new log, the list of tables, and the settings.
	reopenSpareBytes = 4 << 20
	// roomFile is the name of the file that the store writes to test whether its disk has room.
	roomFile = "room.tmp"
)

// watchDisk measures the free space on the disk of the store at intervals, until Close. If a store
// failed because its disk was full, it reopens the store when there is room.
func (s *Store) watchDisk(pause time.Duration) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	logged := "" // why the store could not be reopened
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
		}
		s.measure()
		failed := s.current.Load()
		if reason := failed.failure.cause(); reason == nil || !isFull(reason) || !s.hasRoom() {
			continue
		}
		// The failed instance has served reads until now. Its engine must close before another can
		// open the directory. Its remaining writes do not reach the disk.
		_ = failed.Close() // returns nil, because it has failed
		next, err := open(s.dir, s.options, s.tune)
		switch {
		case err == nil:
			s.current.Store(next)
			s.options.Logger.Info("store is open again, because its disk has room", "dir", s.dir)
			logged = ""
		case err.Error() != logged:
			logged = err.Error()
			s.options.Logger.Warn("store cannot be opened again yet", "dir", s.dir, "error", err)
		}
	}
}

// isFull reports whether a store failed because its disk, or its quota, was full.
func isFull(reason error) bool {
	return errors.Is(reason, syscall.ENOSPC) || errors.Is(reason, syscall.EDQUOT)
}

// measure stores the free space of the disk in freeBytes.
func (s *Store) measure() {
	usage, err := s.options.FS.GetDiskUsage(s.dir)
	if err != nil {
		s.freeBytes.Store(-1)
		return
	}
	free := usage.AvailBytes
	if os.Geteuid() == 0 { // root may use space that the file system reserves
		free = max(free, usage.TotalBytes-usage.UsedBytes)
	}
	s.freeBytes.Store(int64(free))
}

// hasRoom reports whether the disk has room for the data that opening the store writes. It writes a
// file of that size and removes it, because the free space of a disk does not show a quota.
func (s *Store) hasRoom() bool {
	files := s.options.FS
	needed := s.logBytes() + reopenSpareBytes
	if free := s.freeBytes.Load(); free >= 0 && free < needed {
		return false
	}
	name := files.PathJoin(s.dir, roomFile)
	file, err := files.Create(name, vfs.WriteCategoryUnspecified)
	if err == nil {
		zeros := make([]byte, 256<<10)
		for written := int64(0); written < needed && err == nil; written += int64(len(zeros)) {
			_, err = file.Write(zeros)
		}
		err = errors.Join(err, file.Sync(), file.Close())
	}
	if removeErr := files.Remove(name); !errors.Is(removeErr, fs.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	return err == nil
}

// logBytes returns the size of the engine's logs. Opening the store moves their content to tables.
func (s *Store) logBytes() (bytes int64) {
	names, err := s.options.FS.List(s.dir)
	if err != nil {
		return 0
	}
	for _, name := range names {
		if !isContent(name) || !strings.HasSuffix(name, ".log") {
			continue
		}
		if info, err := s.options.FS.Stat(s.options.FS.PathJoin(s.dir, name)); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}
