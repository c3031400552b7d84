package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"moorage/internal/cli"
)

// TestStatusThatCannotBeRead changes maintenance as a caller that may change but not see it. The
// command must report success. If the status cannot be read for any other reason, the command must
// report that, and the change before it.
func TestStatusThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status  int // 0: the server does not answer
		isFault bool
	}{
		"forbidden":               {http.StatusForbidden, false},
		"not found":               {http.StatusNotFound, false},
		"a server that is away":   {http.StatusServiceUnavailable, true},
		"a server that is silent": {0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var changes atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasSuffix(r.URL.Path, "/maintenance/status") && tt.status == 0:
					panic(http.ErrAbortHandler)
				case strings.HasSuffix(r.URL.Path, "/maintenance/status"):
					w.WriteHeader(tt.status)
					_, _ = io.WriteString(w, fmt.Sprintf(`{"error":{"message":"no","type":"XException","code":%d}}`, tt.status))
				case strings.HasSuffix(r.URL.Path, "/run"):
					changes.Add(1)
					_, _ = io.WriteString(w, `{"object":{"warehouse":"w","namespace":["a"],"table":"t"},"outcome":"begun","job":"j1"}`)
				case strings.HasSuffix(r.URL.Path, "/preview"):
					_, _ = io.WriteString(w, `{"tables":[],"next-page-token":null}`)
				default:
					changes.Add(1)
					_, _ = io.WriteString(w, `{}`)
				}
			}))
			defer server.Close()
			for does, command := range map[string][]string{
				"it is enabled": {"maintain", "set", "server", "snapshots", "on"},
				"it is resumed": {"maintain", "resume", "server"},

				"the job j1 is begun": {"maintain", "run", "snapshots", "w.a.t"},
			} {
				got := runToEnd(t, append(command, "--uri", server.URL)...)
				if tt.isFault && (got.code != cli.ExitFailed || !strings.Contains(got.stderr, does)) {
					t.Errorf("%s: %+v", does, got)
				}
				if !tt.isFault && got.code != cli.ExitDone {
					t.Errorf("%s: %+v", does, got)
				}
			}
			if changes.Load() != 3 {
				t.Errorf("%d changes were made, want 3", changes.Load())
			}
		})
	}
}

// TestReadingIsNoChange checks commands that only read, although they send a POST. If the answer is
// lost, the command fails, but does not say that a change may have happened.
func TestReadingIsNoChange(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer server.Close()
	for line, want := range map[string]int{
		"explain read on warehouse w for key:etl":       cli.ExitFailed,
		"maintain run snapshots w.a.t --dry-run":        cli.ExitFailed,
		"maintain run orphans warehouse w --dry-run":    cli.ExitFailed,
		"maintain set server snapshots on --dry-run":    cli.ExitFailed,
		"maintain run snapshots w.a.t":                  cli.ExitUnknown,
		"maintain set server snapshots off":             cli.ExitUnknown,
		"doctor retry a1000000000000000000000000000000": cli.ExitUnknown,
	} {
		if got := runToEnd(t, append(strings.Fields(line), "--uri", server.URL)...); got.code != want {
			t.Errorf("%s: %+v, want exit code %d", line, got, want)
		}
	}
}
