// Package documents keeps the metadata files of tables and views: it names, writes, reads, caches
// and deletes them.
//
// # Files
//
// A file is written once, under a fresh name, and is durable before a record names it. A pointer
// names the current file, whose metadata log names the earlier ones. So a file that was read can be
// cached under its version: its location, and the register that named it.
//
// Only this package deletes files (delete.go). trim.go handles files that leave a metadata log,
// former.go files that left it long ago, and lost.go files of failed commits. Each reason has its
// function, with the argument why no reader can need the files any more.
//
// # Deletions and registers
//
// A register can make any file current, also a file that a commit has checked and is about to
// delete. Two fences delay such a register, and the commit deletes well within that time:
//
//   - The Apply of a commit lists the files that leave the log in the pointer (registry.Trim), and
//     a register requires an unchanged pointer. If the table is unregistered, its tombstone takes
//     the list over. The expiry writes such a list too, without a version.
//   - A failed commit has no Apply that could list its file. But the file's name shows when a
//     server over this store drew it, and for which table. A register refuses a file whose name was
//     drawn less than two minutes ago, because a failed commit may be about to delete it. It
//     accepts the file if the table names or logs it, or did so when it ended: then a commit has
//     published it.
//
// So a lost file costs no write. In return, for two minutes no register can go forward again to a
// version that an earlier register rolled back, or back to the last but one version of a view,
// which has no log. The file of a commit that ran for longer before it failed stays.
//
// # Memory
//
// Long files are read and built within a Room that all requests share, fairly between warehouses.
// The cache has its own bound.
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
	// deleteTimeout bounds the deletion of a file behind a request that has ended.
	deleteTimeout = 10 * time.Second
)

// Document is a metadata document: *metadata.Document of a table, *metadata.ViewDocument of a view.
// It is immutable. Two equal values are the same version.
type Document interface {
	Raw() []byte
	CostBytes() int64
	UUID() string
	Location() string
	Property(name string) (string, bool)
}

// Documents reads and writes the metadata files of a catalog. It is safe for concurrent use.
type Documents struct {
	ledger    *ledger.Ledger
	directory *directory.Directory
	log       *slog.Logger
	now       func() time.Time
	cache     *cache
	room      *Room
	hedge     *hedge // nil: each file is written once
	trims     *trims
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

// Room returns the memory for metadata that is being worked on.
func (d *Documents) Room() *Room { return d.room }

// Keep caches document as a version of a file of pointer, after it was written there or read.
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
