// Package history answers questions about the past of a store from the order of its changes.
//
// The feed has one event for each object that a change created, changed or ended. A reader keeps
// the position that a page ends with, and goes on from there. So it gets every event in the order
// of the changes: each at least once if it repeats the page after a failure. An event has an id, by
// which the reader recognises a repetition. Positions of another store, and positions whose next
// changes were deleted, are refused with KindGone. A restored copy of a store counts as another
// store.
//
// A page decides what the caller may see by the present policy. The caller needs describe on the
// object as it is now, and on every namespace that the event names. If the caller has describe on
// the scope that the request names, everything in the scope is shown without further reads.
//
// Package history writes nothing. It does not know storage, HTTP, or the content of tables.
package history
