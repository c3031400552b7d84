// Package postgres is the store of many nodes: it keeps the records in a PostgreSQL database that
// all of them share, and no state of its own.
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
// When the guard fails, the rows of the first step, which the server sent before, say which
// condition it was. If rows were missing they may not: one may have come between two steps. Then
// the records are read again, as of one moment. An insert that meets a row (a unique violation)
// means that the row appeared after the first step: the Apply is sent again and now finds it, so
// that Absent fails by name. Serialization failures and deadlocks are sent again too, a bounded
// number of times, behind short random waits. READ COMMITTED is enough, because every row that a
// condition asks for is locked or written, and a row that has come since the first step is locked
// where it is looked at; a delete of a key that may be missing first makes the row, because a
// missing one cannot be held. Under SERIALIZABLE the same statements are correct as well.
//
// # Reads
//
// Get is one statement. While two are under way, further calls wait for one of them to end and then
// share the next: what a busy node reads costs the server a statement for many calls, and a table
// that all clients load is read once for them. A statement begins after every call that it answers,
// so nobody is answered with what was before it asked. One that has no answer after 20 ms keeps
// none of those that wait from the next, and if it fails, all that it answers fail.
//
// # Connections
//
// Calls that write and calls that only read have connections of their own, so that reads do not
// wait for commits that the server holds up. Before the ones that write is a queue with as many
// slots (slots). An Apply whose context ends is unknown at once, and goes on by itself: its
// connection and its slot stay taken until the server has answered, or does not work on it any more
// (write). It is never cancelled (uncancelled). So the sum of a node's connections bounds the
// processes of the server that work for it. Reads are cancelled when their callers give up, and
// their sessions have a statement_timeout; behind a proxy each read sets that for its own
// transaction.
//
// # Unknown outcomes
//
// The server has answered an error of severity ERROR: nothing happened, except for SQLSTATE 40003
// and class 08, by which a proxy says that it has lost its server. A FATAL, a warning behind the
// end of the last statement, which is while the transaction was committed (a synchronous standby
// that was not waited for), a caller that gives up, or a connection lost after the first byte was
// sent: ErrUnknown. Warnings in statements say nothing of the commit. Errors are told apart by
// SQLSTATE and severity, never by text, and never by what the driver holds for safe to repeat.
//
// After such a warning, and when the server was started anew while a commit waited, reads see what
// the standby does not have. An Apply that writes nothing locks the rows that it asks for; the log
// says so, and the standby must have that, with all before it, until it is answered.
//
// # Changes
//
// A row that all commits update to draw a number would make them wait for each other. So a change
// is written without a place, and gets one in a step of its own. Each node runs such steps in the
// background, and a reader runs one when it meets changes without a place. A step locks the row of
// the head. Then it gives the next places to the first changes that wait, a bounded number of them,
// in the order of their sequence numbers.
//
// A batch draws its sequence number while it holds all of its rows. Whatever it saw was committed
// before, so that drew a smaller one, also if the server's clock was set back in between, or
// another server took over. And whatever a change depends on is seen whenever the change is seen.
// So a first part of what is seen can always be given places. Binaries from before the sequence go
// by the times of changes, and by the versions that each found and made. Both kinds of steps
// exclude each other by the row of the head.
//
// # Sessions
//
// A new connection is told, by SET, to report warnings and to use indexes: a plan that was made
// when a table was small would read all of it when it has grown. One that only reads is told to end
// what takes too long. Nothing else outlives a transaction but prepared statements.
//
// # Proxies
//
// Behind a proxy that pools transactions (PgBouncer, pool_mode=transaction) each transaction may
// meet another connection of the server. An Apply is one pipeline with one sync, and so is a call
// for leases, so that neither is cut in two. Which form works depends on what the proxy does with
// prepared statements:
//
//	keeps them   PgBouncer from 1.21 on with max_prepared_statements > 0: nothing to do. Statements keep their plans, so let the role have
//	             ALTER ROLE … SET enable_seqscan = off; Warnings tells if it has not.
//	drops them   older ones (Debian 12 has 1.18): the connection string must say default_query_exec_mode=exec or cache_describe. Then no
//	             statement outlives its transaction: every parameter has a cast, so that nothing has to be described first.
//
// A proxy is told by the process id that it gives to a connection, which is not the server's.
// Behind one, nothing is SET, because it would hold for whoever comes next; the server must report
// warnings by itself, as it does by default. Open looks whether statements get mixed up, and
// refuses with ErrPooling; a call that meets that later fails with it too, having changed nothing.
// Settings in the connection string, such as search_path, are refused by PgBouncer: make them the
// role's. Errors that the proxy makes itself (class 08, FATAL) are unknown outcomes like those of
// the server, because it does not tell what it has sent. It must lead to the primary only: that a
// server accepts writes is asked of the one connection that happens to answer, and a standby beside
// it would be read from. And it should give up soon what it cannot hand on (query_wait_timeout, 120
// s by default), which otherwise ends with the caller's context.
//
// # Leases
//
// Leases is another store, in tables of its own: who of the nodes may work on what, which nothing
// here relies on. It has its own few connections, and does not wait for the disk.
//
// # What is used
//
// Plain tables with primary keys, partial indexes, FOR UPDATE, FOR SHARE, INSERT, UPDATE and DELETE
// over unnest, arrays, a sequence; no function of our own, no trigger, no data-modifying CTE, no ON
// CONFLICT, no advisory lock, no transaction id. Leases also use DELETE with USING,
// clock_timestamp, and BEGIN with an isolation level in a pipeline.
package postgres
