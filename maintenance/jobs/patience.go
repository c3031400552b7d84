package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// AnswerMax is maintenance's limit for one answer from a storage. The server of a mount may be
// gone, or a server may never answer. Without the limit, a job and all work behind it would then
// wait forever. The limit applies to each part of a call, such as each read of a file, so reading a
// large file may take longer. Time that the caller spends on other work does not count.
const AnswerMax = 2 * time.Minute

// ErrStalled means that a storage did not answer. It is a storage.ErrUnavailable.
var ErrStalled = fmt.Errorf("%w: it did not respond in time", storage.ErrUnavailable)

// CallWithin calls do with a context that ends after limit, with the cause ErrStalled. If do fails
// for that reason, CallWithin returns ErrStalled.
func CallWithin(ctx context.Context, limit time.Duration, do func(ctx context.Context) error) error {
	within, cancel := context.WithTimeoutCause(ctx, limit, ErrStalled)
	defer cancel()
	return explain(within, do(within))
}

// explain adds ErrStalled to err if ErrStalled ended ctx.
func explain(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), ErrStalled) && !errors.Is(err, ErrStalled) {
		return fmt.Errorf("%w: %w", ErrStalled, err)
	}
	return err
}

// patientStore returns files with a limit on the wait for each answer. The result implements
// storage.Lister if files does.
func patientStore(files storage.Store, limit time.Duration) storage.Store {
	over := &patientFiles{files: files, limit: limit}
	if lister, ok := files.(storage.Lister); ok {
		return &patientLister{over, lister}
	}
	return over
}

// patientFiles is a storage with a limit on the wait for each answer. It is as safe for concurrent
// use as files.
type patientFiles struct {
	files storage.Store
	limit time.Duration
}

// Create implements storage.Store.
func (p *patientFiles) Create(ctx context.Context, location string, body []byte) error {
	return CallWithin(ctx, p.limit, func(ctx context.Context) error { return p.files.Create(ctx, location, body) })
}

// ReadRange implements storage.Store.
func (p *patientFiles) ReadRange(ctx context.Context, location string, offset, length int64) (part []byte, err error) {
	err = CallWithin(ctx, p.limit, func(ctx context.Context) (err error) {
		part, err = p.files.ReadRange(ctx, location, offset, length)
		return err
	})
	return part, err
}

// Stat implements storage.Store.
func (p *patientFiles) Stat(ctx context.Context, location string) (info storage.Info, err error) {
	err = CallWithin(ctx, p.limit, func(ctx context.Context) (err error) {
		info, err = p.files.Stat(ctx, location)
		return err
	})
	return info, err
}

// Delete implements storage.Store.
func (p *patientFiles) Delete(ctx context.Context, locations ...string) error {
	return CallWithin(ctx, p.limit, func(ctx context.Context) error { return p.files.Delete(ctx, locations...) })
}

// Open implements storage.Store.
func (p *patientFiles) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	within, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(p.limit, func() { cancel(ErrStalled) })
	content, info, err := p.files.Open(within, location)
	timer.Stop()
	if err != nil {
		defer cancel(nil)
		return nil, info, explain(within, err)
	}
	return &patientBody{ReadCloser: content, ctx: func() error { return context.Cause(within) }, cancel: cancel,
		limit: p.limit}, info, nil
}

// patientLister is a patientFiles that can list.
type patientLister struct {
	*patientFiles
	lister storage.Lister
}

// List implements storage.Lister.
func (l *patientLister) List(ctx context.Context, folder, after string, limit int) (page storage.Page, err error) {
	err = CallWithin(ctx, l.limit, func(ctx context.Context) (err error) {
		page, err = l.lister.List(ctx, folder, after, limit)
		return err
	})
	return page, err
}

// patientBody is a file that is being read. It is for one goroutine.
type patientBody struct {
	io.ReadCloser
	ctx    func() error // returns why the file's context ended; nil if it has not
	cancel context.CancelCauseFunc
	limit  time.Duration
	once   sync.Once
}

// Read implements io.Reader.
func (b *patientBody) Read(into []byte) (int, error) {
	timer := time.AfterFunc(b.limit, func() { b.cancel(ErrStalled) })
	n, err := b.ReadCloser.Read(into)
	timer.Stop()
	if cause := b.ctx(); err != nil && errors.Is(cause, ErrStalled) {
		err = fmt.Errorf("%w: %w", ErrStalled, err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *patientBody) Close() error {
	defer b.once.Do(func() { b.cancel(nil) })
	return b.ReadCloser.Close()
}

// checkMax is the time after a check within which the checked files may be deleted.
const checkMax = 20 * time.Second

// errOldCheck ends a deletion whose check is too old.
var errOldCheck = errors.New("jobs: the check before the deletion is too old")

// deleteInTime calls do until do has handled all of batch. do must call check when it starts to
// check whether the files may be deleted. It must then delete under the context that check returns.
// That context ends after limit, by the monotonic clock. If the context ended the deletion,
// deleteInTime calls do again with fewer of the same files. So do checks these files again, and
// some of them may already be gone.
//
// The error is a storage.ErrUnavailable if a single file takes longer than limit repeatedly.
func deleteInTime[F any](ctx context.Context, limit time.Duration, batch []F,
	do func(part []F, check func() context.Context) error) error {
	for size, alone := len(batch), 0; len(batch) > 0; {
		part := batch[:min(size, len(batch))]
		within, cancel := ctx, context.CancelFunc(func() {})
		err := do(part, func() context.Context {
			cancel()
			within, cancel = context.WithTimeoutCause(ctx, limit, errOldCheck)
			return within
		})
		old := err != nil && errors.Is(context.Cause(within), errOldCheck)
		cancel()
		switch {
		case !old && err != nil:
			return err
		case !old:
			batch, alone = batch[len(part):], 0
		case len(part) > 1:
			size = (len(part) + 3) / 4
		case alone == 2: // a slow check may take that long twice, but not three times
			return fmt.Errorf("%w: it did not delete a file within %s: %w", storage.ErrUnavailable, limit, err)
		default:
			alone++
		}
	}
	return nil
}

// patientTables are tables with a limit on the wait for each answer of their storages.
type patientTables struct {
	Tables
	limit time.Duration
}

// withLimit returns version with the limit of t for its storage.
func (t *patientTables) withLimit(version *catalog.Version) *catalog.Version {
	if version == nil || version.Storage == nil {
		return version
	}
	patient := *version
	patient.Storage = patientStore(version.Storage, t.limit)
	return &patient
}

// Maintain implements Tables.
func (t *patientTables) Maintain(ctx context.Context, pointer registry.ID, edit catalog.MaintenanceEdit) (
	version *catalog.Version, changed bool, err error) {
	err = CallWithin(ctx, t.limit, func(ctx context.Context) (err error) {
		version, changed, err = t.Tables.Maintain(ctx, pointer, edit)
		return err
	})
	return t.withLimit(version), changed, err
}

// TableByID implements Tables.
func (t *patientTables) TableByID(ctx context.Context, pointer registry.ID) (
	version *catalog.Version, table registry.Pointer, err error) {
	err = CallWithin(ctx, t.limit, func(ctx context.Context) (err error) {
		version, table, err = t.Tables.TableByID(ctx, pointer)
		return err
	})
	return t.withLimit(version), table, err
}

// Find implements Tables.
func (t *patientTables) Find(ctx context.Context, ident moorage.Identifier) (found registry.ID, err error) {
	err = CallWithin(ctx, t.limit, func(ctx context.Context) (err error) {
		found, err = t.Tables.Find(ctx, ident)
		return err
	})
	return found, err
}

// WarehouseLocation implements Tables.
func (t *patientTables) WarehouseLocation(ctx context.Context, warehouse string) (
	location string, store storage.Store, err error) {
	err = CallWithin(ctx, t.limit, func(ctx context.Context) (err error) {
		location, store, err = t.Tables.WarehouseLocation(ctx, warehouse)
		return err
	})
	if err == nil {
		store = patientStore(store, t.limit)
	}
	return location, store, err
}

// WithDropped implements Tables. The function do itself has no time limit.
func (t *patientTables) WithDropped(ctx context.Context, pointer registry.Pointer, state registry.State,
	do func(*catalog.Version) error) error {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(t.limit, func() { cancel(ErrStalled) })
	defer timer.Stop()
	return t.Tables.WithDropped(within, pointer, state, func(version *catalog.Version) error {
		timer.Stop()
		return do(t.withLimit(version))
	})
}

// Unregistered implements Tables.
func (t *patientTables) Unregistered(ctx context.Context, warehouse, location string) (
	document *metadata.Document, err error) {
	err = CallWithin(ctx, t.limit, func(ctx context.Context) (err error) {
		document, err = t.Tables.Unregistered(ctx, warehouse, location)
		return err
	})
	return document, err
}
