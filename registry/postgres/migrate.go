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

// ErrSchema says that the tables are missing, or are not those that this package was written for.
var ErrSchema = errors.New("the database does not have the tables of this version of moorage")

// Migrate brings the tables in the database that dsn names to the version of this package, and
// returns how many steps that took. Any number of nodes may call it at once, and others may work on
// the tables meanwhile. An index of a large table takes as long as the server needs to read the
// table, and to end the transactions that it has; only ctx bounds that. A database that is newer
// stays as it is. Migrate returns ErrSchema if a step of the database needs a newer binary, or if
// other files than those of package migrations made it.
func Migrate(ctx context.Context, dsn string) (steps int, err error) {
	all, err := migrations.Steps()
	if err != nil {
		return 0, err
	}
	return migrate(ctx, dsn, all)
}

// migrate takes those of all that were not taken.
func migrate(ctx context.Context, dsn string, all []migrations.Step) (steps int, err error) {
	config, err := newConfig(dsn)
	if err != nil {
		return 0, err
	}
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // nothing is asked often enough to be prepared
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
	// attemptsMax is how often a step is tried that does not get its locks. Commits go on during
	// attemptsPause, which is between two attempts. Together they last some minutes.
	attemptsMax   = 80
	attemptsPause = 2 * time.Second
	// othersPause is the time between two looks at whether another migrator has ended.
	othersPause = 200 * time.Millisecond
	// smallBytesMax is the size of a table whose indexes are made in a transaction: it takes
	// milliseconds, and does not wait for all other transactions of the database.
	smallBytesMax = 4 << 20
)

const (
	// unlimitedSQL is the rest of a list of columns: an index may take hours.
	unlimitedSQL = ", set_config('statement_timeout', '0', false), set_config('lock_timeout', '0', false)"
	// lockTimeoutSQL bounds the waits for locks in a transaction, because others wait behind them.
	// A wait must be longer than the server's deadlock_timeout. After that the server ends an
	// autovacuum that is in the way.
	lockTimeoutSQL = "SELECT set_config('lock_timeout', least(setting::bigint + 500, 5000)::text, true) FROM " +
		"pg_settings WHERE name = 'deadlock_timeout'"
	// patientSQL lets its transaction be idle for as long as it likes. keepOutSQL locks the row of
	// the migrators, or finds none.
	patientSQL = "SELECT set_config(name, '0', true) FROM pg_settings WHERE name IN " +
		"('idle_in_transaction_session_timeout', 'transaction_timeout')"
	keepOutSQL = "SELECT one FROM moorage_migrator WHERE one FOR UPDATE SKIP LOCKED"
)

// keepOut waits until nobody else makes indexes of large tables, and keeps others from that until
// letIn. The lock belongs to a transaction of a connection of its own, so that it works behind a
// proxy. It saves work only: the row of version 0, and the locks of indexSQL, keep steps apart too.
//
// The server ends the build of an index when all transactions have ended that it met in the middle
// of a statement. A migrator that waited for its turn in one would never end. So each try is a
// transaction of its own, and the one that got the lock stays idle.
func (m *migrator) keepOut(ctx context.Context) (err error) {
	if m.others, err = pgx.ConnectConfig(ctx, m.conn.Config()); err != nil {
		return err
	}
	for {
		// Under another level than READ COMMITTED it would keep its view of the tables.
		tx, err := m.others.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
		if err != nil {
			return err
		}
		// A query of the extended protocol would leave its portal open, and that its view of the
		// tables. Exec without arguments uses the simple one.
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

// letIn ends what keepOut began.
func (m *migrator) letIn(ctx context.Context) {
	if m.others != nil {
		_ = m.others.Close(ctx) // then the server ends its transaction
	}
}

// migrator takes steps.
type migrator struct {
	conn   *pgx.Conn
	others *pgx.Conn // keeps other migrators out; nil as long as none has to be
	all    []migrations.Step
	tries  int           // how often a step is tried
	pause  time.Duration // between two tries
}

// next takes the next step, and reports whether there was none.
func (m *migrator) next(ctx context.Context) (done bool, err error) {
	for tries := 1; ; {
		step, outside, err := m.take(ctx)
		if err == nil && outside == "" {
			return step == nil, nil
		}
		if err == nil && m.others == nil {
			if err = m.keepOut(ctx); err == nil {
				continue // and see what others left
			}
		} else if err == nil {
			if _, err = m.conn.Exec(ctx, outside); err == nil {
				continue // and see what it left
			}
		}
		if step != nil {
			err = fmt.Errorf("%s: %w", step.Name, err)
		}
		state := stateOf(err)
		switch {
		case state == stateInternalError && tries < m.tries: // see there
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

// take takes the next step in one transaction, and returns it; nil if there was none. If the step
// needs something outside a transaction first, take returns the statement. The caller keeps other
// migrators out, or executes the statement if they are, and takes the step again. The step comes
// with an error that is its own.
func (m *migrator) take(ctx context.Context) (step *migrations.Step, outside string, err error) {
	// A node that waited for the lock must see what its owner did, regardless of the server's
	// default.
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

// indexSQL returns what is to be done for a step that makes an index: either in this transaction,
// before the step is recorded, or outside of any, before the step is taken again.
func (m *migrator) indexSQL(ctx context.Context, tx pgx.Tx, step *migrations.Step) (within, outside string, err error) {
	if m.others != nil {
		// With this lock nobody else makes an index of the table. A migrator that died may have
		// left a server's process that still does. Its index is not valid before it ends.
		if _, err := tx.Exec(ctx, "LOCK TABLE "+step.Table+" IN SHARE UPDATE EXCLUSIVE MODE"); err != nil {
			return "", "", err
		}
	}
	var bytes int64
	var valid *bool // nil: there is no index
	if err := tx.QueryRow(ctx, "SELECT pg_relation_size($1::text::regclass), (SELECT indisvalid FROM pg_index "+
		"WHERE indexrelid = to_regclass($2::text))", step.Table, step.Index).Scan(&bytes, &valid); err != nil {
		return "", "", err
	}
	switch {
	case valid != nil && *valid:
		return "", "", nil
	case valid != nil: // what made it did not come to its end
		return "", "DROP INDEX CONCURRENTLY " + step.Index, nil
	case bytes <= smallBytesMax:
		return strings.Replace(step.SQL, " CONCURRENTLY", "", 1), "", nil
	}
	return "", step.SQL, nil
}

// checkSchema reports ErrSchema unless the database has the tables of this package, and perhaps
// more that it can do without.
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

// checkFormat reports ErrSchema unless the records have the layout of this version. A newer one
// need not have other tables.
func (s *Store) checkFormat(ctx context.Context) error {
	records, err := s.Get(ctx, registry.FormatKey())
	switch {
	case err != nil:
		return fmt.Errorf("open the store: %w", err)
	case !records[0].Exists():
		return fmt.Errorf("%w: nothing says which format its records have", ErrSchema)
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

// CheckFit returns registry.ErrNewer if the database has come to need a newer version since it was
// opened: by a step of a migration that shuts this one out, or by the format of its records. Other
// errors say that CheckFit could not find out.
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
