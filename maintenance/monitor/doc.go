// Package monitor follows the changes of a store, and makes tables due for maintenance. Only the
// monitor reads the log to find due tables: planners list what is due.
//
//	commit ─ change{facts} ─► monitor ─► care and due index, in one Apply with its own position
//	policy ─ change ────────► begins a walk over the tables of its scope
//	walk ─ live documents ──► care and due index, in one Apply with how far it came
//
// # What it promises
//
//   - Each change in the log makes its table due, if a policy requires that: before the position
//     moves past the change, or together with it.
//   - One node follows at a time. The claim selects the node, and the position's ETag enforces it.
//   - While no policy requires anything, the monitor calls no store.
//   - If changes were deleted before the monitor read them, it walks over all tables.
//   - A table that does not change costs nothing. A table whose due time does not change costs no
//     write.
//
// # What it must not know
//
// How jobs do their work, and when a due table is checked.
package monitor
