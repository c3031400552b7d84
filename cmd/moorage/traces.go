package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"moorage/internal/cli"
	"moorage/internal/trace"
)

// tracerWait is the time in which the last spans must be sent.
const tracerWait = 5 * time.Second

// Variables of OpenTelemetry. Source: OpenTelemetry, environment variables; OTLP exporter.
const (
	variableDisabled       = "OTEL_SDK_DISABLED"
	variableEndpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	variableTracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	variableHeaders        = "OTEL_EXPORTER_OTLP_HEADERS"
	variableTracesHeaders  = "OTEL_EXPORTER_OTLP_TRACES_HEADERS"
)

// openTracer returns a tracer that sends traces to the collector named in the environment. It
// returns nil if there is none.
func openTracer(c cli.Config, logger *slog.Logger) (*trace.Tracer, error) {
	name, address := variableTracesEndpoint, c.OpenTelemetry[variableTracesEndpoint]
	if address == "" {
		if name, address = variableEndpoint, c.OpenTelemetry[variableEndpoint]; address != "" {
			address = strings.TrimSuffix(address, "/") + "/v1/traces"
		}
	}
	if address == "" || strings.EqualFold(c.OpenTelemetry[variableDisabled], "true") {
		return nil, nil
	}
	to, err := url.Parse(address)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
		return nil, fmt.Errorf("%s: it must be an address such as http://127.0.0.1:4318", name)
	}
	header := make(http.Header)
	for _, variable := range []string{variableHeaders, variableTracesHeaders} {
		if err := addHeaders(header, c.OpenTelemetry[variable]); err != nil {
			return nil, fmt.Errorf("%s: %w", variable, err)
		}
	}
	logger.Info("traces are sent", "to", to.Redacted())
	return trace.New(trace.Config{
		Processor: sdk.NewBatchSpanProcessor(trace.NewExporter(to, header, logger)),
		Version:   release, Now: time.Now, Names: c.TraceNames,
	}), nil
}

// addHeaders adds the headers in a text of the form "name=value,name=value". Values in it are
// escaped as in URLs.
func addHeaders(header http.Header, text string) error {
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, found := strings.Cut(pair, "=")
		plain, err := url.PathUnescape(strings.TrimSpace(value))
		if !found || err != nil || strings.TrimSpace(name) == "" {
			return fmt.Errorf("it must be NAME=VALUE, and several with commas between") // never the value, a secret
		}
		header.Set(strings.TrimSpace(name), plain)
	}
	return nil
}

// closeTracer sends the remaining spans.
func (n *node) closeTracer() error {
	ctx, cancel := context.WithTimeout(context.Background(), tracerWait)
	defer cancel()
	if err := n.tracer.Close(ctx); err != nil {
		n.logger.Warn("the last traces are lost", "error", err)
	}
	return nil
}
