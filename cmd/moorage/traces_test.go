package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"moorage/internal/cli"
)

// collector is a test double of an OpenTelemetry collector. It keeps the spans that it receives.
type collector struct {
	*httptest.Server

	mu     sync.Mutex // guards the fields below
	status int        // status of its answers; 0 means 200
	header http.Header
	spans  []collectedSpan
}

// collectedSpan is a span in the JSON of OTLP.
type collectedSpan struct {
	TraceID, SpanID, ParentSpanID, Name string
	Kind                                int
	StartTimeUnixNano                   string
	Attributes                          []struct {
		Key   string
		Value struct{ StringValue, IntValue string }
	}
	Events []struct{ Name string }
	Status struct{ Code int }
}

func newCollector(t *testing.T) *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			ResourceSpans []struct {
				ScopeSpans []struct{ Spans []collectedSpan }
			}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL, err)
		}
		if c.header = r.Header; c.status != 0 {
			w.WriteHeader(c.status)
			return
		}
		for _, of := range request.ResourceSpans {
			for _, scope := range of.ScopeSpans {
				c.spans = append(c.spans, scope.Spans...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// tree returns the spans of a trace as a tree, each with its attributes.
func (c *collector) tree(trace string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortFunc(c.spans, func(a, b collectedSpan) int {
		return cmp.Or(cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano), cmp.Compare(a.Name, b.Name))
	})
	own := make(map[string]bool)
	for _, span := range c.spans {
		own[span.SpanID] = true
	}
	var text strings.Builder
	var write func(parent, indent string)
	write = func(parent, indent string) {
		for _, span := range c.spans {
			isRoot := parent == "" && !own[span.ParentSpanID]
			if span.TraceID != trace || !isRoot && (parent == "" || span.ParentSpanID != parent) {
				continue
			}
			fmt.Fprintf(&text, "%s%s", indent, span.Name)
			for _, attribute := range span.Attributes {
				if attribute.Key != "http.response.body.size" {
					fmt.Fprintf(&text, " %s=%s", attribute.Key, attribute.Value.StringValue+attribute.Value.IntValue)
				}
			}
			text.WriteString("\n")
			write(span.SpanID, indent+"  ")
		}
	}
	write("", "")
	return text.String()
}

// A commit has a span for each step, in order and without names. The id of its trace is also in the
// log, in the change record, and in the answer if the commit fails.
func TestTraceOfACommit(t *testing.T) {
	t.Parallel()
	const trace, failed = "4bf92f3577b34da6a3ce929d0e0e4736", "5bf92f3577b34da6a3ce929d0e0e4736"
	const created = "6bf92f3577b34da6a3ce929d0e0e4736"
	collector := newCollector(t)
	s := startTraced(t, collector, "--data", t.TempDir(), "--log-level", "debug")
	s.request(t, "POST", "/v1/namespaces", `{"namespace":["sales"]}`)
	parent := func(id string) string { return "00-" + id + "-00f067aa0ba902b7-01" }
	s.request(t, "POST", "/v1/namespaces/sales/tables", `{"name":"orders","schema":{"type":"struct","fields":[]}}`,
		"Traceparent", parent(created))
	commit := func(id, requirements string) (int, string) {
		return s.request(t, "POST", "/v1/namespaces/sales/tables/orders",
			`{"requirements":[`+requirements+`],"updates":[{"action":"set-properties","updates":{"a":"b"}}]}`,
			"Traceparent", parent(id))
	}
	commit(strings.Repeat("1", 32), "") // from now on the server has the table in memory
	if status, body := commit(trace, ""); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	status, body := commit(failed, `{"type":"assert-table-uuid","uuid":"01926f3a-7b1c-7def-8123-456789abcdef"}`)
	if status != http.StatusConflict || !strings.Contains(body, `"trace-id":"`+failed+`"`) {
		t.Errorf("a commit that fails is answered %d %s", status, body)
	}
	if _, body := s.request(t, "GET", "/management/v1/changes?limit=10", ""); !strings.Contains(body, `"trace-id":"`+trace+`"`) {
		t.Errorf("no change has the trace: %s", body)
	}
	s.stop()
	if !strings.Contains(s.stderr.String(), "trace_id="+trace) {
		t.Error("the log has no line with the trace")
	}
	const want = `HTTP updateTable moorage.operation=updateTable http.request.method=POST http.response.status_code=200
  catalog.commit-table moorage.warehouse=default
    resolve
      store.get moorage.outcome=done
    requirements
    build
    write
      storage.put moorage.outcome=done
    apply
      store.apply moorage.outcome=done
`
	if got := collector.tree(trace); got != want {
		t.Errorf("the spans are\n%swant\n%s", got, want)
	}
	const wantCreate = `HTTP createTable moorage.operation=createTable http.request.method=POST http.response.status_code=200
  catalog.create-table moorage.warehouse=default
    resolve
`
	if got := collector.tree(created); !strings.HasPrefix(got, wantCreate) || !strings.Contains(got, "\n    plan\n      store.get ") ||
		!strings.Contains(got, "\n    write\n      storage.put ") || !strings.Contains(got, "\n    apply\n      store.apply ") {
		t.Errorf("the spans of a create are\n%s", got)
	}
	if got := collector.tree(failed); !strings.Contains(got, "    requirements error.type=") {
		t.Errorf("the spans of a commit that fails are\n%s", got)
	}
	for _, span := range collector.spans {
		if text := fmt.Sprint(span); strings.Contains(text, "orders") || strings.Contains(text, "sales") {
			t.Errorf("a span has a name: %s", text)
		}
	}
	if got := collector.header.Get("Authorization"); got != "Bearer a b" {
		t.Errorf("the collector gets the header %q", got)
	}
}

// If the collector fails, its traces are lost, and the log has one line.
func TestCollectorFails(t *testing.T) {
	t.Parallel()
	collector := newCollector(t)
	collector.status = http.StatusServiceUnavailable
	s := startTraced(t, collector, "--store", "memory", "--data", t.TempDir())
	if status, body := s.request(t, "GET", "/v1/config", ""); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
	if code := s.stop(); code != 0 {
		t.Errorf("the server ends with %d", code)
	}
	if log := s.stderr.String(); !regexp.MustCompile(`level=WARN msg="traces cannot be sent.*503`).MatchString(log) {
		t.Errorf("the log is\n%s", log)
	}
}

// A collector that never answers costs its traces. The server answers, and stops in time.
func TestCollectorHangs(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	hanging := &collector{Server: httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))}
	t.Cleanup(hanging.Close)
	t.Cleanup(func() { close(release) })
	s := startTraced(t, hanging, "--store", "memory", "--data", t.TempDir())
	for range 20 {
		if status, body := s.request(t, "GET", "/v1/config", ""); status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
	}
	if code := s.stop(); code != 0 {
		t.Errorf("the server ends with %d", code)
	}
	if log := s.stderr.String(); !strings.Contains(log, "the last traces are lost") {
		t.Errorf("the log is\n%s", log)
	}
}

// A malformed address stops the start. The message contains no secret.
func TestMalformedCollector(t *testing.T) {
	t.Parallel()
	for variable, want := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318":                                            "OTEL_EXPORTER_OTLP_ENDPOINT: it must be",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1 OTEL_EXPORTER_OTLP_HEADERS=secret-text": "OTEL_EXPORTER_OTLP_HEADERS: it must be NAME=VALUE",
	} {
		var stderr lockedBuffer
		code := run(t.Context(), []string{"serve", "--store", "memory", "--data", t.TempDir(), "--listen", "127.0.0.1:0"},
			cli.Environment{Environ: strings.Fields(variable), Stdout: &stderr, Stderr: &stderr})
		if got := stderr.String(); code != cli.ExitFailed || !strings.Contains(got, want) || strings.Contains(got, "secret-text") {
			t.Errorf("%s: exit %d, %s", variable, code, got)
		}
	}
}

// startTraced is like startServe, with a server that sends its traces to collector.
func startTraced(t *testing.T, collector *collector, args ...string) *served {
	t.Helper()
	ctx, signal := context.WithCancel(context.Background())
	s := &served{stdout: newLockedBuffer(), stderr: newLockedBuffer()}
	var code int
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		code = run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...), cli.Environment{
			Environ: []string{
				"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL + "/", "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20a%20b",
			},
			Stdout: s.stdout, Stderr: s.stderr,
		})
	}()
	s.wait = func() int {
		await(t, ended, "the server to stop")
		return code
	}
	s.stop = func() int {
		signal()
		return s.wait()
	}
	t.Cleanup(func() { s.stop() })
	s.uri = s.awaitReady(t, ended)
	return s
}
