// Package history answers questions about the past of a store from the order of its changes.
//
// The feed has one event for each object that a change created, changed or ended. A reader saves
// the position at the end of a page, and continues from there. So it gets every event, in the order
// of the changes. If it repeats a page after a failure, it can get an event twice, and recognises
// the repetition by the event's ID. A position is refused with KindGone if it belongs to another
// store, or if the changes after it were deleted. A restored copy of a store counts as another
// store.
//
// The present policy determines which events a page may show. The caller needs describe on the
// object in its present state, and on every namespace named in the event. If the caller has
// describe on the scope of the request, everything in the scope is shown without further reads.
//
// Package history writes nothing. It knows nothing about storage, HTTP, or the content of tables.
package history
