package pebble

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	engine "github.com/cockroachdb/pebble/v2"

	"moorage/registry"
)

// instance is a store between the moments when the engine opens and closes its files. A failed
// instance stays failed. It is safe for concurrent use.
type instance struct {
	dir    string
	logger *slog.Logger
	db     *engine.DB
	guard  *guard
	now    func() time.Time // the store's clock

	randomMu *sync.Mutex // guards random, which instances share; no lock is taken under it
	random   io.Reader

	queue     queue
	committer sync.WaitGroup // the goroutine that runs commitLoop
	// Only the committer uses the fields below while it runs.
	last   registry.Position // the last assigned position
	broken bool              // the engine panicked, so it may hold internal locks

	// viewMu guards view and the entry into readers. No lock is taken under it, and it is never
	// held over I/O.
	viewMu  sync.RWMutex
	view    *view          // nil once the store is closed
	readers sync.WaitGroup // calls that read; entered with viewMu held and view not nil
	retired retired

	buffers sync.Pool // of *[]byte, for the engine's keys
	pages   sync.Pool // of *page
	// backupMu ensures that only one backup is written at a time. It is taken before any other
	// lock, and held over I/O.
	backupMu sync.Mutex
	failure  failure

	closeOnce sync.Once
	closeErr  error
}

var _ registry.Store = (*instance)(nil)

// open opens the store in dir, like Open. Tests use tune to change the engine's settings.
func open(dir string, options Options, tune func(*engine.Options)) (*instance, error) {
	dir, options, err := options.complete(dir)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	s := &instance{dir: dir, logger: options.Logger, now: options.Now, random: options.Random}
	s.randomMu = options.randomMu
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

// start opens the engine, loads the store's state, and starts the committer.
func (s *instance) start(cacheBytes int64, tune func(*engine.Options)) error {
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
	// After the store has failed, errors of the engine are only consequences, so the first reason
	// is returned.
	if reason := s.failure.cause(); reason != nil {
		return reason
	}
	return err
}

// watch releases the engine as soon as the store fails, until stop is called. It is needed while
// the engine opens or closes, because a goroutine then waits for the engine.
func (s *instance) watch() (stop func()) {
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

// Healthy returns why the store has failed, or nil if it has not.
func (s *instance) Healthy(context.Context) error { return s.failure.get() }

// Close implements Store.Close.
func (s *instance) Close() error {
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
		if s.failure.cause() == nil {
			s.closeErr = err
		}
	})
	return s.closeErr
}

// setView makes next the view of all readers from now on. If next is nil, readers are refused.
func (s *instance) setView(next *view) {
	s.viewMu.Lock()
	last := s.view
	s.view = next
	s.viewMu.Unlock()
	if last != nil {
		last.release()
	}
}

// fail marks the store failed for reason, unless it has failed already, and keeps later changes
// from the disk. It may be called from anywhere in the engine, with the engine's locks held.
func (s *instance) fail(reason error) {
	s.guard.freeze()
	if s.failure.set(reason) {
		s.logFailure(reason)
	}
}

func (s *instance) logFailure(reason error) {
	s.logger.Error("store failed, it refuses writes until it is opened again", "dir", s.dir, "error", reason)
}
