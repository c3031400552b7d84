package purge

import (
	"context"
	"errors"
	"io"
	"time"

	"moorage/storage"
)

// errStalled means that a purge made no progress for too long.
var errStalled = errors.New("purge: the storage did not answer for " + StallMax.String())

// watchdog ends a context if no progress is reported for too long. It is safe for concurrent use.
type watchdog struct {
	limit  time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

// watch returns a context that ends, with the cause errStalled, when limit has passed since the
// last progress. The caller must report progress to the watchdog, and must call stop in the end.
func watch(ctx context.Context, limit time.Duration) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &watchdog{limit, time.AfterFunc(limit, func() { cancel(errStalled) }), cancel}
}

func (w *watchdog) progress() { w.timer.Reset(w.limit) }

func (w *watchdog) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// wrap returns a storage over files that reports each answer as progress.
func (w *watchdog) wrap(files storage.Store) storage.Store { return &timedStore{files, w} }

// timedStore is a storage that reports each answer to a watchdog.
type timedStore struct {
	storage.Store
	dog *watchdog
}

// Open implements storage.Store.
func (s *timedStore) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	body, info, err := s.Store.Open(ctx, location)
	if err != nil {
		return nil, info, err
	}
	s.dog.progress()
	return &timedBody{body, s.dog}, info, nil
}

// Delete implements storage.Store.
func (s *timedStore) Delete(ctx context.Context, locations ...string) error {
	err := s.Store.Delete(ctx, locations...)
	if err == nil {
		s.dog.progress()
	}
	return err
}

// timedBody is a file that is being read.
type timedBody struct {
	io.ReadCloser
	dog *watchdog
}

// Read implements io.Reader.
func (b *timedBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if n > 0 {
		b.dog.progress()
	}
	return n, err
}
