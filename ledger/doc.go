// Package ledger lets the nodes that share a store agree, by records of the store, on which of them
// does a piece of work.
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
// It does not know what the work is, and nothing of tables or files.
package ledger
