package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"moorage/internal/trace"
	"moorage/locks"
	"moorage/maintenance/purge"
	"moorage/metadata"
	"moorage/recovery"
	"moorage/registry"
)

// callBuckets are the bounds of the latency histograms, in seconds: from a read in memory to a call
// that almost exceeds its timeout.
func callBuckets() []float64 { return prometheus.ExponentialBuckets(0.0001, 2.5, 15) }

// newMetrics returns a registry with the standard metrics of a Go process.
func newMetrics() *prometheus.Registry {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewBuildInfoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return metrics
}

// callMetrics measures calls by name and outcome. It is safe for concurrent use.
type callMetrics struct {
	seconds *prometheus.HistogramVec
	tracer  *trace.Tracer // nil if calls are not traced
}

// begin starts to measure a call. The returned function ends the measurement; err is the call's
// error.
func (m callMetrics) begin(call string) (end func(err *error)) {
	began := time.Now()
	return func(err *error) { m.observe(call, outcome(*err), time.Since(began)) }
}

func (m callMetrics) observe(call, ended string, took time.Duration) {
	m.seconds.WithLabelValues(call, ended).Observe(took.Seconds())
}

// meteredCall measures one kind of frequent call. It stores the histogram of successful calls,
// because a lookup would take as long as some of the calls.
type meteredCall struct {
	metrics callMetrics
	call    string
	span    string // name of its spans
	done    func() prometheus.Observer
}

// meter returns the meter of call.
func (m callMetrics) meter(call string) meteredCall {
	return meteredCall{m, call, "store." + call, sync.OnceValue(func() prometheus.Observer {
		return m.seconds.WithLabelValues(call, outcome(nil))
	})}
}

// ended measures a call that began at time began and returned err. It also adds the call to the
// trace of ctx.
func (c meteredCall) ended(ctx context.Context, began time.Time, err error) {
	took := time.Since(began)
	c.metrics.tracer.Call(ctx, c.span, outcome(err), took)
	if err == nil {
		c.done().Observe(took.Seconds())
		return
	}
	c.metrics.observe(c.call, outcome(err), took)
}

// histogram returns a histogram of seconds in metrics.
func histogram(metrics prometheus.Registerer, name, help string, labels ...string) *prometheus.HistogramVec {
	made := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: callBuckets()}, labels)
	metrics.MustRegister(made)
	return made
}

// counter returns a counter in metrics.
func counter(metrics prometheus.Registerer, name, help string, labels ...string) *prometheus.CounterVec {
	made := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	metrics.MustRegister(made)
	return made
}

// meteredStore measures the calls of a store. It is safe for concurrent use.
type meteredStore struct {
	registry.Store

	calls                                     callMetrics
	get, list, listKeys, apply, changes, time meteredCall

	lastWrite atomic.Int64 // duration of the last successful write in nanoseconds; 0 before the first
}

// meterStore wraps store so that its calls are measured in metrics, and in the traces of tracer.
func meterStore(store registry.Store, metrics prometheus.Registerer, tracer *trace.Tracer) *meteredStore {
	calls := callMetrics{histogram(metrics, "moorage_store_call_duration_seconds",
		"Duration of calls to the store, by call and outcome.", "call", "outcome"), tracer}
	return &meteredStore{
		Store: store, calls: calls,
		get: calls.meter("get"), list: calls.meter("list"), listKeys: calls.meter("list-keys"),
		apply: calls.meter("apply"), changes: calls.meter("changes"), time: calls.meter("time"),
	}
}

// Unwrap implements registry.Wrapper.
func (m *meteredStore) Unwrap() registry.Store { return m.Store }

// Get is registry.Store.Get, measured.
func (m *meteredStore) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	began := time.Now()
	answer, err := m.Store.Get(ctx, keys...)
	m.get.ended(ctx, began, err)
	return answer, err
}

// List is registry.Store.List, measured.
func (m *meteredStore) List(ctx context.Context, table registry.Table, prefix, after string, limit int,
) ([]registry.Record, error) {
	began := time.Now()
	answer, err := m.Store.List(ctx, table, prefix, after, limit)
	m.list.ended(ctx, began, err)
	return answer, err
}

// ListKeys is registry.Store.ListKeys, measured.
func (m *meteredStore) ListKeys(ctx context.Context, table registry.Table, prefix, after string, limit int,
) ([]registry.Record, error) {
	began := time.Now()
	answer, err := m.Store.ListKeys(ctx, table, prefix, after, limit)
	m.listKeys.ended(ctx, began, err)
	return answer, err
}

// Apply is registry.Store.Apply, measured.
func (m *meteredStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	began := time.Now()
	answer, err := m.Store.Apply(ctx, batch)
	if err == nil {
		m.lastWrite.Store(int64(time.Since(began)))
	}
	m.apply.ended(ctx, began, err)
	return answer, err
}

// Changes is registry.Store.Changes, measured.
func (m *meteredStore) Changes(ctx context.Context, after registry.Position, limit int,
) ([]registry.PositionedChange, error) {
	began := time.Now()
	answer, err := m.Store.Changes(ctx, after, limit)
	m.changes.ended(ctx, began, err)
	return answer, err
}

// Time is registry.Clock.Time, measured.
func (m *meteredStore) Time(ctx context.Context) (time.Time, error) {
	began := time.Now()
	answer, err := m.Store.Time(ctx)
	m.time.ended(ctx, began, err)
	return answer, err
}

// Healthy returns nil if the store can be written to. A store without a health check is healthy.
func (m *meteredStore) Healthy(ctx context.Context) error {
	if checker, ok := m.Store.(registry.HealthChecker); ok {
		return checker.Healthy(ctx)
	}
	return nil
}

// meterGroups returns a function that records the number of commits in a new version.
func meterGroups(metrics prometheus.Registerer) func(commits int) {
	members := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "moorage_commit_group_members",
		Help:    "Commits that one new version of a table carried out together.",
		Buckets: []float64{1, 2, 4, 8, 16, 32, 64},
	})
	metrics.MustRegister(members)
	return func(commits int) { members.Observe(float64(commits)) }
}

// meterRebased returns a function that counts the appends in a new version that were rebased onto
// another snapshot.
func meterRebased(metrics prometheus.Registerer) func(appends int) {
	rebased := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "moorage_commit_rebased_total",
		Help: "Appends that were moved to the current snapshot from the one they were sent for.",
	})
	metrics.MustRegister(rebased)
	return func(appends int) { rebased.Add(float64(appends)) }
}

// meterNotRebased returns a function that counts appends that were refused although their clients
// requested a rebase.
func meterNotRebased(metrics prometheus.Registerer) func(why metadata.Misfit) {
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "moorage_commit_not_rebased_total",
		Help: "Appends that could not be moved to the current snapshot, by reason.",
	}, []string{"reason"})
	metrics.MustRegister(refused)
	return func(why metadata.Misfit) { refused.WithLabelValues(string(why)).Inc() }
}

// outcomeConflict is the outcome of a call that conflicted with another call.
const outcomeConflict = "conflict"

// outcome returns the name of a store call's outcome.
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

// meteredLeases measures calls to the leases of shared locks, as meteredStore measures calls to the
// store. It is safe for concurrent use.
type meteredLeases struct {
	locks.Leases

	calls callMetrics
}

// meterLeases wraps leases so that calls are measured in metrics.
func meterLeases(leases locks.Leases, metrics prometheus.Registerer) *meteredLeases {
	seconds := histogram(metrics, "moorage_lease_call_duration_seconds",
		"Duration of calls for the leases of locks that nodes share, by call and outcome.", "call", "outcome")
	return &meteredLeases{Leases: leases, calls: callMetrics{seconds: seconds}}
}

// Open is locks.Leases.Open, measured.
func (m *meteredLeases) Open(ctx context.Context, session locks.Session) (err error) {
	defer m.calls.begin("open")(&err)
	return m.Leases.Open(ctx, session)
}

// Announce is locks.Leases.Announce, measured.
func (m *meteredLeases) Announce(ctx context.Context, session, address, host string,
) (ended int, alive bool, err error) {
	defer m.calls.begin("announce")(&err)
	return m.Leases.Announce(ctx, session, address, host)
}

// Renew is locks.Leases.Renew, measured.
func (m *meteredLeases) Renew(ctx context.Context, session string, known []int64, orphaned time.Duration,
) (lost []int64, alive bool, err error) {
	defer m.calls.begin("renew")(&err)
	return m.Leases.Renew(ctx, session, known, orphaned)
}

// Try is locks.Leases.Try, measured. If another session blocks the call, the outcome is a conflict.
func (m *meteredLeases) Try(ctx context.Context, session string, ticket int64, leases []locks.Lease,
	silence time.Duration,
) (blocked int, alive bool, err error) {
	began := time.Now()
	blocked, alive, err = m.Leases.Try(ctx, session, ticket, leases, silence)
	ended := outcome(err)
	if err == nil && blocked >= 0 {
		ended = outcomeConflict
	}
	m.calls.observe("try", ended, time.Since(began))
	return blocked, alive, err
}

// Release is locks.Leases.Release, measured.
func (m *meteredLeases) Release(ctx context.Context, session string, ids []int64) (err error) {
	defer m.calls.begin("release")(&err)
	return m.Leases.Release(ctx, session, ids)
}

// Wanted is locks.Leases.Wanted, measured.
func (m *meteredLeases) Wanted(ctx context.Context, session string, silence time.Duration) (_ []int64, err error) {
	defer m.calls.begin("wanted")(&err)
	return m.Leases.Wanted(ctx, session, silence)
}

// Reap is locks.Leases.Reap, measured.
func (m *meteredLeases) Reap(ctx context.Context, ttl time.Duration) (_ int, err error) {
	defer m.calls.begin("reap")(&err)
	return m.Leases.Reap(ctx, ttl)
}

// End is locks.Leases.End, measured.
func (m *meteredLeases) End(ctx context.Context, session string) (err error) {
	defer m.calls.begin("end")(&err)
	return m.Leases.End(ctx, session)
}

// lockMetrics is a locks.Observer that counts events by level of the lock tree. It is safe for
// concurrent use.
type lockMetrics struct {
	conflicts *prometheus.CounterVec   // by level
	waits     *prometheus.HistogramVec // seconds, by level and outcome
	holds     *prometheus.HistogramVec // seconds, by level
	losses    *prometheus.CounterVec   // by level
	sessions  prometheus.Counter
}

// newLockMetrics returns an observer that registers its counts in metrics.
func newLockMetrics(metrics prometheus.Registerer) *lockMetrics {
	return &lockMetrics{
		conflicts: counter(metrics, "moorage_lock_conflicts_total",
			"Locks that were not free at once, by level.", "level"),
		waits: histogram(metrics, "moorage_lock_wait_duration_seconds",
			"Time spent waiting for locks that were not free at once, by level and outcome.", "level", "outcome"),
		holds: histogram(metrics, "moorage_lock_hold_duration_seconds",
			"Time for which locks on subtrees were held, by level.", "level"),
		losses: counter(metrics, "moorage_locks_lost_total",
			"Locks on subtrees that were lost while they were held, by level.", "level"),
		sessions: counter(metrics, "moorage_lock_sessions_lost_total",
			"Sessions of this node that ended while it was running. All its locks ended with them.").WithLabelValues(),
	}
}

// LockConflicted counts a lock that was not free at once.
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

// SessionLost counts a session that ended while its node was running.
func (m *lockMetrics) SessionLost() { m.sessions.Inc() }

// meterRecovery adds metrics with the present values of stats.
func meterRecovery(metrics prometheus.Registerer, stats func() recovery.Stats) {
	metrics.MustRegister(
		gaugeOf(stats, "moorage_transactions_unfinished",
			"Transactions that are not finished, running ones included, as this node last counted them.",
			func(s recovery.Stats) int { return s.Unfinished }),
		gaugeOf(stats, "moorage_transactions_blocked",
			"Transactions that recovery gave up or cannot read, as this node last counted them. See moorage doctor.",
			func(s recovery.Stats) int { return s.Blocked }),
		counterOf(stats, "moorage_recovery_attempts_total",
			"Attempts of this node to finish a transaction whose coordinator did not.",
			func(s recovery.Stats) int64 { return s.Attempts }),
		counterOf(stats, "moorage_recovery_failures_total", "Failed attempts of this node to finish a transaction.",
			func(s recovery.Stats) int64 { return s.Failures }),
		counterOf(stats, "moorage_transactions_recovered_total",
			"Transactions that this node finished because their coordinator did not.",
			func(s recovery.Stats) int64 { return s.Recovered }))
}

// meterPurges adds metrics with the present values of stats.
func meterPurges(metrics prometheus.Registerer, stats func() purge.Stats) {
	metrics.MustRegister(
		gaugeOf(stats, "moorage_purges_unfinished",
			"Dropped tables whose files are not deleted yet, waiting ones included, as this node last counted them.",
			func(s purge.Stats) int { return s.Unfinished }),
		gaugeOf(stats, "moorage_purges_blocked",
			"Purges that are now tried once an hour, and unreadable tasks, as last counted. See moorage doctor.",
			func(s purge.Stats) int { return s.Blocked }),
		gaugeOf(stats, "moorage_purges_waiting",
			"Dropped tables that can come back until their purges begin, as this node counts them every five minutes.",
			func(s purge.Stats) int { return s.Waiting }),
		gaugeOf(stats, "moorage_purges_waiting_bytes",
			"Bytes of the files that the waiting purges will delete, from the summaries of the snapshots.",
			func(s purge.Stats) int { return int(s.WaitingBytes) }),
		counterOf(stats, "moorage_purge_failures_total",
			"Failed attempts of this node to delete the files of a dropped table.",
			func(s purge.Stats) int64 { return s.Failures }))
}

func gaugeOf[S any](stats func() S, name, help string, value func(S) int) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
		func() float64 { return float64(value(stats())) })
}

func counterOf[S any](stats func() S, name, help string, value func(S) int64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help},
		func() float64 { return float64(value(stats())) })
}
