// Package jobs carries out maintenance that takes several steps: it expires snapshots and deletes
// the files that become unreachable, and it finds and deletes orphans. Leftovers, which needs no
// job, reports the files of a warehouse outside all tables.
//
// A job is a record, so it outlives the process that began it. A table has at most one job of each
// kind. docs/design/jobs.md draws the life of a job; Moves in life.go lists its states.
//
// expire.go begins jobs that expire snapshots, and orphans.go begins jobs that remove orphans. Each
// job has a time before which it deletes nothing. step.go continues a job, and starts the deletions
// at that time. delete.go deletes a batch. Right before that, check.go decides which files of the
// batch may go.
//
// # What it promises
//
//   - A file that a version of the table reaches is never deleted. A job deletes only files that
//     are not reached from the document that it read. Before each batch, it checks that they are
//     not reached from a newer document. It does not check whether tables elsewhere refer to files
//     in the locations of this table.
//   - Files outside the claims of the table are never deleted. Jobs never delete metadata files.
//     TrimFormer, which needs no job, deletes metadata files that left the metadata log long ago.
//   - A job's record holds the hash and the length of each of the job's lists of files. If a list
//     does not match, none of its files is deleted.
//   - This process or another one may repeat each step from its beginning.
//   - No file is deleted before the job's time, or while the scope is paused. A job that is
//     cancelled before its time deletes nothing.
//   - While the table is dropped, its jobs pause. They continue if the table is restored. A purge
//     of the table takes over the deletion of the jobs' remaining files (Promise).
//
// # What it must not know
//
// It does not decide when a table is due, and does not know about policies or HTTP.
package jobs
