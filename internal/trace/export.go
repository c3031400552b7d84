package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	otel "go.opentelemetry.io/otel/trace"
)

const (
	// exportWait is the timeout of one request to the collector. Source: OpenTelemetry, OTLP
	// exporter.
	exportWait = 10 * time.Second
	// answerBytesMax is the maximum number of bytes of the collector's answer that are read.
	answerBytesMax = 4 << 10
)

// Exporter sends spans to a collector, with OTLP over HTTP, encoded as JSON. The exporter of
// OpenTelemetry for Go would add 6.3 MB to the binary, because it links gRPC.
//
// Spans that the collector does not accept are lost. The exporter logs a line when losses begin,
// and another when they end. An Exporter is safe for concurrent use.
type Exporter struct {
	url    *url.URL
	header http.Header
	client *http.Client
	logger *slog.Logger
	fails  atomic.Bool
}

// NewExporter returns an exporter to url, which is the address for traces. header is added to each
// request. Both header and url can contain secrets. So neither is logged, and no redirect is
// followed.
func NewExporter(url *url.URL, header http.Header, logger *slog.Logger) *Exporter {
	client := &http.Client{
		Timeout:       exportWait,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &Exporter{url: url, header: header, client: client, logger: logger}
}

// ExportSpans implements sdk.SpanExporter.
func (e *Exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := e.send(ctx, spans)
	switch failed := err != nil; {
	case failed && !e.fails.Swap(true):
		e.logger.Warn("traces cannot be sent, and are lost: look at the collector of OTEL_EXPORTER_OTLP_ENDPOINT",
			"url", e.url.Redacted(), "error", err)
	case !failed && e.fails.Swap(false):
		e.logger.Info("traces can be sent again", "url", e.url.Redacted())
	}
	return nil // the SDK would write an error to stderr instead of the log
}

// Shutdown implements sdk.SpanExporter.
func (e *Exporter) Shutdown(context.Context) error {
	e.client.CloseIdleConnections()
	return nil
}

func (e *Exporter) send(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	body, err := json.Marshal(requestOf(spans))
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = e.header.Clone()
	request.Header.Set("Content-Type", "application/json")
	answer, err := e.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	said, _ := io.ReadAll(io.LimitReader(answer.Body, answerBytesMax))
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answers %s: %s", answer.Status, said)
	}
	return nil
}

// exportRequest and the types below are the JSON of ExportTraceServiceRequest. Ids are
// hexadecimal, and 64-bit numbers are strings. Source: opentelemetry-proto, trace.proto; OTLP
// specification, JSON Protobuf encoding.
type exportRequest struct {
	ResourceSpans []resourceSpans `json:"resourceSpans"`
}

type resourceSpans struct {
	Resource   attributed   `json:"resource"`
	ScopeSpans []scopeSpans `json:"scopeSpans"`
}

type scopeSpans struct {
	Scope struct {
		Name string `json:"name"`
	} `json:"scope"`
	Spans []wireSpan `json:"spans"`
}

type attributed struct {
	Attributes []keyValue `json:"attributes,omitempty"`
}

type wireSpan struct {
	attributed

	TraceID      string      `json:"traceId"`
	SpanID       string      `json:"spanId"`
	ParentSpanID string      `json:"parentSpanId,omitempty"`
	TraceState   string      `json:"traceState,omitempty"`
	Flags        uint32      `json:"flags,omitempty"`
	Name         string      `json:"name"`
	Kind         int         `json:"kind"`
	Start        string      `json:"startTimeUnixNano"`
	End          string      `json:"endTimeUnixNano"`
	Events       []wireEvent `json:"events,omitempty"`
	Status       struct {
		Code int `json:"code,omitempty"`
	} `json:"status"`
}

type wireEvent struct {
	Time string `json:"timeUnixNano"`
	Name string `json:"name"`
}

type keyValue struct {
	Key   string         `json:"key"`
	Value map[string]any `json:"value"`
}

// statusError is STATUS_CODE_ERROR.
const statusError = 2

// requestOf returns a request with spans, which must all come from one tracer.
func requestOf(spans []sdk.ReadOnlySpan) exportRequest {
	var scope scopeSpans
	of := attributed{keyValues(spans[0].Resource().Attributes())} // the SDK exports no empty batch
	for _, span := range spans {
		scope.Scope.Name = span.InstrumentationScope().Name
		scope.Spans = append(scope.Spans, wireSpanOf(span))
	}
	return exportRequest{[]resourceSpans{{Resource: of, ScopeSpans: []scopeSpans{scope}}}}
}

func wireSpanOf(span sdk.ReadOnlySpan) wireSpan {
	id := span.SpanContext()
	wire := wireSpan{
		attributed: attributed{keyValues(span.Attributes())},
		TraceID:    id.TraceID().String(), SpanID: id.SpanID().String(), TraceState: id.TraceState().String(),
		Flags: uint32(id.TraceFlags()),
		Name:  span.Name(), Kind: int(span.SpanKind()), // both use the same numbers, from 1 on
		Start: nanoseconds(span.StartTime()), End: nanoseconds(span.EndTime()),
	}
	if span.SpanKind() == otel.SpanKindUnspecified {
		wire.Kind = int(otel.SpanKindInternal)
	}
	if span.Parent().HasSpanID() {
		wire.ParentSpanID = span.Parent().SpanID().String()
	}
	for _, event := range span.Events() {
		wire.Events = append(wire.Events, wireEvent{Time: nanoseconds(event.Time), Name: event.Name})
	}
	if span.Status().Code.String() == "Error" {
		wire.Status.Code = statusError
	}
	return wire
}

func nanoseconds(at time.Time) string { return strconv.FormatInt(at.UnixNano(), 10) }

func keyValues(attributes []attribute.KeyValue) []keyValue {
	var values []keyValue
	for _, each := range attributes {
		var value map[string]any
		switch each.Value.Type() {
		case attribute.INT64:
			value = map[string]any{"intValue": strconv.FormatInt(each.Value.AsInt64(), 10)}
		case attribute.BOOL:
			value = map[string]any{"boolValue": each.Value.AsBool()}
		case attribute.STRINGSLICE:
			texts := []map[string]any{}
			for _, text := range each.Value.AsStringSlice() {
				texts = append(texts, map[string]any{"stringValue": text})
			}
			value = map[string]any{"arrayValue": map[string]any{"values": texts}}
		default:
			value = map[string]any{"stringValue": each.Value.String()}
		}
		values = append(values, keyValue{string(each.Key), value})
	}
	return values
}
