package web

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"moorage"
)

// The first refusal of an operation, status and path gets a line at once. After that, each minute
// with further refusals gets one line, with the number of those left out.
func TestRefusalsAreSummed(t *testing.T) {
	t.Parallel()
	var f refusals
	load, commit := &operation{name: "load"}, &operation{name: "commit"}
	began := time.Unix(1_000_000, 0)
	for n, row := range []struct {
		of      refusal
		after   time.Duration
		skipped int
		due     bool
	}{
		{refusal{load, 404, "/a"}, 0, 0, true},
		{refusal{load, 404, "/a"}, time.Second, 0, false},
		{refusal{load, 404, "/b"}, time.Second, 0, true},
		{refusal{load, 409, "/a"}, time.Second, 0, true},
		{refusal{commit, 404, "/a"}, time.Second, 0, true},
		{refusal{load, 404, "/a"}, refusalsPause - 1, 0, false},
		{refusal{load, 404, "/a"}, refusalsPause, 2, true},
		{refusal{load, 404, "/a"}, refusalsPause + 1, 0, false},
		{refusal{load, 404, "/b"}, 5 * refusalsPause, 0, true},
		{refusal{load, 404, "/a"}, 5 * refusalsPause, 1, true},
	} {
		if skipped, due := f.next(row.of, began.Add(row.after)); skipped != row.skipped || due != row.due {
			t.Errorf("row %d: line %t with %d skipped, want %t with %d", n, due, skipped, row.due, row.skipped)
		}
	}
}

// However many paths are requested, only a limited number is remembered, and all others share a
// line.
func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	var f refusals
	load := &operation{name: "load"}
	now := time.Unix(1_000_000, 0)
	lines := 0
	const paths = 5 * refusalsMax
	for n := range paths {
		if _, due := f.next(refusal{load, 404, fmt.Sprint("/", n)}, now); due {
			lines++
		}
	}
	if lines != refusalsMax+1 || len(f.lines) != refusalsMax+1 {
		t.Errorf("%d lines, and %d paths are remembered, want %d", lines, len(f.lines), refusalsMax+1)
	}
	now = now.Add(refusalsPause)
	skipped, due := f.next(refusal{load, 404, strings.Repeat("x", refusalPathBytesMax+1)}, now)
	if want := paths - refusalsMax - 1; skipped != want || !due {
		t.Errorf("a long path has a line: %t, with %d skipped, want %d", due, skipped, want)
	}
	if _, due := f.next(refusal{load, 404, "/new"}, now); !due || len(f.lines) > 2 {
		t.Errorf("after a minute a new path has a line: %t, and %d are remembered", due, len(f.lines))
	}
}

// Every 404 is summed, and so is 409 for the operations passed to SumRefusals. At debug level each
// request has a line.
func TestRefusalsInTheLog(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		operation string
		kind      moorage.Kind
		level     slog.Level
		lines     int // of 10 requests
	}{
		{"load", moorage.KindNoSuchTable, slog.LevelInfo, 1},
		{"load", moorage.KindCommitFailed, slog.LevelInfo, 1},
		{"load", moorage.KindBadRequest, slog.LevelInfo, 10},
		{"load", moorage.KindNoSuchTable, slog.LevelDebug, 10},
		{"drop", moorage.KindNoSuchTable, slog.LevelInfo, 1},
		{"drop", moorage.KindCommitFailed, slog.LevelInfo, 10},
		{"drop", moorage.KindNotAuthorized, slog.LevelInfo, 1},
		{"drop", moorage.KindTooManyRequests, slog.LevelInfo, 1},
	} {
		var log bytes.Buffer
		s := New(Config{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: row.level}))})
		s.SumRefusals("load")
		s.Handle(row.operation, http.MethodGet, "/x", func(http.ResponseWriter, *http.Request) error {
			return moorage.Errorf(row.kind, "No")
		})
		for range 10 {
			s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/x", nil))
		}
		if got := strings.Count(log.String(), "msg=request"); got != row.lines {
			t.Errorf("%s, %s, from level %s on: %d lines, want %d:\n%s", row.operation, row.kind, row.level, got, row.lines, &log)
		}
	}
}

// A stranger cannot fill the log. Lines are short, whatever the request contains. Requests that are
// refused before authentication share one line a minute for each address.
func TestStrangersInTheLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := New(Config{
		Logger: slog.New(slog.NewTextHandler(&log, nil)), Hosts: []string{"lake"},
		Authenticate: func(*http.Request) (moorage.Caller, error) {
			return moorage.Caller{}, moorage.Errorf(moorage.KindNotAuthorized, "Invalid credentials")
		},
	})
	s.Handle("load", http.MethodGet, "/x/{name}", func(http.ResponseWriter, *http.Request) error { return nil })
	for i := range 100 {
		length := 9 << 10
		if i < 2 {
			length = 900 << 10
		}
		long := strings.Repeat("y", length)
		for _, host := range []string{"lake", "evil." + long} {
			for _, path := range []string{"/x/", "/none/"} {
				r := httptest.NewRequest(http.MethodGet, path+strconv.Itoa(i)+long, nil)
				r.Host, r.Method = host, http.MethodGet
				if path == "/none/" {
					r.Method = "Z" + long
				}
				s.ServeHTTP(httptest.NewRecorder(), r)
			}
		}
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) > 6 {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if len(line) > 2000 {
			t.Errorf("a line has %d bytes: %.300s", len(line), line)
		}
	}
}
