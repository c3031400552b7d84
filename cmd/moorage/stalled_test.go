package main

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"moorage/testkit/loopback"
	"moorage/testkit/pgserver"
)

// stalledMost is how long a server may take to end, beyond the time for requests, if its database
// accepts everything but never answers.
const stalledMost = 8 * time.Second

// TestStopWithAStalledDatabase stops servers whose database accepts everything but never answers,
// once while a commit waits for the database and once while they are idle. The servers must end
// soon after the time for requests. The test tries that a few times, because the machine itself may
// also have stalled.
func TestStopWithAStalledDatabase(t *testing.T) {
	t.Parallel()
	database := startPostgres(t)
	for _, busy := range []bool{false, true} {
		var took []time.Duration
		for len(took) == 0 || len(took) < 4 && slices.Min(took) > stalledMost {
			took = append(took, stopStalled(t, database, busy))
		}
		if slices.Min(took) > stalledMost {
			t.Errorf("busy %t: it took %s to end, want %s at most", busy, took, stalledMost)
		}
	}
}

// stopStalled stops a server while its database stalls. It returns how long the server took to end,
// beyond the time for requests. If busy is true, a request is in progress.
func stopStalled(t *testing.T, database *pgserver.Server, busy bool) (took time.Duration) {
	t.Helper()
	const grace = 100 * time.Millisecond
	dsn, err := url.Parse(database.DSN())
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := loopback.NewProxy(dsn.Host)
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
			continue // this is the request of the test itself
		}
	}
	began := time.Now()
	server.stop()
	took = time.Since(began) - grace
	client.Wait()
	proxy.Restore()
	if err := proxy.Close(); err != nil {
		t.Error(err)
	}
	return took
}

func metricsOf(t *testing.T, server *served) string {
	t.Helper()
	_, body := server.request(t, "GET", "/metrics", "")
	return body
}
