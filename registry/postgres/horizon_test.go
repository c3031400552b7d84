package postgres

import (
	"strings"
	"testing"
	"time"
)

// TestHorizon finds a transaction that stays open, like that of a dump, and finds no holder after
// its end.
func TestHorizon(t *testing.T) {
	t.Parallel()
	store := newStore(t, "&application_name=dump")
	horizon := store.Horizon()
	tx, err := store.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"); err != nil {
		t.Fatal(err)
	}
	var pid string
	if err := tx.QueryRow(t.Context(), "SELECT pg_backend_pid()::text FROM moorage_pointer RIGHT JOIN (SELECT 1) one ON true").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	mine := "process " + pid + " of user"
	if _, err := tx.Exec(t.Context(), "SELECT pg_sleep(0.01)"); err != nil {
		t.Fatal(err)
	}
	oldest, err := horizon.Oldest(t.Context())
	if err != nil || oldest.Age <= 0 || !strings.Contains(oldest.What, "process ") {
		t.Fatalf("an open transaction: %+v (%v)", oldest, err)
	}
	// Another test may have an older one in this database.
	if !strings.HasPrefix(oldest.What, mine) && oldest.Age < 10*time.Millisecond {
		t.Errorf("found %+v, want %s or something older", oldest, mine)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if oldest, err = horizon.Oldest(t.Context()); err != nil || strings.HasPrefix(oldest.What, mine) {
		t.Errorf("after its end: %+v (%v)", oldest, err)
	}
}
