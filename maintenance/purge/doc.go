// Package purge deletes the files of tables that were dropped with a purge.
//
// # What it promises
//
// A file is deleted only if it is in a location that the dropped table holds. In addition, the
// table's own metadata must name it, or a job of the table must have planned to delete it. The
// metadata is the current version, and earlier metadata files as far as the metadata logs lead to
// them. No other table gets a location of the table while its purge is pending. The table cannot be
// restored once its purge has begun. So no deleted file belongs to another table, with one
// exception: a table elsewhere may name files here, and the purge does not check that.
//
// Any node may repeat everything from any point. Files that name other files are deleted last. So a
// purge that was interrupted finds the remaining files when it begins again.
//
// # How it works
//
// The drop decides when the purge may begin (catalog/drop.go). If the purge has no delay, the Apply
// of the drop also writes the task. Otherwise a worker writes the task when the time has come
// (waiting.go). A Worker of each node searches for tasks:
//
//	task, table dropped ── assigned, begun ──► table purging ── files, in batches ──► records gone
//	     ▲       │                                │  ▲
//	     │       └── registered again: no task    │  └── failed: noted in the task, tried again
//	     │                                        ▼
//	     └──── an operator ──────── blocked, after AttemptsMax failures
//
// An assignment (package ledger) gives each purge to one node. It only saves work. What protects
// files is another check: before each batch, the worker reads in the store that this task still has
// to purge the table.
//
// One attempt marks the table, deletes its files, and ends the purge (attempt.go). files.go decides
// which files are deleted, and yields them in an order that is safe to interrupt. If a table was
// dropped without a purge, its files stay after the undrop window
// (maintenance/retention/windows.go).
//
// Several purges run at once, but only a few of them in one warehouse. A purge without progress for
// StallMax has failed.
//
// # What it must not know
//
// It must not know how tables are named, made or changed, or how a storage is opened; Tables does
// that.
package purge
