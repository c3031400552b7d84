// Package soak lets three nodes over PostgreSQL, and one over an embedded store, work for long
// under a load of a fixed rate while every fault that a node must survive is injected in turn.
//
// TestSoak runs for -soak (60 s; `make soak` runs an hour) and prints its seed. The load consists
// of commits, transactions, creates, renames, drops with a purge, loads, and lists. Half of the
// changes have an Idempotency-Key and are sent until they are answered. What was acknowledged must
// be there afterwards, what was refused must not, and `moorage doctor --deep` must find nothing.
//
// The faults have numbers, by which the test lists them at its end; it fails if one was not
// injected. Each names what must hold while it lasts, and what must hold soon after it.
//
// Memory, goroutines, threads, connections, rows and files are sampled all the time. They are flat
// if the maximum of the last third is at most 1.2 times that of the second third. A run that is too
// short for that compares its end with its begin, and leaves out what grows until the first
// retention is over.
package soak
