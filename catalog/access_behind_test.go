package catalog_test

import (
	"strings"
	"testing"

	"moorage"

	"github.com/jackc/pgx/v5"
)

// While a node runs that knows nothing of access, it is not switched on: it would let everybody in.
func TestEnableIsRefusedWhileAnOldNodeRuns(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t)
	s := secure(t, openPostgres(t, dsn, newLockedRandom(1)), false)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec("INSERT INTO moorage_lease_session (session, renewed, version, address) " +
		"VALUES ('old', clock_timestamp(), 'v0.1', 'ship:8181')")
	err = s.admin().Enable(t.Context())
	if moorage.KindOf(err) != moorage.KindIllegalArgument || !strings.Contains(moorage.MessageOf(err), "ship:8181 (version v0.1)") {
		t.Fatalf("%v", err)
	}
	if on, err := s.admin().IsOn(t.Context()); on || err != nil {
		t.Errorf("it is on: %v, %v", on, err)
	}
	exec("DELETE FROM moorage_lease_session")
	if err := s.admin().Enable(t.Context()); err != nil {
		t.Error(err)
	}
}
