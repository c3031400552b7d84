// Package purge deletes the files of tables that were dropped with a purge.
//
// # What it promises
//
// A file is deleted only if the dropped table's own metadata names it, or a job of the table was
// to delete it, and only in a location that the table holds. Its metadata is that of its present
// version, and earlier metadata files as far as the logs lead to them. No location of a table
// passes on while its purge is pending, and the table cannot come back once its purge has begun.
// So nothing that is deleted is another table's. The exception are files of a table elsewhere that
// names files here, which nobody asks.
//
// Everything may be done again from any point, by any node. The files that name others go last,
// so a purge that was cut short finds what is left when it begins again.
//
// # How it works
//
// The drop writes the task in the same Apply. A Worker of each node looks for tasks:
//
//	task, table dropped ── claimed, begun ──► table purging ── files, in batches ──► records gone
//	     ▲       │                                │  ▲
//	     │       └── registered again: no task    │  └── failed: noted in the task, tried again
//	     │                                        ▼
//	     └──── an operator ──────── blocked, after AttemptsMax failures
//
// A claim (package ledger) leaves each purge to one node. It saves work and protects nothing:
// before each batch the worker reads that the table is still to be purged by this task.
//
// One attempt marks the table, deletes, and ends the purge (attempt.go). What the metadata of the
// table names is listed in files.go, in an order that is safe.
//
// Several purges run side by side, few of one warehouse. One that gets nothing done for StallMax
// has failed.
//
// # What it must not know
//
// How tables are named, made or changed, and how a storage is opened: Tables says that.
package purge
