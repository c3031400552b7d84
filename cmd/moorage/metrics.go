package main

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"moorage/registry"
)

// callBuckets are the bounds of the latency histograms, in seconds: from a read in memory to a
// store that is about to be given up.
func callBuckets() []float64 { return prometheus.ExponentialBuckets(0.0001, 2.5, 15) }

// newMetrics returns a registry that holds what is measured of every Go process.
func newMetrics() *prometheus.Registry {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewBuildInfoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return metrics
}

// meteredStore measures the calls of a store. It is safe for concurrent use.
type meteredStore struct {
	registry.Store

	calls *prometheus.HistogramVec // seconds, by call and outcome
}

// meterStore returns store with its calls measured in metrics.
func meterStore(store registry.Store, metrics prometheus.Registerer) *meteredStore {
	calls := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "moorage_store_call_duration_seconds",
		Help:    "Duration of calls to the store, by call and by how it ended.",
		Buckets: callBuckets(),
	}, []string{"call", "outcome"})
	metrics.MustRegister(calls)
	return &meteredStore{Store: store, calls: calls}
}

// Unwrap implements registry.Wrapper.
func (m *meteredStore) Unwrap() registry.Store { return m.Store }

// Get is registry.Store.Get, measured.
func (m *meteredStore) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	begin := time.Now()
	records, err := m.Store.Get(ctx, keys...)
	m.observe("get", begin, err)
	return records, err
}

// List is registry.Store.List, measured.
func (m *meteredStore) List(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	begin := time.Now()
	records, err := m.Store.List(ctx, table, prefix, after, limit)
	m.observe("list", begin, err)
	return records, err
}

// ListKeys is registry.Store.ListKeys, measured.
func (m *meteredStore) ListKeys(ctx context.Context, table registry.Table, prefix, after string, limit int) ([]registry.Record, error) {
	begin := time.Now()
	records, err := m.Store.ListKeys(ctx, table, prefix, after, limit)
	m.observe("list-keys", begin, err)
	return records, err
}

// Apply is registry.Store.Apply, measured.
func (m *meteredStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	begin := time.Now()
	etags, err := m.Store.Apply(ctx, batch)
	m.observe("apply", begin, err)
	return etags, err
}

// Changes is registry.Store.Changes, measured.
func (m *meteredStore) Changes(ctx context.Context, after registry.Position, limit int) ([]registry.PositionedChange, error) {
	begin := time.Now()
	changes, err := m.Store.Changes(ctx, after, limit)
	m.observe("changes", begin, err)
	return changes, err
}

// Time is registry.Clock.Time, measured.
func (m *meteredStore) Time(ctx context.Context) (time.Time, error) {
	begin := time.Now()
	now, err := m.Store.Time(ctx)
	m.observe("time", begin, err)
	return now, err
}

// Healthy asks the store whether it can be written to; one that cannot fail is healthy.
func (m *meteredStore) Healthy(ctx context.Context) error {
	if checker, ok := m.Store.(registry.HealthChecker); ok {
		return checker.Healthy(ctx)
	}
	return nil
}

func (m *meteredStore) observe(call string, begin time.Time, err error) {
	m.calls.WithLabelValues(call, outcome(err)).Observe(time.Since(begin).Seconds())
}

// outcomeConflict is the outcome of a call that somebody else was in the way of.
const outcomeConflict = "conflict"

// outcome names how a call to the store ended.
func outcome(err error) string {
	if err == nil {
		return "done"
	}
	if _, ok := registry.FailedCondition(err); ok {
		return outcomeConflict
	}
	for _, named := range []struct {
		err  error
		name string
	}{
		{registry.ErrUnknown, "unknown"},
		{registry.ErrFailed, "failed"},
		{registry.ErrUnavailable, "unavailable"},
		{registry.ErrClosed, "closed"},
		{registry.ErrBadBatch, "malformed"},
		{context.Canceled, "canceled"},
		{context.DeadlineExceeded, "timeout"},
	} {
		if errors.Is(err, named.err) {
			return named.name
		}
	}
	return "error"
}
