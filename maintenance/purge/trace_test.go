package purge_test

import (
	"slices"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"moorage"
	"moorage/catalog"
	"moorage/internal/trace"
	"moorage/storage"
)

// Each attempt of a purge has a trace of its own, with the warehouse and the kind of its failure.
func TestTraceOfAPurge(t *testing.T) {
	t.Parallel()
	spans, broken := tracetest.NewInMemoryExporter(), true
	f := newFixture(t, func(c *catalog.Config) {
		c.Tracer = trace.New(trace.Config{Processor: sdk.NewSimpleSpanProcessor(spans), Version: "1", Now: time.Now})
		open := c.OpenStorage
		c.OpenStorage = func(place storage.Place) (storage.Store, error) {
			store, err := open(place)
			return brokenStorage{store, &broken}, err
		}
	})
	f.create("t")
	must(t, f.DropTable(f.ctx, ident("t"), catalog.DropOptions{Purge: true}))
	must(t, f.purgeAll(f.ctx))
	broken = false
	must(t, f.purgeAll(f.ctx))
	var got []string
	for _, span := range spans.GetSpans() {
		text := span.Name
		for _, each := range span.Attributes {
			text += " " + string(each.Key) + "=" + each.Value.String()
		}
		got = append(got, text)
	}
	want := []string{
		"purge moorage.warehouse=w error.type=" + moorage.KindInternal.String(),
		"purge moorage.warehouse=w",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the spans are %q, want %q", got, want)
	}
}
