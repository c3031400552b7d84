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

const selectApplied = "SELECT version, checksum FROM moorage_migration ORDER BY version"

// Migrate brings the tables in the database that dsn names to the version of this package, and
// returns how many steps that took. Any number of nodes may call it at once. ErrSchema if the database is
// newer, or was made by other files than those of package migrations.
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
	if err := makeLedger(ctx, conn); err != nil {
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

// makeLedger makes the table of the steps that were taken, and its first row, which nodes that migrate at once
// take turns to lock. Two that make it at the same time are told apart by the primary key.
func makeLedger(ctx context.Context, conn *pgx.Conn) error {
	for {
		var there bool
		if err := conn.QueryRow(ctx, "SELECT to_regclass('moorage_migration') IS NOT NULL").Scan(&there); err != nil || there {
			return err
		}
		_, err := conn.Exec(ctx, `
			CREATE TABLE moorage_migration (version integer PRIMARY KEY, checksum text NOT NULL, applied timestamptz NOT NULL DEFAULT now());
			INSERT INTO moorage_migration (version, checksum) VALUES (0, '')`)
		switch stateOf(err) {
		case stateDuplicateTable, stateDuplicateObject, stateUniqueViolation: // somebody else makes it
		default:
			return err
		}
	}
}

// migrateOnce takes the next step, in one transaction, and tells whether there is none.
func migrateOnce(ctx context.Context, conn *pgx.Conn, all []migrations.Step) (done bool, err error) {
	// Who waited for the lock must see what its owner did, whatever the server's default is.
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT version FROM moorage_migration WHERE version = 0 FOR UPDATE"); err != nil {
			return err
		}
		applied, err := readApplied(ctx, tx)
		if err != nil {
			return err
		}
		if err := compare(applied, all); err != nil {
			return err
		}
		if done = len(applied) == len(all); done {
			return nil
		}
		next := all[len(applied)]
		if _, err := tx.Exec(ctx, next.SQL); err != nil {
			return fmt.Errorf("%s: %w", next.Name, err)
		}
		_, err = tx.Exec(ctx, "INSERT INTO moorage_migration (version, checksum) VALUES ($1, $2)", next.Version, next.Checksum)
		return err
	})
	return done, err
}

// querier is what reading the ledger takes.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// readApplied returns the checksums of the steps that were taken, in order.
func readApplied(ctx context.Context, conn querier) ([]string, error) {
	rows, err := conn.Query(ctx, selectApplied)
	if err != nil {
		return nil, err
	}
	applied := []string{}
	var version int
	var checksum string
	_, err = pgx.ForEachRow(rows, []any{&version, &checksum}, func() error {
		if version > 0 {
			applied = append(applied, checksum)
		}
		return nil
	})
	return applied, err
}

// compare reports ErrSchema unless applied are the first of all.
func compare(applied []string, all []migrations.Step) error {
	if len(applied) > len(all) {
		return fmt.Errorf("%w: it was migrated by a newer version (step %d, this one knows %d)", ErrSchema, len(applied), len(all))
	}
	for i, checksum := range applied {
		if checksum != all[i].Checksum {
			return fmt.Errorf("%w: step %d was not made by %s", ErrSchema, i+1, all[i].Name)
		}
	}
	return nil
}

// checkSchema reports ErrSchema unless the database has exactly the tables of this package.
func (s *Store) checkSchema(ctx context.Context) error {
	all, err := migrations.Steps()
	if err != nil {
		return err
	}
	applied, err := readApplied(ctx, s.pool)
	switch {
	case stateOf(err) == stateUndefinedTable:
		return fmt.Errorf("%w: run moorage migrate first", ErrSchema)
	case err != nil:
		return fmt.Errorf("open the store: %w", explain(err))
	}
	if err := compare(applied, all); err != nil {
		return err
	}
	if len(applied) < len(all) {
		return fmt.Errorf("%w: it is at step %d of %d, run moorage migrate first", ErrSchema, len(applied), len(all))
	}
	return s.checkFormat(ctx)
}

// checkFormat reports ErrSchema unless the records have the layout of this version. A newer one need not have other tables.
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
		return fmt.Errorf("%w: its records were written by a newer version (format %d, this one reads up to %d)", ErrSchema, format.Version, registry.FormatVersion)
	case format.Version < 1:
		return fmt.Errorf("%w: its format is %d", ErrSchema, format.Version)
	}
	return nil
}
