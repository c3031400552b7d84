// Package work gives pieces of maintenance to programs outside the server, such as engines that
// compact tables.
//
// A table is due by a record of the due index, which other packages write. A program claims what is
// due, and gets the table, the settings and a lease. While it works it reports its progress, which
// renews the lease, and in the end the outcome.
//
//	due ── Claim ──► CLAIMED ── Finish ──► gone, a run in its place; care has the outcome
//	 ▲                  │
//	 └── the lease has ended: the next Claim of any caller finds that, and it counts as a failure
//
// # What it promises
//
//   - A piece of work has one owner: job, lease, care and due record change in one Apply.
//   - A program that was paused past its lease cannot commit with it, nor end another program's
//     job.
//   - A caller that claims work has the privilege to write to the table, and at most callerMax
//     pieces at a time.
//   - Tables that a caller cannot write to do not hide tables that it can.
//   - Work that no policy requires is no longer due, unless a policy that requires it was set since
//     the read.
//   - After jobs.TriesMax failures in a row the kind is blocked on the table until an operator
//     retries it.
//
// # What it must not know
//
// When a table becomes due, and HTTP. It deletes no file.
package work
