// Package soak runs three nodes over PostgreSQL, and one over an embedded store, for a long time
// under a load with a fixed rate. Meanwhile it injects, one after the other, every fault that a
// node must survive. A run of a few minutes injects a random part of the faults.
//
// TestSoak runs for -soak (30 s; `make soak` runs an hour) and prints its seed. The load consists
// of commits, transactions, creates, renames, drops with a purge, loads, and lists. Half of the
// changes have an Idempotency-Key, and clients send them until they get an answer. Afterwards every
// acknowledged change must have happened, and no refused change. `moorage doctor --deep` must find
// nothing.
//
// The faults have numbers. At its end the test lists the faults by number; it fails if one was not
// injected. For each fault the code has the conditions that must hold during the fault, and the
// conditions that must hold soon after it.
//
// The test continuously samples memory, goroutines, threads, connections, rows and files. These
// must not grow: a value's maximum in the last third of the run may be at most 1.2 times its
// maximum in the second third. A run that is too short for this compares its end with its
// beginning. It then ignores the values that grow until the first retention time is over.
package soak
