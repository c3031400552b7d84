package storage

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// FileStore is a store of files on this machine.
type FileStore interface {
	Store
	Batcher
	Folders
	Local
	Prober
	Lister
}

// CloudStore is a store behind a network that issues credentials.
type CloudStore interface {
	Store
	Remote
	Lister
	Vender
	Limited
}

// SigningStore is a CloudStore that also signs requests.
type SigningStore interface {
	CloudStore
	Signer
	Featured
}

// Files returns a watched store that wraps store, the storage of a warehouse. All results for the
// same store and warehouse compare equal.
func (w *Watch) Files(warehouse string, store FileStore) FileStore {
	return watchedFiles{watched[FileStore]{store, w.stateOf(warehouse)}, store}
}

// Cloud returns a watched store that wraps store, the storage of a warehouse.
func (w *Watch) Cloud(warehouse string, store CloudStore) CloudStore {
	return watchedCloudOf(w.stateOf(warehouse), store)
}

// Signing returns a watched store that wraps store, the storage of a warehouse.
func (w *Watch) Signing(warehouse string, store SigningStore) SigningStore {
	return watchedSigning{watchedCloudOf(w.stateOf(warehouse), store), store, store}
}

// watchable is the common interface of all stores.
type watchable interface {
	Store
	Lister
	Prober
}

// watched is a watched store. Its methods are the methods that all stores have.
type watched[S watchable] struct {
	store S
	of    *watchedWarehouse
}

// begin begins a call. The returned function ends it with the call's error.
func (w watched[S]) begin(ctx context.Context, call string) (end func(err *error)) {
	began := w.of.watch.config.Now()
	return func(err *error) { w.of.record(ctx, call, w.of.watch.config.Now().Sub(began), *err) }
}

// Create implements Store.
func (w watched[S]) Create(ctx context.Context, location string, body []byte) (err error) {
	defer w.begin(ctx, callPut)(&err)
	return w.store.Create(ctx, location, body)
}

// Open implements Store. The call counts as ended when the content has been read or closed.
func (w watched[S]) Open(ctx context.Context, location string) (io.ReadCloser, Info, error) {
	began := w.of.watch.config.Now()
	content, info, err := w.store.Open(ctx, location)
	took := w.of.watch.config.Now().Sub(began)
	if err != nil {
		w.of.record(ctx, callGet, took, err)
		return content, info, err
	}
	read := &watchedBody{content: content, now: w.of.watch.config.Now}
	read.took.Store(int64(took))
	var once sync.Once
	read.ended = func(err error) {
		once.Do(func() { w.of.record(ctx, callGet, time.Duration(read.took.Load()), err) })
	}
	return read, info, nil
}

// ReadRange implements Store.
func (w watched[S]) ReadRange(ctx context.Context, location string, offset, length int64) (_ []byte, err error) {
	defer w.begin(ctx, callGet)(&err)
	return w.store.ReadRange(ctx, location, offset, length)
}

// Stat implements Store.
func (w watched[S]) Stat(ctx context.Context, location string) (_ Info, err error) {
	defer w.begin(ctx, callHead)(&err)
	return w.store.Stat(ctx, location)
}

// Delete implements Store.
func (w watched[S]) Delete(ctx context.Context, locations ...string) (err error) {
	defer w.begin(ctx, callDelete)(&err)
	return w.store.Delete(ctx, locations...)
}

// List implements Lister.
func (w watched[S]) List(ctx context.Context, folder, after string, limit int) (_ Page, err error) {
	defer w.begin(ctx, callList)(&err)
	return w.store.List(ctx, folder, after, limit)
}

// Probe implements Prober.
func (w watched[S]) Probe(ctx context.Context) (err error) {
	defer w.begin(ctx, callProbe)(&err)
	return w.store.Probe(ctx)
}

// watchedBody is the content of a file. The time between two reads is not part of the call's
// duration.
type watchedBody struct {
	content io.ReadCloser
	now     func() time.Time
	ended   func(err error) // acts only once
	took    atomic.Int64    // nanoseconds spent in reads
	reading atomic.Bool
}

// Read implements io.Reader.
func (b *watchedBody) Read(into []byte) (int, error) {
	began := b.now()
	b.reading.Store(true)
	n, err := b.content.Read(into)
	b.reading.Store(false)
	b.took.Add(int64(b.now().Sub(began)))
	switch err {
	case nil:
	case io.EOF:
		b.ended(nil)
	default:
		b.ended(err)
	}
	return n, err
}

// Close implements io.Closer. A read in progress may continue after Close.
func (b *watchedBody) Close() error {
	err := b.content.Close()
	if b.reading.Load() {
		b.ended(ErrUnavailable)
	}
	b.ended(nil)
	return err
}

// watchedFiles is a watched FileStore.
type watchedFiles struct {
	watched[FileStore]
	Local
}

// CreateAll implements Batcher. Each file counts as one call, which took as long as all of
// CreateAll.
func (f watchedFiles) CreateAll(ctx context.Context, all []File) []error {
	began := f.of.watch.config.Now()
	failures := f.store.CreateAll(ctx, all)
	took := f.of.watch.config.Now().Sub(began)
	for _, err := range failures {
		f.of.record(ctx, callPut, took, err)
	}
	return failures
}

// MakeFolder implements Folders.
func (f watchedFiles) MakeFolder(ctx context.Context, location string) (err error) {
	defer f.begin(ctx, callFolder)(&err)
	return f.store.MakeFolder(ctx, location)
}

// RemoveEmptyFolder implements Folders.
func (f watchedFiles) RemoveEmptyFolder(ctx context.Context, location string, age time.Duration) (_ bool, err error) {
	defer f.begin(ctx, callFolder)(&err)
	return f.store.RemoveEmptyFolder(ctx, location, age)
}

// watchedCloud is a watched CloudStore.
type watchedCloud struct {
	watched[CloudStore]
	Limited
}

func watchedCloudOf(of *watchedWarehouse, store CloudStore) watchedCloud {
	return watchedCloud{watched[CloudStore]{store, of}, store}
}

// ClientConfig implements Remote. It sends nothing.
func (c watchedCloud) ClientConfig() map[string]string { return c.store.ClientConfig() }

// Vend implements Vender.
func (c watchedCloud) Vend(ctx context.Context, scope Scope) (_ Credential, err error) {
	defer c.begin(ctx, callVend)(&err)
	return c.store.Vend(ctx, scope)
}

// ProbeVending implements Vender. Its calls are meant to be refused, so they are not
// counted.
func (c watchedCloud) ProbeVending(ctx context.Context) error { return c.store.ProbeVending(ctx) }

// watchedSigning is a watched SigningStore.
type watchedSigning struct {
	watchedCloud
	Featured

	signer Signer
}

// Sign implements Signer.
func (s watchedSigning) Sign(ctx context.Context, request SignRequest) (_ Signature, err error) {
	defer s.begin(ctx, callSign)(&err)
	return s.signer.Sign(ctx, request)
}

// ProbeSigning implements Signer. Its calls are meant to be refused, so they are not
// counted.
func (s watchedSigning) ProbeSigning(ctx context.Context) error { return s.signer.ProbeSigning(ctx) }
