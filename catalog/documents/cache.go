package documents

import (
	"context"
	"errors"
	"math"

	"github.com/maypok86/otter/v2"

	"moorage/registry"
)

// cache keeps parsed metadata documents: the last two of each table and view. These are mostly the
// current document and its predecessor, for requests that read the pointer just before it moved.
// The key of a document is the version of its file (see FileVersion). The cache is safe for
// concurrent use.
type cache struct {
	entries  *otter.Cache[registry.ID, *latest] // by pointer
	reads    *otter.Cache[string, *readOf]      // joins reads of one file; keeps no document for long
	bytesMax int64
}

// fileKey returns the key of a shared read: the pointer and the version.
func fileKey(pointer registry.ID, version string) string { return string(pointer[:]) + version }

// readOf is the result of one read of a file.
type readOf struct{ document Document }

// latest holds the last two documents of one pointer.
type latest struct{ last, before cachedDocument }

// cachedDocument is a document and the version of its file. The zero value has no document.
type cachedDocument struct {
	version  string
	document Document
}

// errKept ends a read because the document is cached.
var errKept = errors.New("the document is kept")

func newCache(bytesMax int64) *cache {
	return &cache{
		entries: otter.Must(&otter.Options[registry.ID, *latest]{
			MaximumWeight: uint64(bytesMax),
			Weigher: func(_ registry.ID, kept *latest) uint32 {
				return uint32(min(kept.last.costBytes()+kept.before.costBytes(), math.MaxUint32))
			},
		}),
		reads:    otter.Must(&otter.Options[string, *readOf]{}),
		bytesMax: bytesMax,
	}
}

// get returns the cached document of pointer at version, if there is one.
func (d *cache) get(pointer registry.ID, version string) (Document, bool) {
	kept, ok := d.entries.GetIfPresent(pointer)
	if !ok {
		return nil, false
	}
	for _, c := range []cachedDocument{kept.last, kept.before} {
		if c.document != nil && c.version == version {
			return c.document, true
		}
	}
	return nil, false
}

// set caches document, the current content of version. A running read of the version becomes
// outdated.
func (d *cache) set(pointer registry.ID, version string, document Document) {
	d.reads.Invalidate(fileKey(pointer, version))
	d.entries.Compute(pointer, func(kept *latest, _ bool) (*latest, otter.ComputeOp) {
		return kept.add(cachedDocument{version, document}, d.bytesMax), otter.WriteOp
	})
}

// forget drops the documents of pointer. A running read of version becomes outdated.
func (d *cache) forget(pointer registry.ID, version string) {
	d.reads.Invalidate(fileKey(pointer, version))
	d.entries.Invalidate(pointer)
}

// readOnce returns the result of read for version, and caches it. Concurrent callers share one
// read. If set or forget is called for the version during the read, the result of the read is
// neither cached nor returned. A caller that waits for another caller's read waits until ctx ends.
func (d *cache) readOnce(ctx context.Context, pointer registry.ID, version string,
	read func() (Document, error)) (Document, error) {
	key := fileKey(pointer, version)
	for {
		if kept, ok := d.get(pointer, version); ok {
			return kept, nil
		}
		got, err := d.reads.Get(ctx, key, otter.LoaderFunc[string, *readOf](
			func(context.Context, string) (*readOf, error) {
				if _, ok := d.get(pointer, version); ok { // another read ended, or set was called in the meantime
					return nil, errKept
				}
				document, err := read()
				return &readOf{document}, err
			}))
		switch {
		case errors.Is(err, errKept):
		case err != nil:
			return nil, err
		default:
			d.keep(pointer, version, got)
			return got.document, nil
		}
	}
}

// keep moves the result of a read from d.reads into the cache, unless it is outdated. A later set
// or forget replaces or drops the cached document.
func (d *cache) keep(pointer registry.ID, version string, read *readOf) {
	key := fileKey(pointer, version)
	d.entries.Compute(pointer, func(kept *latest, _ bool) (*latest, otter.ComputeOp) {
		if now, _ := d.reads.GetIfPresent(key); now != read {
			return kept, otter.CancelOp
		}
		return kept.add(cachedDocument{version, read.document}, d.bytesMax), otter.WriteOp
	})
	d.reads.ComputeIfPresent(key, func(now *readOf) (*readOf, otter.ComputeOp) {
		if now != read {
			return now, otter.CancelOp // the present one is the result of a later read
		}
		return nil, otter.InvalidateOp
	})
}

// add returns l with an added document, which replaces a document of the same version. If both
// documents together exceed the size of the cache, the result has only the added document. l may be
// nil.
func (l *latest) add(put cachedDocument, bytesMax int64) *latest {
	var before cachedDocument
	if l != nil {
		before = l.last
		if before.version == put.version {
			before = l.before
		}
	}
	if put.costBytes()+before.costBytes() > bytesMax {
		before = cachedDocument{}
	}
	return &latest{put, before}
}

func (c cachedDocument) costBytes() int64 {
	if c.document == nil {
		return 0
	}
	return c.document.CostBytes() + int64(len(c.version))
}
