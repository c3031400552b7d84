// Package chaos lets engines write tables while maintenance deletes everything as early as it can,
// and the nodes that do that are killed.
//
// Three nodes run over PostgreSQL. A policy of the server lets snapshots expire at age 0, and their
// files go at once; orphans go after some seconds. A script that the seed decides kills nodes with
// SIGKILL, starts them again, and takes claims away as if their time were over. Writers change
// tables: they append, delete, merge, overwrite, compact, write to branches, publish these, roll
// back to tags. All the time these must hold:
//
//   - a table has exactly the rows that its writers were acknowledged, as another engine than the
//     one that wrote reads them: none is lost, none comes back;
//   - every file that a snapshot of a table reaches is there: lists, manifests, data, deletes and
//     statistics, and the metadata files that the log names;
//   - no job is blocked.
//
// In the end all else is gone from the folders of the tables, and `moorage doctor --deep` finds
// nothing.
//
// # What a writer knows
//
// A change without an answer may have happened. The writer keeps both contents until a later
// change is acknowledged and a read says which it was. That holds if nothing happens later still,
// so a writer waits for the engine's answer: engines try again for a minute, on whatever the table
// is by then. It also keeps the promise that orphan removal asks for, that no writer takes longer
// than a file has to be old. An engine that does not answer in time ends the run, and so does one
// whose process ends: such a run shows nothing.
//
// # Running it
//
// The test is `go test ./interop/chaos`, with iceberg-go as both engines. -duration is how long
// they write (18 s), -engines names two of iceberg-go, pyiceberg, spark, trino, duckdb and flink,
// which `make maintenance-chaos` installs. -seed repeats the choices. MOORAGE_BINARY names a binary
// to use instead of building one. With -artifacts the journal of all changes and reads stays, and
// the logs of nodes and engines; the tables stay in any case if the test fails. An engine in a
// process of its own makes changes in seconds, so orphans are five minutes old then, and a run
// lasts as long again.
package chaos
