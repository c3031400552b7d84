// Package ledger writes all records of the server. No other package calls registry.Store.Apply.
//
// # Mutations
//
// A mutation is one Apply with a change record: conditions, writes and, if the request has an
// idempotency key, the key's outcome. If the store's answer is lost, Ledger.Apply looks for the
// change record. If there is none, it writes one in state VOID, which fences the batch: the batch
// can never happen. A caller gets one of three results: the mutation happened, it never will, or
// the outcome is unknown (KindCommitUnknown).
//
// Ledger.Step writes without a change record. It is for steps that are safe to repeat.
//
// # Assignments
//
// An assignment is the record {owner, until} under the name of a piece of work. A node takes an
// assignment with an Apply. The Apply requires that there is no record, or that an ended assignment
// has not changed since the node read it. The owner renews the assignment three times per life, and
// deletes the record when the work is done. "Until" is a time of the store's clock, so the clocks
// of nodes may differ:
//
//	no record ─ take ─► mine, until T+life ─ renew ─► mine, until T'+life ─ release ─► no record
//	                             │ owner silent until T+life
//	                             └── take, by another node ──► theirs
//
// An assignment only saves work: correctness must not depend on it. A paused owner may resume and
// continue for a moment after another node has taken over. So all work under an assignment must be
// conditional writes, or be harmless when two nodes do it.
//
// # What a ledger must not know
//
// It does not know the meaning of a piece of work or a mutation, and it does not know files.
package ledger
