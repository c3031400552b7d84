package pgserver

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// Everything committed on a primary exists on its standby when the standby is promoted.
func TestStandby(t *testing.T) {
	t.Parallel()
	primary, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { primary.Stop() })
	standby, err := primary.Standby(primary.DSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { standby.Stop() })
	execute(t, primary, "CREATE TABLE kept (n int)")
	execute(t, primary, "INSERT INTO kept VALUES (7)")
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := standby.Promote(); err != nil {
		t.Fatal(err)
	}
	execute(t, standby, "UPDATE kept SET n = 1 / (n - 6)") // fails unless the 7 exists
}

func execute(t *testing.T, s *Server, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	tag, err := conn.Exec(t.Context(), sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	if tag.Update() && tag.RowsAffected() != 1 {
		t.Errorf("%s: %s", sql, tag)
	}
}
