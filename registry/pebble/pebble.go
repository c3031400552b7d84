package pebble

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	engine "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"moorage/registry"
)

// Defaults and settings of the engine: a catalog's records are small and few.
const (
	// CacheBytesDefault is the memory for blocks read from files, if Options does not say.
	CacheBytesDefault = 32 << 20
	// memTableBytes is the memory in which new records gather before they become a file.
	memTableBytes = 8 << 20
	// openFilesMax bounds the files that the engine keeps open.
	openFilesMax = 256
	// bloomBitsPerKey makes one read in a hundred of a missing key look into a file for nothing.
	bloomBitsPerKey = 10
	// compactionsMax bounds the merges of files that run side by side. The engine begins a second
	// one only when it falls behind. More would take the processors from the commits.
	compactionsMax = 2
	// engineFormat is the engine's own format. Fewer versions of the engine can read a higher one,
	// so it is raised on purpose and not with the library. With this one the engine can distinguish
	// a log that a crash tore from one that was damaged later.
	engineFormat = engine.FormatWALSyncChunks
)

// Errors that Open returns. Callers distinguish them with errors.Is.
var (
	// ErrLocked: another process has the directory open, or this one has.
	ErrLocked = errors.New("the store is in use by another process")
	// ErrNewerFormat: the directory was written by a later version.
	ErrNewerFormat = errors.New("the store was written by a newer version of moorage")
	// ErrForeign: the directory holds a database that is not a store.
	ErrForeign = errors.New("the directory holds a database that is not a moorage store")
)

// Options are what a store is made from. The zero value is usable.
type Options struct {
	FS     vfs.FS       // default: the operating system's
	Random io.Reader    // source of ETags; default crypto/rand.Reader
	Logger *slog.Logger // default: discards
	// CacheBytes bounds the memory for blocks read from files; default CacheBytesDefault.
	// Beside it the store holds at most about five times memTableBytes of new records.
	CacheBytes int64
	// Now is the store's clock; default time.Now.
	Now func() time.Time
}

// Store keeps records in a directory. It is safe for concurrent use.
type Store struct {
	dir    string
	logger *slog.Logger
	db     *engine.DB
	guard  *guard
	now    func() time.Time // the store's clock

	randomMu sync.Mutex // guards random; leaf
	random   io.Reader

	queue     queue
	committer sync.WaitGroup // the goroutine that runs commitLoop
	// The fields below are the committer's alone while it runs.
	last   registry.Position // the position last given away
	broken bool              // the engine panicked; it may hold locks of its own

	// viewMu guards view and the entry into readers; leaf, never held over I/O.
	viewMu  sync.RWMutex
	view    *view          // nil once the store is closed
	readers sync.WaitGroup // calls that read; entered with viewMu held and view not nil
	retired retired

	buffers sync.Pool // of *[]byte, for the engine's keys
	pages   sync.Pool // of *page
	// backupMu lets one backup be written at a time; taken before any other, held over I/O.
	backupMu sync.Mutex
	failure  failure

	closeOnce sync.Once
	closeErr  error
}

var (
	_ registry.Store         = (*Store)(nil)
	_ registry.HealthChecker = (*Store)(nil)
)

// Open opens the store in the directory dir, which it makes if it is missing. It returns an
// error that is ErrLocked, ErrNewerFormat or ErrForeign, each a sentence with dir in it, or
// one of the file system. Everything that an earlier process acknowledged is there.
func Open(dir string, options Options) (*Store, error) {
	return open(dir, options, func(*engine.Options) {})
}

// open is Open with a chance for tests to change the engine's settings.
func open(dir string, options Options, tune func(*engine.Options)) (*Store, error) {
	if options.FS == nil {
		options.FS = vfs.Default
		absolute, err := filepath.Abs(dir) // the engine's lock goes by the name of the directory
		if err != nil {
			return nil, fmt.Errorf("open store %s: %w", dir, err)
		}
		dir = absolute
	}
	if options.Random == nil {
		options.Random = rand.Reader
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if options.CacheBytes == 0 {
		options.CacheBytes = CacheBytesDefault
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	s := &Store{dir: dir, logger: options.Logger, now: options.Now, random: options.Random}
	s.failure.init()
	s.queue.init()
	s.guard = newGuard(options.FS, s.fail)
	if err := s.start(options.CacheBytes, tune); err != nil {
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	if reason := s.failure.open(); reason != nil {
		s.logFailure(reason)
	}
	return s, nil
}

// Exists reports whether there is a store in the directory dir, or one that Open would find
// damaged. It makes and changes nothing. There is no store in a directory that is missing or empty,
// or in which the making of a store was not completed. An error comes from the file system.
func Exists(dir string) (bool, error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(files, func(file fs.DirEntry) bool {
		return isManifestMarker(file.Name()) || isContent(file.Name())
	}), nil
}

// start opens the engine, reads what the store has to know, and starts the committer.
func (s *Store) start(cacheBytes int64, tune func(*engine.Options)) error {
	stop := s.watch()
	defer stop()
	db, err := s.openEngine(cacheBytes, tune)
	if err == nil {
		s.db = db
		s.retired.start()
		if err = s.load(); err == nil {
			s.view = newView(db, &s.retired)
			s.committer.Go(s.commitLoop)
			return nil
		}
		s.retired.stop()
		err = errors.Join(err, s.closeEngine())
	}
	// What the engine says after the store has failed follows from that.
	if reason := s.failure.why(); reason != nil {
		return reason
	}
	return err
}

// watch lets the engine go as soon as the store fails, until stop is called: while the engine opens
// or closes, somebody waits for it to end.
func (s *Store) watch() (stop func()) {
	stopped := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		select {
		case <-s.failure.happened:
			s.guard.letGo()
		case <-stopped:
		}
	})
	return func() {
		close(stopped)
		watcher.Wait()
	}
}

// Healthy implements registry.HealthChecker: a store that has failed stays so until it is
// opened again.
func (s *Store) Healthy(context.Context) error { return s.failure.get() }

// Close implements registry.Store. It first carries out Applies that are queued. It returns nil for
// a store that has failed, which Healthy reports.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		s.queue.close()
		stop := s.watch()
		defer stop()
		s.committer.Wait()
		s.setView(nil)
		s.readers.Wait()
		s.retired.stop()
		if s.broken {
			return
		}
		err := s.closeEngine()
		if s.failure.why() == nil {
			s.closeErr = err
		}
	})
	return s.closeErr
}

// setView puts the view in place that readers get from now on, nil to let none in.
func (s *Store) setView(next *view) {
	s.viewMu.Lock()
	last := s.view
	s.view = next
	s.viewMu.Unlock()
	if last != nil {
		last.release()
	}
}

// fail marks the store failed, for the first of its reasons, and lets nothing reach the
// disk any more. It may be called from anywhere in the engine, with its locks held.
func (s *Store) fail(reason error) {
	s.guard.freeze()
	if s.failure.set(reason) {
		s.logFailure(reason)
	}
}

func (s *Store) logFailure(reason error) {
	s.logger.Error("store failed, it refuses writes until it is opened again", "dir", s.dir, "error", reason)
}
