// Package recovery ends dead transactions: transactions whose coordinator did not finish, because
// its process died or its storage failed. It also provides operators' operations on such
// transactions.
//
// # What it promises
//
// Any number of nodes may run recovery, and two may end the same transaction at once. Each step can
// be repeated after any failure:
//
//	PENDING ──▶ ABORTED ──▶ files that were recorded and not published are deleted ──▶ record gone
//	            COMMITTED ──▲
//
// ABORTED fences the coordinator, so recovery need not know whether the coordinator is alive.
// Recovery does not check pointers either, because a published file soon disappears from them, and
// remains only in a table's metadata log.
//
// If a transaction cannot be ended, it gets a blocker: a task with the transaction's id, in state
// blocked. Recovery then does nothing with the transaction until an operator removes the blocker
// with Retry or Abort. Recovery also skips an unreadable record. Only CancelDeletions removes such
// a record, while no server runs.
//
// # How it works
//
// A worker goes through the log in rounds (round.go). In a round, each warehouse has a turn in its
// own goroutine, so that a storage that hangs delays only its own warehouse. The steps for one
// transaction are in recovery.go. Package txlog decides when a transaction may be ended (record.go
// there). A commit that needs the tables of a dead transaction may fence its coordinator earlier
// (package catalog/commit, transaction.go).
//
// # What it must not know
//
// It does not know about tables, names and metadata. Config.DeleteSurplus deals with storages, and
// Config.RetryPurge with purges.
package recovery
