// Package recovery ends dead transactions: those whose coordinator did not come to the end, because
// its process died or its storage failed. It also has what an operator can do about them.
//
// # What it promises
//
// Any number of nodes may run it, and two may end the same transaction at once. Each step can be
// taken again after any failure:
//
//	PENDING ──▶ ABORTED ──▶ files that were recorded and not published are deleted ──▶ record gone
//	            COMMITTED ──▲
//
// ABORTED fences the coordinator, so nobody asks whether it lives. No pointer is asked either: a
// published file soon lives only in a table's metadata log.
//
// A transaction that cannot be ended gets a blocker, a task in state blocked with its id. Recovery
// leaves it alone until an operator has Retry or Abort remove the blocker. A record that cannot be
// read is left alone too. The one way to remove it is CancelDeletions, while no server runs.
//
// # How it works
//
// A worker goes through the log in rounds (round.go). Each warehouse has its turn in a goroutine of
// its own, so that a storage that hangs holds up only its own warehouse. What is done to one
// transaction is in recovery.go. A commit that needs the tables of a dead one may fence it before
// (package catalog/commit, transaction.go).
//
// # What it must not know
//
// Tables, names and metadata. Config.DeleteSurplus knows storages, Config.RetryPurge knows purges.
package recovery
