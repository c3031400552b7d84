// Package txlog is the log of transactions: operations of several steps with one moment at which
// they become true. It keeps a record of each from before its first file is written until no work
// is left to do. Package recovery ends those whose coordinator did not come to the end.
//
// # The states
//
//	          Begin                 Commit                      Finish
//	(none) ──────────▶ PENDING ───────────────▶ COMMITTED ──────────────────▶ (none)
//	                   │  ▲  │   with surplus
//	            Extend └──┘  │       Commit
//	                         ├────────────────────────────────────────────▶ (none)
//	                         │   without surplus
//	                         │       Abort                      Finish
//	                         └─────────────────▶ ABORTED ──────────────────▶ (none)
//
//	PENDING    the coordinator writes files; readers see none of it
//	COMMITTED  it became true; its surplus, the files of its earlier tries, is still to be deleted
//	ABORTED    it cannot become true any more; all its files are still to be deleted
//	(none)     it did not begin, or is done: its change record says whether it became true
//
// A record is deleted as soon as no work is left to do. So the log is the list of unfinished work,
// and a look through it costs nothing, however many transactions a day sees.
//
// # What it promises
//
// The record names a file before the file is written. Every step asks for the version of the record
// that the step before it left. So a writer of ABORTED keeps the coordinator from everything that
// it has not done yet, Commit included: that is the fence. Nobody needs to ask whether the
// coordinator lives. If it wakes up late, it fails.
//
// Commit is not a call but a condition and a write. They go into the one Apply that moves the
// pointers.
//
// Recovery deletes the files that were recorded and not published. It never asks a pointer what it
// names, because a published file soon lives only in a table's metadata log. This is right only as
// long as no two transactions ever name the same file, and no transaction begins twice. So a caller
// that does not learn the outcome of Begin must forget the id and the files' names, and draw new
// ones. The record may yet appear, and recovery would undo it.
//
// A record that cannot be read, because it is damaged or of a later version, does not hold up the
// others. No step is taken by it, because nobody knows its files or whether its coordinator lives.
//
// # What it must not know
//
// Files, locks and tables.
package txlog
