// Package txlog is the log of transactions: operations of several steps with one moment at which they become true.
// It keeps a record of each from before its first file is written until nothing of it is left to do, and it has the
// worker that finishes or undoes those whose coordinator did not come to the end.
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
//	COMMITTED  it became true; files that its earlier tries wrote, the surplus, are still to be deleted
//	ABORTED    it cannot become true any more; all its files are still to be deleted
//	(none)     it did not begin, or nothing is left to do: its change record says whether it became true
//
// A record is deleted as soon as nothing is left to do. So the log is the list of unfinished work, and looking
// through it costs nothing, however many transactions a day sees.
//
// # What it promises
//
// A file is named in the record before it is written. Every step asks for the version of the record that the step
// before it left, so whoever writes ABORTED keeps the coordinator from all that it has not done yet, Commit among
// it: that is the fence. Nobody needs to be asked whether the coordinator lives; waking up late, it fails.
//
// Commit is not a call but a condition and a write: they go into the one Apply that moves the pointers.
//
// Recovery deletes the files that were recorded and not published, and never asks a pointer what it names:
// a published file soon lives only in a table's metadata log. This is right only as long as no two transactions ever
// name the same file, and no transaction begins twice. So whoever does not learn the outcome of Begin must
// forget the id and the files' names, and draw new ones: the record may yet appear, and recovery would
// undo it.
//
// A record that cannot be read, because it is damaged or of a later version, keeps nobody from the others. Nothing is done by it: its files
// are not known, nor whether its coordinator lives. Forget removes it, which is for an operator to ask.
//
// # What it must not know
//
// Files, locks and tables. Config.Resolve, which package catalog implements, deletes files and takes locks.
package txlog
