package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"moorage/internal/cli"
)

// startDemo runs moorage demo in this process, and stops it when the test ends.
func startDemo(t *testing.T, args ...string) *served {
	t.Helper()
	ctx, signal := context.WithCancel(context.Background())
	s := &served{stdout: newLockedBuffer(), stderr: newLockedBuffer()}
	var code int
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		code = run(ctx, append([]string{"demo"}, args...), cli.Environment{Stdout: s.stdout, Stderr: s.stderr, Now: time.Now})
	}()
	s.wait = func() int {
		await(t, ended, "the demo to stop")
		return code
	}
	s.stop = func() int {
		signal()
		return s.wait()
	}
	t.Cleanup(func() { s.stop() })
	timeout := time.After(patience)
	for {
		if found := demoLine.FindStringSubmatch(s.stdout.String()); found != nil {
			s.uri = found[1]
			return s
		}
		select {
		case <-s.stdout.written:
		case <-ended:
			t.Fatalf("the demo ended; stderr:\n%s", s.stderr)
		case <-timeout:
			t.Fatalf("the demo is not ready; stderr:\n%s", s.stderr)
		}
	}
}

var demoLine = regexp.MustCompile(`(?m)^Moorage demo at (http://\S+), data in `)

// TestDemo checks that the sample tables exist when the demo reports them. They must still exist at
// the next start, with all changes in between. The output fits a terminal, and nothing is logged.
func TestDemo(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "demo")
	s := startDemo(t, "--data", data, "--listen", "127.0.0.1:0")
	if code, body := s.request(t, "GET", "/readyz", ""); code != http.StatusOK {
		t.Errorf("/readyz: %d %s", code, body)
	}
	code, body := s.request(t, "GET", "/v1/namespaces/harbour/tables/voyages", "")
	if code != http.StatusOK || !strings.Contains(body, `"total-records":"50000"`) {
		t.Errorf("voyages: %d %.400s", code, body)
	}
	for line := range strings.SplitSeq(strings.TrimSpace(s.stdout.String()), "\n") {
		if len(line) > 80 && !strings.Contains(line, data) { // the folder of a test has a long name
			t.Errorf("printed a line of %d columns: %s", len(line), line)
		}
	}
	if log := s.stderr.String(); log != "" {
		t.Errorf("logged\n%s", log)
	}
	if code, body := s.request(t, "DELETE", "/v1/namespaces/harbour/tables/ports", ""); code != http.StatusNoContent {
		t.Errorf("drop ports: %d %s", code, body)
	}
	if code := s.stop(); code != 0 {
		t.Fatalf("the demo ended with %d; stderr:\n%s", code, s.stderr)
	}
	again := startDemo(t, "--data", data, "--listen", "127.0.0.1:0")
	if code, _ := again.request(t, "GET", "/v1/namespaces/harbour/tables/voyages", ""); code != http.StatusOK {
		t.Errorf("voyages after another start: %d", code)
	}
	if code, _ := again.request(t, "GET", "/v1/namespaces/harbour/tables/ports", ""); code != http.StatusNotFound {
		t.Errorf("the dropped table after another start: %d", code)
	}
}

// TestDemoFolder checks that a folder with other content is refused, and does not change.
func TestDemoFolder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "mine"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := runToEnd(t, "demo", "--data", folder, "--listen", "127.0.0.1:0")
	if got.code != cli.ExitFailed || !strings.Contains(got.stderr, folder+" is not empty, and no demo made it") {
		t.Errorf("%+v", got)
	}
	if content, err := os.ReadDir(folder); err != nil || len(content) != 1 {
		t.Errorf("the folder has %v: %v", content, err)
	}
	if got := runToEnd(t, "demo", "--data", folder, "--listen", "0.0.0.0:0"); got.code != cli.ExitUsage {
		t.Errorf("beyond loopback: %+v", got)
	}
}

// TestDemoPort checks that, if the default port is in use, the demo takes the next of ten ports. A
// port that the user has named is never replaced.
func TestDemoPort(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	taken, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, text, _ := net.SplitHostPort(taken.Addr().String())
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	free, err := freeAddress(t.Context(), taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ = net.SplitHostPort(free)
	if next, err := strconv.Atoi(text); err != nil || next <= port || next >= port+demoPorts {
		t.Errorf("in place of %d it takes %s", port, free)
	}
	folder := filepath.Join(t.TempDir(), "demo")
	got := runToEnd(t, "demo", "--data", folder, "--listen", taken.Addr().String())
	if got.code != cli.ExitFailed || !strings.Contains(got.stderr, "is in use by another process") {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(folder); err == nil {
		t.Error("the folder was made")
	}
}

// TestDemoIsNotReadyBefore checks that /readyz answers 503 until the sample tables exist.
func TestDemoIsNotReadyBefore(t *testing.T) {
	t.Parallel()
	n := new(node)
	ready := n.filled(func(context.Context) error { return nil })
	n.isFilling.Store(true)
	if ready(t.Context()) == nil {
		t.Error("ready while it is being filled")
	}
	n.isFilling.Store(false)
	if err := ready(t.Context()); err != nil {
		t.Error(err)
	}
}
