package directory

import (
	"sync"
	"sync/atomic"
	"time"

	"moorage/registry"
)

// HomeTrust is how long a node takes the record of a warehouse for unchanged. A request that begins
// later, and would else read a table's pointer alone, reads that record in the same call. So a
// storage option, a secret or a delegation that was changed on another node is heeded by every
// request that begins later than this.
const HomeTrust = 2 * time.Second

// home is one version of the record of a warehouse. What is remembered of all its tables shares it.
// It is safe for concurrent use.
type home struct {
	key   registry.Key
	etag  registry.ETag
	place string // the PlaceKey of the warehouse's storage
	// confirmed is when the last read began that has found this version.
	confirmed atomic.Pointer[time.Time]
	stale     atomic.Bool // a read has found another version
}

// isFresh reports whether a request that begins now may take h for the present version.
func (h *home) isFresh(now time.Time) bool {
	age := now.Sub(*h.confirmed.Load())
	return age >= 0 && age <= HomeTrust
}

// isStale reports whether h is not the present version for certain. Nil is of nothing that was
// found in a warehouse.
func (h *home) isStale() bool { return h == nil || h.stale.Load() }

// confirm notes that a read that began at that time has found h.
func (h *home) confirm(began time.Time) {
	if began.After(*h.confirmed.Load()) {
		h.confirmed.Store(&began)
	}
}

// saw notes the record of h, as it was read by a call that began at that time.
func (h *home) saw(record registry.Record, began time.Time) {
	if record.Exists() && record.ETag == h.etag {
		h.confirm(began)
		return
	}
	h.stale.Store(true)
}

// homes are the present versions of warehouses, as far as a node knows. It is safe for concurrent
// use.
type homes struct {
	// outdated is called with the place of a version whose successor has another one.
	outdated func(place string)

	mu    sync.Mutex       // guards known; a leaf
	known map[string]*home // by the name of the warehouse
}

func newHomes(outdated func(place string)) *homes {
	return &homes{outdated: outdated, known: make(map[string]*home)}
}

// at returns the version of a warehouse that record has, which was read by a call that began at
// that time. place is the PlaceKey of its storage.
func (h *homes) at(name string, record registry.Record, place string, began time.Time) *home {
	h.mu.Lock()
	before := h.known[name]
	now := before
	if before == nil || before.etag != record.ETag || before.isStale() {
		now = &home{key: record.Key, etag: record.ETag, place: place}
		now.confirmed.Store(&began)
		h.known[name] = now
	}
	h.mu.Unlock()
	if now == before {
		now.confirm(began)
	} else {
		h.leave(before, place)
	}
	return now
}

// forget notes that a warehouse has another version, or is gone.
func (h *homes) forget(name string) {
	h.mu.Lock()
	before := h.known[name]
	delete(h.known, name)
	h.mu.Unlock()
	h.leave(before, "")
}

// leave makes before, if there was one, stale. place is that of its successor.
func (h *homes) leave(before *home, place string) {
	if before == nil {
		return
	}
	before.stale.Store(true)
	if before.place != place {
		h.outdated(before.place)
	}
}

// ForgetWarehouse has the record of a warehouse read again by the next request for anything in it:
// it was changed.
func (d *Directory) ForgetWarehouse(name string) { d.homes.forget(name) }
