package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"moorage/locks"
	"moorage/maintenance/purge"
	"moorage/recovery"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/testkit/registrytest"
)

// TestMeteredStore checks that the wrapped store satisfies the contract of all stores.
func TestMeteredStore(t *testing.T) {
	t.Parallel()
	registrytest.Run(t, func(*testing.T) registry.Store {
		return meterStore(memory.New(rand.Reader), prometheus.NewRegistry(), nil)
	})
}

func TestStoreMetrics(t *testing.T) {
	t.Parallel()
	metrics := prometheus.NewRegistry()
	faulty := registrytest.Faulty(memory.New(rand.Reader), registrytest.Nth(3, registrytest.Lose))
	store := meterStore(faulty, metrics, nil)
	key := registry.LocationKey("file:///x")
	batch := registry.Batch{
		Conditions: []registry.Condition{registry.Absent(key)},
		Writes:     []registry.Write{registry.Put(key, registry.StateOwner, nil)},
	}
	_, done := store.Apply(t.Context(), batch)
	_, conflict := store.Apply(t.Context(), batch)
	_, malformed := store.List(t.Context(), registry.TableLocation, "", "", 0)
	_, lost := store.Apply(t.Context(), registry.Batch{})
	if _, err := store.Get(t.Context(), key); done != nil || conflict == nil || malformed == nil || !errors.Is(lost, registry.ErrUnknown) || err != nil {
		t.Fatalf("got %v, %v, %v, %v, %v", done, conflict, malformed, lost, err)
	}
	got := counts(t, metrics)
	for _, series := range []string{
		"moorage_store_call_duration_seconds apply done", "moorage_store_call_duration_seconds apply conflict",
		"moorage_store_call_duration_seconds list malformed", "moorage_store_call_duration_seconds apply unknown",
		"moorage_store_call_duration_seconds get done",
	} {
		if got[series] != 1 {
			t.Errorf("%s was counted %v times, want once; all: %v", series, got[series], got)
		}
	}
}

func TestOutcome(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"done": nil, "conflict": &registry.FailedError{}, "unknown": registry.ErrUnknown, "failed": registry.ErrFailed,
		"unavailable": registry.ErrUnavailable, "closed": registry.ErrClosed, "malformed": registry.ErrBadBatch,
		"canceled": context.Canceled, "timeout": context.DeadlineExceeded, "error": errors.New("disk on fire"),
	} {
		if err != nil {
			err = fmt.Errorf("wrapped: %w", err)
		}
		if got := outcome(err); got != want {
			t.Errorf("%v: got %s, want %s", err, got, want)
		}
	}
}

// TestUnhealthyStoreIsNotReady checks that the wrapper passes on the health of the store.
func TestUnhealthyStoreIsNotReady(t *testing.T) {
	t.Parallel()
	sick := errors.New("the disk is full")
	for _, want := range []error{nil, sick} {
		store := meterStore(unhealthyStore{memory.New(rand.Reader), want}, prometheus.NewRegistry(), nil)
		if got := store.Healthy(t.Context()); !errors.Is(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	if err := meterStore(memory.New(rand.Reader), prometheus.NewRegistry(), nil).Healthy(t.Context()); err != nil {
		t.Errorf("a store that cannot fail: %v", err)
	}
}

type unhealthyStore struct {
	registry.Store

	reason error
}

func (s unhealthyStore) Healthy(context.Context) error { return s.reason }

func TestLockMetrics(t *testing.T) {
	t.Parallel()
	metrics := prometheus.NewRegistry()
	observer := newLockMetrics(metrics)
	manager := locks.NewLocal(locks.LocalConfig{Observer: observer})
	request := locks.Request{Writes: []locks.Path{locks.Warehouse("w").Pointer("1")}}
	hold, err := manager.Acquire(t.Context(), request, locks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := manager.Acquire(t.Context(), request, locks.Options{NonBlocking: true}); !errors.Is(err, locks.ErrConflict) {
		t.Fatalf("got %v", err)
	}
	if _, err := manager.Acquire(t.Context(), request, locks.Options{Timeout: locks.FixedTimeout(time.Millisecond)}); !errors.Is(err, locks.ErrTimeout) {
		t.Fatalf("got %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	go end()
	if _, err := manager.Acquire(ended, request, locks.Options{}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	hold.Release()
	observer.LockLost(locks.LevelPointer)
	observer.SessionLost()
	got := counts(t, metrics)
	for series, want := range map[string]float64{
		"moorage_locks_lost_total pointer":                   1,
		"moorage_lock_sessions_lost_total":                   1,
		"moorage_lock_wait_duration_seconds pointer timeout": 1,
		"moorage_lock_hold_duration_seconds pointer":         1,
	} {
		if got[series] != want {
			t.Errorf("%s was counted %v times, want %v; all: %v", series, got[series], want, got)
		}
	}
	if got["moorage_lock_conflicts_total pointer"] < 2 {
		t.Errorf("conflicts: %v", got)
	}
}

// TestWorkerMetrics tests the metrics of the workers.
func TestWorkerMetrics(t *testing.T) {
	t.Parallel()
	metrics := prometheus.NewRegistry()
	transactions := recovery.Stats{Unfinished: 5, Blocked: 2, Attempts: 9, Failures: 4, Recovered: 3}
	purges := purge.Stats{Unfinished: 8, Blocked: 1, Failures: 6, Waiting: 3, WaitingBytes: 1 << 40}
	meterRecovery(metrics, func() recovery.Stats { return transactions })
	meterPurges(metrics, func() purge.Stats { return purges })
	purges.Failures++
	want := map[string]float64{
		"moorage_transactions_unfinished": 5, "moorage_transactions_blocked": 2, "moorage_recovery_attempts_total": 9,
		"moorage_recovery_failures_total": 4, "moorage_transactions_recovered_total": 3,
		"moorage_purges_unfinished": 8, "moorage_purges_blocked": 1, "moorage_purge_failures_total": 7,
		"moorage_purges_waiting": 3, "moorage_purges_waiting_bytes": 1 << 40,
	}
	if got := counts(t, metrics); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestMetricNames checks the names against the conventions of Prometheus.
func TestMetricNames(t *testing.T) {
	t.Parallel()
	metrics := prometheus.NewRegistry()
	store := meterStore(memory.New(rand.Reader), metrics, nil)
	observer := newLockMetrics(metrics)
	store.get.ended(t.Context(), time.Now(), nil)
	meterLeases(nil, metrics).calls.observe("try", "done", 0)
	meterRecovery(metrics, func() recovery.Stats { return recovery.Stats{} })
	meterPurges(metrics, func() purge.Stats { return purge.Stats{} })
	observer.LockConflicted(locks.LevelPointer)
	observer.LockWaited(locks.LevelPointer, time.Second, nil)
	observer.LockHeld(locks.LevelPointer, time.Second)
	observer.LockLost(locks.LevelPointer)
	observer.SessionLost()
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// counts returns the values of metrics, by name and label values.
func counts(t *testing.T, metrics *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]float64)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			found[name] = value(metric)
		}
	}
	return found
}

func value(metric *dto.Metric) float64 {
	if metric.GetHistogram() != nil {
		return float64(metric.GetHistogram().GetSampleCount())
	}
	return metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
}
