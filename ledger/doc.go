// Package ledger is the one way in which the server writes records: nobody else calls
// registry.Store.Apply.
//
// # Mutations
//
// A mutation is one Apply with a change record: conditions, writes and, if the request has an
// idempotency key, the outcome of the key. Ledger.Apply settles an answer of the store that was
// lost: it finds the change record, or writes it as VOID so that the batch never happens. A caller
// gets one of three results: it happened, it never will, or nobody can say (KindCommitUnknown).
//
// Ledger.Step writes without a change record. It is for steps that may be taken twice.
//
// # Claims
//
// A claim is the record {owner, until} under the name of the work. A node takes a claim with an
// Apply on the condition that there is no such record, or that the record is the one that it read
// and has ended. The owner renews it three times in its life and deletes it when the work is done.
// "Until" is a time of the store's clock, so the clocks of nodes may differ:
//
//	no record ─ take ─► mine, until T+life ─ renew ─► mine, until T'+life ─ release ─► no record
//	                             │ owner silent until T+life
//	                             └── take, by another node ──► theirs
//
// A claim saves work and protects nothing: an owner that was paused may wake up and go on for a
// moment after another node took over. What is done under a claim must be conditional writes, or be
// harmless when two nodes do it.
//
// # What a ledger must not know
//
// It does not know what the work or a mutation is about, and nothing of files.
package ledger
