package main

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"moorage/locks"
	"moorage/testkit/locktest"
)

func TestLeaseMetrics(t *testing.T) {
	t.Parallel()
	metrics := prometheus.NewRegistry()
	leases := meterLeases(locktest.NewMemoryLeases(time.Now), metrics)
	ctx := t.Context()
	gone, cancel := context.WithCancel(ctx)
	cancel()
	wanted := []locks.Lease{{ID: 1, Path: "/w", Mode: uint8(locks.W)}}
	for _, call := range []func() error{
		func() error { return leases.Open(ctx, locks.Session{Name: "a"}) },
		func() error { return leases.Open(ctx, locks.Session{Name: "b"}) },
		func() error { _, _, err := leases.Announce(ctx, "a", "ship:8181", "host"); return err },
		func() error { _, _, err := leases.Try(ctx, "a", 0, wanted, time.Minute); return err },
		func() error { _, _, err := leases.Try(ctx, "b", 2, wanted, time.Minute); return err },
		func() error { _, err := leases.Wanted(ctx, "a", time.Minute); return err },
		func() error { return leases.Release(ctx, "a", []int64{1}) },
		func() error { _, _, err := leases.Renew(ctx, "b", []int64{2}, time.Minute); return err },
		func() error { _, err := leases.Reap(ctx, time.Minute); return err },
		func() error { return leases.End(ctx, "a") },
	} {
		if err := call(); err != nil {
			t.Fatal(err)
		}
	}
	if err := leases.End(gone, "b"); err == nil {
		t.Error("a call whose caller is gone: no error")
	}
	got := counts(t, metrics)
	for ended, want := range map[string]float64{
		"open done": 2, "announce done": 1, "try done": 1, "try conflict": 1, "wanted done": 1, "release done": 1, "renew done": 1, "reap done": 1,
		"end done": 1, "end canceled": 1,
	} {
		if series := "moorage_lease_call_duration_seconds " + ended; got[series] != want {
			t.Errorf("%s was counted %v times, want %v; all: %v", series, got[series], want, got)
		}
	}
}
