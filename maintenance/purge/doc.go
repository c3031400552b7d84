// Package purge deletes the files of tables that were dropped with a purge.
//
// # What it promises
//
// A file is deleted only if it is in a location that the dropped table holds. In addition, the file
// must be listed in the table's own metadata, or a job of the table must have planned to delete it.
// The metadata is the current version, and all earlier metadata files that can be found through
// metadata logs. No other table gets a location of the table while its purge is pending. The table
// cannot be restored once its purge has begun. So no deleted file belongs to another table, with
// one exception: a table elsewhere may refer to files here, and the purge does not check that.
//
// Any node may repeat any part of a purge. A file that refers to other files is deleted after those
// files. So when an interrupted purge begins again, it finds the remaining files.
//
// # How it works
//
// The drop decides when the purge may begin (catalog/drop.go). If the purge has no delay, the Apply
// of the drop also writes the task. Otherwise a worker writes the task when the time comes
// (waiting.go). Each node has a Worker that searches for tasks:
//
//	task, table dropped ── assigned, begun ──► table purging ── files, in batches ──► records gone
//	     ▲       │                                │  ▲
//	     │       └── registered again: no task    │  └── failed: noted in the task, tried again
//	     │                                        ▼
//	     └──── an operator ──────── blocked, after AttemptsMax failures
//
// An assignment (package ledger) gives each purge to one node. The assignment only saves work. A
// different check protects files: before each batch, the worker reads from the store whether this
// task must still purge the table.
//
// One attempt marks the table, deletes its files, and ends the purge (attempt.go). files.go decides
// which files are deleted, and yields them in an order that is safe to interrupt. If a table was
// dropped without a purge, its files stay after the undrop window
// (maintenance/retention/windows.go).
//
// Several purges run at once, but only a few of them in one warehouse. A purge fails if it makes no
// progress for StallMax.
//
// # What it must not know
//
// It does not know how tables are named, made or changed, or how a storage is opened. The interface
// Tables hides that.
package purge
