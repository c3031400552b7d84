package rest

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"moorage"
	"moorage/internal/web"
)

func TestSamplesAreAllOperations(t *testing.T) {
	t.Parallel()
	var want, got []string
	for _, op := range NewServer(TestConfig{Catalog: &fakeCatalog{}}).operations() {
		want = append(want, op.id)
	}
	for _, s := range samples() {
		got = append(got, s.operation)
	}
	for _, id := range want {
		if !strings.Contains(strings.Join(got, " ")+" ", id+" ") {
			t.Errorf("no sample for %s", id)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d samples for %d operations", len(got), len(want))
	}
}

// Messages to clients are also cut.
func TestLongMessage(t *testing.T) {
	t.Parallel()
	const messageBytesMax = 2 << 10
	fake := &fakeCatalog{fail: moorage.Errorf(moorage.KindBadRequest, "%s", strings.Repeat("x", 1<<20))}
	if got := wantFailure(t, send(NewServer(TestConfig{Catalog: fake}), "GET", "/v1/namespaces", ""), 400, "BadRequestException"); len(got) > messageBytesMax+len("…") {
		t.Errorf("a message of %d bytes", len(got))
	}
}

// Every operation answers every kind of failure with the status and the type in the table.
func TestEveryKindInEveryOperation(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		for _, kind := range moorage.Kinds() {
			t.Run(s.operation+"/"+kind.String(), func(t *testing.T) {
				t.Parallel()
				if s.operation == "reportMetrics" {
					return // it does not call the catalog: see TestMetricsRoute
				}
				var logged bytes.Buffer
				fake := &fakeCatalog{fail: moorage.Annotate("catalog.Op", "secret ident", moorage.Errorf(kind, "the words"))}
				h := NewServer(TestConfig{Catalog: fake, Logger: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelWarn}))})
				w := send(h, s.method, s.path, s.body, "X-Request-Id", "asked-7")
				want := web.FailureOf(kind)
				if got := w.Header().Get("Retry-After"); (got != "") != (kind == moorage.KindUnavailable || kind == moorage.KindTooManyRequests) {
					t.Errorf("Retry-After is %q", got)
				}
				if got := strings.Count(logged.String(), "asked-7"); (got == 1) != (want.Status >= 500) || got > 1 {
					t.Errorf("logged %d times: %s", got, logged.String())
				}
				if s.method == http.MethodHead {
					if w.Code != want.Status || w.Body.Len() != 0 {
						t.Errorf("status is %d, want %d; body %q", w.Code, want.Status, w.Body)
					}
					return
				}
				message := wantFailure(t, w, want.Status, want.Type)
				if kind == moorage.KindInternal {
					if message != want.Fallback {
						t.Errorf("an internal error shows %q", message)
					}
				} else if message != "the words" {
					t.Errorf("message is %q", message)
				}
				if len(fake.calls) != 1 {
					t.Errorf("calls of the catalog: %v", fake.calls)
				}
			})
		}
	}
}

// If an error is not meant for clients, the answer has the fallback message of its kind.
func TestCausesAreNotShown(t *testing.T) {
	t.Parallel()
	for _, kind := range moorage.Kinds() {
		h := NewServer(TestConfig{Catalog: &fakeCatalog{fail: moorage.E("catalog.LoadTable", "a.t", kind, errors.New("open /secret: denied"))}})
		w := send(h, "GET", "/v1/namespaces/a/tables/t", "")
		if message := wantFailure(t, w, web.FailureOf(kind).Status, web.FailureOf(kind).Type); message != web.FailureOf(kind).Fallback {
			t.Errorf("%s: message is %q", kind, message)
		}
	}
	h := NewServer(TestConfig{Catalog: &fakeCatalog{fail: errors.New("no kind at all")}})
	wantFailure(t, send(h, "GET", "/v1/namespaces/a/tables/t", ""), 500, "InternalServerError")
}

func TestPanicIsAnswered(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	fake := &fakeCatalog{do: func(string) error { panic("boom") }}
	h := NewServer(TestConfig{Catalog: fake, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	for _, s := range samples() {
		if s.operation == "reportMetrics" || s.method == http.MethodHead {
			continue
		}
		w := send(h, s.method, s.path, s.body)
		wantFailure(t, w, 500, "InternalServerError")
		if w.Header().Get("X-Request-Id") == "" {
			t.Errorf("%s: no request id", s.operation)
		}
	}
	if !strings.Contains(logged.String(), "reason=boom") || !strings.Contains(logged.String(), "errors_test.go") {
		t.Errorf("the log does not say where: %s", logged.String())
	}
}

// A client that has disconnected gets no answer, and above all none that looks like a success. It
// does not count as a failure of the server.
func TestClientGone(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	fake := &fakeCatalog{do: func(string) error {
		cancel()
		return moorage.E("catalog.LoadTable", "a.t", moorage.KindInternal, ctx.Err())
	}}
	h := NewServer(TestConfig{Catalog: fake, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	w := httptest.NewRecorder()
	func() {
		defer func() {
			if reason := recover(); reason != http.ErrAbortHandler {
				t.Errorf("the connection is not cut: %v", reason)
			}
		}()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "DELETE", "/v1/namespaces/a/tables/t", nil))
	}()
	if w.Body.Len() != 0 || strings.Contains(logged.String(), "level=ERROR") || !strings.Contains(logged.String(), "status=499") {
		t.Errorf("answered %q, logged %q", w.Body, logged.String())
	}
	if metrics := send(h, "GET", "/metrics", "").Body.String(); !strings.Contains(metrics, "\nmoorage_http_requests_in_flight 1\n") {
		t.Errorf("more is in flight than the request for\n%s", metrics)
	}
}

// A page from another origin can make a browser send a POST. No such request reaches the catalog.
func TestForeignPagesChangeNothing(t *testing.T) {
	t.Parallel()
	for _, foreign := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://elsewhere.example"}, {"Origin", "null"}} {
		for _, sample := range samples() {
			fake := &fakeCatalog{}
			w := send(NewServer(TestConfig{Catalog: fake}), sample.method, sample.path, sample.body, append(foreign, "Content-Type", "text/plain")...)
			if sample.method == "GET" || sample.method == "HEAD" {
				continue // the browser hides the answer from the page
			}
			wantFailure(t, w, 403, "ForbiddenException")
			if len(fake.calls) > 0 {
				t.Errorf("%s with %v: the catalog was asked to %s", sample.operation, foreign, fake.calls)
			}
		}
	}
	for _, own := range [][]string{{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "none"}, {"Origin", "http://example.com"}, {}} {
		if w := send(NewServer(TestConfig{Catalog: &fakeCatalog{}}), "DELETE", "/v1/w/namespaces/a", "", own...); w.Code != 204 {
			t.Errorf("with %v: %d %s", own, w.Code, w.Body)
		}
	}
}

func TestUnknownRoutes(t *testing.T) {
	t.Parallel()
	h := NewServer(TestConfig{Catalog: &fakeCatalog{}})
	for _, path := range []string{
		"/v1", "/v1/", "/v2/config", "/v1/w/config", "/v1/oauth", "/v1/w/namespaces/a/functions", "/v1/w/views",
		"/v1/w/namespaces/a/tables/t/plan", "/v1/w/namespaces/a/tables/t/credential", "/v1/w/namespaces/a/tables/t/u/v",
		"/v1/w/transactions", "/v1/transactions/commit/x", "/healthz/x", "//v2/config",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			wantFailure(t, send(h, "PUT", "http://host"+path, ""), 404, "NoSuchRouteException")
			wantFailure(t, send(h, "POST", "http://host"+path, "{}"), 404, "NoSuchRouteException")
		})
	}
}

func TestMethodNotAllowed(t *testing.T) {
	t.Parallel()
	h := NewServer(TestConfig{Catalog: &fakeCatalog{}})
	for _, row := range []struct{ method, path, allow string }{
		{"POST", "/v1/config", "GET"},
		{"DELETE", "/v1/w/namespaces", "GET, POST"},
		{"PUT", "/v1/w/namespaces/a", "GET, HEAD, DELETE"},
		{"GET", "/v1/w/namespaces/a/properties", "POST"},
		{"PATCH", "/v1/w/namespaces/a/tables", "GET, POST"},
		{"PUT", "/v1/namespaces/a/tables/t", "GET, HEAD, POST, DELETE"},
		{"TRACE", "/v1/namespaces/a/tables/a%2Fb", "GET, HEAD, POST, DELETE"},
		{"GET", "/v1/tables/rename", "POST"},
		{"PUT", "/v1/w/namespaces/a/views", "GET, POST"},
		{"PUT", "/v1/namespaces/a/views/v", "GET, HEAD, POST, DELETE"},
		{"GET", "/v1/w/namespaces/a/register-view", "POST"},
		{"DELETE", "/v1/views/rename", "POST"},
		{"PUT", "/healthz", "GET, HEAD"},
		{"POST", "/", "GET, HEAD"},
		{"FETCH", "/v1/config", "GET"},
	} {
		t.Run(row.method+" "+row.path, func(t *testing.T) {
			t.Parallel()
			w := send(h, row.method, row.path, "")
			if got := w.Header().Get("Allow"); got != row.allow {
				t.Errorf("Allow is %q, want %q", got, row.allow)
			}
			if row.method != "HEAD" {
				wantFailure(t, w, 405, "MethodNotAllowedException")
			}
		})
	}
}
