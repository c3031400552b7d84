// Package documents keeps the metadata files of tables and views: it names, writes, reads, caches
// and deletes them.
//
// # Files
//
// A file is written once, under a name never used before, and is durable before anything names it.
// A pointer names the current one. Its metadata log names those before it. So a file that was read
// can be kept under its version: its location, and which register named it.
//
// Nobody but this package deletes files (delete.go; trim.go for what falls out of a metadata log;
// former.go for what left it long ago; lost.go for what failed commits leave). There is one
// function for each reason, with the argument why no reader can need the files any more.
//
// # Deletions and registers
//
// A register makes any file the current one, also one that a commit looked at and is about to
// delete. Two fences keep the register off for a while, and the commit deletes well within that:
//
//   - The Apply of a commit lists the files that leave the log in the pointer (registry.Trim), and
//     a register requires that the pointer stays as it read it. If the table is unregistered, its
//     tombstone takes the list. The expiry writes such a list too, without a version.
//   - A commit that failed has no Apply that could list its file. But the file's name shows when a
//     server over this store drew it, and for which table. A register takes a file of the last
//     two minutes only if the table names or logs it, or did so when it ended. Such a file was
//     published by a commit, so no commit deletes it as lost. Any other one may be lost.
//
// So a lost file costs no write. The price is that for two minutes no register leads forward again,
// to a version that an earlier register rolled back. A view has no log: its last version but one is
// refused for as long. A file whose commit took longer than that before it failed stays.
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
	now       func() time.Time
	cache     *cache
	room      *Room
	hedge     *hedge // nil: each file is written once
	trims     *trims
}

// New returns the documents that the names of names lead to. cacheBytes bounds the memory of those
// that are kept. now is the clock of the node.
func New(l *ledger.Ledger, names *directory.Directory, cacheBytes int64, now func() time.Time,
	log *slog.Logger) *Documents {
	return &Documents{
		ledger: l, directory: names, log: log, now: now, cache: newCache(cacheBytes), room: newRoom(),
		trims: newTrims(),
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
