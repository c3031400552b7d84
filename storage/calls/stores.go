package calls

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"moorage/storage"
)

// FileStore is a store of files of this machine.
type FileStore interface {
	storage.Store
	storage.Batcher
	storage.Folders
	storage.Local
	storage.Prober
	storage.Lister
}

// CloudStore is a store behind a network that issues credentials.
type CloudStore interface {
	storage.Store
	storage.Remote
	storage.Lister
	storage.Vender
	storage.Limited
}

// SigningStore is a CloudStore that also signs requests.
type SigningStore interface {
	CloudStore
	storage.Signer
	storage.Featured
}

// Files returns store, of a warehouse, with a watch. The results for one store and one warehouse
// compare equal.
func (w *Watch) Files(warehouse string, store FileStore) FileStore {
	return files{watched[FileStore]{store, w.of(warehouse)}, store}
}

// Cloud returns store, of a warehouse, with a watch.
func (w *Watch) Cloud(warehouse string, store CloudStore) CloudStore {
	return cloudOf(w.of(warehouse), store)
}

// Signing returns store, of a warehouse, with a watch.
func (w *Watch) Signing(warehouse string, store SigningStore) SigningStore {
	return signing{cloudOf(w.of(warehouse), store), store, store}
}

// listing is the common interface of all stores.
type listing interface {
	storage.Store
	storage.Lister
	storage.Prober
}

// watched watches the methods of listing.
type watched[S listing] struct {
	store S
	of    *warehouse
}

// begin begins a call. The returned function ends it with the call's error.
func (w watched[S]) begin(ctx context.Context, call string) (end func(err *error)) {
	began := w.of.watch.config.Now()
	return func(err *error) { w.of.ended(ctx, call, w.of.watch.config.Now().Sub(began), *err) }
}

// Create implements storage.Store.
func (w watched[S]) Create(ctx context.Context, location string, body []byte) (err error) {
	defer w.begin(ctx, callPut)(&err)
	return w.store.Create(ctx, location, body)
}

// Open implements storage.Store. The call ends when the content has been read or closed.
func (w watched[S]) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	began := w.of.watch.config.Now()
	content, info, err := w.store.Open(ctx, location)
	took := w.of.watch.config.Now().Sub(began)
	if err != nil {
		w.of.ended(ctx, callGet, took, err)
		return content, info, err
	}
	read := &body{content: content, now: w.of.watch.config.Now}
	read.took.Store(int64(took))
	var once sync.Once
	read.ended = func(err error) {
		once.Do(func() { w.of.ended(ctx, callGet, time.Duration(read.took.Load()), err) })
	}
	return read, info, nil
}

// Stat implements storage.Store.
func (w watched[S]) Stat(ctx context.Context, location string) (_ storage.Info, err error) {
	defer w.begin(ctx, callHead)(&err)
	return w.store.Stat(ctx, location)
}

// Delete implements storage.Store.
func (w watched[S]) Delete(ctx context.Context, locations ...string) (err error) {
	defer w.begin(ctx, callDelete)(&err)
	return w.store.Delete(ctx, locations...)
}

// List implements storage.Lister.
func (w watched[S]) List(ctx context.Context, folder, after string, limit int) (_ storage.Page, err error) {
	defer w.begin(ctx, callList)(&err)
	return w.store.List(ctx, folder, after, limit)
}

// Probe implements storage.Prober.
func (w watched[S]) Probe(ctx context.Context) (err error) {
	defer w.begin(ctx, callProbe)(&err)
	return w.store.Probe(ctx)
}

// body is the content of a file. The time between two reads does not count for the storage.
type body struct {
	content io.ReadCloser
	now     func() time.Time
	ended   func(err error) // acts only once
	took    atomic.Int64    // nanoseconds in the storage
	reading atomic.Bool
}

// Read implements io.Reader.
func (b *body) Read(into []byte) (int, error) {
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

// Close implements io.Closer. A read in progress may continue after it.
func (b *body) Close() error {
	err := b.content.Close()
	if b.reading.Load() {
		b.ended(storage.ErrUnavailable)
	}
	b.ended(nil)
	return err
}

// files is a FileStore with a watch.
type files struct {
	watched[FileStore]
	storage.Local
}

// CreateAll implements storage.Batcher. Each file counts as a call with the duration of the whole.
func (f files) CreateAll(ctx context.Context, all []storage.File) []error {
	began := f.of.watch.config.Now()
	failures := f.store.CreateAll(ctx, all)
	took := f.of.watch.config.Now().Sub(began)
	for _, err := range failures {
		f.of.ended(ctx, callPut, took, err)
	}
	return failures
}

// MakeFolder implements storage.Folders.
func (f files) MakeFolder(ctx context.Context, location string) (err error) {
	defer f.begin(ctx, callFolder)(&err)
	return f.store.MakeFolder(ctx, location)
}

// RemoveEmptyFolder implements storage.Folders.
func (f files) RemoveEmptyFolder(ctx context.Context, location string, age time.Duration) (_ bool, err error) {
	defer f.begin(ctx, callFolder)(&err)
	return f.store.RemoveEmptyFolder(ctx, location, age)
}

// cloud is a CloudStore with a watch.
type cloud struct {
	watched[CloudStore]
	storage.Limited
}

func cloudOf(of *warehouse, store CloudStore) cloud {
	return cloud{watched[CloudStore]{store, of}, store}
}

// ClientConfig implements storage.Remote. It sends nothing.
func (c cloud) ClientConfig() map[string]string { return c.store.ClientConfig() }

// Vend implements storage.Vender.
func (c cloud) Vend(ctx context.Context, scope storage.Scope) (_ storage.Credential, err error) {
	defer c.begin(ctx, callVend)(&err)
	return c.store.Vend(ctx, scope)
}

// ProbeVending implements storage.Vender. Its calls are meant to be refused, so they are not
// counted.
func (c cloud) ProbeVending(ctx context.Context) error { return c.store.ProbeVending(ctx) }

// signing is a SigningStore with a watch.
type signing struct {
	cloud
	storage.Featured

	signer storage.Signer
}

// Sign implements storage.Signer.
func (s signing) Sign(ctx context.Context, request storage.SignRequest) (_ storage.Signature, err error) {
	defer s.begin(ctx, callSign)(&err)
	return s.signer.Sign(ctx, request)
}

// ProbeSigning implements storage.Signer. Its calls are meant to be refused, so they are not
// counted.
func (s signing) ProbeSigning(ctx context.Context) error { return s.signer.ProbeSigning(ctx) }
