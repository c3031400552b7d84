// Package postgres is the store of many nodes: it keeps the records in a PostgreSQL database that all
// of them share, and no state of its own.
//
// # Apply
//
// An Apply is one implicit transaction, sent as one pipeline with one sync:
//
//	lock    the rows of all keys, in the order of tables and keys: FOR UPDATE if the batch
//	        writes them, FOR SHARE if it only asks for them
//	guard   a division by zero unless all conditions hold
//	insert  the rows that are not there
//	change  the change record, with the versions that the batch finds
//	write   the updates and deletes
//
// When the guard fails, the rows of the first step, which the server sent before, say which condition it was. If rows were
// missing they may not: one may have come between two steps. Then the records are read again, as of one moment. An insert
// that meets a row (a unique violation) means that the row appeared after the first step: the Apply is
// sent again and now finds it, so that Absent fails by name. Serialization failures and deadlocks are sent again too, a bounded
// number of times, behind short random waits. READ COMMITTED is enough, because every row that a condition asks for
// is locked or written, and a row that has come since the first step is locked where it is looked at; a delete of a key
// that may be missing first makes the row, because a missing one cannot be held. Under SERIALIZABLE the same statements are
// correct as well.
//
// # Unknown outcomes
//
// The server has answered an error of severity ERROR: nothing happened, except for SQLSTATE 40003 and class 08, by which a
// proxy says that it has lost its server. A FATAL, a warning while the transaction was committed (a synchronous standby
// that was not waited for), or a connection lost after the first byte was sent: ErrUnknown. Errors are told
// apart by SQLSTATE and severity, never by text, and never by what the driver holds for safe to repeat.
//
// # Changes
//
// A row that all commits update to draw a number would make them wait for each other. So a change is written without a
// number, and whoever reads changes first numbers those that have none: it reads the oldest of them, up to a bound, with
// whatever they depend on, sorts them by the versions that each found and made, and publishes their numbers together with
// the head, if the head is still as it was read; two that do so at once are harmless. What a change depends on was
// committed before it and is therefore seen whenever it is seen itself. Lives of one key, which no version connects, stand
// in the order of the server's clock, read while the key is held.
//
// # Sessions
//
// A new connection is told, by SET, to report warnings and to use indexes: a plan that was made when a table was small
// would read all of it when it has grown. Behind a proxy that pools transactions such a setting may not hold; then
// make it one of the role (ALTER ROLE … SET enable_seqscan = off). Such a proxy must also keep prepared statements (PgBouncer
// from 1.21 on with max_prepared_statements), or the connection string must say default_query_exec_mode=exec or cache_describe, in which no
// statement outlives its transaction: every parameter has a cast, so nothing has to be described first.
//
// # Leases
//
// Leases is another store, in tables of its own: who of the nodes may work on what, which nothing here relies on. It has
// its own few connections, and does not wait for the disk.
//
// # What is used
//
// Plain tables with primary keys, partial indexes, FOR UPDATE, FOR SHARE, INSERT, UPDATE and DELETE
// over unnest, arrays; no function of our own, no trigger, no data-modifying CTE, no ON CONFLICT, no
// advisory lock, no transaction id. Leases also use DELETE with USING, clock_timestamp, and BEGIN with an isolation level in a pipeline.
package postgres
