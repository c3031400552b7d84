// Package monitor follows the changes of a store, and makes tables due for maintenance. Nobody else
// reads the log to find out which tables are due: planners list what is.
//
//	commit ─ change{facts} ─► monitor ─► care and due index, in one Apply with its own position
//	policy ─ change ────────► begins a walk over the tables of its scope
//	walk ─ live documents ──► care and due index, in one Apply with how far it came
//
// # What it promises
//
//   - Each change that the log shows makes its table due, if a policy asks for that: before the
//     position moves past it, or with it.
//   - One node follows at a time: the claim says which, and the position's ETag makes sure of it.
//   - While no policy asks for anything it calls no store.
//   - If changes were deleted that it had not read, all tables are walked over.
//   - A table that does not change costs nothing, and one whose time stands no write.
//
// # What it must not know
//
// How jobs do their work, and when a due table is looked at.
package monitor
