// Package chaos lets engines write tables while maintenance deletes files as early as possible.
// Meanwhile it kills the nodes that run the maintenance.
//
// Three nodes run over PostgreSQL. A policy of the server lets snapshots expire at age 0.
// Maintenance deletes their files at once, and orphans after some seconds. A script, which the seed
// determines, kills nodes with SIGKILL and starts them again. It also removes the nodes' claims on
// jobs, as if they had expired. Writers change tables: they append, delete, merge, overwrite,
// compact, write to branches, publish branches, and roll back to tags. At any time these must hold:
//
//   - a table has exactly the rows of the acknowledged changes: no row is lost, and no deleted row
//     comes back. An engine other than the one that wrote the rows reads them;
//   - every file that a snapshot of a table reaches exists: manifest lists, manifests, data,
//     deletes and statistics. So do the metadata files that the metadata log names;
//   - no job is blocked.
//
// At the end, the tables' folders contain no other files, and `moorage doctor --deep` finds
// nothing.
//
// # What a writer knows
//
// A change without an answer may have happened. The writer keeps both possible contents of the
// table until a later change is acknowledged and a read shows which one is right. This is valid
// only if the change cannot still happen after that. So a writer waits for the engine's answer:
// engines retry for a minute, on the table's current version. Waiting also meets the condition of
// orphan removal: no writer takes longer than the age at which orphans are removed. A run is
// aborted without a result if an engine does not answer in time, or if an engine's process ends.
//
// # Running it
//
// The test is `go test ./interop/chaos`, with iceberg-go as both engines. -duration sets how long
// the engines write (18 s). -engines names two of iceberg-go, pyiceberg, spark, trino, duckdb and
// flink, which `make maintenance-chaos` installs. -seed repeats the random choices of a run.
// MOORAGE_BINARY names a binary to test instead of a new build. With -artifacts the test keeps the
// journal of all changes and reads, and the logs of nodes and engines. If the test fails, it always
// keeps the tables. An engine in a separate process needs seconds for a change. With such an
// engine, orphans are removed only at the age of five minutes, and a run takes five minutes longer.
package chaos
