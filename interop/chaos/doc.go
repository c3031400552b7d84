// Package chaos lets engines write tables while maintenance deletes everything as early as it can,
// and the nodes that do that are killed.
//
// Three nodes run over PostgreSQL. A policy of the server lets snapshots expire at age 0, and their
// files go at once; orphans go after some seconds. A script that the seed decides kills nodes with
// SIGKILL, starts them again, and takes claims away as if their time were over. Writers change
// tables: they append, delete, overwrite, write to branches, publish these, roll back to tags. All
// the time these must hold:
//
//   - a table has exactly the rows that its writers were acknowledged, as another engine than the
//     one that wrote reads them: none is lost, none comes back;
//   - every file that a snapshot of a table reaches is there: lists, manifests, data, deletes and
//     statistics, and the metadata files that the log names.
//
// In the end all else is gone from the folders of the tables, `moorage check` finds nothing, and no
// job is blocked.
//
// The test is `go test ./interop/chaos`, with iceberg-go as both engines. -duration is how long
// they write (18 s), -engines names two of iceberg-go, pyiceberg, spark, trino and duckdb, which
// `make maintenance-chaos` installs. -seed repeats the choices. MOORAGE_BINARY names a binary to
// use instead of building one.
package chaos
