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
	"sync/atomic"
	"syscall"
	"time"

	engine "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"moorage/registry"
)

// Defaults and settings of the engine: a catalog's records are small and few.
const (
	// CacheBytesDefault is the memory for blocks read from files, if Options does not set it.
	CacheBytesDefault = 32 << 20
	// memTableBytes is the size of the memory in which the engine collects new records before it
	// writes them to a file.
	memTableBytes = 8 << 20
	// openFilesMax is the maximum number of files that the engine keeps open.
	openFilesMax = 256
	// bloomBitsPerKey is the size of the filters. With this size, one in a hundred lookups of a
	// missing key needlessly reads a file.
	bloomBitsPerKey = 10
	// compactionsMax bounds concurrent merges of files. The engine begins a second merge only when
	// it falls behind. More merges would take processor time from the commits.
	compactionsMax = 2
	// engineFormat is the engine's own format. The higher the format, the fewer versions of the
	// engine can read it. So it is not raised by a new version of the library, but only
	// deliberately by a developer. With this format, the engine can distinguish a log truncated by
	// a crash from one that was damaged later.
	engineFormat = engine.FormatWALSyncChunks
)

// Errors that Open returns. Callers distinguish them with errors.Is.
var (
	// ErrLocked: the directory is open in another process, or already in this one.
	ErrLocked = errors.New("the store is in use by another process")
	// ErrNewerFormat: the directory was written by a later version.
	ErrNewerFormat = errors.New("the store was written by a newer version of moorage")
	// ErrForeign: the directory holds a database that is not a store.
	ErrForeign = errors.New("the directory holds a database that is not a moorage store")
)

// Options configure a store. The zero value is usable.
type Options struct {
	FS     vfs.FS       // default: the operating system's
	Random io.Reader    // source of ETags; default crypto/rand.Reader
	Logger *slog.Logger // default: discards
	// CacheBytes bounds the memory for blocks read from files; default CacheBytesDefault. In
	// addition, the store holds at most about five times memTableBytes of new records.
	CacheBytes int64
	// Now is the store's clock; default time.Now.
	Now func() time.Time

	randomMu *sync.Mutex // guards Random; no lock is taken under it
}

// Store keeps records in a directory. It is safe for concurrent use.
//
// A Store fails at an error that its engine does not survive. If the disk was full, the Store
// reopens itself when the disk has room. After any other error the disk may be broken: the Store
// stays failed, and a new process must open it.
type Store struct {
	dir     string
	options Options
	tune    func(*engine.Options)

	current   atomic.Pointer[instance] // never nil
	freeBytes atomic.Int64             // free bytes on the store's disk at the last measurement; -1 if unknown
	closed    atomic.Bool
	stop      chan struct{} // closed by Close
	watcher   sync.WaitGroup

	closeOnce sync.Once
	closeErr  error
}

var (
	_ registry.Store         = (*Store)(nil)
	_ registry.HealthChecker = (*Store)(nil)
)

// Open opens the store in the directory dir, and creates the directory if it is missing. Its errors
// are ErrLocked, ErrNewerFormat and ErrForeign, whose texts are sentences that name dir, and errors
// of the file system. The store has everything that was acknowledged by earlier processes.
func Open(dir string, options Options) (*Store, error) {
	return openWatched(dir, options, func(*engine.Options) {}, watchPause)
}

// openWatched is like Open. Tests can set the engine's options and the pause between two checks of
// the disk.
func openWatched(dir string, options Options, tune func(*engine.Options), pause time.Duration) (*Store, error) {
	dir, options, err := options.complete(dir)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	first, err := open(dir, options, tune)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, options: options, tune: tune, stop: make(chan struct{})}
	s.current.Store(first)
	s.measure()
	s.watcher.Go(func() { s.watchDisk(pause) })
	return s, nil
}

// complete returns the options with their defaults, and dir as the absolute path that the engine's
// lock uses.
func (o Options) complete(dir string) (string, Options, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.FS == vfs.Default {
		absolute, err := filepath.Abs(dir) // the engine's lock uses the name of the directory
		if err != nil {
			return dir, o, err
		}
		dir = absolute
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.randomMu == nil {
		o.randomMu = new(sync.Mutex)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = CacheBytesDefault
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return dir, o, nil
}

// use calls the function do with the open instance. While an instance is being replaced, use
// returns ErrUnavailable: nothing was or will be applied.
func (s *Store) use(do func(*instance) error) error {
	in := s.current.Load()
	err := do(in)
	if errors.Is(err, registry.ErrClosed) && !s.closed.Load() {
		return fmt.Errorf("%w: the store is being opened again after: %w", registry.ErrUnavailable, in.failure.cause())
	}
	return err
}

// Get implements registry.Store.
func (s *Store) Get(ctx context.Context, keys ...registry.Key) (records []registry.Record, err error) {
	err = s.use(func(in *instance) (err error) {
		records, err = in.Get(ctx, keys...)
		return err
	})
	return records, err
}

// List implements registry.Store.
func (s *Store) List(ctx context.Context, table registry.Table, prefix, after string, limit int,
) (records []registry.Record, err error) {
	err = s.use(func(in *instance) (err error) {
		records, err = in.List(ctx, table, prefix, after, limit)
		return err
	})
	return records, err
}

// ListKeys implements registry.Store.
func (s *Store) ListKeys(ctx context.Context, table registry.Table, prefix, after string, limit int,
) (records []registry.Record, err error) {
	err = s.use(func(in *instance) (err error) {
		records, err = in.ListKeys(ctx, table, prefix, after, limit)
		return err
	})
	return records, err
}

// Apply implements registry.Store. It returns ErrUnknown if the store fails, or ctx ends, while the
// batch is being written. It returns ErrFailed if the store had already failed.
func (s *Store) Apply(ctx context.Context, batch registry.Batch) (etags []registry.ETag, err error) {
	err = s.use(func(in *instance) (err error) {
		etags, err = in.Apply(ctx, batch)
		return err
	})
	return etags, err
}

// Changes implements registry.Store.
func (s *Store) Changes(ctx context.Context, after registry.Position, limit int,
) (changes []registry.PositionedChange, err error) {
	err = s.use(func(in *instance) (err error) {
		changes, err = in.Changes(ctx, after, limit)
		return err
	})
	return changes, err
}

// Time implements registry.Clock.
func (s *Store) Time(ctx context.Context) (now time.Time, err error) {
	err = s.use(func(in *instance) (err error) {
		now, err = in.Time(ctx)
		return err
	})
	return now, err
}

// Backup writes a copy of the store to a folder called name in the folder dir, and returns the
// number of records in the copy. dir must not exist, nor lie within the store, and its parent
// folder must exist. The copy can be opened like the store itself.
//
// The copy holds every Apply that had returned when Backup was called. It holds each Apply whole or
// not at all, and nothing that a power cut could still undo in the store. Backup opens the copy as
// a separate store, and calls the function prepare with that store. prepare must not retain the
// store. The copy includes the changes made by prepare, which may be nil. Backup verifies the copy
// by reading all of it, and the copy is durable when Backup returns. After an error, including an
// error of prepare, nothing new is at dir. The error is fs.ErrExist if dir existed, or an error of
// the file system if the disk has no room. The original store continues in either case.
//
// Applies wait while Backup links the files, or copies them if dir is on another file system. Only
// one backup is written at a time. A process that dies during a backup leaves a folder next to dir
// whose name ends in ".unfinished" and may be deleted.
func (s *Store) Backup(ctx context.Context, dir, name string,
	prepare func(context.Context, registry.Store) error) (records int, err error) {
	err = s.use(func(in *instance) (err error) {
		records, err = in.Backup(ctx, dir, name, prepare)
		return err
	})
	return records, err
}

// Healthy implements registry.HealthChecker. It returns ErrFailed with the reason for a failed
// store. It returns ErrUnavailable, with ENOSPC, if the disk has less than spareBytesMin left,
// because commits to files on that disk fail before the store does.
func (s *Store) Healthy(ctx context.Context) error {
	if err := s.current.Load().Healthy(ctx); err != nil {
		return err
	}
	if free := s.freeBytes.Load(); free >= 0 && free < spareBytesMin {
		return fmt.Errorf("%w: its disk has %d KiB left, and it needs %d: %w",
			registry.ErrUnavailable, free>>10, int64(spareBytesMin)>>10, syscall.ENOSPC)
	}
	return nil
}

// Close implements registry.Store. It first executes queued Applies. It returns nil even if the
// store has failed, because Healthy reports that.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		s.closed.Store(true)
		close(s.stop)
		s.watcher.Wait()
		s.closeErr = s.current.Load().Close()
	})
	return s.closeErr
}

// Exists reports whether there is a store in the directory dir, even a damaged one. It changes
// nothing. A missing or empty directory has no store, and neither has one in which the creation of
// a store was not completed. The errors come from the file system.
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
