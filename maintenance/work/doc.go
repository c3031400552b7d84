// Package work hands out pieces of maintenance to programs outside the server, such as engines that
// compact tables.
//
// A table is due by a record of the due index, which somebody else writes. A program claims what is
// due, and gets the table, the settings and a lease. It tells of its progress while it works, which
// renews the lease, and how the work ended.
//
//	due ── Claim ──► CLAIMED ── Finish ──► gone, a run in its place; care has the outcome
//	 ▲                  │
//	 └── the lease has ended: the next Claim of anybody finds that, and it counts as a failure
//
// # What it promises
//
//   - A piece of work is in one pair of hands: job, lease, care and due record change in one Apply.
//   - A program that was paused past its lease cannot commit with it, nor end the job of another.
//   - Who claims has the privilege to write to the table, and at most callerMax pieces at a time.
//   - Tables that a caller cannot write to do not hide those that it can.
//   - What nobody asks for is not due any more; not if somebody has asked since that was read.
//   - After schedule.TriesMax failures in a row the kind is blocked on the table until an operator
//     looks.
//
// # What it must not know
//
// It decides nothing about when a table is due, and knows nothing of HTTP. It deletes no file.
package work
