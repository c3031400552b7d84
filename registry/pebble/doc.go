// Package pebble is the store that keeps its records in a directory. It uses the storage engine
// Pebble, which is called the engine below. It is the default store, embedded in a single process.
//
// # Durable before visible
//
// The engine shows a batch to readers before its log is on disk. So this package does not let
// readers see the engine's latest state. Readers use a view, a snapshot of the engine that was
// taken after a sync. One goroutine, the committer, makes all writes. The requests that it takes at
// once are a group:
//
//	Apply ──► queue ──► committer: take what queued during the last sync
//	                     │  check each request's conditions, in order, against
//	                     │  the view plus what the group has written so far
//	                     ▼
//	                    one batch, one sync          readers ──► old view
//	                     ▼
//	                    put the new view in place    readers ──► new view
//	                     ▼
//	                    answer the requests
//
// If a request is refused because of a record that its own group wrote, it is also answered after
// the sync. Until then that record may still be lost. An alternative is to overlay the old values
// on the engine's state. It was rejected: every List would need a merge, while a view costs each
// group only one snapshot.
//
// # Failure
//
// The engine does not survive an error of the file system while it writes. It calls its logger's
// Fatalf, which is meant to end the process, or panics in a way that cannot be recovered. So the
// store hides such errors from the engine. A guard sits between the engine and the file system. At
// the first error it marks the store failed and freezes: later writes of the engine wait, and never
// reach the disk. Applies in progress are answered with ErrUnknown, and later Applies with
// ErrFailed. Reads continue from the last view. When the store is closed, the guard reports success
// to the engine, so that the engine can close. Reopening the directory restores everything that
// reached the disk. Opening moves the content of the log to a new table and syncs that table. So
// after a failed sync of the log, it does not matter which of its pages reached the disk.
//
// An instance is the store from one opening of the engine to the next. It fails permanently at its
// first error. If the disk was full, Store closes the failed instance and opens another when the
// disk has room. Other errors may mean that the disk is broken, so an operator must check it.
//
// # Layout
//
// Keys of the engine, and their values:
//
//	'm' "position"              8 bytes: the last assigned position, big-endian
//	'p' position (8, big-end.)  the ID of the change record that has this place
//	'r' table (1) ID            ETag (16) state (1) value
//	                            for a change: ETag (16) state (1) position (8) value;
//	                            position is 0 for a record that has no place
package pebble
