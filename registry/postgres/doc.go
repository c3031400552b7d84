// Package postgres is the store of many nodes: it keeps the records in a PostgreSQL database that
// all of them share, and no state of its own.
//
// # Apply
//
// An Apply is one implicit transaction, sent as one pipeline with one sync. A commit, and each
// other Apply that only replaces versions it knows, has a short form of two statements or a few
// more (move). While several of these are under way, others wait and go together (joiner). All
// other Applies have the long form:
//
//	lock    the rows of all keys, in the order of tables and keys: FOR UPDATE if the batch
//	        writes them, FOR SHARE if it only asks for them
//	guard   a division by zero unless all conditions hold
//	insert  the rows that are not there
//	change  the change record, with the versions that the batch finds
//	write   the updates and deletes
//
// When the guard fails, the rows of the first step, which the server sent before, say which
// condition it was. They may not if rows were missing: one may have come between two steps. Then
// the records are read again, as of one moment.
//
// An insert that meets a row (a unique violation) means that the row appeared after the first step.
// The Apply is sent again and now finds it, so that Absent fails by name. Serialization failures
// and deadlocks are sent again too, a bounded number of times, after short random waits.
//
// READ COMMITTED is enough, because every row that a condition asks for is locked or written. A row
// that has come since the first step is locked where the Apply looks at it. A delete of a key that
// may be missing first makes the row, because a missing one cannot be held. Under SERIALIZABLE the
// same statements are correct as well.
//
// # Reads
//
// Get is one statement. While two are under way, further calls wait for one of them to end and then
// share the next. So the reads of a busy node cost the server a statement for many calls, and a
// table that all clients load is read once for them. A statement begins after every call that it
// answers, so nobody gets an answer from before the question. A statement without an answer after
// 20 ms does not hold up the next one. If a statement fails, all calls that it answers fail.
//
// # Connections
//
// Calls that write and calls that only read have connections of their own, so that reads do not
// wait for commits that the server holds up. A queue with as many slots stands before the
// connections that write (slots). An Apply whose context ends is unknown at once, and goes on by
// itself. Its connection and its slot stay taken until the server has answered, or does not work on
// it any more (write). It is never cancelled (uncancelled). So the sum of a node's connections
// bounds the processes of the server that work for it. Reads are cancelled when their callers give
// up, and their sessions have a statement_timeout. Behind a proxy each read sets that for its own
// transaction.
//
// # Unknown outcomes
//
// If the server has answered an error of severity ERROR, nothing happened. The exceptions are
// SQLSTATE 40003 and class 08, by which a proxy says that it has lost its server. These outcomes
// are ErrUnknown:
//
//   - a FATAL;
//   - a warning behind the end of the last statement, so while the transaction was committed (the
//     server did not wait for a synchronous standby);
//   - a caller that gives up;
//   - a connection lost after the first byte was sent.
//
// Warnings in statements say nothing about the commit. SQLSTATE and severity distinguish errors,
// never their text, and never the driver's opinion on what is safe to repeat.
//
// After such a warning, and when the server restarted while a commit waited, reads see what the
// standby does not have. An Apply that writes nothing locks the rows that it asks for. The server's
// log records that, and the standby must have it, with all before it, before the Apply is answered.
//
// # Changes
//
// A row that all commits update to draw a number would make them wait for each other. So a change
// is written without a place, and gets one in a step of its own. Each node runs such steps in the
// background, and a reader runs one when it meets changes without a place. A step locks the row of
// the head. Then it gives the next places to the first changes that wait, a bounded number of them,
// in the order of their sequence numbers.
//
// A batch draws its sequence number while it holds all of its rows. What it saw was committed
// before, so that drew a smaller number. This holds also if the server's clock was set back in
// between, or another server took over. A reader that sees a change also sees what the change
// depends on. So a first part of what is seen can always be given places. Binaries from before the
// sequence go by the times of changes, and by the versions that each found and made. Both kinds of
// steps exclude each other by the row of the head.
//
// # Sessions
//
// A new connection sets the server to report warnings and to use indexes: a plan that was made when
// a table was small would read all of it when it has grown. A connection that only reads sets the
// server to end what takes too long. Those of the store plan a statement only once: with
// arrays of unknown length a plan takes longer than what it is for. Nothing else outlives a
// transaction, except prepared statements.
//
// # Proxies
//
// Behind a proxy that pools transactions (PgBouncer, pool_mode=transaction) each transaction may
// meet another connection of the server. An Apply is one pipeline with one sync, and so is a call
// for leases, so the proxy cuts neither in two. Which form works depends on what the proxy does
// with prepared statements:
//
//	keeps them   PgBouncer from 1.21 on with max_prepared_statements > 0: nothing to do.
//	             Statements keep their plans, so let the role have
//	             ALTER ROLE … SET enable_seqscan = off; Warnings says so if it has not.
//	drops them   older ones (Debian 12 has 1.18): the connection string must say
//	             default_query_exec_mode=exec or cache_describe. Then no statement outlives
//	             its transaction: every parameter has a cast, so that nothing has to be
//	             described first.
//
// The store recognises a proxy by the process id that it gives to a connection, which is not the
// server's. Behind a proxy nothing is SET, because it would hold for the next client of that
// connection. The server must report warnings by itself, as it does by default. Open looks whether
// statements get mixed up, and refuses with ErrPooling. A call that meets that later fails with it
// too, having changed nothing. PgBouncer refuses settings in the connection string, such as
// search_path: make them the role's. Errors that the proxy makes itself (class 08, FATAL) are
// unknown outcomes like those of the server, because the proxy does not say what it has sent.
//
// The proxy must lead to the primary only. The store asks whether a server accepts writes only on
// the one connection that happens to answer. If a standby stood behind the proxy too, reads would
// go to it. The proxy should also give up soon what it cannot hand on (query_wait_timeout, 120 s by
// default). Otherwise that ends with the caller's context.
//
// # Leases
//
// Leases is another store, in tables of its own: which node may work on what. Nothing here relies
// on it. It has its own few connections, and does not wait for the disk.
//
// # What is used
//
// Plain tables with primary keys, partial indexes, FOR UPDATE, FOR SHARE, INSERT, UPDATE and DELETE
// over unnest, UPDATE with RETURNING, arrays, a sequence. There is no function of our own, no
// trigger, no data-modifying CTE, no ON CONFLICT, no advisory lock, no transaction id. Leases also
// use DELETE with USING, clock_timestamp, and BEGIN with an isolation level in a pipeline. Migrate
// also uses SKIP LOCKED, LOCK TABLE, and CREATE and DROP INDEX CONCURRENTLY.
package postgres
