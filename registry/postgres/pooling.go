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

// ErrPooling means that a proxy assigns the server's connections to clients for one transaction at
// a time, and does not keep track of prepared statements. Behind such a proxy no statement may be
// prepared.
var ErrPooling = errors.New("a proxy that pools transactions does not keep prepared statements: add " +
	"default_query_exec_mode=exec " +
	"to the connection string, or have them kept (max_prepared_statements of PgBouncer from 1.21 on)")

// errSilent means that the server's warnings would not arrive.
var errSilent = errors.New("the server does not send its warnings, and settings do not last behind a proxy; " +
	"make it one of the role: ALTER ROLE … SET client_min_messages = notice")

// errNoResult means that the answering server is not PostgreSQL.
var errNoResult = errors.New("the server, or a proxy before it, does not answer a statement with its result")

// pooled is the key in a connection's custom data that marks a proxy in front of the server. Behind
// a proxy, settings and prepared statements may belong to other clients.
const pooled = "moorage pooled"

// prepareSession makes the settings that the statements of this package need. The server must
// report a standby for which it did not wait. A statement that was planned while a table was small
// must not read the whole table after it has grown. Behind a proxy nothing is set, because the
// setting would hold for other clients, and not for the next transaction. In that case Warnings
// reports the missing settings.
func prepareSession(ctx context.Context, conn *pgx.Conn) error {
	return prepareWith(ctx, conn, "")
}

// prepareCancelled is prepareSession for connections whose statements the driver cancels when their
// callers give up. If the node has died, the server ends the statements itself. These statements
// must not commit anything that waits for a standby (see uncancelled).
func prepareCancelled(ctx context.Context, conn *pgx.Conn) error {
	limit := fmt.Sprintf(", set_config('statement_timeout', '%d', false)", (readTimeout + serverGrace).Milliseconds())
	err := prepareWith(ctx, conn, limit)
	if err == nil && !behindProxy(conn) {
		allowCancel(conn.PgConn().Conn())
	}
	return err
}

// prepareReading is prepareCancelled for connections of reads, with the same setting for plans as
// prepareWriting. The statements of reads also use keys, or set their own planner options
// (planSQL).
func prepareReading(ctx context.Context, conn *pgx.Conn) error {
	if err := prepareCancelled(ctx, conn); err != nil || behindProxy(conn) {
		return err
	}
	return setPlanner(ctx, conn, planOnce)
}

// prepareWith is prepareSession with more settings, which are made only if there is no proxy.
func prepareWith(ctx context.Context, conn *pgx.Conn, more string) error {
	raw := conn.PgConn()
	// A proxy assigns its own process ids.
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

// prepareWriting is prepareSession for connections with few statements that use keys. The server
// plans each only once. Otherwise it would plan statements over arrays at each execution, which
// takes longer than the execution.
func prepareWriting(ctx context.Context, conn *pgx.Conn) error {
	if err := prepareSession(ctx, conn); err != nil || behindProxy(conn) {
		return err
	}
	return setPlanner(ctx, conn, planOnce)
}

// With the setting planOnce, a prepared statement is planned at its first use, and then only again
// after its tables' statistics have changed.
const planOnce = "plan_cache_mode = force_generic_plan"

// setPlanner makes a setting of the planner. It does nothing if the server has a different planner
// and does not know the setting.
func setPlanner(ctx context.Context, conn *pgx.Conn, setting string) error {
	if _, err := conn.Exec(ctx, "SET "+setting); stateOf(err) != stateUndefinedObject {
		return err
	}
	return nil
}

// behindProxy reports whether prepareSession detected a proxy.
func behindProxy(conn *pgx.Conn) bool {
	_, met := conn.PgConn().CustomData()[pooled]
	return met
}

// checkWarnings returns errSilent if the server does not send its warnings.
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

// rowsOf returns the rows of one statement. It runs in goroutines of the pool that open
// connections. A panic there would end the process.
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

// checkPooling returns ErrPooling if the store would prepare statements behind a proxy, and the
// check shows that the proxy mixes them up. The check can show that only if the server's
// connections are given to other clients. So a later call may return ErrPooling although an earlier
// one did not.
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

// mixesStatements reports whether a statement that was prepared on one connection exists on another
// connection, or is missing on its own.
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
		// A proxy that renames prepared statements keeps track of them.
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
			_, _ = look.conn.Exec(ctx, fmt.Sprintf("DEALLOCATE %q", name)).ReadAll() // on the connection that has it
			return true, nil
		}
	}
	return false, nil
}

// prepareAndLook prepares a statement and reports whether the server has it under its name. It does
// both on one connection of the server.
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

// hasStatement reports whether the server's connection that now serves conn knows a prepared
// statement.
func hasStatement(ctx context.Context, conn *pgconn.PgConn, name string) (bool, error) {
	got, err := rowsOf(ctx, conn, fmt.Sprintf("SELECT 1 FROM pg_prepared_statements WHERE name = '%s'", name))
	return len(got) > 0, err
}

// explain adds ErrPooling to an error of the server that only a proxy that mixes up statements can
// cause.
func explain(err error) error {
	switch stateOf(err) {
	case stateUndefinedStatement, stateDuplicateStatement:
		return fmt.Errorf("%w: %w", ErrPooling, err)
	}
	return err
}
