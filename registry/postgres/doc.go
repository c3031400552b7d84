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
// When the guard fails, the rows of the first step, which the server sent before, say which condition it
// was. An insert that meets a row (a unique violation) means that the row appeared after the
// first step: the Apply is sent again and now finds it, so that Absent fails by name.
// Serialization failures and deadlocks are sent again too, a bounded number of times.
// READ COMMITTED is enough, because every row that a condition asks for is locked or written;
// under SERIALIZABLE the same statements are correct as well.
//
// # Unknown outcomes
//
// The server has answered an error of severity ERROR: nothing happened, except for SQLSTATE 40003. A
// FATAL, a warning while the transaction was committed (a synchronous standby that was not waited
// for), or a connection lost after the first byte was sent: ErrUnknown. Errors are told
// apart by SQLSTATE and severity, never by text.
//
// # Changes
//
// A row that all commits update to draw a number would make them wait for each other. So a change is
// written without a number, and whoever reads changes first numbers those that have none: it
// reads them all, sorts them by the versions that each found and made, and publishes their numbers
// together with the head, if the head is still as it was read; two that do so at once are
// harmless. What a change depends on was committed before it and is therefore seen whenever it
// is seen itself.
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
// advisory lock, no transaction id. Leases also use DELETE with USING, clock_timestamp, and BEGIN with an isolation level in a pipeline. Behind a proxy that pools transactions, use a proxy that
// keeps prepared statements, or add default_query_exec_mode=exec to the connection string: every
// parameter has a cast, so nothing has to be described first.
package postgres
