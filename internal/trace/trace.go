// Package trace creates the spans of OpenTelemetry traces: the steps of a request, and how long
// each step took.
//
// The server starts the span of a request (Tracer.Request), and of one piece of its work in the
// background (Tracer.Work). Each step starts and ends a span of its own below it (Start).
// Tracer.Call adds one span for each call to a store or a storage. The context carries the span.
// Without a tracer, or in a request that is not traced, all functions do nothing and allocate
// nothing.
//
// Spans name operations, warehouses, kinds of failures, and numbers. They contain no locations and
// no messages. They contain names of namespaces and tables only if the operator has consented
// (Config.Names), because readers of traces are often not allowed to read the catalog.
//
// Only this package imports the SDK of OpenTelemetry.
package trace

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	otel "go.opentelemetry.io/otel/trace"

	"moorage"
)

// The attributes of spans.
const (
	keyOperation = "moorage.operation"
	keyWarehouse = "moorage.warehouse"
	keyObjects   = "moorage.objects"
	keyOutcome   = "moorage.outcome"
	keyMethod    = "http.request.method"
	keyStatus    = "http.response.status_code"
	keyBytes     = "http.response.body.size"
	keyError     = "error.type"
	keyMore      = "moorage.more-calls"
	// keyNames is the attribute of the resource that records the consent to names.
	keyNames = "moorage.trace-names"
)

// The headers of W3C Trace Context.
const traceParent, traceState = "traceparent", "tracestate"

// scope is the name of the spans' instrumentation.
const scope = "moorage"

const (
	// objectsMax is the maximum number of names in one span.
	objectsMax = 16
	// traceStateMax is the maximum length of the sender's trace state, which stays in memory with
	// each span until export.
	// Source: W3C Trace Context, limits of tracestate.
	traceStateMax = 512
	// callsMax bounds the spans of calls below one span, because a purge can make a million.
	callsMax = 500
)

// Config configures a Tracer.
type Config struct {
	// Processor receives the spans when they end.
	Processor sdk.SpanProcessor
	// Version is the version of the server, for the resource of the spans.
	Version string
	// Now returns the time.
	Now func() time.Time
	// Names is true if spans may contain the names of namespaces and tables.
	Names bool
}

// Tracer starts the spans of requests. A nil Tracer starts none. It is safe for concurrent use.
type Tracer struct {
	provider *sdk.TracerProvider
	now      func() time.Time
}

// New returns a tracer. The variables OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES and
// OTEL_TRACES_SAMPLER have the meaning that the specification of OpenTelemetry gives them.
func New(config Config) *Tracer {
	own := resource.NewSchemaless(
		attribute.String("service.name", scope), attribute.String("service.version", config.Version),
		attribute.Bool(keyNames, config.Names))
	described := own
	if all, err := resource.Merge(own, resource.Environment()); err == nil { // fails only if the schemas differ
		described = all
	}
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(config.Processor), sdk.WithResource(described))
	return &Tracer{provider: provider, now: config.Now}
}

// Close sends the spans that have not been sent, until ctx ends.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// Span is one step of a traced request or of traced work. The methods of a nil Span do nothing.
type Span struct{ span otel.Span }

// isTraced reports whether ctx has a span.
func isTraced(ctx context.Context) bool { return otel.SpanContextFromContext(ctx).IsValid() }

// Request starts the span of a request. If header contains a W3C trace context, the span belongs to
// the trace of the sender. A trace state that is too long is left out. The returned context also
// has the trace's id; see moorage.TraceID.
func (t *Tracer) Request(ctx context.Context, header http.Header) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	sent := propagation.MapCarrier{traceParent: header.Get(traceParent)}
	if state := header.Get(traceState); len(state) <= traceStateMax {
		sent[traceState] = state
	}
	ctx = propagation.TraceContext{}.Extract(ctx, sent)
	ctx, span := t.provider.Tracer(scope).Start(ctx, "HTTP", otel.WithSpanKind(otel.SpanKindServer))
	return moorage.WithTraceID(ctx, span.SpanContext().TraceID().String()), &Span{span}
}

// Work starts the span of one piece of work that no request waits for, such as one purge. It begins
// a trace of its own, unless ctx has one. The context that Work returns also has the trace's id;
// see moorage.TraceID.
func (t *Tracer) Work(ctx context.Context, name ...string) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	ctx, span := t.provider.Tracer(scope).Start(ctx, strings.Join(name, ""))
	return moorage.WithTraceID(ctx, span.SpanContext().TraceID().String()), &Span{span}
}

// Start starts a span below the span of ctx. It returns ctx and nil if ctx has none. The name of
// the span is passed in parts, so that they are joined only if there is a trace.
func Start(ctx context.Context, name ...string) (context.Context, *Span) {
	if !isTraced(ctx) {
		return ctx, nil
	}
	ctx, span := otel.SpanFromContext(ctx).TracerProvider().Tracer(scope).Start(ctx, strings.Join(name, ""))
	return ctx, &Span{span}
}

// Call adds the span of a call to a store or a storage, below the span of ctx. The call has just
// ended, and took the time in took. outcome is its result, in the words of the metrics.
// Calls beyond callsMax have no spans, and the span of ctx reports that.
func (t *Tracer) Call(ctx context.Context, name, outcome string, took time.Duration) {
	if t == nil || !isTraced(ctx) {
		return
	}
	above := otel.SpanFromContext(ctx)
	if made, isRecorded := above.(sdk.ReadOnlySpan); isRecorded && made.ChildSpanCount() >= callsMax {
		above.SetAttributes(attribute.Bool(keyMore, true))
		return
	}
	now := t.now()
	_, span := t.provider.Tracer(scope).Start(ctx, name, otel.WithTimestamp(now.Add(-took)),
		otel.WithSpanKind(otel.SpanKindClient), otel.WithAttributes(attribute.String(keyOutcome, outcome)))
	switch outcome {
	case "done", "missing", "exists":
	case "conflict": // another commit won the race
		span.AddEvent(outcome, otel.WithTimestamp(now))
	default:
		span.SetStatus(codes.Error, "")
	}
	span.End(otel.WithTimestamp(now))
}

// Inject adds the span of ctx to the header of a request to another node.
func Inject(ctx context.Context, header http.Header) {
	if isTraced(ctx) {
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
	}
}

// On adds the names of the objects that the step works on, which are in one warehouse. Without
// Config.Names, it adds only the name of the warehouse.
func (s *Span) On(objects ...moorage.Identifier) {
	if s == nil || len(objects) == 0 {
		return
	}
	s.span.SetAttributes(attribute.String(keyWarehouse, objects[0].Warehouse))
	made, isRecorded := s.span.(sdk.ReadOnlySpan)
	if !isRecorded {
		return
	}
	if consent, _ := made.Resource().Set().Value(keyNames); !consent.AsBool() {
		return
	}
	var names []string
	for _, object := range objects[:min(len(objects), objectsMax)] {
		if len(object.Namespace) > 0 {
			names = append(names, object.String())
		}
	}
	s.span.SetAttributes(attribute.StringSlice(keyObjects, names))
}

// End ends the span. If err is not nil, the span records the kind of err.
func (s *Span) End(err error) {
	if s == nil {
		return
	}
	if err != nil {
		s.span.SetAttributes(attribute.String(keyError, moorage.KindOf(err).String()))
		s.span.SetStatus(codes.Error, "")
	}
	s.span.End()
}

// EndRequest ends the span of a request, which was answered with status and a body of the given
// number of bytes. operation was not known when the span started.
func (s *Span) EndRequest(operation, method string, status int, bytes int64) {
	if s == nil {
		return
	}
	s.span.SetName("HTTP " + operation)
	s.span.SetAttributes(attribute.String(keyOperation, operation), attribute.String(keyMethod, knownMethod(method)),
		attribute.Int(keyStatus, status), attribute.Int64(keyBytes, bytes))
	if status >= http.StatusInternalServerError {
		s.span.SetStatus(codes.Error, "")
	}
	s.span.End()
}

// knownMethod returns a constant for the method of a request. The method itself can be long, and
// would keep the whole first line of the request in memory. Source: OpenTelemetry, HTTP spans.
func knownMethod(method string) string {
	known := []string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace,
	}
	if at := slices.Index(known, method); at >= 0 {
		return known[at]
	}
	return "_OTHER"
}
