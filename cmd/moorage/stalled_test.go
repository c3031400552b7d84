package main

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"moorage/internal/pgtest"
	"moorage/internal/tcptest"
)

// TestStopWithAStalledDatabase stops servers whose database takes everything and answers nothing, while a commit waits for it and
// while nothing does: they end soon after the time that requests have.
func TestStopWithAStalledDatabase(t *testing.T) {
	t.Parallel()
	database, err := pgtest.Start("fsync=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := database.Stop(); err != nil {
			t.Error(err)
		}
	})
	const grace, most = 100 * time.Millisecond, 8 * time.Second
	for _, busy := range []bool{false, true} {
		dsn, err := url.Parse(database.DSN())
		if err != nil {
			t.Fatal(err)
		}
		proxy, err := tcptest.New(dsn.Host)
		if err != nil {
			t.Fatal(err)
		}
		dsn.Host = proxy.Addr()
		server := startServe(t, "--store", dsn.String(), "--migrate", "--data", t.TempDir(), "--shutdown-timeout", grace.String())
		if code, body := server.request(t, "POST", "/v1/namespaces", strings.Replace(createNamespace, "harbour", server.uri, 1)); code != http.StatusOK {
			t.Fatalf("create namespace: %d %s", code, body)
		}
		proxy.Stall()
		var client sync.WaitGroup
		if busy {
			client.Go(func() {
				response, err := http.Post(server.uri+"/v1/namespaces", "application/json", strings.NewReader(createNamespace))
				if err == nil {
					response.Body.Close()
					t.Errorf("a request that the database does not answer: %s", response.Status)
				}
			})
			for !strings.Contains(metricsOf(t, server), "moorage_http_requests_in_flight 2") {
				continue // this request is one
			}
		}
		began := time.Now()
		server.stop()
		if took := time.Since(began); took > grace+most {
			t.Errorf("busy %t: it took %s to end", busy, took)
		}
		client.Wait()
		proxy.Restore()
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	}
}

func metricsOf(t *testing.T, server *served) string {
	t.Helper()
	_, body := server.request(t, "GET", "/metrics", "")
	return body
}
