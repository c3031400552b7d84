package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"moorage/locks"
)

// meteredLeases measures the calls of the leases behind shared locks, as meteredStore does those of the store. It is
// safe for concurrent use.
type meteredLeases struct {
	locks.Leases

	calls *prometheus.HistogramVec // seconds, by call and outcome
}

// meterLeases returns leases with their calls measured in metrics.
func meterLeases(leases locks.Leases, metrics prometheus.Registerer) *meteredLeases {
	calls := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "moorage_lease_call_duration_seconds",
		Help:    "Duration of calls for the leases of locks that nodes share, by call and by how it ended.",
		Buckets: callBuckets(),
	}, []string{"call", "outcome"})
	metrics.MustRegister(calls)
	return &meteredLeases{Leases: leases, calls: calls}
}

// Open is locks.Leases.Open, measured.
func (m *meteredLeases) Open(ctx context.Context, session locks.Session) error {
	begin := time.Now()
	err := m.Leases.Open(ctx, session)
	m.observe("open", begin, err)
	return err
}

// Announce is locks.Leases.Announce, measured.
func (m *meteredLeases) Announce(ctx context.Context, session, address, host string) (ended int, alive bool, err error) {
	begin := time.Now()
	ended, alive, err = m.Leases.Announce(ctx, session, address, host)
	m.observe("announce", begin, err)
	return ended, alive, err
}

// Renew is locks.Leases.Renew, measured.
func (m *meteredLeases) Renew(ctx context.Context, session string, known []int64, orphaned time.Duration) (lost []int64, alive bool, err error) {
	begin := time.Now()
	lost, alive, err = m.Leases.Renew(ctx, session, known, orphaned)
	m.observe("renew", begin, err)
	return lost, alive, err
}

// Try is locks.Leases.Try, measured; what is blocked counts as a conflict.
func (m *meteredLeases) Try(ctx context.Context, session string, ticket int64, leases []locks.Lease, silence time.Duration) (blocked int, alive bool, err error) {
	begin := time.Now()
	blocked, alive, err = m.Leases.Try(ctx, session, ticket, leases, silence)
	ended := outcome(err)
	if err == nil && blocked >= 0 {
		ended = outcomeConflict
	}
	m.calls.WithLabelValues("try", ended).Observe(time.Since(begin).Seconds())
	return blocked, alive, err
}

// Release is locks.Leases.Release, measured.
func (m *meteredLeases) Release(ctx context.Context, session string, ids []int64) error {
	begin := time.Now()
	err := m.Leases.Release(ctx, session, ids)
	m.observe("release", begin, err)
	return err
}

// Wanted is locks.Leases.Wanted, measured.
func (m *meteredLeases) Wanted(ctx context.Context, session string, silence time.Duration) ([]int64, error) {
	begin := time.Now()
	ids, err := m.Leases.Wanted(ctx, session, silence)
	m.observe("wanted", begin, err)
	return ids, err
}

// Reap is locks.Leases.Reap, measured.
func (m *meteredLeases) Reap(ctx context.Context, ttl time.Duration) (int, error) {
	begin := time.Now()
	ended, err := m.Leases.Reap(ctx, ttl)
	m.observe("reap", begin, err)
	return ended, err
}

// End is locks.Leases.End, measured.
func (m *meteredLeases) End(ctx context.Context, session string) error {
	begin := time.Now()
	err := m.Leases.End(ctx, session)
	m.observe("end", begin, err)
	return err
}

func (m *meteredLeases) observe(call string, begin time.Time, err error) {
	m.calls.WithLabelValues(call, outcome(err)).Observe(time.Since(begin).Seconds())
}
