package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"moorage/registry"
)

// maintenanceMetrics are the metrics that jobs report.
type maintenanceMetrics struct{ jobSeconds *prometheus.HistogramVec }

// jobBuckets are from a second to a month: most jobs wait a day before they delete.
var jobBuckets = []float64{
	1, 10, 60, 600, 3600, 6 * 3600, 24 * 3600, 26 * 3600, 2 * 24 * 3600, 7 * 24 * 3600, 11 * 24 * 3600, 30 * 24 * 3600,
}

func newMaintenanceMetrics(on *prometheus.Registry) maintenanceMetrics {
	m := maintenanceMetrics{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "moorage_maintenance_job_seconds",
		Help:    "Time from the beginning of a maintenance job to its end, with the time that it waited.",
		Buckets: jobBuckets,
	}, []string{"kind", "outcome"})}
	on.MustRegister(m.jobSeconds)
	return m
}

// ended measures a job that has ended.
func (m maintenanceMetrics) ended(run registry.Run) {
	m.jobSeconds.WithLabelValues(run.Kind, run.Outcome).Observe(run.Ended.Sub(run.Began).Seconds())
}

// upkeepMetrics collects the counts of a node's upkeep.
type upkeepMetrics struct{ upkeep *upkeep }

var (
	lagSeconds = gaugeDesc("moorage_maintenance_lag_seconds",
		"Age of the last change that was read for maintenance, while there are more.")
	walksNow       = gaugeDesc("moorage_maintenance_walks", "Walks over tables that are under way on this node.")
	overdueSeconds = gaugeDesc("moorage_maintenance_overdue_seconds",
		"How long the table is due that is due for longest, in the shards of this node.")
	dueNow = gaugeDesc("moorage_maintenance_due",
		"Tables that were due in the last looks of this node, by kind.", "kind")
	shardsHeld = gaugeDesc("moorage_maintenance_shards", "Shards of the due index that this node works on, of 16.")
	jobsNow    = gaugeDesc("moorage_maintenance_jobs",
		"Maintenance jobs of the store in the last look of this node, by kind and state.", "kind", "state")
	blockedNow = gaugeDesc("moorage_maintenance_blocked",
		"What is blocked until an operator looks, in the last look of this node; see moorage maintain blockers.")
	changesTotal = counterDesc("moorage_maintenance_changes_total", "Changes that were read for maintenance.")
	madeDueTotal = counterDesc("moorage_maintenance_made_due_total", "Tables that were made due by changes and walks.")
	missedTotal  = counterDesc("moorage_maintenance_missed_total",
		"Tables that should have been due and were not, found by looks at random. It stays 0.")
	looksTotal = counterDesc("moorage_maintenance_looks_total", "Looks at tables that were due, by outcome.", "outcome")
	jobsBegun  = counterDesc("moorage_maintenance_jobs_begun_total",
		"Maintenance jobs that were begun because they were due, by kind.", "kind")
	commitsTotal = counterDesc("moorage_maintenance_commits_total",
		"Attempts to expire snapshots, by kind and outcome.", "kind", "outcome")
	filesDeletedTotal = counterDesc("moorage_maintenance_files_deleted_total",
		"Files that maintenance jobs of this node deleted.")
	bytesDeletedTotal = counterDesc("moorage_maintenance_bytes_deleted_total",
		"Bytes of the orphans that maintenance jobs of this node deleted; nothing says how long an expired file was.")
	keptTotal = counterDesc("moorage_maintenance_kept_total",
		"Files that maintenance jobs of this node kept although only expired snapshots or nobody "+
			"reached them, by reason.",
		"reason")
	readBytesTotal = counterDesc("moorage_maintenance_read_bytes_total",
		"Bytes of manifests and their lists that maintenance jobs of this node read.")
	waitedSecondsTotal = counterDesc("moorage_maintenance_waited_seconds_total",
		"Time that maintenance jobs of this node waited for their budget, all together.")
	slowedTotal = counterDesc("moorage_maintenance_slowed_total",
		"How often a storage that asked for fewer requests got half of what it got from maintenance jobs.")
)

// described is a metric whose values are collected.
type described struct {
	*prometheus.Desc
	kind prometheus.ValueType
}

func gaugeDesc(name, help string, labels ...string) described {
	return described{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue}
}

func counterDesc(name, help string, labels ...string) described {
	return described{prometheus.NewDesc(name, help, labels, nil), prometheus.CounterValue}
}

// Describe implements prometheus.Collector.
func (m upkeepMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []described{
		lagSeconds, walksNow, overdueSeconds, dueNow, shardsHeld, jobsNow, blockedNow, changesTotal, madeDueTotal,
		missedTotal, looksTotal, jobsBegun, commitsTotal, filesDeletedTotal, bytesDeletedTotal, keptTotal,
		readBytesTotal, waitedSecondsTotal, slowedTotal,
	} {
		to <- d.Desc
	}
}

// Collect implements prometheus.Collector.
func (m upkeepMetrics) Collect(to chan<- prometheus.Metric) {
	show := func(d described, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d.Desc, d.kind, value, labels...)
	}
	followed := m.upkeep.monitor.Stats()
	show(lagSeconds, followed.Lag.Seconds())
	show(walksNow, float64(followed.Walking))
	show(changesTotal, float64(followed.Changes))
	show(madeDueTotal, float64(followed.MadeDue))
	show(missedTotal, float64(followed.Missed))
	planned := m.upkeep.planner.Stats()
	show(overdueSeconds, planned.Overdue.Seconds())
	show(shardsHeld, float64(planned.Shards))
	showEach(show, dueNow, planned.DueFound)
	showEach(show, looksTotal, planned.Looks)
	showEach(show, jobsBegun, planned.Began)
	done := m.upkeep.worker.Stats()
	show(blockedNow, float64(done.Blockers))
	show(filesDeletedTotal, float64(done.Files))
	show(bytesDeletedTotal, float64(done.Bytes))
	showEach(show, keptTotal, done.Kept)
	for of, n := range done.Jobs {
		show(jobsNow, float64(n), of.Kind, of.Is)
	}
	for of, n := range done.Commits {
		show(commitsTotal, float64(n), of.Kind, of.Is)
	}
	spent := m.upkeep.budget.Stats()
	show(readBytesTotal, float64(spent.ReadBytes))
	show(waitedSecondsTotal, spent.Waited.Seconds())
	show(slowedTotal, float64(spent.Slowed))
}

// showEach shows values with their labels.
func showEach(show func(d described, value float64, labels ...string), d described, values map[string]int64) {
	for label, n := range values {
		show(d, float64(n), label)
	}
}
