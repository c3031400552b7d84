// Package postgres is the store for several nodes. It keeps the records in a PostgreSQL database
// that all nodes share, and keeps no records in the process.
//
// # Apply
//
// An Apply is one implicit transaction, sent as one pipeline with one sync. A commit, like any
// other Apply that only replaces known versions, has a short form of a few statements (move). While
// several of these are in progress, further commits and such Applies wait, and are then sent
// together (joiner). All other Applies have the long form:
//
//	lock    the rows of all keys, in the order of tables and keys: FOR UPDATE if the batch
//	        writes them, FOR SHARE if it only requires them
//	guard   a division by zero unless all conditions hold
//	insert  the rows that do not exist
//	change  the change record, while the batch holds all of its rows
//	write   the updates and deletes
//
// When the guard fails, the rows that the first step returned show which condition failed. If rows
// were missing, the condition may remain unknown, because a row may have appeared between two
// steps. In that case the records are read again, as of one moment.
//
// An insert that meets an existing row (a unique violation) means that the row appeared after the
// first step. The Apply is sent again. It now finds the row, so it can return the failed condition.
// Serialization failures and deadlocks are also sent again, a bounded number of times, after short
// random waits.
//
// READ COMMITTED is enough, because every row that a condition requires is locked or written. A row
// that appeared after the first step is locked when the Apply reads it. A delete of a key that may
// be missing first inserts the row, because a missing row cannot be locked. The same statements are
// also correct under SERIALIZABLE.
//
// # Reads
//
// Get is one statement. While one such statement is in progress, further calls wait for it to end,
// and then share the next statement. So a busy node sends one statement for many calls. If many
// clients load the same table, one read serves all of them. A statement begins after every call
// that it answers, so no call gets an older state. If a statement takes longer than 20 ms, the next
// statement does not wait for it. If a statement fails, all calls that it answers fail.
//
// # Connections
//
// Calls that write and calls that only read have separate connections, so that reads do not wait
// for commits that the server holds up. A call that writes first waits for a slot, and there is one
// slot for each connection that writes (slots). If the context of an Apply ends, the call returns
// ErrUnknown at once, and the Apply continues in the background. Its connection and slot stay taken
// until the server has answered, or no longer works on the Apply (write). An Apply is never
// cancelled (uncancelled). So a node's connections bound the server processes that work for it.
// Reads are cancelled when their callers give up, and their sessions have a statement_timeout.
// Behind a proxy each read sets that timeout for its own transaction.
//
// # Unknown outcomes
//
// If the server has answered with severity ERROR, nothing happened. The exceptions are SQLSTATE
// 40003 and class 08, with which a proxy reports that it has lost its server. These outcomes are
// ErrUnknown:
//
//   - an error with severity FATAL;
//   - a warning after the end of the last statement, and so during the commit (the server did not
//     wait for a synchronous standby);
//   - the caller gave up;
//   - the connection was lost after the first byte was sent.
//
// Warnings in statements do not concern the commit. This package distinguishes errors by SQLSTATE
// and severity. It relies neither on their text nor on the driver's judgement of what is safe to
// repeat.
//
// After such a warning, and after a restart of the server during a commit, reads may see rows that
// the standby does not have. An Apply that writes nothing locks the rows that it requires. The
// server writes these locks to its log. Before it answers the Apply, the standby must have the
// locks and everything that was logged before them.
//
// # Changes
//
// If all commits updated one row to draw a number, they would wait for each other. So a change is
// written without a place, and gets one in a later step. Each node runs such steps in the
// background, and a reader runs such a step when it finds changes without a place. A step locks the
// row of the head, which has the last assigned place. Then it gives the next places to a bounded
// number of the first waiting changes, in the order of their sequence numbers.
//
// A batch draws its sequence number while it holds all of its rows. Every change that it saw was
// committed earlier, and so has a smaller number. This holds even if the server's clock was set
// back in between, or another server took over. A reader that sees a change also sees the changes
// on which it depends. So the first visible changes can always be given places. Concurrent steps
// exclude each other by the row of the head.
//
// # Sessions
//
// Each new connection makes the server report warnings and use indexes. Otherwise a plan that was
// made when a table was small would still read the whole table when it has grown. A connection that
// only reads also sets a timeout for its statements. On the store's connections the server plans a
// statement only once, because for arrays of unknown length planning takes longer than the
// execution. Nothing else outlives a transaction, except prepared statements.
//
// # Proxies
//
// Behind a proxy that pools transactions (PgBouncer, pool_mode=transaction) each transaction may
// use another connection of the server. An Apply is one pipeline with one sync, and so is a call
// for leases, so the proxy splits neither. The right configuration depends on how the proxy treats
// prepared statements:
//
//	keeps them   PgBouncer from 1.21 on with max_prepared_statements > 0: nothing to do.
//	             Statements keep their plans, so execute
//	             ALTER ROLE … SET enable_seqscan = off; Warnings reports if that is missing.
//	drops them   older versions (Debian 12 has 1.18): the connection string must set
//	             default_query_exec_mode=exec or cache_describe. Then no statement outlives
//	             its transaction. Every parameter has a cast, so that the server need not
//	             describe the statement first.
//
// The store recognises a proxy because the process id of a connection, which the proxy assigns, is
// not the process id that the server reports. Behind a proxy the store does not SET anything,
// because the setting would hold for the next client of that connection. The server must report
// warnings on its own, as it does by default. Open checks whether the proxy mixes up prepared
// statements. If so, it returns ErrPooling. If a later call finds that statements are mixed up, it
// also fails with ErrPooling, and has changed nothing. PgBouncer refuses settings in the connection
// string, such as search_path: set them on the role. Errors of the proxy itself (class 08, FATAL)
// are unknown outcomes, like such errors of the server, because the proxy does not report what it
// has sent.
//
// The proxy must connect to the primary only. The store checks whether the server accepts writes,
// but only on the one connection that happens to answer. If the proxy also connected to a standby,
// some reads would go to that standby. The proxy should also give up soon on queries that it cannot
// forward (query_wait_timeout, 120 s by default). Otherwise only the caller's context ends them.
//
// # Leases
//
// Leases is a separate store, in its own tables: it records which node may work on which path. The
// store of records does not rely on it. Leases has its own few connections, and its commits do not
// wait for the disk.
//
// # Features of PostgreSQL in use
//
// The store uses plain tables with primary keys, partial indexes, FOR UPDATE, FOR SHARE, INSERT,
// UPDATE and DELETE over unnest, UPDATE with RETURNING, arrays, and a sequence. It uses no
// functions or triggers of its own, no data-modifying CTEs, no ON CONFLICT, no advisory locks, and
// no transaction IDs. Leases also use DELETE with USING, clock_timestamp, and BEGIN with an
// isolation level in a pipeline. Migrate also uses SKIP LOCKED, LOCK TABLE, and CREATE and DROP
// INDEX CONCURRENTLY.
package postgres
