// Package documents keeps the metadata files of tables and views: it names, writes, reads, caches
// and deletes them.
//
// # Files
//
// A file is written once, under a fresh name, and is durable before a record names it. A pointer
// names the current file, and the metadata log in that file names the earlier files. So a file that
// was read can be cached under its version: its location together with the ID of the register that
// named it.
//
// Only this package deletes files (delete.go). trim.go handles files that leave a metadata log,
// former.go handles files that left it long ago, and lost.go handles files of failed commits. Each
// reason for a deletion has its own function, whose comment explains why no reader can need the
// files any more.
//
// # Deletions and registers
//
// A register can make any metadata file current, even a file that a commit has checked and is about
// to delete. Two fences refuse such a register for some time, and the commit deletes its files well
// before that time ends:
//
//   - The Apply of a commit lists the files that leave the log in the pointer (registry.Trim), and
//     a register requires an unchanged pointer. If the table is unregistered, its tombstone takes
//     the list over. The expiry of metadata files writes such a list too, although it makes no
//     version.
//   - A failed commit has no Apply that could list its file. But the file's name shows when a
//     server over this store drew it, and for which table. A register refuses a file whose name was
//     drawn less than two minutes ago, because a failed commit may be about to delete it. It
//     accepts the file if a commit has published it: the table names or logs it, or did so when the
//     table ended.
//
// So a lost file needs no record. The price is that a register refuses two kinds of versions
// younger than two minutes. One is a version that an earlier register rolled back. The other is an
// earlier version of a view, because a view has no log. If a commit ran for too long before it
// failed, its file stays.
//
// # Memory
//
// Long files are read and built within the memory of a Room, which all requests share, fairly
// between warehouses. The cache has its own bound.
//
// # What it must not know
//
// It knows no locks, conditions or callers.
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
	// deleteTimeout bounds the deletion of a file for a request that may have ended.
	deleteTimeout = 10 * time.Second
)

// Document is a metadata document: a *metadata.Document for a table, or a *metadata.ViewDocument
// for a view. It is immutable. Two equal values are the same version.
type Document interface {
	Raw() []byte
	CostBytes() int64
	UUID() string
	Location() string
	Property(name string) (string, bool)
	Summary() metadata.Summary
}

// Documents reads and writes the metadata files of a catalog. It is safe for concurrent use.
type Documents struct {
	ledger    *ledger.Ledger
	directory *directory.Directory
	log       *slog.Logger
	now       func() time.Time
	cache     *cache
	room      *Room
	hedge     *hedge // if nil, each file is written once
	trims     *trims
}

// CacheBytes returns the memory used by the cached documents, and the maximum.
func (d *Documents) CacheBytes() (used, most int64) {
	return int64(d.cache.entries.WeightedSize()), d.cache.bytesMax
}

// New returns the documents of the tables and views in names. cacheBytes bounds the memory of the
// cache. now is the clock of the node.
func New(l *ledger.Ledger, names *directory.Directory, cacheBytes int64, now func() time.Time,
	log *slog.Logger) *Documents {
	return &Documents{
		ledger: l, directory: names, log: log, now: now, cache: newCache(cacheBytes), room: newRoom(),
		trims: newTrims(),
	}
}

// Room returns the memory for metadata that is in use by requests.
func (d *Documents) Room() *Room { return d.room }

// Keep caches document as the content of a version of pointer's file, after the caller wrote or
// read that file.
func (d *Documents) Keep(pointer registry.ID, version string, document Document) {
	d.cache.set(pointer, version, document)
}

// Forget drops the cached documents of pointer, and running reads of a version of its file.
func (d *Documents) Forget(pointer registry.ID, version string) { d.cache.forget(pointer, version) }

// ForgetAll empties the cache, as a restart does.
func (d *Documents) ForgetAll() { d.cache.entries.InvalidateAll() }

// parse reads the document of a table or view.
func parse(k *directory.Kind, raw []byte) (Document, error) {
	if k == directory.View() {
		return metadata.ParseView(raw)
	}
	return metadata.Parse(raw)
}

// codecOf returns the compression of the metadata files of document, a value of PropMetadataCodec.
// A view's files are compressed by default. Source: Java TableProperties, ViewProperties.
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
