// Package leases grants leases on tables to programs outside the server, such as a compaction by
// Spark. It also assigns due maintenance to such programs. A lease informs others that a program
// works on the table. It prevents no commit.
//
// All leases of a table are in one record. To take, renew or release a lease is a conditional write
// of that record. So nodes have no state to copy and no cache to fill:
//
//	free ─ take ─► held, until T+ttl ─ renew ─► held, until T'+ttl ─ release ─► free
//	                     │ holder silent until T+ttl
//	                     └── take, by another holder, with a greater token ──► theirs
//
// # What leases promise
//
//   - Each token is granted once. It is one more than the last token in the record, and the write
//     that grants it updates the record. The record stays when all leases have ended, so a token is
//     not granted again after a crash.
//   - A change that names a lease (catalog.Catalog.Under) requires that the holder's lease in the
//     record is unchanged. So a holder that slept past the end of its lease changes nothing.
//   - Times are by the store's clock. The end of a lease causes no write. The next write of the
//     record removes the ended lease.
//   - A lease works only for the caller that took it. A caller with the privilege "operate" may
//     also release it. Without access control all callers are the same.
//
// # Assignments
//
// A table is due if the due index has a record of it, which package due writes. A program gets an
// assignment for due work: the table, the settings and a lease. While it works, it reports its
// progress, which renews the lease. In the end it reports the outcome.
//
//	due ── Assign ──► ASSIGNED ── Finish ──► gone, a run in its place
//	 ▲                   │
//	 └── the lease has ended: the next Assign of any caller finds that, and it counts as a failure
//
// # What assignments promise
//
//   - An assignment has one holder: one Apply changes job, lease, schedule and due record together.
//   - If a program was paused until its lease ended, it cannot commit with the lease, nor end the
//     job of another program.
//   - The caller of an assignment has the privilege to write to the table. It has at most callerMax
//     assignments at a time.
//   - If many due tables are not writable for a caller, it still gets the due tables that are.
//   - Work that no policy requires becomes no longer due. If a policy that requires it was set
//     since the policies were read, it stays due.
//   - After jobs.TriesMax failures in a row the kind is blocked on the table until an operator
//     retries it.
//
// # What it must not know
//
// It does not know HTTP, what a holder does, or when a table becomes due. It deletes no file.
package leases
