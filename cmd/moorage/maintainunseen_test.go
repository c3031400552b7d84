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

// TestStatusThatCannotBeRead: a caller that may change maintenance, and may not see it, is told
// that it is done. Any other failure to read the status is told, and what was done before.
func TestStatusThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status  int // 0: the server answers nothing
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
			} {
				got := runToEnd(t, append(command, "--uri", server.URL)...)
				if tt.isFault && (got.code != cli.ExitFailed || !strings.Contains(got.stderr, does)) {
					t.Errorf("%s: %+v", does, got)
				}
				if !tt.isFault && got.code != cli.ExitDone {
					t.Errorf("%s: %+v", does, got)
				}
			}
			if changes.Load() != 2 {
				t.Errorf("%d changes were made, want 2", changes.Load())
			}
		})
	}
}
