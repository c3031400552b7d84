package catalog

import (
	"math"
	"sync/atomic"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"

	"moorage/registry"
)

// documents keeps parsed metadata documents: of each table and view the two that were put last, as a rule the current one and the one
// before it, for those who have just read the pointer. On a busy table more would soon be many. The catalog writes
// a location once, and reads one that somebody else wrote anew when it is registered, so what is kept is what tables and
// views were made of. It is safe for concurrent use.
type documents struct {
	cache   *otter.Cache[registry.ID, *shelf] // by pointer
	reads   singleflight.Group
	forgets atomic.Int64 // calls of forget
}

// shelf is where the documents of one pointer are kept. They are replaced in their place: to put something into the cache costs more.
type shelf = atomic.Pointer[shelved]

// shelved is immutable.
type shelved struct {
	last, before keptDocument
	weight       int64 // that the cache counts, in bytes: what both take, or up to half more
}

// keptDocument is a document and the location that it was written to, or read from; zero is none.
type keptDocument struct {
	location string
	document document
}

func (k keptDocument) costBytes() int64 {
	if k.document == nil {
		return 0
	}
	return k.document.CostBytes() + int64(len(k.location))
}

func newDocuments(bytesMax int64) *documents {
	return &documents{cache: otter.Must(&otter.Options[registry.ID, *shelf]{
		MaximumWeight: uint64(bytesMax),
		Weigher:       func(_ registry.ID, kept *shelf) uint32 { return uint32(min(kept.Load().weight, math.MaxUint32)) },
	})}
}

// get returns the document of pointer at location, if it is kept.
func (d *documents) get(pointer registry.ID, location string) (document, bool) {
	kept, ok := d.cache.GetIfPresent(pointer)
	if !ok {
		return nil, false
	}
	found := kept.Load().at(location)
	return found.document, found.document != nil
}

// set keeps document, which is at location by now, whatever was there.
func (d *documents) set(pointer registry.ID, location string, document document) {
	d.put(pointer, func(now *shelved) *shelved { return now.with(keptDocument{location, document}) })
}

// put replaces what is kept of pointer, nil for nothing, by what next makes of it.
func (d *documents) put(pointer registry.ID, next func(*shelved) *shelved) {
	kept, ok := d.cache.GetIfPresent(pointer)
	if !ok {
		kept = new(shelf)
	}
	for {
		now := kept.Load()
		then := next(now)
		if !kept.CompareAndSwap(now, then) {
			continue
		}
		if then != nil && (now == nil || now.weight != then.weight) {
			d.cache.Set(pointer, kept) // that it is weighed
		}
		return
	}
}

// forget drops what is kept of pointer, and what is being read of it.
func (d *documents) forget(pointer registry.ID, location string) {
	d.forgets.Add(1)
	d.reads.Forget(readKey(pointer, location))
	d.cache.Invalidate(pointer)
}

// readOnce returns what read reads from location, once for all who ask at the same time, and keeps it, unless a newer document
// of that location is kept by then.
func (d *documents) readOnce(pointer registry.ID, location string, read func() (document, error)) (document, error) {
	shared, err, _ := d.reads.Do(readKey(pointer, location), func() (any, error) {
		forgets := d.forgets.Load()
		document, err := read()
		if err != nil {
			return nil, err
		}
		d.put(pointer, func(now *shelved) *shelved {
			if d.forgets.Load() != forgets || now.at(location).document != nil {
				return now
			}
			return now.with(keptDocument{location, document})
		})
		return document, nil
	})
	if err != nil {
		return nil, err
	}
	return shared.(document), nil
}

func readKey(pointer registry.ID, location string) string { return string(pointer[:]) + location }

// at returns what s keeps of location; s may be nil.
func (s *shelved) at(location string) keptDocument {
	switch {
	case s == nil:
	case s.last.location == location:
		return s.last
	case s.before.location == location:
		return s.before
	}
	return keptDocument{}
}

// with returns s, nil for nothing, with one document more, or another one in the place of that at the same location.
func (s *shelved) with(put keptDocument) *shelved {
	next := &shelved{last: put}
	if s != nil {
		next.before, next.weight = s.last, s.weight
		if s.last.location == put.location {
			next.before = s.before
		}
	}
	if cost := next.last.costBytes() + next.before.costBytes(); cost > next.weight || next.weight > cost+cost/2 {
		next.weight = cost + cost/4
	}
	return next
}
