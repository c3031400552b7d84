package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"moorage/internal/worker"
	"moorage/migrations"
	"moorage/registry"
)

// ErrSchema means that the tables are missing, or do not fit this package.
var ErrSchema = errors.New("the database does not have the tables of this version of moorage")

// Migrate brings the tables in the database of dsn to the version of this package, and returns the
// number of steps that it took. Any number of nodes may call it concurrently, while other nodes use
// the tables. To index a large table, the server must read the table and wait for open
// transactions. Only ctx bounds that wait. Migrate leaves a database with newer steps unchanged. It
// returns ErrSchema if a step of the database needs a newer binary, or if a recorded step does not
// come from the files of package migrations.
func Migrate(ctx context.Context, dsn string) (steps int, err error) {
	all, err := migrations.Steps()
	if err != nil {
		return 0, err
	}
	return migrate(ctx, dsn, all)
}

// migrate takes those steps in all that the database has not taken yet.
func migrate(ctx context.Context, dsn string, all []migrations.Step) (steps int, err error) {
	config, err := newConfig(dsn)
	if err != nil {
		return 0, err
	}
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // no statement is worth preparing
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return 0, fmt.Errorf("migrate: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := makeLedgers(ctx, conn); err != nil {
		return 0, fmt.Errorf("migrate: %w", err)
	}
	if err := prepareWith(ctx, conn, unlimitedSQL); err != nil {
		return 0, fmt.Errorf("migrate: %w", err)
	}
	m := migrator{conn: conn, all: all, tries: attemptsMax, pause: attemptsPause}
	defer m.letIn(context.WithoutCancel(ctx))
	for {
		done, err := m.next(ctx)
		if err != nil || done {
			return steps, err
		}
		steps++
	}
}

const (
	// attemptsMax is the maximum number of tries of a step that does not get its locks.
	// attemptsPause is the pause between two attempts, during which commits continue. All attempts
	// together last a few minutes.
	attemptsMax   = 80
	attemptsPause = 2 * time.Second
	// othersPause is the time between two checks whether another migrator has ended.
	othersPause = 200 * time.Millisecond
	// validLooksMax is the maximum number of looks at an index that is not valid, with othersPause
	// between them: one second in all. The commit that makes the index valid takes milliseconds. If
	// the index is not valid after that, its builder is dead, and the index is dropped.
	validLooksMax = 6
	// smallBytesMax is the largest size of a table whose indexes are created in a transaction. For
	// such a table that takes milliseconds, and does not wait for all other transactions of the
	// database.
	smallBytesMax = 4 << 20
)

const (
	// unlimitedSQL extends the list of columns of a SELECT. It removes the timeouts of the session,
	// because creating an index may take hours.
	unlimitedSQL = ", set_config('statement_timeout', '0', false), set_config('lock_timeout', '0', false)"
	// lockTimeoutSQL bounds the waits for locks in a transaction, because other transactions queue
	// behind such a wait. A wait must be longer than the server's deadlock_timeout, after which the
	// server ends an autovacuum that blocks it.
	lockTimeoutSQL = "SELECT set_config('lock_timeout', least(setting::bigint + 500, 5000)::text, true) FROM " +
		"pg_settings WHERE name = 'deadlock_timeout'"
	// patientSQL lets its transaction stay idle without limit. keepOutSQL locks the row of
	// moorage_migrator. If another node holds the lock, it returns no row.
	patientSQL = "SELECT set_config(name, '0', true) FROM pg_settings WHERE name IN " +
		"('idle_in_transaction_session_timeout', 'transaction_timeout')"
	keepOutSQL = "SELECT one FROM moorage_migrator WHERE one FOR UPDATE SKIP LOCKED"
)

// keepOut waits until no other node creates indexes on large tables. Then it prevents other nodes
// from creating them until letIn. The lock belongs to a transaction on its own connection, so that
// it works behind a proxy. The lock only saves work: the row with version 0, and the locks of
// indexSQL, also prevent concurrent steps.
//
// The server completes an index only after all transactions that were executing a statement have
// ended. If another migrator waited for the lock in a statement, the index and that statement would
// wait for each other for ever. So each try is its own transaction, and the transaction that got
// the lock stays idle.
func (m *migrator) keepOut(ctx context.Context) (err error) {
	if m.others, err = pgx.ConnectConfig(ctx, m.conn.Config()); err != nil {
		return err
	}
	for {
		// At an isolation level other than READ COMMITTED, the idle transaction would keep its
		// snapshot of the tables.
		tx, err := m.others.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
		if err != nil {
			return err
		}
		// A query of the extended protocol would leave a portal open, and with it a snapshot of the
		// tables. Exec without arguments uses the simple protocol.
		if _, err := tx.Exec(ctx, patientSQL); err != nil {
			return err
		}
		if got, err := tx.Exec(ctx, keepOutSQL); err != nil || got.RowsAffected() > 0 {
			return err
		}
		if err := tx.Rollback(ctx); err != nil {
			return err
		}
		if !worker.Sleep(ctx, othersPause) {
			return ctx.Err()
		}
	}
}

// letIn releases the lock taken by keepOut.
func (m *migrator) letIn(ctx context.Context) {
	if m.others != nil {
		_ = m.others.Close(ctx) // closing the connection makes the server end its transaction
	}
}

// migrator takes the steps of a migration.
type migrator struct {
	conn   *pgx.Conn
	others *pgx.Conn // holds the lock of keepOut; nil while the lock is not needed
	all    []migrations.Step
	tries  int           // the maximum number of tries of a step
	pause  time.Duration // between two tries
}

// next takes the next step. done is true if no step was left.
func (m *migrator) next(ctx context.Context) (done bool, err error) {
	for tries := 1; ; {
		step, outside, err := m.take(ctx)
		if err == nil && outside == "" {
			return step == nil, nil
		}
		if err == nil && m.others == nil {
			if err = m.keepOut(ctx); err == nil {
				continue // check which steps the other nodes have left
			}
		} else if err == nil {
			if _, err = m.conn.Exec(ctx, outside); err == nil {
				continue // check which steps the statement has left
			}
		}
		if step != nil {
			err = fmt.Errorf("%s: %w", step.Name, err)
		}
		state := stateOf(err)
		switch {
		case state == stateInternalError && tries < m.tries: // see the comment of stateInternalError
		case state != stateLockNotAvailable && state != stateDeadlockDetected:
			return false, err
		case tries == m.tries:
			return false, fmt.Errorf("a long transaction or VACUUM holds a lock on the table: find it in "+
				"pg_stat_activity by xact_start, wait for it or end it, and run moorage migrate again: %w", err)
		}
		tries++
		if !worker.Sleep(ctx, m.pause) {
			return false, ctx.Err()
		}
	}
}

// take takes the next step in one transaction, and returns it. It returns nil if there was none. If
// the step first needs a statement outside a transaction, take returns that statement. Then the
// caller calls keepOut, or executes the statement if it already holds the lock of keepOut. After
// that it calls take again. A failing step is returned with its error.
func (m *migrator) take(ctx context.Context) (step *migrations.Step, outside string, err error) {
	// A node that waited for the lock must see the writes of the lock's former holder, whatever the
	// server's default isolation level is.
	err = pgx.BeginTxFunc(ctx, m.conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockTimeoutSQL); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "SELECT version FROM moorage_step WHERE version = 0 FOR UPDATE"); err != nil {
			return err
		}
		taken, err := readTaken(ctx, tx)
		if err != nil {
			return err
		}
		if err := compare(taken, m.all); err != nil || len(taken) >= len(m.all) {
			return err
		}
		step = &m.all[len(taken)]
		sql := step.SQL
		if step.Index != "" {
			if sql, outside, err = m.indexSQL(ctx, tx, step); err != nil || outside != "" {
				return err
			}
		}
		if _, err := tx.Exec(ctx, sql); err != nil {
			return err
		}
		return record(ctx, tx, *step)
	})
	return step, outside, err
}

// indexSQL returns the statements for a step that creates an index. The statements within run in
// this transaction, before the step is recorded. The statement outside runs outside any
// transaction, after which the step is taken again.
func (m *migrator) indexSQL(ctx context.Context, tx pgx.Tx, step *migrations.Step) (within, outside string, err error) {
	if m.others != nil {
		// While this lock is held, no other node creates an index on the table. A migrator that
		// died may have left a server process that still creates the index. That index is not valid
		// before the process ends.
		if _, err := tx.Exec(ctx, "LOCK TABLE "+step.Table+" IN SHARE UPDATE EXCLUSIVE MODE"); err != nil {
			return "", "", err
		}
	}
	var bytes int64
	var valid *bool // nil if there is no index
	for looks := 1; ; looks++ {
		if err := tx.QueryRow(ctx, "SELECT pg_relation_size($1::text::regclass), (SELECT indisvalid FROM pg_index "+
			"WHERE indexrelid = to_regclass($2::text))", step.Table, step.Index).Scan(&bytes, &valid); err != nil {
			return "", "", err
		}
		// The server process gives its lock back just before it commits that the index is valid.
		if m.others == nil || valid == nil || *valid || looks == validLooksMax {
			break
		}
		if !worker.Sleep(ctx, othersPause) {
			return "", "", ctx.Err()
		}
	}
	switch {
	case valid != nil && *valid:
		return "", "", nil
	case valid != nil: // the index was not completed
		return "", "DROP INDEX CONCURRENTLY " + step.Index, nil
	case bytes <= smallBytesMax:
		return strings.Replace(step.SQL, " CONCURRENTLY", "", 1), "", nil
	}
	return "", step.SQL, nil
}

// checkSchema returns ErrSchema unless the database has the tables of this package. It may have
// further tables if this package does not need to know them.
func (s *Store) checkSchema(ctx context.Context) error {
	all, err := migrations.Steps()
	if err != nil {
		return err
	}
	taken, err := readTaken(ctx, s.pool)
	switch {
	case stateOf(err) == stateUndefinedTable:
		return fmt.Errorf("%w: run moorage migrate first", ErrSchema)
	case err != nil:
		return fmt.Errorf("open the store: %w", explain(err))
	}
	if err := compare(taken, all); err != nil {
		return err
	}
	if len(taken) < len(all) {
		return fmt.Errorf("%w: it is at step %d of %d, run moorage migrate first", ErrSchema, len(taken), len(all))
	}
	return s.checkFormat(ctx)
}

// checkFormat returns ErrSchema unless the records have the layout of this version. A newer layout
// of records does not imply other tables.
func (s *Store) checkFormat(ctx context.Context) error {
	records, err := s.Get(ctx, registry.FormatKey())
	switch {
	case err != nil:
		return fmt.Errorf("open the store: %w", err)
	case !records[0].Exists():
		return fmt.Errorf("%w: it has no record of its format", ErrSchema)
	}
	format, err := registry.Decode[registry.Format](records[0])
	switch {
	case err != nil:
		return fmt.Errorf("open the store: %w", err)
	case format.Version < 1:
		return fmt.Errorf("%w: its format is %d", ErrSchema, format.Version)
	}
	if err := format.Readable(); err != nil {
		return fmt.Errorf("%w: %w", ErrSchema, err)
	}
	return nil
}

// CheckFit returns registry.ErrNewer if the database has come to require a newer version since the
// store was opened. The reason is a migration step that excludes this version, or a newer format of
// the records. Other errors mean that CheckFit could not determine this.
func (s *Store) CheckFit(ctx context.Context) error {
	all, err := migrations.Steps()
	if err != nil {
		return err
	}
	taken, err := readTaken(ctx, s.reads)
	if err != nil {
		return fmt.Errorf("read the ledger of migrations: %w", explain(err))
	}
	if err := compare(taken, all); err != nil {
		return err
	}
	return registry.CheckFormat(ctx, s)
}
