package main

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// TestCallTimes measures calls and reads their durations back.
func TestCallTimes(t *testing.T) {
	t.Parallel()
	calls := callMetrics{seconds: histogram(prometheus.NewRegistry(), "calls", "Calls.", "call", "outcome")}
	for range 98 {
		calls.observe("get", outcome(nil), 600*time.Microsecond)
	}
	calls.observe("get", outcome(nil), time.Second)
	calls.observe("get", outcome(nil), time.Second)
	calls.observe("get", outcome(errors.New("down")), time.Minute)
	calls.observe("apply", outcome(nil), time.Millisecond)
	got := callTimes(calls)
	if len(got) != 2 || got[0].Call != "get" || got[0].Count != 100 || got[0].Failed != 1 || got[1].Call != "apply" {
		t.Fatalf("%+v", got)
	}
	if got[0].P50 > 2 || got[0].P50 <= 0 || got[0].P99 < 100 || got[0].P99 > 5000 {
		t.Errorf("%+v", got[0])
	}
}

// TestQuantile estimates quantiles from buckets.
func TestQuantile(t *testing.T) {
	t.Parallel()
	buckets := []bucket{{1, 10}, {2, 20}, {4, 20}}
	for _, row := range []struct {
		q    float64
		all  uint64
		want float64
	}{{0.5, 20, 1}, {0.75, 20, 1.5}, {1, 20, 2}, {1, 30, 4}} {
		if got := quantile(row.q, row.all, buckets); math.Abs(got-row.want) > 1e-9 {
			t.Errorf("the quantile %v of %d is %v, want %v", row.q, row.all, got, row.want)
		}
	}
	if got := quantile(0.5, 3, nil); got != 0 {
		t.Errorf("without buckets: %v", got)
	}
}
