// Package purge deletes the files of tables that were dropped with a purge.
//
// # What it promises
//
// A file is deleted only if the dropped table's own metadata names it, or a job of the table was
// about to delete it, and only in a location that the table holds. The metadata is that of the
// current version, and earlier metadata files as far as the logs lead to them. No location of a
// table passes on while its purge is pending, and the table cannot be restored once its purge has
// begun. So no deleted file belongs to another table, with one exception: a table elsewhere may
// name files here, and the purge does not check that.
//
// Any node may repeat everything from any point. Files that name others are deleted last, so an
// interrupted purge finds the rest when it begins again.
//
// # How it works
//
// The Apply of the drop also writes the task. A Worker of each node searches for tasks:
//
//	task, table dropped ── assigned, begun ──► table purging ── files, in batches ──► records gone
//	     ▲       │                                │  ▲
//	     │       └── registered again: no task    │  └── failed: noted in the task, tried again
//	     │                                        ▼
//	     └──── an operator ──────── blocked, after AttemptsMax failures
//
// An assignment (package ledger) gives each purge to one node. It saves work and protects nothing:
// before each batch the worker reads the store to confirm that this task still has to purge the
// table.
//
// One attempt marks the table, deletes its files, and ends the purge (attempt.go). files.go yields
// the files in a safe order.
//
// Several purges run at once, few of them in one warehouse. A purge without progress for StallMax
// has failed.
//
// # What it must not know
//
// It must not know how tables are named, made or changed, or how a storage is opened; Tables does
// that.
package purge
