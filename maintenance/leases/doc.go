// Package leases grants leases on tables to programs outside the server, such as a compaction by
// Spark, and assigns maintenance that is due to them. A lease informs others that a program works
// on the table. It prevents no commit.
//
// All leases of a table are in one record. To take, renew or release a lease is a conditional write
// of that record. So nodes have nothing to copy and nothing to warm up:
//
//	free ─ take ─► held, until T+ttl ─ renew ─► held, until T'+ttl ─ release ─► free
//	                     │ holder silent until T+ttl
//	                     └── take, by another holder, with a greater token ──► theirs
//
// # What leases promise
//
//   - Each token is granted once: it is one more than the last token in the record, which the same
//     write updates. The record stays when all leases have ended, and a crash cannot take a token
//     back.
//   - A change that names a lease (catalog.Catalog.Under) happens only while the record is as the
//     holder's lease left it. A holder that slept past its end changes nothing.
//   - Times are by the store's clock. The end of a lease causes no write; the next write of the
//     record removes the lease.
//   - A lease works only for the caller that took it. A caller with the privilege "operate" may
//     also release it. Without access control all callers are the same.
//
// # Assignments
//
// A table is due by a record of the due index, which package due writes. A program gets an
// assignment for what is due: the table, the settings and a lease. While it works it reports its
// progress, which renews the lease, and in the end the outcome.
//
//	due ── Assign ──► ASSIGNED ── Finish ──► gone, a run in its place
//	 ▲                   │
//	 └── the lease has ended: the next Assign of any caller finds that, and it counts as a failure
//
// # What assignments promise
//
//   - An assignment has one holder: job, lease, schedule and due record change in one Apply.
//   - A program that was paused past its lease cannot commit with it, nor end another program's
//     job.
//   - The caller has the privilege to write to the table, and at most callerMax assignments at a
//     time.
//   - Tables that a caller cannot write to do not hide tables that it can.
//   - Work that no policy requires is no longer due, unless a policy that requires it was set since
//     the read.
//   - After jobs.TriesMax failures in a row the kind is blocked on the table until an operator
//     retries it.
//
// # What it must not know
//
// HTTP, what a holder does, and when a table becomes due. It deletes no file.
package leases
