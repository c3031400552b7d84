// Package jobs carries out maintenance that takes more than one step: it expires snapshots and
// deletes the files that nobody reaches any more, and it finds and deletes orphans. Of a warehouse
// it reports what lies outside of all tables (Leftovers), for which there is no job.
//
// A job is a record, so it outlives the process that began it. There is one of a kind on a table at
// most.
//
//	 expire: one Apply moves the table and makes the record
//	 orphans: the record alone
//	     │
//	     ▼
//	COLLECTING ── what goes is in lists ──► WAITING ── its time has come ──► DELETING ──► gone
//	     │                                     │                                 │
//	     └───────── BLOCKED: an operator looks, and retries or cancels ◄─────────┘
//
// # What it promises
//
//   - A file that a version of the table reaches is never deleted. What is to go was not reached by
//     the document that the job looked at, and before each batch by no document since. A table
//     elsewhere that names files here is not asked.
//   - What lies outside the claims of the table is never deleted, nor does a job delete metadata
//     files. TrimFormer, which is no job, deletes those that left the metadata log long ago.
//   - If the hash or the length of a list differs from the job's record, nothing in it is deleted.
//   - Each step may be done again from its beginning: by this process, or by another one.
//   - Nothing is deleted before its time, nor while the scope is paused. Until then a cancel keeps
//     all files.
//   - While the table is dropped its jobs rest. They go on if it comes back, and a purge of it
//     takes over what they have yet to delete (Promise).
//
// # What it must not know
//
// It decides nothing about when a table is due, and knows neither policies nor HTTP.
package jobs
