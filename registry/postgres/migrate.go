package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"moorage/migrations"
	"moorage/registry"
)

// ErrSchema says that the tables are missing, or are not those that this package was written for.
var ErrSchema = errors.New("the database does not have the tables of this version of moorage")

// Migrate brings the tables in the database that dsn names to the version of this package, and
// returns how many steps that took. Any number of nodes may call it at once. A database that is
// newer stays as it is. Migrate returns ErrSchema if a step of the database needs a newer binary,
// or if other files than those of package migrations made it.
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
	for {
		done, err := migrateOnce(ctx, conn, all)
		if err != nil || done {
			return steps, err
		}
		steps++
	}
}

// migrateOnce takes the next step, in one transaction, and reports whether there was none.
func migrateOnce(ctx context.Context, conn *pgx.Conn, all []migrations.Step) (done bool, err error) {
	// A node that waited for the lock must see what its owner did, regardless of the server's
	// default.
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT version FROM moorage_migration WHERE version = 0 FOR UPDATE"); err != nil {
			return err
		}
		taken, err := readTaken(ctx, tx)
		if err != nil {
			return err
		}
		if err := compare(taken, all); err != nil {
			return err
		}
		if done = len(taken) >= len(all); done {
			return nil
		}
		next := all[len(taken)]
		if _, err := tx.Exec(ctx, next.SQL); err != nil {
			return fmt.Errorf("%s: %w", next.Name, err)
		}
		return record(ctx, tx, next)
	})
	return done, err
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
	case format.Version > registry.FormatVersion:
		return fmt.Errorf("%w: %w: its records have format %d, this one reads up to %d", ErrSchema, registry.ErrNewer,
			format.Version, registry.FormatVersion)
	case format.Version < 1:
		return fmt.Errorf("%w: its format is %d", ErrSchema, format.Version)
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
