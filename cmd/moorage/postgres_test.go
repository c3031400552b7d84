package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"moorage/internal/cli"
	"moorage/migrations"
	"moorage/testkit/pgserver"
)

// startPostgres starts a PostgreSQL server for t alone.
func startPostgres(t *testing.T) *pgserver.Server {
	t.Helper()
	database, err := pgserver.Start("fsync=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := database.Stop(); err != nil {
			t.Error(err)
		}
	})
	return database
}

// TestPostgres runs two servers on one database. The next request to one server sees the changes
// made by the other.
func TestPostgres(t *testing.T) {
	t.Parallel()
	database := startPostgres(t)
	store, data := database.DSN(), t.TempDir()

	if got := runToEnd(t, "serve", "--store", store, "--data", data, "--listen", "127.0.0.1:0"); got.code != cli.ExitFailed || !isSentence(got.stderr, "run moorage migrate") {
		t.Errorf("serve without tables: %+v", got)
	}
	steps, err := migrations.Steps()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{fmt.Sprintf("after %d step", len(steps)), "the tables are up to date\n"} {
		if got := runToEnd(t, "migrate", "--store", store); got.code != cli.ExitDone || !strings.Contains(got.stdout, want) {
			t.Errorf("migrate: %+v, want %q", got, want)
		}
	}

	one := startServe(t, "--store", store, "--data", data)
	two := startServe(t, "--store", store, "--data", data, "--migrate")
	one.makeTable(t)
	if code, body := two.request(t, "GET", tablePath, ""); code != http.StatusOK {
		t.Errorf("load on the other: %d %s", code, body)
	}
	const rename = `{"source":{"namespace":["harbour"],"name":"ships"},"destination":{"namespace":["harbour"],"name":"boats"}}`
	if code, body := one.request(t, "POST", "/v1/tables/rename", rename); code != http.StatusNoContent {
		t.Errorf("rename: %d %s", code, body)
	}
	const boats = "/v1/namespaces/harbour/tables/boats"
	for path, want := range map[string]int{tablePath: http.StatusNotFound, boats: http.StatusOK} {
		if code, body := two.request(t, "GET", path, ""); code != want {
			t.Errorf("after the rename: %s: %d %s", path, code, body)
		}
	}
	if code, body := two.request(t, "DELETE", boats, ""); code != http.StatusNoContent {
		t.Errorf("drop: %d %s", code, body)
	}
	if code, body := one.request(t, "GET", boats, ""); code != http.StatusNotFound {
		t.Errorf("after the drop: %d %s", code, body)
	}
	// Each server has locked its changes against the other.
	conn, err := pgx.Connect(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	// Each change gets its position, although no client reads them in order.
	for waiting, begun := 1, time.Now(); waiting > 0; {
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM moorage_change WHERE awaits").Scan(&waiting); err != nil || time.Since(begun) > time.Minute {
			t.Fatalf("%d changes wait for their places (%v)", waiting, err)
		}
	}
	var sessions int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM moorage_lease_session").Scan(&sessions); err != nil || sessions != 2 {
		t.Errorf("sessions of locks: got %d, error %v, want one for each server", sessions, err)
	}
	if got := runToEnd(t, "doctor", "--deep", "--store", store); got.code != cli.ExitDone || !strings.Contains(got.stdout, "no problems") {
		t.Errorf("check: %+v", got)
	}
	log := one.stderr.String()
	if strings.Contains(log, "postgres://") {
		t.Errorf("the log shows the connection string:\n%s", log)
	}
	if !strings.Contains(log, "fsync") {
		t.Errorf("no warning of a server that syncs nothing:\n%s", log)
	}
}

func TestMigrateFaults(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"migrate"}, {"migrate", "--store", "memory"}, {"serve", "--migrate"}, {"serve", "--store", t.TempDir(), "--migrate"},
	} {
		if got := runToEnd(t, args...); got.code != cli.ExitUsage || !strings.Contains(got.stderr, "--store") {
			t.Errorf("%q: %+v", args, got)
		}
	}
}
