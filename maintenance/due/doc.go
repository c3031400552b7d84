// Package due determines which tables are due for maintenance, and why. It reads the changes of a
// store, checks the tables that are due, and begins jobs on them. It also shows operators the state
// of maintenance.
//
// Package maintenance/policy decides when a commit makes a table due (due.go there). check.go
// checks a due table: it decides whether a job begins, and when the table is checked next. After a
// failed check, settle.go decides when the table is checked again.
//
//	commit ─ change{summary} ─► Monitor ─► schedule and due index, in one Apply with its own position
//	policy ─ change ──────────► begins a walk over the tables of its scope
//	walk ─ live documents ────► schedule and due index, in one Apply with how far it came
//
//	due index ─► Planner: check of the live table ─► job, or another time, or nothing, or a blocker
//
//	operator ─► Control: status, pauses, checks that must happen now, jobs by hand
//
// # The schedule
//
// The schedule of a table is one record with its state for each kind of job. The due index has all
// due times in order.
//
//	schedule   {pointer}                            due times, bases and outcomes, by kind
//	due        {shard}/{seconds}/{pointer}/{kind}   empty: the key has everything
//	due        blocked/{pointer}/{kind}             the kind is blocked on the table, and why
//
// These records promise:
//
//   - The schedule and the index agree: Move writes both in one Apply, which requires an unchanged
//     schedule.
//   - For each kind of job, a table has at most one due time. Evaluate only ever moves a due time
//     to an earlier one. So once its due time is set, commits to a table cause no further writes.
//   - A blocked kind does not become due until an operator unblocks it.
//
// # What the monitor promises
//
//   - If a policy requires maintenance, each change in the log makes its table due. That happens no
//     later than when the monitor's position moves past the change.
//   - One node at a time follows the log. An assignment selects the node. Each Apply of the node
//     requires the ETag of the position's record, so a second node cannot interfere.
//   - If changes were deleted before the monitor read them, the monitor walks over all tables.
//   - A table that does not change costs nothing. A table whose due time does not change costs no
//     write.
//
// # What the planner promises
//
//   - The planner's decisions are based on the table's present version and the present policies.
//     The Apply that begins a job fails if the policies or the table's schedule have changed since
//     the planner read them. The Apply that records "held", "off" or "no snapshot expires" fails if
//     the policies or the table's version have changed.
//   - Each check ends as done, nothing, later, blocked, held or off. The Apply that records the
//     outcome removes the due record. Held means that the table forbids the job. Off means that no
//     policy requires the job any more. If the node already runs as many checks as it may, or the
//     table changes during the check, the table stays due.
//   - Failures that would recur in the next check block the kind on the table after 5 failures.
//     Other failures block it after 30 in a row, or after 4 hours.
//   - The planner skips tables in a paused scope. It skips a blocked kind until an operator retries
//     it.
//   - The index has 16 shards. The nodes share them: each node takes free shards, and gives them
//     back after a while.
//
// While no policy requires anything, neither the monitor nor the planner calls a store.
//
// # What the control promises
//
//   - A caller needs the privilege on the scope that package catalog/gate requires.
//   - The state of a table comes from the same rules and records that the planner uses.
//   - A requested check follows the policies. A job that an operator begins has its own settings.
//     Pauses apply to both.
//
// # What it must not know
//
// It does not know about HTTP, or how jobs do their work.
package due
