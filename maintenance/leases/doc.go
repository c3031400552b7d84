// Package leases gives out leases on tables to jobs outside the server, such as a compaction by
// Spark. A lease tells others that somebody works on the table. It keeps nobody from committing.
//
// All leases of a table are in one record. To take, renew or release one is a conditional write of
// that record, so there is nothing to copy between nodes and nothing to warm up:
//
//	free ─ take ─► held, until T+ttl ─ renew ─► held, until T'+ttl ─ release ─► free
//	                     │ holder silent until T+ttl
//	                     └── take, by another holder, with a greater token ──► theirs
//
// # What it promises
//
//   - A token is given out once: each is one more than the last in the record, which is written
//     with it. The record stays when all leases have ended, and a crash cannot take a token back.
//   - A change that names a lease (catalog.Catalog.Under) happens only while the record is as the
//     holder's lease left it. A holder that slept past its end changes nothing.
//   - Times are by the store's clock. Nothing happens when a lease ends; the next write of the
//     record leaves it out.
//   - A lease works only for the caller that took it. Who has the privilege "operate" may release
//     it too. Without access control all are the same caller.
//
// # What it must not know
//
// HTTP, names of tables, or what a holder does.
package leases
