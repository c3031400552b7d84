package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"moorage/migrations"
	"moorage/registry"
)

// taken is a step that the ledgers say was taken.
type taken struct {
	version  int
	checksum string
	oldest   int // the last step that a binary must know to run on what this one left
}

// makeLedgers makes the tables of the steps that were taken. moorage_migration has a first row, 0,
// which each step locks that runs in a transaction. moorage_migrator has one row, which a node
// locks while it makes indexes of large tables. Binaries that know no more than migrations.Former
// know neither moorage_migrator nor moorage_step.
func makeLedgers(ctx context.Context, conn *pgx.Conn) error {
	if err := makeLedger(ctx, conn, "moorage_migration", `
		CREATE TABLE moorage_migration (version integer PRIMARY KEY, checksum text NOT NULL,
			applied timestamptz NOT NULL DEFAULT now());
		INSERT INTO moorage_migration (version, checksum) VALUES (0, '')`); err != nil {
		return err
	}
	if err := makeLedger(ctx, conn, "moorage_migrator", `
		CREATE TABLE moorage_migrator (one boolean PRIMARY KEY CHECK (one));
		INSERT INTO moorage_migrator VALUES (true)`); err != nil {
		return err
	}
	return makeLedger(ctx, conn, "moorage_step", `
		CREATE TABLE moorage_step (version integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL,
			oldest integer NOT NULL, applied timestamptz NOT NULL DEFAULT now())`)
}

// makeLedger makes the table that name names by sql, unless it is there. Two that make it at the
// same time meet on its name.
func makeLedger(ctx context.Context, conn *pgx.Conn, name, sql string) error {
	for {
		var there bool
		if err := conn.QueryRow(ctx, "SELECT to_regclass($1::text) IS NOT NULL", name).Scan(&there); err != nil ||
			there {
			return err
		}
		_, err := conn.Exec(ctx, sql)
		switch stateOf(err) {
		case stateDuplicateTable, stateDuplicateObject, stateUniqueViolation: // somebody else makes it
		default:
			return err
		}
	}
}

// record writes that step was taken. If it shuts out the binaries that do not read moorage_step,
// they find it in their ledger.
func record(ctx context.Context, tx pgx.Tx, step migrations.Step) error {
	if step.Version <= migrations.Former || step.Oldest > migrations.Former {
		if _, err := tx.Exec(ctx, "INSERT INTO moorage_migration (version, checksum) VALUES ($1, $2)", step.Version,
			step.Checksum); err != nil {
			return err
		}
	}
	if step.Version <= migrations.Former {
		return nil
	}
	_, err := tx.Exec(ctx, "INSERT INTO moorage_step (version, name, checksum, oldest) VALUES ($1, $2, $3, $4)",
		step.Version, step.Name, step.Checksum, step.Oldest)
	return err
}

// querier is what reading the ledgers takes.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// readTaken returns the steps that were taken, in order. There may be no moorage_step: only a
// binary that knows it makes it.
func readTaken(ctx context.Context, conn querier) ([]taken, error) {
	all, err := readLedger(ctx, conn, nil,
		"SELECT version, checksum, 1 FROM moorage_migration WHERE version BETWEEN 1 AND $1::integer ORDER BY version")
	if err != nil {
		return nil, err
	}
	there := false
	rows, err := conn.Query(ctx, "SELECT to_regclass('moorage_step') IS NOT NULL")
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&there}, func() error { return nil })
	}
	if err != nil || !there {
		return all, err
	}
	return readLedger(ctx, conn, all, "SELECT version, checksum, oldest FROM moorage_step WHERE version > "+
		"$1::integer ORDER BY version")
}

// readLedger appends to all what sql reads; its parameter is the last step of the first ledger.
func readLedger(ctx context.Context, conn querier, all []taken, sql string) ([]taken, error) {
	rows, err := conn.Query(ctx, sql, migrations.Former)
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

// compare reports ErrSchema unless a binary that knows the steps all may use the tables that the
// steps in ledger made.
func compare(ledger []taken, all []migrations.Step) error {
	for i, step := range ledger {
		switch {
		case step.version != i+1:
			return fmt.Errorf("%w: it was migrated without step %d", ErrSchema, i+1)
		case step.oldest > len(all):
			return fmt.Errorf("%w: %w: its step %d needs one that knows step %d, this one knows %d",
				ErrSchema, registry.ErrNewer, step.version, step.oldest, len(all))
		case i < len(all) && step.checksum != all[i].Checksum:
			return fmt.Errorf("%w: step %d was not made by %s", ErrSchema, i+1, all[i].Name)
		}
	}
	return nil
}
