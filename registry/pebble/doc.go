// Package pebble is the store that keeps its records in a directory, with the log-structured engine
// of that name. It is the embedded default of one process.
//
// # Durable before visible
//
// The engine shows a batch to readers before its log is on disk. So this package lets nobody read
// the engine's latest state. Readers look through a view, a snapshot of the engine that was taken
// after a sync. One goroutine, the committer, is the only one that writes:
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
// A request that was refused because of a record of its own group is answered after the sync too:
// until then that record may still be taken back. Overlaying the old values on the engine's state
// was rejected: it costs every List a merge, where a view costs every group one snapshot.
//
// # Failure
//
// The engine does not survive an error of the file system while it writes. It calls its logger's
// Fatalf, which is meant to end the process, or panics in a way that nobody can recover from. So it
// never sees such an error. A guard stands between the engine and the file system. At the first
// error it marks the store failed and freezes: whatever the engine writes from then on waits, and
// never reaches the disk. Applies under way are answered with ErrUnknown, later ones with
// ErrFailed. Reads go on from the last view. When the store is closed, the guard lets the engine
// believe that all is well, so that it can end. Opening the directory again brings back what had
// reached the disk. It moves what the log holds to a new table and syncs that. So it does not
// matter whether the pages of a log whose sync failed are on disk.
//
// An instance is the store from one opening to the next, and ends with its first error. If the disk
// was full, Store closes the failed instance and opens another one when there is room. Other errors
// say that the disk may be broken, and an operator has to look.
//
// # Layout
//
// Keys of the engine, and their values:
//
//	'm' "position"              8 bytes: the position that was given away last, big-endian
//	'p' position (8, big-end.)  the ID of the change record that has this place
//	'r' table (1) ID            ETag (16) state (1) value
//	                            for a change: ETag (16) state (1) position (8) value;
//	                            position is 0 for a record that has no place
package pebble
