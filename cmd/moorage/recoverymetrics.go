package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"moorage/txlog"
)

// meterRecovery shows in metrics what stats says at that moment.
func meterRecovery(metrics prometheus.Registerer, stats func() txlog.Stats) {
	gauge := func(name, help string, value func(txlog.Stats) int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value(stats())) })
	}
	counter := func(name, help string, value func(txlog.Stats) int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(value(stats())) })
	}
	metrics.MustRegister(
		gauge("moorage_transactions_unfinished",
			"Transactions of which something is left to do, those under way among them, when this node last looked.",
			func(s txlog.Stats) int { return s.Unfinished }),
		gauge("moorage_transactions_blocked",
			"Transactions that the recovery gave up or cannot read, until an operator looks, when this node last looked; see moorage recover.",
			func(s txlog.Stats) int { return s.Blocked }),
		counter("moorage_recovery_attempts_total", "Attempts of this node to end a transaction whose coordinator did not.",
			func(s txlog.Stats) int64 { return s.Attempts }),
		counter("moorage_recovery_failures_total", "Attempts of this node to end a transaction that failed.",
			func(s txlog.Stats) int64 { return s.Failures }),
		counter("moorage_transactions_recovered_total", "Transactions that this node ended because their coordinator did not.",
			func(s txlog.Stats) int64 { return s.Recovered }))
}
