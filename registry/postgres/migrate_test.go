package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"moorage/migrations"
	"moorage/registry"
)

func allSteps(t *testing.T) []migrations.Step {
	t.Helper()
	all, err := migrations.Steps()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// laterSteps returns all steps, and two steps of a later version: one changes a table, and the last
// creates an index on it.
func laterSteps(t *testing.T) []migrations.Step {
	t.Helper()
	all := allSteps(t)
	known := len(all)
	return append(all[:known:known],
		migrations.Step{Version: known + 1, Name: "column.sql", Checksum: "column", Oldest: 1,
			SQL: "ALTER TABLE moorage_change ADD COLUMN later integer"},
		migrations.Step{Version: known + 2, Name: "index.sql", Checksum: "index", Oldest: 1,
			SQL:   "CREATE INDEX CONCURRENTLY moorage_change_later ON moorage_change (at) WHERE awaits",
			Index: "moorage_change_later", Table: "moorage_change"})
}

// wantSchemaError fails the test unless err is ErrSchema with a text of one line that contains
// words.
func wantSchemaError(t *testing.T, err error, words string) {
	t.Helper()
	if !errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, want one line of ErrSchema with %q in it", err, words)
	}
}

func TestTenNodesMigrateAtOnce(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]string{"read committed": "", "serializable": "&default_transaction_isolation=serializable"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := newSchema(t) + options
			var taken atomic.Int64
			var group sync.WaitGroup
			for range 10 {
				group.Go(func() {
					steps, err := Migrate(t.Context(), dsn)
					if err != nil {
						t.Error(err)
					}
					taken.Add(int64(steps))
				})
			}
			group.Wait()
			if want := len(allSteps(t)); int(taken.Load()) != want {
				t.Errorf("%d steps were taken, want each of %d once", taken.Load(), want)
			}
			openStore(t, dsn, Options{})
		})
	}
}

// TestFormatIsRefused opens databases with correct tables, whose records may have the wrong format.
func TestFormatIsRefused(t *testing.T) {
	t.Parallel()
	const newer = registry.FormatVersion + 1
	for sql, words := range map[string]string{
		fmt.Sprintf(`UPDATE moorage_format SET value = '{"version":%d}'`, newer): fmt.Sprintf(
			"newer version of moorage: its records have format %d, this one reads up to %d", newer, registry.FormatVersion),
		`UPDATE moorage_format SET value = '{"version":0}'`: "format is 0",
		`DELETE FROM moorage_format`:                        "it has no record of its format",
	} {
		dsn := newSchema(t)
		if _, err := Migrate(t.Context(), dsn); err != nil {
			t.Fatal(err)
		}
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err = Open(t.Context(), dsn, Options{})
		wantSchemaError(t, err, words)
		_, err = OpenLeases(t.Context(), dsn)
		wantSchemaError(t, err, words)
	}
}

func TestSchemaIsRefused(t *testing.T) {
	t.Parallel()
	dsn := newSchema(t)
	all := allSteps(t)
	open := func() error {
		store, err := Open(t.Context(), dsn, Options{})
		if err == nil {
			_ = store.Close()
		}
		return err
	}
	wantSchemaError(t, open(), "moorage migrate")
	if _, err := migrate(t.Context(), dsn, all[:len(all)-1]); err != nil {
		t.Fatal(err)
	}
	wantSchemaError(t, open(), "moorage migrate")
	if _, err := Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	if err := open(); err != nil {
		t.Errorf("the schema is this version's: %v", err)
	}
	other := append([]migrations.Step(nil), all...)
	other[0].Checksum = strings.Repeat("0", 64)
	_, err := migrate(t.Context(), dsn, other)
	wantSchemaError(t, err, all[0].Name)
}

// TestNewerSteps migrates with the files of newer binaries, and checks whether this binary still
// starts.
func TestNewerSteps(t *testing.T) {
	t.Parallel()
	dsn := newSchema(t)
	all := allSteps(t)
	open := func() error {
		store, err := Open(t.Context(), dsn, Options{})
		if err == nil {
			err = store.Close()
		}
		return err
	}
	known := len(all)
	beside := migrations.Step{Version: known + 1, Name: "beside.sql", SQL: "CREATE TABLE beside (x integer)", Checksum: "beside", Oldest: 1}
	if steps, err := migrate(t.Context(), dsn, append(all[:known:known], beside)); err != nil || steps != known+1 {
		t.Fatalf("%d steps, %v", steps, err)
	}
	if err := open(); err != nil {
		t.Errorf("beside a step that old binaries may run with: %v", err)
	}
	if steps, err := Migrate(t.Context(), dsn); err != nil || steps != 0 {
		t.Errorf("migrating where a newer one has: %d steps, %v", steps, err)
	}

	needing := migrations.Step{Version: known + 2, Name: "needing.sql", SQL: "DROP TABLE beside", Checksum: "needing", Oldest: known + 1}
	if steps, err := migrate(t.Context(), dsn, append(all[:known:known], beside, needing)); err != nil || steps != 1 {
		t.Fatalf("%d steps, %v", steps, err)
	}
	const words = "newer version"
	wantSchemaError(t, open(), words)
	_, err := Migrate(t.Context(), dsn)
	wantSchemaError(t, err, words)
	if steps, err := migrate(t.Context(), dsn, append(all[:known:known], beside)); err != nil || steps != 0 {
		t.Errorf("the oldest binary that may run: %d steps, %v", steps, err)
	}
}

func TestFailedStepLeavesNothing(t *testing.T) {
	t.Parallel()
	dsn := newSchema(t)
	all := allSteps(t)
	step := migrations.Step{Version: len(all) + 1, Name: "half.sql", SQL: "CREATE TABLE half (x integer); SELECT 1 / 0; CREATE TABLE whole (x integer)", Checksum: "half", Oldest: 1}
	if steps, err := migrate(t.Context(), dsn, append(all, step)); err == nil || steps != len(all) || !strings.Contains(err.Error(), step.Name) {
		t.Fatalf("%d steps, %v; want an error that names the file behind %d steps", steps, err, len(all))
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	var nothing bool
	if err := conn.QueryRow(t.Context(), "SELECT to_regclass('half') IS NULL AND to_regclass('whole') IS NULL").Scan(&nothing); err != nil || !nothing {
		t.Errorf("a table of the failed step is there (%v)", err)
	}
	openStore(t, dsn, Options{}) // at the last taken step
	step.SQL = "CREATE TABLE half (x integer)"
	if steps, err := migrate(t.Context(), dsn, append(all, step)); err != nil || steps != 1 {
		t.Errorf("the mended step: %d steps, %v", steps, err)
	}
}

// TestVacuumSettings: tables with rows that are updated or deleted have settings for autovacuum.
func TestVacuumSettings(t *testing.T) {
	t.Parallel()
	dsn := newSchema(t)
	if _, err := Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	const sql = "SELECT relname FROM pg_class WHERE relnamespace = current_schema::regnamespace AND reloptions @> " +
		"'{autovacuum_vacuum_scale_factor=0.01,autovacuum_vacuum_cost_delay=0}' ORDER BY relname"
	rows, err := connect(t, dsn).Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	want := []string{"moorage_change", "moorage_lease", "moorage_lease_session", "moorage_lease_want"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v (%v), want %v", got, err, want)
	}
}
