package postgres

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"moorage/migrations"
)

func allSteps(t *testing.T) []migrations.Step {
	t.Helper()
	all, err := migrations.Steps()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// wantSchemaError fails unless err is ErrSchema, in one line that has these words in it.
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

// TestFormatIsRefused opens databases whose tables are right, but whose records may not be.
func TestFormatIsRefused(t *testing.T) {
	t.Parallel()
	for sql, words := range map[string]string{
		`UPDATE moorage_format SET value = '{"version":2}'`: "newer version (format 2, this one reads up to 1)",
		`UPDATE moorage_format SET value = '{"version":0}'`: "format is 0",
		`DELETE FROM moorage_format`:                        "nothing says which format",
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
	_, err := migrate(t.Context(), dsn, all[:len(all)-1])
	wantSchemaError(t, err, "newer")
	other := append([]migrations.Step(nil), all...)
	other[0].Checksum = strings.Repeat("0", 64)
	_, err = migrate(t.Context(), dsn, other)
	wantSchemaError(t, err, all[0].Name)
	next := migrations.Step{Version: len(all) + 1, Name: "next.sql", SQL: "CREATE TABLE next (x integer)", Checksum: "next"}
	if steps, err := migrate(t.Context(), dsn, append(all, next)); err != nil || steps != 1 {
		t.Fatalf("%d steps, %v", steps, err)
	}
	wantSchemaError(t, open(), "newer")
	_, err = Migrate(t.Context(), dsn)
	wantSchemaError(t, err, "newer")
}

func TestFailedStepLeavesNothing(t *testing.T) {
	t.Parallel()
	dsn := newSchema(t)
	all := allSteps(t)
	step := migrations.Step{Version: len(all) + 1, Name: "half.sql", SQL: "CREATE TABLE half (x integer); SELECT 1 / 0; CREATE TABLE whole (x integer)", Checksum: "half"}
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
	openStore(t, dsn, Options{}) // at the last step that was taken
	step.SQL = "CREATE TABLE half (x integer)"
	if steps, err := migrate(t.Context(), dsn, append(all, step)); err != nil || steps != 1 {
		t.Errorf("the mended step: %d steps, %v", steps, err)
	}
}
