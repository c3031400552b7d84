package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"moorage"
)

// A server that trusts whoever reaches it answers only those who ask for it by a name that is its own.
func TestHosts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		hosts []string
		host  string
		mine  bool
	}{
		{nil, "evil.example", true},
		{[]string{}, "", true}, // HTTP/1.0
		{[]string{}, "localhost", true},
		{[]string{}, "LocalHost:8181", true},
		{[]string{}, "localhost.:8181", true},
		{[]string{}, "127.0.0.1", true},
		{[]string{}, "127.1.2.3:80", true},
		{[]string{}, "[::1]:8181", true},
		{[]string{}, "[::1]", true},
		{[]string{}, "[::ffff:127.0.0.1]:8181", true},
		{[]string{}, "evil.example:8181", false},
		{[]string{}, "localhost.evil.example", false},
		{[]string{}, "127.0.0.1.evil.example:8181", false},
		{[]string{}, "192.0.2.7:8181", false},
		{[]string{}, "0.0.0.0:8181", false},
		{[]string{}, "[::]:8181", false},
		{[]string{}, ":8181", false},
		{[]string{"catalog.example"}, "Catalog.Example:443", true},
		{[]string{"catalog.example"}, "catalog.example.", true},
		{[]string{"catalog.example:443"}, "catalog.example:443", true},
		{[]string{"catalog.example:443"}, "catalog.example:80", false},
		{[]string{"catalog.example"}, "localhost", true},
		{[]string{"catalog.example"}, "evil.example", false},
	} {
		h := New(Config{Catalog: &fakeCatalog{}, Hosts: tt.hosts})
		for _, path := range []string{"/v1/config", "/metrics", "/nowhere"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Host = tt.host
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if refused := w.Code == http.StatusMisdirectedRequest; refused == tt.mine {
				t.Errorf("%q of a server called %q, %s: %d, want it to be answered: %t", tt.host, tt.hosts, path, w.Code, tt.mine)
			} else if refused {
				wantFailure(t, w, http.StatusMisdirectedRequest, "MisdirectedRequestException")
			}
		}
	}
}

func wantInFlight(t *testing.T, s *server, want float64) {
	t.Helper()
	var metric dto.Metric
	if err := s.metrics.inFlight.Write(&metric); err != nil {
		t.Fatal(err)
	}
	if got := metric.GetGauge().GetValue(); got != want {
		t.Errorf("%v requests are in flight, want %v", got, want)
	}
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	h := New(Config{Catalog: &fakeCatalog{}})
	seen := map[string]bool{}
	for _, given := range []string{"", "", "has space", "tab\tin", "quote\"d", "back\\slash", "ünïcode", strings.Repeat("x", 129)} {
		id := send(h, "GET", "/healthz", "", "X-Request-Id", given).Header().Get("X-Request-Id")
		if id == given || id == "" || seen[id] {
			t.Errorf("given %q, answered %q", given, id)
		}
		seen[id] = true
	}
	for _, given := range []string{"a", "7f3e-44", "trace/1:2;3", strings.Repeat("x", 128)} {
		if id := send(h, "GET", "/healthz", "", "X-Request-Id", given).Header().Get("X-Request-Id"); id != given {
			t.Errorf("given %q, answered %q", given, id)
		}
	}
	twice := send(h, "GET", "/healthz", "", "X-Request-Id", "a", "X-Request-Id", "b").Header().Get("X-Request-Id")
	if twice == "a" || twice == "b" {
		t.Errorf("given twice, answered %q", twice)
	}
}

func TestAccessLog(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	fake := &fakeCatalog{}
	h := New(Config{Catalog: fake, Logger: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	send(h, "GET", "/v1/w%20x/namespaces", "", "X-Request-Id", "id-1")
	fake.fail = moorage.Errorf(moorage.KindNoSuchNamespace, "gone")
	send(h, "DELETE", "/v1/w/namespaces/a", "", "X-Request-Id", "id-2")
	send(h, "GET", "/nowhere%0A", "", "X-Request-Id", "id-3")
	lines := strings.Split(strings.TrimSpace(logged.String()), "\n")
	for i, want := range []string{
		"level=DEBUG msg=request request_id=id-1 operation=listNamespaces method=GET path=/v1/w%20x/namespaces status=200 bytes=40",
		"level=INFO msg=request request_id=id-2 operation=dropNamespace method=DELETE path=/v1/w/namespaces/a status=404",
		"level=INFO msg=request request_id=id-3 operation=unknown",
	} {
		told := []string{"", "error=gone", `error="No such route: GET /nowhere%0A"`}[i]
		if i >= len(lines) || !strings.Contains(lines[i], want) || !strings.HasSuffix(lines[i], told) || strings.Contains(lines[i], "error=") != (told != "") {
			t.Errorf("line %d: want %q in\n%s", i, want, logged.String())
		}
	}
}

func TestMetricsRoute(t *testing.T) {
	t.Parallel()
	fake := &fakeCatalog{}
	h := New(Config{Catalog: fake})
	for _, s := range samples()[1:9] {
		if s.operation != "createTable" {
			send(h, s.method, s.path, s.body)
		}
	}
	fake.fail = moorage.Errorf(moorage.KindNoSuchTable, "gone")
	send(h, "GET", "/v1/namespaces/a/tables/t", "")
	send(h, "GET", "/nowhere", "")
	send(h, "POST", "/v1/namespaces/a/tables/t/metrics", CommitReportJSON)
	body := send(h, "GET", "/metrics", "").Body.String()
	for _, want := range []string{
		`moorage_http_requests_total{operation="listNamespaces",status="200"} 1`,
		`moorage_http_requests_total{operation="namespaceExists",status="204"} 1`,
		`moorage_http_requests_total{operation="loadTable",status="404"} 1`,
		`moorage_http_requests_total{operation="unknown",status="404"} 1`,
		`moorage_http_request_duration_seconds_count{operation="listTables"} 1`,
		`moorage_http_requests_in_flight 1`,
		`moorage_metrics_reports_total{type="commit-report"} 1`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("no line %q in\n%s", want, body)
		}
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	h := New(Config{Catalog: &fakeCatalog{}})
	for path, want := range map[string]string{
		"/healthz": `{"status":"ok"}`, "/readyz": `{"status":"ready"}`,
		"/management/v1/check": `{"warehouses":1,"namespaces":2,"tables":3,"views":4,"problems":[]}`,
	} {
		if w := send(h, "GET", path, ""); w.Code != 200 || w.Body.String() != want {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := send(h, "POST", "/management/v1/check", ""); w.Code != 200 {
		t.Errorf("POST check: %d", w.Code)
	}
}

func TestNotReady(t *testing.T) {
	t.Parallel()
	h := New(Config{Catalog: &fakeCatalog{}, Ready: notReady})
	w := send(h, "GET", "/readyz", "")
	wantFailure(t, w, 503, "ServiceUnavailableException")
	if w := send(h, "GET", "/healthz", ""); w.Code != 200 {
		t.Errorf("healthz: %d", w.Code)
	}
}

func notReady(context.Context) error { return errors.New("the store is away") }

func ExampleNew() {
	h := New(Config{Catalog: &fakeCatalog{}})
	fmt.Println(send(h, "GET", "/v1/namespaces", "").Body)
	// Output: {"namespaces":[],"next-page-token":null}
}
