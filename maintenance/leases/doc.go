// Package leases grants leases on tables to jobs outside the server, such as a compaction by Spark.
// A lease informs others that a job works on the table. It prevents no commit.
//
// All leases of a table are in one record. To take, renew or release a lease is a conditional write
// of that record. So nodes have nothing to copy and nothing to warm up:
//
//	free ─ take ─► held, until T+ttl ─ renew ─► held, until T'+ttl ─ release ─► free
//	                     │ holder silent until T+ttl
//	                     └── take, by another holder, with a greater token ──► theirs
//
// # What it promises
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
// # What it must not know
//
// HTTP, names of tables, or what a holder does.
package leases
