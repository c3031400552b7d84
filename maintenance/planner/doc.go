// Package planner looks at the tables that are due for maintenance, and begins jobs on them.
//
//	due index ─► look at the live table ─► job, or another time, or nothing, or a blocker
//
// The index has 16 shards. Nodes share them: each takes claims on those that no other node has, and
// gives them back after a while.
//
// # What it promises
//
//   - What is done to a table goes by its present version and by the present policies: the Apply
//     that begins a job requires that the policies and the care of the table are as they were read.
//     So does the one that says held or off, or that no snapshot expires: it requires the policies
//     and the version of the table.
//   - Each look ends as done, nothing, later, blocked, held or off, and the Apply that says so
//     removes the due record. Held: the table says no. Off: no policy asks any more. A look for
//     which there is no room, or that something changed under, leaves the table due.
//   - Failures that another look would meet again block after 5 of them, others after 30 in a row
//     or 4 hours of them.
//   - A paused scope is left alone. What is blocked is left alone until an operator retries it.
//   - While no policy asks for anything it calls no store.
//
// # What it must not know
//
// Which tables there are, and what their changes were: it lists what is due.
package planner
