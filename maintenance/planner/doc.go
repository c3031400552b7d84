// Package planner checks the tables that are due for maintenance, and begins jobs on them.
//
//	due index ─► check of the live table ─► job, or another time, or nothing, or a blocker
//
// The index has 16 shards. The nodes share them: each node takes claims on free shards, and gives
// them back after a while.
//
// # What it promises
//
//   - The planner acts on a table by its present version and the present policies. The Apply that
//     begins a job requires that the policies and the table's care record are as they were read.
//     The Apply that records "held", "off" or "no snapshot expires" requires the policies and the
//     version of the table.
//   - Each look ends as done, nothing, later, blocked, held or off. The Apply that records the
//     outcome removes the due record. Held means that the table forbids the job. Off means that no
//     policy requires it any more. If there is no room for a look, or the table changed under it,
//     the table stays due.
//   - A failure that another look would meet again blocks after 5 failures. Other failures block
//     after 30 in a row, or after 4 hours of them.
//   - The planner skips a paused scope. It skips what is blocked until an operator retries it.
//   - While no policy requires anything, the planner calls no store.
//
// # What it must not know
//
// Which tables there are, and what their changes were: the planner lists what is due.
package planner
