package directory

import (
	"sync"
	"sync/atomic"
	"time"

	"moorage/registry"
)

// HomeTrust is how long a node assumes that the record of a warehouse is unchanged. A later request
// that would otherwise read only a table's pointer reads that record in the same call. So a storage
// option, a secret or a delegation that was changed on another node applies to every request that
// begins later than this.
const HomeTrust = 2 * time.Second

// home is one version of the record of a warehouse. All cached pointers of its tables share it. It
// is safe for concurrent use.
type home struct {
	key   registry.Key
	etag  registry.ETag
	place string // the PlaceKey of the warehouse's storage
	// confirmed is the start of the last read that found this version.
	confirmed atomic.Pointer[time.Time]
	stale     atomic.Bool // a read found another version
}

// isFresh reports whether a request that begins now may assume that h is the present version.
func (h *home) isFresh(now time.Time) bool {
	age := now.Sub(*h.confirmed.Load())
	return age >= 0 && age <= HomeTrust
}

// isStale reports whether h is certainly not the present version. It is true for nil, the home of a
// pointer that was not found in a warehouse.
func (h *home) isStale() bool { return h == nil || h.stale.Load() }

// confirm records that a read found h. began is when that read began.
func (h *home) confirm(began time.Time) {
	if began.After(*h.confirmed.Load()) {
		h.confirmed.Store(&began)
	}
}

// saw processes the record of h. began is when the read of record began.
func (h *home) saw(record registry.Record, began time.Time) {
	if record.Exists() && record.ETag == h.etag {
		h.confirm(began)
		return
	}
	h.stale.Store(true)
}

// homes holds the present versions of warehouses that this node knows. It is safe for concurrent
// use.
type homes struct {
	// outdated is called with the place of a version if the next version has another place.
	outdated func(place string)

	mu    sync.Mutex       // guards known; a leaf
	known map[string]*home // by warehouse name
}

func newHomes(outdated func(place string)) *homes {
	return &homes{outdated: outdated, known: make(map[string]*home)}
}

// at returns the home of the warehouse called name for record. began is when the read of record
// began, and place is the PlaceKey of its storage.
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

// forget records that a warehouse was changed or deleted.
func (h *homes) forget(name string) {
	h.mu.Lock()
	before := h.known[name]
	delete(h.known, name)
	h.mu.Unlock()
	h.leave(before, "")
}

// leave marks before as stale, if it is not nil. place is the place of the next version.
func (h *homes) leave(before *home, place string) {
	if before == nil {
		return
	}
	before.stale.Store(true)
	if before.place != place {
		h.outdated(before.place)
	}
}

// ForgetWarehouse makes the next request for a warehouse read its record again, after a change.
func (d *Directory) ForgetWarehouse(name string) { d.homes.forget(name) }
