package documents

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"

	"github.com/maypok86/otter/v2"

	"moorage/registry"
)

// cache keeps parsed metadata documents: of each table and view the two that were put last, as a
// rule the current one and the one before it, for those who have just read the pointer. On a busy
// table more would soon be many. A location stands for an edition of a file (see FileVersion), so
// what is kept is what tables and views were made of. It is safe for concurrent use.
type cache struct {
	entries  *otter.Cache[registry.ID, *shelf] // by pointer
	bytesMax int64

	mu    sync.Mutex            // guards reads; a leaf, taken also while the cache holds a lock of its own
	reads map[readKey]*fileRead // those under way that are not outdated
}

// shelf is where the documents of one pointer are kept. They are replaced in their place: to put
// something into the cache costs more. Their weight changes only while the cache holds its lock of
// the pointer, so that it counts what the shelf says.
type shelf = atomic.Pointer[shelved]

// shelved is immutable.
type shelved struct {
	last, before located
	weight       int64 // that the cache counts, in bytes: what both take, or up to half more
}

// located is a document and the location that it was written to, or read from; zero is none.
type located struct {
	location string
	document Document
}

func (l located) costBytes() int64 {
	if l.document == nil {
		return 0
	}
	return l.document.CostBytes() + int64(len(l.location))
}

// readKey is what one read is shared for.
type readKey struct {
	pointer  registry.ID
	location string
}

// fileRead is one read of a file, for all who ask for it meanwhile. Who carries it out sets what is
// below done, and closes that.
type fileRead struct {
	done     chan struct{}
	document Document
	err      error
	outdated bool // document may be what was at the location before it was set, or forgotten
}

// errReadPanicked is what those get who have waited for another's read; who carried it out has the
// panic.
var errReadPanicked = errors.New("the read of a metadata file panicked")

func newCache(bytesMax int64) *cache {
	entries := otter.Must(&otter.Options[registry.ID, *shelf]{
		MaximumWeight: uint64(bytesMax),
		Weigher: func(_ registry.ID, kept *shelf) uint32 {
			return uint32(min(kept.Load().weight, math.MaxUint32))
		},
	})
	return &cache{entries: entries, bytesMax: bytesMax, reads: make(map[readKey]*fileRead)}
}

// get returns the document of pointer at location, if it is kept.
func (d *cache) get(pointer registry.ID, location string) (Document, bool) {
	kept, ok := d.entries.GetIfPresent(pointer)
	if !ok {
		return nil, false
	}
	found := kept.Load().at(location)
	return found.document, found.document != nil
}

// set keeps document, which is at location by now, whatever was there, or is being read of it.
func (d *cache) set(pointer registry.ID, location string, document Document) {
	d.outdate(readKey{pointer, location})
	d.put(pointer, located{location, document}, nil)
}

// forget drops what is kept of pointer, and what is being read of location.
func (d *cache) forget(pointer registry.ID, location string) {
	d.outdate(readKey{pointer, location})
	d.entries.Invalidate(pointer)
}

// readOnce returns what read reads from location, once for all who ask at the same time, and keeps
// it. If the location is set or forgotten meanwhile, what was read is neither kept nor returned.
// Who waits for another's read waits until ctx ends.
func (d *cache) readOnce(ctx context.Context, pointer registry.ID, location string,
	read func() (Document, error)) (Document, error) {
	key := readKey{pointer, location}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		shared, joined := d.join(key)
		if !joined {
			d.carryOut(key, shared, read)
		} else {
			select {
			case <-shared.done:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		if !shared.outdated {
			return shared.document, shared.err
		}
	}
}

// carryOut ends shared: with what is kept if another read has ended since the caller looked, else
// with what read reads.
func (d *cache) carryOut(key readKey, shared *fileRead, read func() (Document, error)) {
	defer d.end(key, shared)
	found, kept := d.get(key.pointer, key.location)
	if !kept {
		var err error
		if found, err = read(); err != nil {
			shared.err = err
			return
		}
		d.put(key.pointer, located{key.location, found}, shared)
	}
	shared.document, shared.err = found, nil
}

// join returns the read of key that is under way, or begins one, which the caller has to carry out.
func (d *cache) join(key readKey) (read *fileRead, joined bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if read, joined = d.reads[key]; !joined {
		read = &fileRead{done: make(chan struct{}), err: errReadPanicked}
		d.reads[key] = read
	}
	return read, joined
}

func (d *cache) end(key readKey, read *fileRead) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reads[key] == read {
		delete(d.reads, key)
	} else {
		read.outdated = read.err == nil
	}
	close(read.done)
}

// outdate sees to it that what is being read is not kept, and that nobody joins the read.
func (d *cache) outdate(key readKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.reads, key)
}

// isOutdated reports whether read is; nil is none.
func (d *cache) isOutdated(key readKey, read *fileRead) bool {
	if read == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reads[key] != read
}

// put keeps a document of pointer, unless it comes of a read, which may be nil, that is outdated.
func (d *cache) put(pointer registry.ID, put located, read *fileRead) {
	if kept, ok := d.entries.GetIfPresent(pointer); ok {
		now := kept.Load()
		if then := d.next(pointer, now, put, read); then.weight == now.weight && kept.CompareAndSwap(now, then) {
			return // if the cache has dropped kept meanwhile, put is dropped with it
		}
	}
	d.entries.Compute(pointer, func(kept *shelf, found bool) (*shelf, otter.ComputeOp) {
		if !found {
			kept = new(shelf)
		}
		for {
			now := kept.Load()
			then := d.next(pointer, now, put, read)
			switch {
			case then == now:
				return kept, otter.CancelOp
			case kept.CompareAndSwap(now, then):
				return kept, otter.WriteOp // which weighs it
			}
		}
	})
}

// next returns what put makes of now, which is nil for nothing and what the cache has: who outdates
// the read after this has looked drops, or replaces, what comes of it.
func (d *cache) next(pointer registry.ID, now *shelved, put located, read *fileRead) *shelved {
	if d.isOutdated(readKey{pointer, put.location}, read) {
		return now
	}
	return now.with(put, d.bytesMax)
}

// at returns what s keeps of location; s may be nil.
func (s *shelved) at(location string) located {
	switch {
	case s == nil:
	case s.last.location == location:
		return s.last
	case s.before.location == location:
		return s.before
	}
	return located{}
}

// with returns s, nil for nothing, with one document more, or another one in the place of that at
// the same location; with that one alone if two are more than the cache may hold.
func (s *shelved) with(put located, bytesMax int64) *shelved {
	next := &shelved{last: put}
	if s != nil {
		next.before, next.weight = s.last, s.weight
		if s.last.location == put.location {
			next.before = s.before
		}
	}
	cost := put.costBytes() + next.before.costBytes()
	if cost > bytesMax {
		next.before, cost = located{}, put.costBytes()
	}
	if cost > next.weight || next.weight > cost+cost/2 {
		next.weight = max(cost, min(cost+cost/4, bytesMax))
	}
	return next
}
