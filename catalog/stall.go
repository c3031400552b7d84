package catalog

import (
	"context"
	"errors"
	"io"
	"time"

	"moorage/storage"
)

// purgeStallMax is for how long a purge may get nothing done, not a byte read, no batch deleted, until it is taken for one that hangs, and
// fails. As a whole it has no bound: begun again it goes through all from the start, so that one with a bound might never come to
// the end of a large table. Storages over a network mostly give up earlier by themselves, with a better reason.
const purgeStallMax = 2 * time.Minute

// errStalled says that nothing was done for too long.
var errStalled = errors.New("catalog: the storage did not answer for " + purgeStallMax.String())

// watchdog ends a context when nobody has called progress for too long. It is safe for concurrent use.
type watchdog struct {
	limit  time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

// watch returns a context that ends, with errStalled as its cause, when limit has passed since the last progress, and what has to be told of that;
// stop must be called.
func watch(ctx context.Context, limit time.Duration) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &watchdog{limit, time.AfterFunc(limit, func() { cancel(errStalled) }), cancel}
}

func (w *watchdog) progress() { w.timer.Reset(w.limit) }

func (w *watchdog) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// over returns store, whose answers are progress.
func (w *watchdog) over(store storage.Store) storage.Store { return &timedStore{store, w} }

// timedStore is a storage for purges.
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
