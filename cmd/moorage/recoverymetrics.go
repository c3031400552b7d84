package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"moorage/catalog"
	"moorage/txlog"
)

// meterRecovery shows in metrics what stats says at that moment.
func meterRecovery(metrics prometheus.Registerer, stats func() txlog.Stats) {
	metrics.MustRegister(
		gaugeOf(stats, "moorage_transactions_unfinished",
			"Transactions with something left to do, those under way among them, when this node last looked.",
			func(s txlog.Stats) int { return s.Unfinished }),
		gaugeOf(stats, "moorage_transactions_blocked",
			"Transactions that the recovery gave up or cannot read, until an operator looks, when this node last looked; see moorage recover.",
			func(s txlog.Stats) int { return s.Blocked }),
		counterOf(stats, "moorage_recovery_attempts_total", "Attempts of this node to end a transaction whose coordinator did not.",
			func(s txlog.Stats) int64 { return s.Attempts }),
		counterOf(stats, "moorage_recovery_failures_total", "Attempts of this node to end a transaction that failed.",
			func(s txlog.Stats) int64 { return s.Failures }),
		counterOf(stats, "moorage_transactions_recovered_total", "Transactions that this node ended because their coordinator did not.",
			func(s txlog.Stats) int64 { return s.Recovered }))
}

// meterPurges shows in metrics what stats says at that moment.
func meterPurges(metrics prometheus.Registerer, stats func() catalog.PurgeStats) {
	metrics.MustRegister(
		gaugeOf(stats, "moorage_purges_unfinished",
			"Dropped tables whose files are still to be deleted, those that wait for their time among them, when this node last looked.",
			func(s catalog.PurgeStats) int { return s.Unfinished }),
		gaugeOf(stats, "moorage_purges_blocked",
			"Purges of dropped tables that were given up and are tried once an hour, and tasks that cannot be read, when this node last looked; see moorage recover.",
			func(s catalog.PurgeStats) int { return s.Blocked }),
		counterOf(stats, "moorage_purge_failures_total", "Attempts of this node to delete a dropped table's files that failed.",
			func(s catalog.PurgeStats) int64 { return s.Failures }))
}

func gaugeOf[S any](stats func() S, name, help string, value func(S) int) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value(stats())) })
}

func counterOf[S any](stats func() S, name, help string, value func(S) int64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(value(stats())) })
}
