package main

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"moorage/internal/cli"
)

const waitingLine = "waiting for the database, which does not answer"

// TestStoreWait starts a server while its database is down. The server logs that, listens only when
// the database is available, and then serves requests.
func TestStoreWait(t *testing.T) {
	t.Parallel()
	database := startPostgres(t)
	if err := database.Kill(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	server := &served{stdout: newLockedBuffer(), stderr: newLockedBuffer()}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx, []string{"serve", "--listen", "127.0.0.1:0", "--store", database.DSN(), "--migrate", "--data", t.TempDir(), "--store-wait", "5m"},
			cli.Environment{Stdout: server.stdout, Stderr: server.stderr})
	}()
	defer func() { stop(); await(t, ended, "the server to stop") }()
	for !strings.Contains(server.stderr.String(), waitingLine) {
		select {
		case <-server.stderr.written:
		case <-ended:
			t.Fatalf("the server ended: %s", server.stderr)
		}
	}
	if err := database.Restart(); err != nil {
		t.Fatal(err)
	}
	server.uri = server.awaitReady(t, ended)
	if code, body := server.request(t, "GET", "/readyz", ""); code != http.StatusOK {
		t.Errorf("ready: %d %s", code, body)
	}
	if log := server.stderr.String(); strings.Count(log, waitingLine) > 1+int(time.Minute/storeWaitLogged) {
		t.Errorf("it says too often that it waits:\n%s", log)
	}
}

// TestStoreWaitEnds checks that a start fails with one sentence: at the end of the wait if the
// database stays away, and at once if the database refuses the server.
func TestStoreWaitEnds(t *testing.T) {
	t.Parallel()
	database := startPostgres(t)
	wrong := strings.Replace(database.DSN(), "/postgres?", "/nowhere?", 1)
	if got := runToEnd(t, "serve", "--store", wrong, "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--store-wait", "1h"); got.code != cli.ExitFailed ||
		!strings.Contains(got.stderr, "nowhere") || strings.Contains(got.stderr, waitingLine) {
		t.Errorf("a database that there is not: %+v", got)
	}
	if err := database.Kill(); err != nil {
		t.Fatal(err)
	}
	for wait, waits := range map[string]bool{"0s": false, "5s": true} {
		got := runToEnd(t, "serve", "--store", database.DSN(), "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--store-wait", wait)
		log, sentence, found := strings.Cut(got.stderr, "moorage: ")
		if got.code != cli.ExitFailed || !found || strings.Count(sentence, "\n") != 1 || !strings.Contains(sentence, "connection refused") ||
			strings.Contains(sentence, "--store-wait") != waits || strings.Contains(log, waitingLine) != waits {
			t.Errorf("a database that is away, with a wait of %s: %+v", wait, got)
		}
	}
}
