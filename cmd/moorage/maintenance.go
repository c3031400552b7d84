package main

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"moorage"
	"moorage/catalog"
	"moorage/internal/cli"
	"moorage/internal/worker"
	"moorage/ledger"
	"moorage/maintenance/due"
	"moorage/maintenance/jobs"
	"moorage/maintenance/policy"
	"moorage/maintenance/retention"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// policiesPause is the pause between two reads of all policies. They must be read again because
// other nodes write policies, and because a node may not learn that its own write succeeded. If the
// change log has a change of a policy, the monitor reads the policies at once.
const policiesPause = 30 * time.Second

// whoMaintains is the caller of maintenance jobs.
const whoMaintains = "expire"

// maintenance is the automatic maintenance of a store.
type maintenance struct {
	catalog  *catalog.Catalog
	policies *policy.Policies
	monitor  *due.Monitor
	planner  *due.Planner
	jobs     *jobs.Jobs
	worker   *jobs.Worker
	steering *due.Control
	reader   *worker.Worker // reads policies
	budget   *jobs.Budget
	metrics  maintenanceMetrics
	logger   *slog.Logger
	isOff    bool

	kickPurges func()
}

// newMaintenance returns the maintenance of a store. It does not start it. kickPurges makes the
// purge worker work now, if it is started.
func newMaintenance(c cli.Config, deps ledger.Deps, made *catalog.Catalog, clock *jobs.Clock,
	metrics *prometheus.Registry, kickPurges func()) (*maintenance, error) {
	tables := made.As(moorage.System(whoMaintains)).Tables()
	m := &maintenance{
		catalog: made, isOff: c.Maintenance == cli.MaintenanceOff, logger: deps.Logger,
		budget: jobs.NewBudget(jobs.DefaultRates(), deps.Now), metrics: newMaintenanceMetrics(metrics),
		kickPurges: kickPurges,
	}
	m.policies = policy.New(deps.Ledger, m.kick)
	kept := retention.ChangesKept(c.ChangeRetention, catalog.ChangeRetentionMin(c.IdempotencyLifetime))
	var err error
	m.jobs, err = jobs.New(jobs.Config{
		Deps: deps, Tables: tables, Doubt: clock.Doubt, Budget: m.budget, FormerKept: kept, Ended: m.metrics.ended,
	})
	if err != nil {
		return nil, err
	}
	m.worker = m.jobs.NewWorker()
	m.monitor, err = due.NewMonitor(due.MonitorConfig{
		Deps: deps, Tables: tables, Policies: m.policies,
		Retention: kept, MadeDue: func() { m.planner.Kick() },
	})
	if err != nil {
		return nil, err
	}
	m.planner, err = due.NewPlanner(due.PlannerConfig{
		Deps: deps, Jobs: m.jobs, Tables: tables, Policies: m.policies,
		Began: m.worker.Kick, Doubt: clock.Doubt,
	})
	if err != nil {
		return nil, err
	}
	m.steering = &due.Control{
		Ledger: deps.Ledger, Policies: m.policies, Jobs: m.jobs, Tables: tables, Kick: m.kick,
	}
	m.reader = worker.New(worker.Config{
		Name: "maintenance policies", Interval: policiesPause, Jitter: newJitter(), Logger: deps.Logger,
		Run: func(ctx context.Context) error { return m.readPolicies(ctx) },
	})
	metrics.MustRegister(maintenanceCounts{m})
	return m, nil
}

// readPolicies reads the policies, and kicks the other parts if a policy enables maintenance.
func (m *maintenance) readPolicies(ctx context.Context) error {
	before := m.policies.Current()
	if before == nil {
		m.warnOfPauses(ctx)
	}
	found, err := m.policies.Reload(ctx)
	if err == nil && found.Asks() && !before.Asks() {
		m.kick()
	}
	return err
}

// warnOfPauses logs, when the server starts, which objects are paused. The maintenance of a
// restored store is paused.
func (m *maintenance) warnOfPauses(ctx context.Context) {
	pauses, err := m.steering.Pauses(ctx)
	if err != nil {
		m.logger.WarnContext(ctx, "what maintenance is paused cannot be read", "error", err)
	}
	for _, pause := range pauses {
		object := due.ObjectOf(pause)
		m.logger.WarnContext(ctx, "maintenance is paused", "object", object, "since", pause.Since, "by", pause.By,
			"reason", pause.Reason, "end", "moorage maintain resume "+object)
	}
}

// rules returns the maintenance rules of a table; see leases.WorkConfig. If maintenance is off on
// this node, no worker reads the policies, so rules reads them.
func (m *maintenance) rules(ctx context.Context, table registry.Pointer, document *metadata.Document, fresh bool) (
	rules policy.Rules, unchanged []registry.Condition, err error) {
	matcher := m.policies.Current()
	switch {
	case fresh:
		matcher, unchanged, err = m.policies.ReloadFor(ctx, table.Warehouse)
	case matcher == nil || m.isOff:
		matcher, err = m.policies.Reload(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	return policy.Effective(matcher.Chain(table.ID, table.Identifier()), document.Properties()), unchanged, nil
}

// kick makes the monitor, the planner, the jobs and the purges work now, if they are started. The
// purges are included because a resume can end the doubt about the clock.
func (m *maintenance) kick() {
	m.kickPurges()
	m.monitor.Kick()
	m.planner.Kick()
	m.worker.Kick()
}

// start starts the maintenance, unless it is off.
func (m *maintenance) start() {
	if m.isOff {
		return
	}
	m.reader.Kick()
	m.reader.Start()
	m.monitor.Start()
	m.planner.Start()
	m.worker.Start()
}

// stop ends the maintenance, and waits for its end. A second call does nothing.
func (m *maintenance) stop() {
	m.reader.Stop()
	m.planner.Stop()
	m.monitor.Stop()
	m.worker.Stop()
}

// maintenanceMetrics are the metrics that jobs report.
type maintenanceMetrics struct{ jobSeconds *prometheus.HistogramVec }

// jobBuckets range from a second to a month, because most jobs wait a day before they delete files.
var jobBuckets = []float64{
	1, 10, 60, 600, 3600, 6 * 3600, 24 * 3600, 26 * 3600, 2 * 24 * 3600, 7 * 24 * 3600, 11 * 24 * 3600, 30 * 24 * 3600,
}

func newMaintenanceMetrics(on *prometheus.Registry) maintenanceMetrics {
	m := maintenanceMetrics{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "moorage_maintenance_job_seconds",
		Help:    "Time from the beginning of a maintenance job to its end, waits included.",
		Buckets: jobBuckets,
	}, []string{"kind", "outcome"})}
	on.MustRegister(m.jobSeconds)
	return m
}

// ended measures a job that has ended.
func (m maintenanceMetrics) ended(run registry.Run) {
	m.jobSeconds.WithLabelValues(run.Kind, run.Outcome).Observe(run.Ended.Sub(run.Began).Seconds())
}

// maintenanceCounts is a collector of the counts of a node's maintenance.
type maintenanceCounts struct{ maintenance *maintenance }

var (
	lagSeconds = gaugeDesc("moorage_maintenance_lag_seconds",
		"Age of the last change that was read for maintenance, while more changes wait.")
	walksNow       = gaugeDesc("moorage_maintenance_walks", "Walks over tables that are running on this node.")
	overdueSeconds = gaugeDesc("moorage_maintenance_overdue_seconds",
		"How long the most overdue table in the shards of this node has been due.")
	dueNow = gaugeDesc("moorage_maintenance_due",
		"Tables that are due, as this node last counted them, by kind.", "kind")
	shardsHeld = gaugeDesc("moorage_maintenance_shards", "Shards of the index of due tables, of 16, on this node.")
	jobsNow    = gaugeDesc("moorage_maintenance_jobs",
		"Maintenance jobs of the store, as this node last counted them, by kind and state.", "kind", "state")
	blockedNow = gaugeDesc("moorage_maintenance_blocked",
		"Tables, jobs and records that wait for an operator, as this node last counted them. See moorage doctor.")
	changesTotal = counterDesc("moorage_maintenance_changes_total", "Changes that were read for maintenance.")
	madeDueTotal = counterDesc("moorage_maintenance_made_due_total", "Tables that changes and walks made due.")
	missedTotal  = counterDesc("moorage_maintenance_missed_total",
		"Tables that random checks found due although no change had made them due. It stays 0.")
	checksTotal = counterDesc("moorage_maintenance_checks_total",
		"Checks of due tables, by outcome.", "outcome")
	jobsBegun = counterDesc("moorage_maintenance_jobs_begun_total",
		"Maintenance jobs begun because their table was due, by kind.", "kind")
	commitsTotal = counterDesc("moorage_maintenance_commits_total",
		"Attempts to expire snapshots, by kind and outcome.", "kind", "outcome")
	filesDeletedTotal = counterDesc("moorage_maintenance_files_deleted_total",
		"Files that maintenance jobs of this node deleted.")
	bytesDeletedTotal = counterDesc("moorage_maintenance_bytes_deleted_total",
		"Bytes of the orphans that maintenance jobs of this node deleted. The sizes of expired files are not known.")
	keptTotal = counterDesc("moorage_maintenance_kept_total",
		"Files that jobs of this node kept although no snapshot that stays refers to them, by reason.",
		"reason")
	readBytesTotal = counterDesc("moorage_maintenance_read_bytes_total",
		"Bytes of manifests and manifest lists that maintenance jobs of this node read.")
	waitedSecondsTotal = counterDesc("moorage_maintenance_waited_seconds_total",
		"Total time that maintenance jobs of this node waited for their budget.")
	slowedTotal = counterDesc("moorage_maintenance_slowed_total",
		"How often a storage asked for fewer requests. Each time the rate of maintenance requests was halved.")
)

// described is a metric, with the function that reports its values.
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
func (m maintenanceCounts) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []described{
		lagSeconds, walksNow, overdueSeconds, dueNow, shardsHeld, jobsNow, blockedNow, changesTotal, madeDueTotal,
		missedTotal, checksTotal, jobsBegun, commitsTotal, filesDeletedTotal, bytesDeletedTotal, keptTotal,
		readBytesTotal, waitedSecondsTotal, slowedTotal,
	} {
		to <- d.Desc
	}
}

// Collect implements prometheus.Collector.
func (m maintenanceCounts) Collect(to chan<- prometheus.Metric) {
	show := func(d described, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d.Desc, d.kind, value, labels...)
	}
	followed := m.maintenance.monitor.Stats()
	show(lagSeconds, followed.Lag.Seconds())
	show(walksNow, float64(followed.Walking))
	show(changesTotal, float64(followed.Changes))
	show(madeDueTotal, float64(followed.MadeDue))
	show(missedTotal, float64(followed.Missed))
	planned := m.maintenance.planner.Stats()
	show(overdueSeconds, planned.Overdue.Seconds())
	show(shardsHeld, float64(planned.Shards))
	showEach(show, dueNow, planned.DueFound)
	showEach(show, checksTotal, planned.Checks)
	showEach(show, jobsBegun, planned.Began)
	done := m.maintenance.worker.Stats()
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
	spent := m.maintenance.budget.Stats()
	show(readBytesTotal, float64(spent.ReadBytes))
	show(waitedSecondsTotal, spent.Waited.Seconds())
	show(slowedTotal, float64(spent.Slowed))
}

// showEach calls show for each value with its label.
func showEach(show func(d described, value float64, labels ...string), d described, values map[string]int64) {
	for label, n := range values {
		show(d, float64(n), label)
	}
}

const (
	// clockWait is the maximum time for a storage to report the time.
	clockWait = 10 * time.Second
	// clockStorages is the maximum number of storages that are asked for the time. All of them are
	// called at once.
	clockStorages = 16
)

// newClock returns the clock of a store. made is a function that returns the catalog, whose
// storages report the time.
func newClock(deps ledger.Deps, made func() *catalog.Catalog) *jobs.Clock {
	return jobs.NewClock(jobs.ClockConfig{
		Deps: deps, Boot: sinceBoot(),
		Ask: func(ctx context.Context) []jobs.ClockReading {
			return askStorages(ctx, made().As(moorage.System(whoServes)), deps.Logger)
		},
	})
}

// askStorages returns the times reported by those storages of warehouses that are reached over the
// network. Each time comes from the answer to a list request.
func askStorages(ctx context.Context, made *catalog.Catalog, logger *slog.Logger) []jobs.ClockReading {
	warehouses, _, err := made.Warehouses().List(ctx, moorage.Page{})
	if err != nil {
		logger.WarnContext(ctx, "no storage was asked for the time", "error", err)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, clockWait)
	defer cancel()
	var (
		mu     sync.Mutex // guards said
		said   []jobs.ClockReading
		asking sync.WaitGroup
		asked  = make(map[string]bool)
	)
	for _, each := range warehouses {
		location, err := storage.Parse(each.Location)
		if err != nil || location.Scheme == storage.SchemeFile {
			continue // this storage uses the clock of this machine
		}
		name := location.Scheme + "://" + location.Authority
		if asked[name] || len(asked) == clockStorages {
			continue
		}
		asked[name] = true
		asking.Go(func() {
			now, ok := timeOf(ctx, made.Tables(), each.Name)
			if !ok {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			said = append(said, jobs.ClockReading{Source: name, Time: now})
		})
	}
	asking.Wait()
	return said
}

// timeOf returns the present time of a warehouse's storage. It returns false if the storage does
// not report it now.
func timeOf(ctx context.Context, tables *catalog.Tables, warehouse string) (time.Time, bool) {
	location, store, err := tables.WarehouseLocation(ctx, warehouse)
	if err != nil {
		return time.Time{}, false
	}
	lister, ok := store.(storage.Lister)
	if !ok {
		return time.Time{}, false
	}
	page, err := lister.List(ctx, storage.Join(location, "~moorage"), "", 1)
	return page.Now, err == nil && !page.Now.IsZero()
}

// withClock adds a notice for /readyz to notices if jobs delete no files because the clock is in
// doubt.
func withClock(notices map[string]string, clock *jobs.Clock) map[string]string {
	if clock.Last() == "" {
		return notices
	}
	all := map[string]string{"clock": "nothing is deleted, because the store's clock is in doubt; the log says why"}
	maps.Copy(all, notices)
	return all
}
