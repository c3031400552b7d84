package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"moorage/internal/cli"
	"moorage/registry"
)

// TestOutgrown lets a newer version raise the version that the store needs while a server runs. The
// server must answer the request in progress, refuse others, and end by itself. It must not start
// again.
func TestOutgrown(t *testing.T) {
	t.Parallel()
	database := startPostgres(t)
	conn, err := pgx.Connect(t.Context(), database.DSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	execute := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for name, raise := range map[string]string{
		"format": fmt.Sprintf(`UPDATE moorage_format SET value = '{"version":%d}'`, registry.FormatVersion+1),
		"step":   `INSERT INTO moorage_step (version, name, checksum, oldest) SELECT max(version) + 1, 'later.sql', '', max(version) + 1 FROM moorage_step`,
	} {
		t.Run(name, func(t *testing.T) {
			// On a slow machine, the server may end before it got all requests.
			for attempt := range 5 {
				answered := outgrow(t, database.DSN(), fmt.Sprint(name, attempt), func() { execute(raise) })
				execute(fmt.Sprintf(`UPDATE moorage_format SET value = '{"version":%d}'`, registry.FormatFirst) + `; DELETE FROM moorage_step WHERE name = 'later.sql'`)
				if answered {
					return
				}
			}
			t.Error("the server closed its port each time before it got all requests")
		})
	}
}

// outgrow runs a server over a store, and calls raise. It reports whether all requests were
// answered before the server closed its port.
func outgrow(t *testing.T, dsn, name string, raise func()) (answered bool) {
	t.Helper()
	server := startServe(t, "--store", dsn, "--data", t.TempDir(), "--migrate")
	finish := server.beginNamespace(t, name)
	began := time.Now()
	raise()
	server.awaitLog(t, "this server refuses requests")
	answered = true
	for path, want := range map[string]int{
		"/readyz": http.StatusServiceUnavailable, "/v1/config": http.StatusServiceUnavailable, "/v1/namespaces": http.StatusServiceUnavailable, "/healthz": http.StatusOK,
	} {
		switch code, body, err := server.send(t, "GET", path, ""); {
		case err != nil && time.Since(began) >= outgrownLinger:
			answered = false
		case err != nil || code != want:
			t.Errorf("%s: %d %s, %v, want %d", path, code, body, err, want)
		}
	}
	if code := finish(); code != http.StatusOK {
		t.Errorf("the request under way: %d", code)
	}
	if code := server.wait(); code != cli.ExitFailed {
		t.Errorf("the server ended with %d", code)
	}
	if log := server.stderr.String(); strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, "needs a newer version") {
		t.Errorf("it logged:\n%s", log)
	}
	again := runToEnd(t, "serve", "--store", dsn, "--data", t.TempDir(), "--listen", "127.0.0.1:0")
	if again.code != cli.ExitFailed || !isSentence(again.stderr, "newer version") {
		t.Errorf("a start: %+v", again)
	}
	return answered
}

// beginNamespace sends the beginning of a request that creates a namespace. It returns when the
// server waits for the rest. finish sends the rest, and returns the status.
func (s *served) beginNamespace(t *testing.T, name string) (finish func() int) {
	t.Helper()
	body, rest := io.Pipe()
	waits := make(chan struct{})
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(waits) }})
	request, err := http.NewRequestWithContext(ctx, "POST", s.uri+"/v1/namespaces", body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Expect", "100-continue")
	transport := &http.Transport{ExpectContinueTimeout: patience}
	answered := make(chan int, 1)
	go func() {
		response, err := transport.RoundTrip(request)
		if err != nil {
			t.Error(err)
			answered <- 0
			return
		}
		_ = response.Body.Close()
		answered <- response.StatusCode
	}()
	await(t, waits, "the server to read the request")
	return func() int {
		defer transport.CloseIdleConnections()
		if _, err := fmt.Fprintf(rest, `{"namespace":[%q],"properties":{}}`, name); err != nil {
			t.Error(err)
		}
		_ = rest.Close()
		select {
		case code := <-answered:
			return code
		case <-time.After(patience):
			t.Error("no answer")
			return 0
		}
	}
}
