package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"moorage/migrations"
	"moorage/registry"
)

// taken is a migration step that is recorded as taken.
type taken struct {
	version  int
	checksum string
	oldest   int // the last step that a binary must know in order to use the tables
}

// makeLedgers creates the table of the taken steps and the table of the migrators. moorage_step has
// a first row, with version 0, which each step that runs in a transaction locks. moorage_migrator
// has one row, which a node locks while it creates indexes on large tables.
func makeLedgers(ctx context.Context, conn *pgx.Conn) error {
	if err := makeLedger(ctx, conn, "moorage_step", `
		CREATE TABLE moorage_step (version integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL,
			oldest integer NOT NULL, applied timestamptz NOT NULL DEFAULT now());
		INSERT INTO moorage_step (version, name, checksum, oldest) VALUES (0, '', '', 0)`); err != nil {
		return err
	}
	return makeLedger(ctx, conn, "moorage_migrator", `
		CREATE TABLE moorage_migrator (one boolean PRIMARY KEY CHECK (one));
		INSERT INTO moorage_migrator VALUES (true)`)
}

// makeLedger creates the table called name with sql, unless it exists. If two nodes create it at
// the same time, one of them fails because the name is taken.
func makeLedger(ctx context.Context, conn *pgx.Conn, name, sql string) error {
	for {
		var there bool
		if err := conn.QueryRow(ctx, "SELECT to_regclass($1::text) IS NOT NULL", name).Scan(&there); err != nil ||
			there {
			return err
		}
		_, err := conn.Exec(ctx, sql)
		switch stateOf(err) {
		case stateDuplicateTable, stateDuplicateObject, stateUniqueViolation: // another node is creating it
		default:
			return err
		}
	}
}

// record records that step was taken.
func record(ctx context.Context, tx pgx.Tx, step migrations.Step) error {
	_, err := tx.Exec(ctx, "INSERT INTO moorage_step (version, name, checksum, oldest) VALUES ($1, $2, $3, $4)",
		step.Version, step.Name, step.Checksum, step.Oldest)
	return err
}

// querier is the interface needed for reading the ledger, which is the table of taken steps.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// readTaken returns the steps that were taken, in order.
func readTaken(ctx context.Context, conn querier) (all []taken, err error) {
	const sql = "SELECT version, checksum, oldest FROM moorage_step WHERE version > 0 ORDER BY version"
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	var one taken
	_, err = pgx.ForEachRow(rows, []any{&one.version, &one.checksum, &one.oldest}, func() error {
		all = append(all, one)
		return nil
	})
	return all, err
}

// compare returns ErrSchema unless the tables made by the recorded steps can be used by a binary
// that knows exactly the steps in all.
func compare(ledger []taken, all []migrations.Step) error {
	for i, step := range ledger {
		switch {
		case step.version != i+1:
			return fmt.Errorf("%w: it was migrated without step %d", ErrSchema, i+1)
		case step.oldest > len(all):
			return fmt.Errorf("%w: %w: its step %d needs a binary with step %d, this one has %d",
				ErrSchema, registry.ErrNewer, step.version, step.oldest, len(all))
		case i < len(all) && step.checksum != all[i].Checksum:
			return fmt.Errorf("%w: step %d was not made by %s", ErrSchema, i+1, all[i].Name)
		}
	}
	return nil
}
