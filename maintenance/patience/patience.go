// Package patience bounds how long maintenance waits for one answer of a storage. A mount whose
// server is gone, or a server that accepts a request and never answers, would block a job forever.
// All work that waits behind the job would wait forever too.
//
// # What it promises
//
//   - A call without an answer for the limit fails with ErrStalled. Work in parts, such as the
//     reading of a file, has the limit for each part. So a large file has no bound.
//   - Time in which the caller does something else does not count.
//
// # What it must not know
//
// The requests to the storage, and what happens to the job.
package patience

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"moorage/storage"
)

// Max is how long maintenance waits for an answer.
const Max = 2 * time.Minute

// ErrStalled means that a storage did not answer. It is a storage.ErrUnavailable.
var ErrStalled = fmt.Errorf("%w: it gave no answer within the patience of maintenance", storage.ErrUnavailable)

// Call calls do with a context that ends after limit, with the cause ErrStalled. If that ended do,
// the error is ErrStalled too.
func Call(ctx context.Context, limit time.Duration, do func(ctx context.Context) error) error {
	within, cancel := context.WithTimeoutCause(ctx, limit, ErrStalled)
	defer cancel()
	return explain(within, do(within))
}

// explain adds ErrStalled to an error that was caused by it.
func explain(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), ErrStalled) && !errors.Is(err, ErrStalled) {
		return fmt.Errorf("%w: %w", ErrStalled, err)
	}
	return err
}

// Over returns files with limit on the wait for each answer. The result lists if files does.
func Over(files storage.Store, limit time.Duration) storage.Store {
	over := &patient{files: files, limit: limit}
	if lister, ok := files.(storage.Lister); ok {
		return &listing{over, lister}
	}
	return over
}

// patient is a storage. It is as safe for concurrent use as files.
type patient struct {
	files storage.Store
	limit time.Duration
}

// Create implements storage.Store.
func (p *patient) Create(ctx context.Context, location string, body []byte) error {
	return Call(ctx, p.limit, func(ctx context.Context) error { return p.files.Create(ctx, location, body) })
}

// Stat implements storage.Store.
func (p *patient) Stat(ctx context.Context, location string) (info storage.Info, err error) {
	err = Call(ctx, p.limit, func(ctx context.Context) (err error) {
		info, err = p.files.Stat(ctx, location)
		return err
	})
	return info, err
}

// Delete implements storage.Store.
func (p *patient) Delete(ctx context.Context, locations ...string) error {
	return Call(ctx, p.limit, func(ctx context.Context) error { return p.files.Delete(ctx, locations...) })
}

// Open implements storage.Store.
func (p *patient) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	within, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(p.limit, func() { cancel(ErrStalled) })
	content, info, err := p.files.Open(within, location)
	timer.Stop()
	if err != nil {
		defer cancel(nil)
		return nil, info, explain(within, err)
	}
	return &body{ReadCloser: content, ctx: func() error { return context.Cause(within) }, cancel: cancel,
		limit: p.limit}, info, nil
}

// listing is a patient that can list.
type listing struct {
	*patient
	lister storage.Lister
}

// List implements storage.Lister.
func (l *listing) List(ctx context.Context, folder, after string, limit int) (page storage.Page, err error) {
	err = Call(ctx, l.limit, func(ctx context.Context) (err error) {
		page, err = l.lister.List(ctx, folder, after, limit)
		return err
	})
	return page, err
}

// body is a file that is being read. It is for one goroutine.
type body struct {
	io.ReadCloser
	ctx    func() error // why the file's context ended; nil if it has not
	cancel context.CancelCauseFunc
	limit  time.Duration
	once   sync.Once
}

// Read implements io.Reader.
func (b *body) Read(into []byte) (int, error) {
	timer := time.AfterFunc(b.limit, func() { b.cancel(ErrStalled) })
	n, err := b.ReadCloser.Read(into)
	timer.Stop()
	if cause := b.ctx(); err != nil && errors.Is(cause, ErrStalled) {
		err = fmt.Errorf("%w: %w", ErrStalled, err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.once.Do(func() { b.cancel(nil) })
	return b.ReadCloser.Close()
}
