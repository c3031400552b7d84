package main

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"moorage/testkit/loopback"
	"moorage/testkit/pgserver"
)

// TestStandbyAway runs a server while the synchronous standby of its database is down. The server
// refuses commits once all connections for writes wait for the standby. Loads, lists and readiness
// are not affected. When the standby is back, commits work again.
func TestStandbyAway(t *testing.T) {
	t.Parallel()
	database := startPostgres(t)
	target, err := url.Parse(database.DSN())
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := loopback.NewProxy(target.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	target.Host = proxy.Addr()
	standby, err := database.Standby(target.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = standby.Stop() })
	server := startServe(t, "--store", database.DSN()+"&pool_max_conns=6", "--migrate", "--data", t.TempDir())
	server.makeTable(t)
	proxy.Stall()
	defer proxy.Restore()
	const setProperty = `{"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"b"}}]}`
	ctx, giveUp := context.WithCancel(t.Context())
	refused := make(chan struct{})
	once := sync.OnceFunc(func() { close(refused) })
	var commits sync.WaitGroup
	for n := range 20 {
		commits.Go(func() {
			path := "/v1/namespaces"
			body := strings.Replace(createNamespace, "harbour", "n"+string(rune('a'+n)), 1)
			if n%2 == 0 {
				path, body = tablePath, setProperty
			}
			request, err := http.NewRequestWithContext(ctx, "POST", server.uri+path, strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			request.Header.Set("Content-Type", "application/json")
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				return // it was given up
			}
			_ = response.Body.Close()
			switch response.StatusCode {
			case http.StatusServiceUnavailable:
				once()
			case http.StatusOK:
				t.Errorf("POST %s was answered without the standby", path)
			}
		})
	}
	await(t, refused, "a commit to be refused")
	for _, path := range []string{tablePath, "/v1/namespaces", "/v1/namespaces/harbour/tables", "/readyz"} {
		if code, body := server.request(t, "GET", path, ""); code != http.StatusOK {
			t.Errorf("%s while the standby is away: %d %s", path, code, body)
		}
	}
	giveUp()
	commits.Wait()
	proxy.Restore()
	for code := 0; code != http.StatusOK; {
		var body string
		if code, body = server.request(t, "POST", tablePath, setProperty); code != http.StatusOK && code != http.StatusServiceUnavailable {
			t.Fatalf("the standby is back: %d %s", code, body)
		}
	}
}

// TestServeNearWraparound runs a server on a database that answers each write with a warning. The
// server must treat all writes as successful.
func TestServeNearWraparound(t *testing.T) {
	t.Parallel()
	database, err := pgserver.Start("fsync=off", "wal_level=logical")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = database.Stop() })
	if err := database.NearWraparound(t.Context()); err != nil {
		t.Fatal(err)
	}
	server := startServe(t, "--store", database.DSN(), "--migrate", "--data", t.TempDir())
	server.makeTable(t)
	conn, err := pgx.Connect(t.Context(), database.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	var before, after int64
	const nextID = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
	if err := conn.QueryRow(t.Context(), nextID).Scan(&before); err != nil {
		t.Fatal(err)
	}
	if code, body := server.request(t, "POST", tablePath, `{"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"b"}}]}`); code != http.StatusOK {
		t.Errorf("commit: %d %s", code, body)
	}
	if err := conn.QueryRow(t.Context(), nextID).Scan(&after); err != nil {
		t.Fatal(err)
	}
	if log := server.stderr.String(); strings.Contains(log, "outcome of a write") {
		t.Errorf("a write was not known to have happened:\n%s", log)
	}
	// Heartbeats and sweeps also take some.
	if took := after - before; took > 100 {
		t.Errorf("a commit took %d transaction ids, of which the server is short", took)
	}
}
