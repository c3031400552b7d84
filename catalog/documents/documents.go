// Package documents keeps the metadata files of tables and views: it names, writes, reads, caches
// and deletes them.
//
// # Files
//
// A file is written once, under a name never used before, and is durable before anything names it.
// A pointer names the current one. Its metadata log names those before it. So a file that was read
// can be kept under its version: its location, and which register named it.
//
// Nobody but this package deletes files (delete.go; trim.go for what falls out of a metadata log).
// There is one function for each reason, with the argument why no reader can need the files any
// more.
//
// # Memory
//
// Long files are read, and built, within a Room that all requests share, fairly between warehouses.
// What the cache keeps counts apart.
//
// # What it must not know
//
// It knows nothing of locks, of conditions, and of who asks.
package documents

import (
	"log/slog"
	"time"

	"moorage/catalog/directory"
	"moorage/ledger"
	"moorage/metadata"
	"moorage/registry"
)

const (
	// readTimeout bounds a read of a file that several requests may wait for.
	readTimeout = 30 * time.Second
	// deleteTimeout bounds the deletion of a file behind a request that has ended.
	deleteTimeout = 10 * time.Second
)

// Document is a metadata document: *metadata.Document of a table, *metadata.ViewDocument of a view.
// It is immutable, and two are the same version if they are the same value.
type Document interface {
	Raw() []byte
	CostBytes() int64
	UUID() string
	Location() string
	Property(name string) (string, bool)
}

// Documents is all metadata files of a catalog. It is safe for concurrent use.
type Documents struct {
	ledger    *ledger.Ledger
	directory *directory.Directory
	log       *slog.Logger
	cache     *cache
	room      *Room
	hedge     *hedge // nil: each file is written once
	trims     *trims
}

// New returns the documents that the names of names lead to. cacheBytes bounds the memory of those
// that are kept.
func New(l *ledger.Ledger, names *directory.Directory, cacheBytes int64, log *slog.Logger) *Documents {
	return &Documents{
		ledger: l, directory: names, log: log, cache: newCache(cacheBytes), room: newRoom(), trims: newTrims(),
	}
}

// Room returns the memory for metadata that is being worked on.
func (d *Documents) Room() *Room { return d.room }

// Keep notes that document is at a version of a file of pointer: it was just written there, or
// read.
func (d *Documents) Keep(pointer registry.ID, version string, document Document) {
	d.cache.set(pointer, version, document)
}

// Forget drops what is kept of pointer, and what is being read of a version of its file.
func (d *Documents) Forget(pointer registry.ID, version string) { d.cache.forget(pointer, version) }

// ForgetAll drops all that is kept, as a restart does.
func (d *Documents) ForgetAll() { d.cache.entries.InvalidateAll() }

// parse reads the document of a table or view.
func parse(k *directory.Kind, raw []byte) (Document, error) {
	if k == directory.View() {
		return metadata.ParseView(raw)
	}
	return metadata.Parse(raw)
}

// codecOf returns how the metadata files of document are to be compressed, as PropMetadataCodec has
// it. A view's files are compressed by default. Source: Java TableProperties, ViewProperties.
func codecOf(k *directory.Kind, document Document) string {
	codec, set := document.Property(PropMetadataCodec)
	switch {
	case set:
		return codec
	case k == directory.View():
		return codecGzip
	}
	return codecNone
}
