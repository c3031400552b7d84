package directory

import (
	"sync"
	"sync/atomic"
	"time"

	"moorage/registry"
)

// WarehouseTrust is how long a node assumes that the record of a warehouse is unchanged. After that
// time, a request that would otherwise read only a table's pointer also reads the warehouse's
// record, in the same call. So a change of a storage option, secret or delegation on another node
// applies to every request that begins at least WarehouseTrust later.
const WarehouseTrust = 2 * time.Second

// warehouseVersion is one version of the record of a warehouse. All cached pointers of its tables
// share it. It is safe for concurrent use.
type warehouseVersion struct {
	key   registry.Key
	etag  registry.ETag
	place string // the PlaceKey of the warehouse's storage
	// confirmed is the start time of the last read that found this version.
	confirmed atomic.Pointer[time.Time]
	stale     atomic.Bool // set when a read found another version
}

// isFresh reports whether a request that begins at the time now may assume that v is the present
// version.
func (v *warehouseVersion) isFresh(now time.Time) bool {
	age := now.Sub(*v.confirmed.Load())
	return age >= 0 && age <= WarehouseTrust
}

// isStale reports whether v is certainly not the present version. It returns true if v is nil, as
// for a pointer that was not found through a warehouse.
func (v *warehouseVersion) isStale() bool { return v == nil || v.stale.Load() }

// confirm records that a read found v. began is when that read began.
func (v *warehouseVersion) confirm(began time.Time) {
	if began.After(*v.confirmed.Load()) {
		v.confirmed.Store(&began)
	}
}

// saw compares v with record, the warehouse's record from a read that began at began. It confirms v
// or marks it as stale.
func (v *warehouseVersion) saw(record registry.Record, began time.Time) {
	if record.Exists() && record.ETag == v.etag {
		v.confirm(began)
		return
	}
	v.stale.Store(true)
}

// warehouseVersions holds the version of each warehouse that this node read last. It is safe for
// concurrent use.
type warehouseVersions struct {
	// outdated is called when a new version of a warehouse has another place. Its argument is the
	// place of the old version.
	outdated func(place string)

	mu    sync.Mutex                   // guards known; no other lock is taken while it is held
	known map[string]*warehouseVersion // by warehouse name
}

func newWarehouseVersions(outdated func(place string)) *warehouseVersions {
	return &warehouseVersions{outdated: outdated, known: make(map[string]*warehouseVersion)}
}

// versionIn returns the version of the warehouse called name in record. began is when the read of
// record began, and place is the PlaceKey of the warehouse's storage.
func (v *warehouseVersions) versionIn(name string, record registry.Record, place string,
	began time.Time) *warehouseVersion {
	v.mu.Lock()
	before := v.known[name]
	now := before
	if before == nil || before.etag != record.ETag || before.isStale() {
		now = &warehouseVersion{key: record.Key, etag: record.ETag, place: place}
		now.confirmed.Store(&began)
		v.known[name] = now
	}
	v.mu.Unlock()
	if now == before {
		now.confirm(began)
	} else {
		v.leave(before, place)
	}
	return now
}

// forget removes the version of a warehouse that was changed or deleted.
func (v *warehouseVersions) forget(name string) {
	v.mu.Lock()
	before := v.known[name]
	delete(v.known, name)
	v.mu.Unlock()
	v.leave(before, "")
}

// leave marks the parameter before, an old version of a warehouse, as stale. It may be nil. place
// is the place of the next version.
func (v *warehouseVersions) leave(before *warehouseVersion, place string) {
	if before == nil {
		return
	}
	before.stale.Store(true)
	if before.place != place {
		v.outdated(before.place)
	}
}

// ForgetWarehouse makes the next request for a warehouse read its record again, after a change.
func (d *Directory) ForgetWarehouse(name string) { d.versions.forget(name) }
