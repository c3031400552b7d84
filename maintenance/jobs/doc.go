// Package jobs carries out maintenance that takes several steps: it expires snapshots and deletes
// the files that become unreachable, and it finds and deletes orphans. It also reports the files of
// a warehouse outside all tables (Leftovers), without a job.
//
// A job is a record, so it outlives the process that began it. A table has at most one job of each
// kind. docs/design/jobs.md draws the life of a job, and Moves has its states (life.go).
//
// Jobs of snapshots begin in expire.go, jobs of orphans in orphans.go. A job gets a time before
// which it deletes nothing. step.go carries jobs on, and begins to delete at that time. delete.go
// deletes a batch. Right before that, check.go decides which files of the batch may go.
//
// # What it promises
//
//   - A file that a version of the table reaches is never deleted. A job deletes only files that
//     the document it read does not reach. Before each batch it checks that no newer document
//     reaches them. It does not check whether tables elsewhere name files in the locations of this
//     table.
//   - Files outside the claims of the table are never deleted. Jobs never delete metadata files.
//     TrimFormer, which is not a job, deletes metadata files that left the metadata log long ago.
//   - A job's record has the hash and the length of each of its lists of files. If a list does not
//     match them, no file in it is deleted.
//   - This process or another one may repeat each step from its beginning.
//   - No file is deleted before the job's time, or while the scope is paused. Until that time, a
//     cancel keeps all files.
//   - While the table is dropped, its jobs pause. They continue if it is restored. A purge of the
//     table takes over the files that the jobs have yet to delete (Promise).
//
// # What it must not know
//
// It does not decide when a table is due, and knows neither policies nor HTTP.
package jobs
