// Package commit carries out every change of the catalog. Read this file first, then pipeline.go.
//
// A verb hands in an Intent: the caller, the operation, its idempotency key, its objects, and the
// planner. Pipeline.Submit carries it out:
//
//	authorize ─► wait for another attempt with the key ─► queue or lock ─► read, plan
//	          ─► write the file ─► one Apply ─► settle ─► clean up ─► answer ─► audit
//
// The file key.go decides the answer of an attempt with a key.
//
// # What it promises
//
//   - Verbs move pointers only through this package, which moves them only by ledger.Ledger.Apply.
//     Only the store's conditional write makes a commit correct. Queues and locks order work and
//     avoid wasted work: losing any of them at any moment is harmless.
//   - A file is written, create-only, before a record names it. It is deleted only when no record
//     names it and no future record can.
//   - Records that must change together are written in one Apply: pointer, entry, claims, change
//     record, purge task, and outcome of the key.
//   - Each mutation draws a commit id and writes its change record with it. If the answer of an
//     Apply is lost, that record alone decides whether the Apply happened.
//   - If the records that a plan read have changed, the intent is planned again on newer records.
//     Either the number of tries or their total duration is bounded. An intent that fails changes
//     nothing.
//
// # Lanes
//
// The kind of change decides how an intent waits for other intents. The verb's row in package gate
// lists the locks:
//
//   - An intent with a Plan takes the locks of its row. The Apply requires that the records that
//     Plan read have not changed (attempt.go).
//   - An edit of one table or view waits in the queue of its pointer, and moves the pointer by
//     compare-and-set (edit.go). It takes the pointer's lock only after it lost several races. It
//     also carries out compatible edits that wait behind it: one file and one Apply commit all of
//     them (group.go). The file metadata/chain.go decides whether the contents of two edits are
//     compatible.
//   - Edits of several tables take the locks of their pointers at once or not at all. Package locks
//     has the order of the locks. transaction.go decides what a transaction does if a lock is held:
//     it ends a dead transaction that holds it, retries for a short time, and then gives way (409).
//     Before the files are written, a record in the transaction log names them.
//   - The drop of a container marks it first, so that no new child can be created in it (drain.go).
//
// # What it must not know
//
// It does not know HTTP, SQL, the SDK of an object store, or the meaning of a table's updates.
package commit
