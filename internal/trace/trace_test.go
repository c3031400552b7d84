package trace_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"moorage"
	"moorage/internal/trace"
)

// recorded returns a tracer and the spans that it has made.
func recorded(names bool) (*trace.Tracer, *tracetest.InMemoryExporter) {
	memory := tracetest.NewInMemoryExporter()
	return trace.New(trace.Config{
		Processor: sdk.NewSimpleSpanProcessor(memory), Version: "1", Now: time.Now, Names: names,
	}), memory
}

// Without a tracer, nothing is allocated and nothing changes. The test counts allocations, so it is
// not parallel.
func TestOff(t *testing.T) {
	var off *trace.Tracer
	ctx, header, verb := t.Context(), http.Header{}, t.Name()
	allocations := testing.AllocsPerRun(100, func() {
		requested, span := off.Request(ctx, header)
		below, step := trace.Start(requested, "catalog.", verb)
		off.Call(below, "store.get", "done", time.Millisecond)
		working, work := off.Work(below, "maintenance.", verb)
		work.End(nil)
		if working != below {
			t.Error("work is traced")
		}
		trace.Inject(below, header)
		step.On()
		step.End(nil)
		span.EndRequest("loadTable", "GET", 200, 10)
		if below != ctx || span != nil || step != nil {
			t.Error("something is traced")
		}
	})
	if allocations != 0 || len(header) != 0 || off.Close(ctx) != nil {
		t.Errorf("%g allocations, header %v", allocations, header)
	}
}

// A request belongs to the trace of its sender, and the trace's id is in the context. Spans contain
// names of tables only with consent, and never contain messages.
func TestRequest(t *testing.T) {
	t.Parallel()
	const id, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	header := http.Header{"Traceparent": {"00-" + id + "-" + parent + "-01"}}
	table := moorage.Identifier{Warehouse: "lake", Namespace: []string{"sales"}, Name: "orders"}
	for _, consent := range []bool{false, true} {
		tracer, memory := recorded(consent)
		ctx, request := tracer.Request(t.Context(), header)
		if got := moorage.TraceID(ctx); got != id {
			t.Errorf("the trace is %s", got)
		}
		below, step := trace.Start(ctx, "catalog.commit")
		step.On(table)
		tracer.Call(below, "store.apply", "conflict", time.Second)
		sent := http.Header{}
		trace.Inject(below, sent)
		step.End(moorage.Errorf(moorage.KindCommitFailed, "Table sales.orders has changed"))
		request.EndRequest("updateTable", "POST", 409, 70)

		spans := memory.GetSpans()
		if len(spans) != 3 {
			t.Fatalf("%d spans", len(spans))
		}
		call, commit, root := spans[0], spans[1], spans[2]
		if root.Parent.SpanID().String() != parent || !root.Parent.IsRemote() || root.Name != "HTTP updateTable" {
			t.Errorf("the request is %s, below %s", root.Name, root.Parent.SpanID())
		}
		if commit.Parent.SpanID() != root.SpanContext.SpanID() || call.Parent.SpanID() != commit.SpanContext.SpanID() {
			t.Error("the steps are not below the request")
		}
		if took := call.EndTime.Sub(call.StartTime); took != time.Second || call.Events[0].Name != "conflict" {
			t.Errorf("the call took %s, with the events %v", took, call.Events)
		}
		if got := sent.Get("Traceparent"); got != "00-"+id+"-"+commit.SpanContext.SpanID().String()+"-01" {
			t.Errorf("another node gets %q", got)
		}
		var texts []string
		for _, attribute := range commit.Attributes {
			texts = append(texts, string(attribute.Key)+"="+attribute.Value.String())
		}
		want := []string{"moorage.warehouse=lake", "error.type=" + moorage.KindCommitFailed.String()}
		if consent {
			want = slices.Insert(want, 1, `moorage.objects=["sales.orders"]`)
		}
		if !slices.Equal(texts, want) || commit.Status.Description != "" {
			t.Errorf("consent %t: the attributes are %q, want %q", consent, texts, want)
		}
	}
}

// Work in the background has a trace of its own. Only the first calls of a step have spans.
func TestWork(t *testing.T) {
	t.Parallel()
	const calls = 700
	tracer, memory := recorded(false)
	ctx, work := tracer.Work(t.Context(), "maintenance.", "snapshots")
	below, step := trace.Start(ctx, "step")
	for range calls {
		tracer.Call(below, "storage.delete", "done", time.Millisecond)
	}
	step.End(nil)
	work.End(moorage.Errorf(moorage.KindUnavailable, "the storage of sales.orders hangs"))
	spans := memory.GetSpans()
	root := spans[len(spans)-1]
	if root.Name != "maintenance.snapshots" || root.Parent.IsValid() || moorage.TraceID(ctx) != root.SpanContext.TraceID().String() {
		t.Errorf("the root is %s below %s, and the trace %s", root.Name, root.Parent.SpanID(), moorage.TraceID(ctx))
	}
	if step := spans[len(spans)-2]; len(spans) != 502 || !slices.Equal(step.Attributes, []attribute.KeyValue{
		attribute.Bool("moorage.more-calls", true),
	}) {
		t.Errorf("%d spans, and the step has the attributes %v", len(spans), step.Attributes)
	}
	if !slices.Equal(root.Attributes, []attribute.KeyValue{
		attribute.String("error.type", moorage.KindUnavailable.String()),
	}) {
		t.Errorf("the attributes are %v", root.Attributes)
	}
	requested, request := tracer.Request(t.Context(), http.Header{})
	_, work = tracer.Work(requested, "purge") // that an operator asked for
	work.End(nil)
	request.End(nil)
	spans = memory.GetSpans()
	if purge, root := spans[len(spans)-2], spans[len(spans)-1]; purge.Parent.SpanID() != root.SpanContext.SpanID() {
		t.Error("work of a request is not below it")
	}
}

// A collector that never answers delays no request, and the end of the server only until its limit.
func TestHangingCollector(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}, 10), make(chan struct{})
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-release
	}))
	defer collector.Close()
	defer close(release)
	to, err := url.Parse(collector.URL)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	exporter := trace.NewExporter(to, http.Header{}, slog.New(slog.NewTextHandler(&log, nil)))
	tracer := trace.New(trace.Config{Processor: sdk.NewBatchSpanProcessor(exporter), Version: "1", Now: time.Now})
	request := func() {
		_, span := tracer.Request(t.Context(), http.Header{})
		span.EndRequest("loadTable", "GET", 200, 10)
	}
	for range 600 { // more than the SDK sends at once
		request()
	}
	<-asked
	for range 5000 { // more than wait for the collector; a request that waited would never end
		request()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := tracer.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it closes with: %v", err)
	}
}

// BenchmarkOff measures what the calls of one load of a hot table cost without a tracer: the span
// of its request, and the span of its read of the store.
func BenchmarkOff(b *testing.B) {
	var off *trace.Tracer
	ctx, header := b.Context(), http.Header{}
	b.ReportAllocs()
	for b.Loop() {
		requested, span := off.Request(ctx, header)
		off.Call(requested, "store.get", "done", time.Millisecond)
		span.EndRequest("loadTable", "GET", 200, 10)
	}
}

// If the sender does not sample a request, the request creates no spans. Neither does work outside
// a request.
func TestNotSampled(t *testing.T) {
	t.Parallel()
	tracer, memory := recorded(true)
	tracer.Call(t.Context(), "store.get", "done", time.Second)
	header := http.Header{"Traceparent": {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"}}
	ctx, request := tracer.Request(t.Context(), header)
	_, step := trace.Start(ctx, "catalog.commit")
	step.On(moorage.Identifier{Warehouse: "lake", Namespace: []string{"sales"}, Name: "orders"})
	step.End(nil)
	request.EndRequest("loadTable", "GET", 200, 1)
	if spans := memory.GetSpans(); len(spans) != 0 {
		t.Errorf("the spans are %v", spans)
	}
}

// While spans wait for the collector, they keep little of a client's request in memory.
func TestLongRequest(t *testing.T) {
	t.Parallel()
	tracer, memory := recorded(false)
	for _, tt := range []struct{ method, state, wantMethod, wantState string }{
		{"GET", "a=b", "GET", "a=b"},
		{strings.Repeat("X", 1<<20), "a=b," + strings.Repeat(" ", 1<<20) + "c=d", "_OTHER", ""},
	} {
		memory.Reset()
		_, request := tracer.Request(t.Context(), http.Header{
			"Traceparent": {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}, "Tracestate": {tt.state},
		})
		request.EndRequest("unknown", tt.method, 404, 0)
		span := memory.GetSpans()[0]
		if state := span.SpanContext.TraceState().String(); !span.Parent.IsRemote() || state != tt.wantState {
			t.Errorf("the trace state is %q, want %q", state, tt.wantState)
		}
		if !slices.Contains(span.Attributes, attribute.String("http.request.method", tt.wantMethod)) {
			t.Errorf("the attributes are %v", span.Attributes)
		}
	}
}

// The headers for the collector, and the password in its address, are secrets: they are not sent to
// any other server, and not logged.
func TestSecretsOfTheCollector(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server gets %v", r.Header)
	}))
	defer other.Close()
	collector := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer collector.Close()
	to, err := url.Parse(collector.URL)
	if err != nil {
		t.Fatal(err)
	}
	to.User = url.UserPassword("moorage", "password")
	var log bytes.Buffer
	exporter := trace.NewExporter(to, http.Header{"Api-Key": {"secret"}}, slog.New(slog.NewTextHandler(&log, nil)))
	tracer := trace.New(trace.Config{Processor: sdk.NewSimpleSpanProcessor(exporter), Version: "1", Now: time.Now})
	_, request := tracer.Request(t.Context(), http.Header{})
	request.EndRequest("loadTable", "GET", 200, 10)
	if text := log.String(); !strings.Contains(text, "307") || strings.Contains(text, "password") || strings.Contains(text, "secret") {
		t.Errorf("the log is %s", text)
	}
}
