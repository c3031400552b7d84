// Package commit is the one way in which something in the catalog changes. Read this file first,
// then pipeline.go.
//
// A verb hands in an Intent: who asks, what for, under which idempotency key, on what, and how to
// plan it. Pipeline.Submit carries it out:
//
//	authorize ─► wait for another attempt with the key ─► queue or lock ─► read, plan
//	          ─► write the file ─► one Apply ─► settle ─► clean up ─► answer ─► audit
//
// What an attempt with a key is answered is decided in key.go.
//
// # What it promises
//
//   - No verb moves a pointer but through this package, which does so only by ledger.Ledger.Apply.
//     Only the store's conditional write makes a commit correct. Queues and locks order work and
//     save waste: to lose any of them at any moment is harmless.
//   - A file is written, create-only, before a record names it. It is deleted only when no record
//     can come to name it.
//   - What must be true together (pointer, entry, claims, change record, purge task, outcome of the
//     key) is written in one Apply.
//   - Each mutation draws a commit id and writes its change record with it. That record alone
//     settles an Apply whose answer was lost.
//   - An intent whose plan met older records is planned again, on newer ones, a bounded number of
//     times or for a bounded time. One that fails changes nothing.
//
// # Lanes
//
// What an intent changes decides how it waits for others. The locks are those of its row in package
// verb:
//
//   - An intent with a Plan takes the locks of its row. It is applied on the condition that what it
//     read has not changed (attempt.go).
//   - An edit of one table or view takes no lock unless it lost several races. It waits in the
//     queue of its pointer, and moves the pointer by compare-and-set (edit.go). Those that wait
//     behind it and do not undo one another are carried out with it: one file and one Apply make
//     all of them true (group.go).
//   - Edits of several tables take the locks of their pointers at once or not at all, and write
//     a record ahead that names their files (transaction.go).
//   - The drop of a container marks it first, so that nothing new can come into it (drain.go).
//
// # What it must not know
//
// HTTP, SQL, the SDK of an object store, or what the updates of a table mean.
package commit
