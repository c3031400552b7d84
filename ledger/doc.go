// Package ledger writes all records of the server. No other package calls registry.Store.Apply.
//
// # Mutations
//
// A mutation is one Apply with a change record: conditions, writes and, if the request has an
// idempotency key, the key's outcome. If the store's answer is lost, Ledger.Apply finds the change
// record, or writes it as VOID so that the batch never happens. A caller gets one of three results:
// the mutation happened, never will, or is unknown (KindCommitUnknown).
//
// Ledger.Step writes without a change record. It is for steps that may be repeated.
//
// # Assignments
//
// An assignment is the record {owner, until} under the name of the work. A node takes an assignment
// with an Apply. Its condition is that there is no such record, or that the record is the one that
// it read and has ended. The owner renews it three times in its life and deletes it when the work
// is done. "Until" is a time of the store's clock, so the clocks of nodes may differ:
//
//	no record ─ take ─► mine, until T+life ─ renew ─► mine, until T'+life ─ release ─► no record
//	                             │ owner silent until T+life
//	                             └── take, by another node ──► theirs
//
// An assignment saves work and protects nothing. A paused owner may wake up and continue for a
// moment after another node took over. So all work under an assignment must be conditional writes,
// or be harmless when two nodes do it.
//
// # What a ledger must not know
//
// It does not know the subject of the work or of a mutation, and knows nothing of files.
package ledger
