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
//     save waste: losing any of them at any moment is harmless.
//   - A file is written, create-only, before a record names it. It is deleted only when no record
//     can come to name it.
//   - Records that must change together are written in one Apply: pointer, entry, claims, change
//     record, purge task, and outcome of the key.
//   - Each mutation draws a commit id and writes its change record with it. That record alone
//     settles an Apply whose answer was lost.
//   - An intent whose plan was based on outdated records is planned again on newer ones. The number
//     of tries or their duration is bounded. An intent that fails changes nothing.
//
// # Lanes
//
// The kind of change decides how an intent waits for others. The locks are listed in its row in
// package gate:
//
//   - An intent with a Plan takes the locks of its row. It is applied on the condition that the
//     records it read have not changed (attempt.go).
//   - An edit of one table or view takes no lock unless it lost several races. It waits in the
//     queue of its pointer, and moves the pointer by compare-and-set (edit.go). It also carries out
//     compatible edits that wait behind it: one file and one Apply commit all of them (group.go).
//     Whether the contents of two edits are compatible is decided in metadata/chain.go.
//   - Edits of several tables take the locks of their pointers at once or not at all. A record
//     written ahead names their files (transaction.go).
//   - The drop of a container marks it first, so that no new child can be created in it (drain.go).
//
// # What it must not know
//
// HTTP, SQL, the SDK of an object store, or the meaning of a table's updates.
package commit
