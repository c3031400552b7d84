// Package leases grants leases on tables to programs outside the server, such as a compaction by
// Spark. It also assigns due maintenance to such programs. A lease informs others that a program
// works on the table. It prevents no commit.
//
// All leases of a table are in one record. Taking, renewing or releasing a lease is a conditional
// write of that record. So nodes have no state to copy and no cache to fill:
//
//	free ─ take ─► held, until T+ttl ─ renew ─► held, until T'+ttl ─ release ─► free
//	                     │ holder silent until T+ttl
//	                     └── take, by another holder, with a greater token ──► theirs
//
// # What leases promise
//
//   - Each token is granted once. It is one greater than the last token in the record, and the
//     write that grants it updates the record. The record stays after all leases have ended, so no
//     token is granted twice, even after a crash.
//   - A change that names a lease (catalog.Catalog.Under) requires that the holder's lease in the
//     record is unchanged. So a holder that slept past the end of its lease cannot change anything.
//   - Times are by the store's clock. The end of a lease causes no write. The next write of the
//     record removes the ended lease.
//   - A lease works only for the caller that took it. A caller with the privilege "operate" may
//     also release it. Without access control, all callers count as the same.
//
// # Assignments
//
// A table is due if the due index has a record of it, which package due writes. A program gets an
// assignment for due work: the table, the settings and a lease. While it works, it reports its
// progress, which renews the lease. At the end, it reports the outcome.
//
//	due ── Assign ──► ASSIGNED ── Finish ──► gone, a run in its place
//	 ▲                   │
//	 └── the lease has ended: the next Assign of any caller finds that, and it counts as a failure
//
// # What assignments promise
//
//   - An assignment has one holder: a single Apply changes the job, the lease, the schedule and the
//     due record.
//   - If a program was paused until its lease ended, it can neither commit with the lease nor end
//     the job of another program.
//   - The caller that gets an assignment has the privilege to write to the table. A caller has at
//     most callerMax assignments at a time.
//   - A caller gets the due tables that it may write to, even if it may not write to most of the
//     others.
//   - Work that no policy requires stops being due. If a policy that requires it was set after the
//     policies were read, the work stays due.
//   - After jobs.TriesMax failures in a row, the kind is blocked on the table until an operator
//     retries it.
//
// # What it must not know
//
// It does not know about HTTP, what a holder does, or when a table becomes due. It deletes no file.
package leases
