package main

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"moorage/locks"
)

// lockMetrics is a locks.Observer that counts by the level of the lock tree. It is
// safe for concurrent use.
type lockMetrics struct {
	conflicts *prometheus.CounterVec   // by level
	waits     *prometheus.HistogramVec // seconds, by level and outcome
	holds     *prometheus.HistogramVec // seconds, by level
	losses    *prometheus.CounterVec   // by level
	sessions  prometheus.Counter
}

// newLockMetrics returns an observer whose counts are in metrics.
func newLockMetrics(metrics prometheus.Registerer) *lockMetrics {
	m := &lockMetrics{
		conflicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "moorage_lock_conflicts_total",
			Help: "Locks that could not be had at once, by level.",
		}, []string{"level"}),
		waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "moorage_lock_wait_duration_seconds",
			Help:    "Time waited for locks that could not be had at once, by level and by how it ended.",
			Buckets: callBuckets(),
		}, []string{"level", "outcome"}),
		holds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "moorage_lock_hold_duration_seconds",
			Help:    "Time that locks on subtrees were held, by level.",
			Buckets: callBuckets(),
		}, []string{"level"}),
		losses: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "moorage_locks_lost_total",
			Help: "Locks on subtrees that were lost while they were held, by level.",
		}, []string{"level"}),
		sessions: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "moorage_lock_sessions_lost_total",
			Help: "Sessions of this node that ended before it did, and all its locks with them.",
		}),
	}
	metrics.MustRegister(m.conflicts, m.waits, m.holds, m.losses, m.sessions)
	return m
}

// LockConflicted counts a lock that could not be had at once.
func (m *lockMetrics) LockConflicted(level locks.Level) {
	m.conflicts.WithLabelValues(level.String()).Inc()
}

// LockWaited measures the end of a wait.
func (m *lockMetrics) LockWaited(level locks.Level, waited time.Duration, err error) {
	ended := "canceled"
	switch {
	case err == nil:
		ended = "granted"
	case errors.Is(err, locks.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		ended = "timeout"
	}
	m.waits.WithLabelValues(level.String(), ended).Observe(waited.Seconds())
}

// LockHeld measures a lock that was released.
func (m *lockMetrics) LockHeld(level locks.Level, held time.Duration) {
	m.holds.WithLabelValues(level.String()).Observe(held.Seconds())
}

// LockLost counts a lock that was lost while it was held.
func (m *lockMetrics) LockLost(level locks.Level) {
	m.losses.WithLabelValues(level.String()).Inc()
}

// SessionLost counts a session that ended before its node did.
func (m *lockMetrics) SessionLost() { m.sessions.Inc() }
