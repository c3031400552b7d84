package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrPooling says that a proxy between here and the server hands out the server's connections
// transaction by transaction, and does not keep the statements that are prepared on them. So no
// statement may be prepared.
var ErrPooling = errors.New("a proxy that pools transactions does not keep prepared statements: add " +
	"default_query_exec_mode=exec " +
	"to the connection string, or have them kept (max_prepared_statements of PgBouncer from 1.21 on)")

// errSilent says that warnings would not come.
var errSilent = errors.New("the server does not send its warnings, and settings do not last behind a proxy; " +
	"make it one of the role: ALTER ROLE … SET client_min_messages = notice")

// errNoResult says that the answering server is not PostgreSQL.
var errNoResult = errors.New("the server, or a proxy before it, does not answer a statement with its result")

// pooled is the key in a connection's custom data that marks a proxy before the server. Then
// settings and prepared statements may belong to others.
const pooled = "moorage pooled"

// prepareSession sets what the statements of this package need. The server must report a standby
// that it did not wait for. A statement that was planned when a table was small must not go on to
// read all of it when it has grown. Behind a proxy nothing is set, because it would hold for
// others, and not for the next transaction. There Warnings reports what is missing.
func prepareSession(ctx context.Context, conn *pgx.Conn) error {
	return prepareWith(ctx, conn, "")
}

// prepareCancelled is prepareSession for connections whose statements end on the server when nobody
// waits for them any more. The driver cancels them, or, if the node is gone, the server does by
// itself. They must not commit anything that waits for a standby (see uncancelled).
func prepareCancelled(ctx context.Context, conn *pgx.Conn) error {
	limit := fmt.Sprintf(", set_config('statement_timeout', '%d', false)", (readTimeout + serverGrace).Milliseconds())
	err := prepareWith(ctx, conn, limit)
	if err == nil && !behindProxy(conn) {
		allowCancel(conn.PgConn().Conn())
	}
	return err
}

// prepareReading is prepareCancelled for the connections of reads, with plans as in prepareWriting.
// Its statements go by keys too, or bring a plan of their own (planSQL).
func prepareReading(ctx context.Context, conn *pgx.Conn) error {
	if err := prepareCancelled(ctx, conn); err != nil || behindProxy(conn) {
		return err
	}
	return setPlanner(ctx, conn, planOnce)
}

// prepareWith is prepareSession with more columns that set something if there is no proxy.
func prepareWith(ctx context.Context, conn *pgx.Conn, more string) error {
	raw := conn.PgConn()
	// A proxy hands out process ids of its own.
	set, err := rowsOf(ctx, raw, fmt.Sprintf("SELECT set_config('client_min_messages', 'notice', false), "+
		"(SELECT "+processBegan+" FROM pg_stat_activity AS a WHERE a.pid = pg_backend_pid())%s WHERE "+
		"pg_backend_pid() = %d", more, raw.PID()))
	if err != nil {
		return err
	}
	if len(set) == 0 {
		raw.CustomData()[pooled] = true
		return checkWarnings(ctx, raw)
	}
	if len(set[0]) > 1 && set[0][1] != nil {
		raw.CustomData()[processKey] = process{int32(raw.PID()), string(set[0][1])}
	}
	return setPlanner(ctx, conn, "enable_seqscan = off")
}

// prepareWriting is prepareSession for connections whose statements are few and go by keys. The
// server plans each only once: it would plan those over arrays each time, which takes longer than
// to carry them out.
func prepareWriting(ctx context.Context, conn *pgx.Conn) error {
	if err := prepareSession(ctx, conn); err != nil || behindProxy(conn) {
		return err
	}
	return setPlanner(ctx, conn, planOnce)
}

// planOnce is the setting by which a prepared statement is planned when it is used first, and never
// again while its tables' statistics stay.
const planOnce = "plan_cache_mode = force_generic_plan"

// setPlanner makes a setting of the planner, unless the server has a planner of its own.
func setPlanner(ctx context.Context, conn *pgx.Conn, setting string) error {
	if _, err := conn.Exec(ctx, "SET "+setting); stateOf(err) != stateUndefinedObject {
		return err
	}
	return nil
}

// behindProxy reports whether prepareSession met a proxy.
func behindProxy(conn *pgx.Conn) bool {
	_, met := conn.PgConn().CustomData()[pooled]
	return met
}

// checkWarnings reports errSilent if the server keeps its warnings to itself.
func checkWarnings(ctx context.Context, raw *pgconn.PgConn) error {
	got, err := rowsOf(ctx, raw, "SHOW client_min_messages")
	if err != nil {
		return err
	}
	if len(got) != 1 || len(got[0]) != 1 {
		return errNoResult
	}
	if slices.Contains([]string{"error", "fatal", "panic"}, string(got[0][0])) {
		return errSilent
	}
	return nil
}

// rowsOf returns the rows of one statement. It runs where connections are made, in goroutines of
// the pool. A panic there would end the process.
func rowsOf(ctx context.Context, conn *pgconn.PgConn, sql string) ([][][]byte, error) {
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(results) != 1 {
		return nil, errNoResult
	}
	return results[0].Rows, nil
}

// preparesStatements reports whether the statements of a connection stay prepared on the server.
func (s *Store) preparesStatements() bool {
	return s.pool.Config().ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement
}

// checkPooling reports ErrPooling if statements are to be prepared behind a proxy that was seen to
// mix them up. That shows only when the server's connections change hands. So a later call may
// report what this one does not.
func (s *Store) checkPooling(ctx context.Context) error {
	if !s.preparesStatements() {
		return nil
	}
	proxied := false
	err := s.reads.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		proxied = behindProxy(conn.Conn())
		return nil
	})
	if err != nil || !proxied {
		return err
	}
	mixed, err := mixesStatements(ctx, &s.pool.Config().ConnConfig.Config)
	if err == nil && mixed {
		return ErrPooling
	}
	return err
}

// mixesStatements reports whether a statement that one connection prepares is met on another, or
// missing on its own.
func mixesStatements(ctx context.Context, config *pgconn.Config) (bool, error) {
	owner, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return false, err
	}
	defer owner.Close(context.WithoutCancel(ctx))
	other, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return false, err
	}
	defer other.Close(context.WithoutCancel(ctx))

	name := "moorage_" + rand.Text()
	kept, err := prepareAndLook(ctx, owner, name)
	if err != nil || !kept {
		// A proxy that gives statements names of its own keeps them.
		return false, err
	}
	for _, look := range []struct {
		conn *pgconn.PgConn
		want bool
	}{{other, false}, {owner, true}, {other, false}, {owner, true}} {
		has, err := hasStatement(ctx, look.conn, name)
		if err != nil {
			return false, err
		}
		if has != look.want {
			_, _ = look.conn.Exec(ctx, fmt.Sprintf("DEALLOCATE %q", name)).ReadAll() // where it has it
			return true, nil
		}
	}
	return false, nil
}

// prepareAndLook prepares a statement and reports whether the server has it under its name, all on
// one connection of the server.
func prepareAndLook(ctx context.Context, conn *pgconn.PgConn, name string) (kept bool, err error) {
	if _, err := conn.Exec(ctx, "BEGIN").ReadAll(); err != nil {
		return false, err
	}
	if _, err := conn.Prepare(ctx, name, "SELECT 1", nil); err != nil {
		return false, err
	}
	if kept, err = hasStatement(ctx, conn, name); err != nil {
		return false, err
	}
	_, err = conn.Exec(ctx, "COMMIT").ReadAll()
	return kept, err
}

// hasStatement reports whether the server's connection that conn has now knows a prepared
// statement.
func hasStatement(ctx context.Context, conn *pgconn.PgConn, name string) (bool, error) {
	got, err := rowsOf(ctx, conn, fmt.Sprintf("SELECT 1 FROM pg_prepared_statements WHERE name = '%s'", name))
	return len(got) > 0, err
}

// explain adds the cause to an error of the server that only a proxy brings about which mixes
// statements up.
func explain(err error) error {
	switch stateOf(err) {
	case stateUndefinedStatement, stateDuplicateStatement:
		return fmt.Errorf("%w: %w", ErrPooling, err)
	}
	return err
}
