// Package jobs carries out maintenance that takes several steps: it expires snapshots and deletes
// the files that become unreachable, and it finds and deletes orphans. It also reports the files of
// a warehouse outside all tables (Leftovers), without a job.
//
// A job is a record, so it outlives the process that began it. A table has at most one job of each
// kind. docs/design/jobs.md draws the life of a job, and Moves has its states (life.go).
//
// A job of snapshots begins in expire.go, one of orphans in orphans.go: there it gets the time
// before which it deletes nothing. step.go carries jobs on, and begins to delete at that time.
// delete.go deletes a batch.
//
// # What it promises
//
//   - A file that a version of the table reaches is never deleted. A job deletes only files that
//     the document it read does not reach. Before each batch it checks that no newer document
//     reaches them. Tables elsewhere that name files here are not checked.
//   - Files outside the claims of the table are never deleted. A job never deletes metadata files;
//     TrimFormer, which is not a job, deletes those that left the metadata log long ago.
//   - If the hash or the length of a list differs from the job's record, no file in it is deleted.
//   - This process or another one may repeat each step from its beginning.
//   - No file is deleted before its time, or while the scope is paused. Until then a cancel keeps
//     all files.
//   - While the table is dropped its jobs pause. They continue if it is restored. A purge takes
//     over the files that they have yet to delete (Promise).
//
// # What it must not know
//
// It does not decide when a table is due, and knows neither policies nor HTTP.
package jobs
