package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"moorage"
	"moorage/internal/web"
)

func TestAccessLog(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	fake := &fakeCatalog{}
	h := NewServer(TestConfig{Catalog: fake, Logger: slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))})
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
	h := NewServer(TestConfig{Catalog: fake})
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
	h := NewServer(TestConfig{Catalog: &fakeCatalog{}})
	for path, want := range map[string]string{
		"/healthz": `{"status":"ok"}`, "/readyz": `{"status":"ready"}`,
	} {
		if w := send(h, "GET", path, ""); w.Code != 200 || w.Body.String() != want {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

func TestNotReady(t *testing.T) {
	t.Parallel()
	h := NewServer(TestConfig{Catalog: &fakeCatalog{}, Ready: notReady})
	w := send(h, "GET", "/readyz", "")
	wantFailure(t, w, 503, "ServiceUnavailableException")
	if w := send(h, "GET", "/healthz", ""); w.Code != 200 {
		t.Errorf("healthz: %d", w.Code)
	}
}

func notReady(context.Context) error { return errors.New("the store is away") }

func ExampleMount() {
	h := web.New(web.Config{})
	Mount(h, Config{Catalog: &fakeCatalog{}})
	fmt.Println(send(h, "GET", "/v1/namespaces", "").Body)
	// Output: {"namespaces":[],"next-page-token":null}
}
