package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"moorage"
	"moorage/catalog"
	"moorage/internal/cli"
	"moorage/internal/worker"
	"moorage/ledger"
	"moorage/maintenance/budget"
	"moorage/maintenance/clocks"
	"moorage/maintenance/jobs"
	"moorage/maintenance/monitor"
	"moorage/maintenance/planner"
	"moorage/maintenance/policies"
	"moorage/maintenance/policy"
	"moorage/maintenance/retention"
	"moorage/maintenance/steer"
	"moorage/management"
	"moorage/metadata"
	"moorage/registry"
)

// policiesPause is the pause between two reads of all policies. Other nodes write policies, and a
// node may not know that its own write succeeded. A policy change in the log makes the monitor read
// them at once.
const policiesPause = 30 * time.Second

// whoOpened is the caller of commands on a store, with all rights.
const whoOpened = "command"

// upkeep is the automatic maintenance of a store.
type upkeep struct {
	catalog  *catalog.Catalog
	policies *policies.Policies
	monitor  *monitor.Monitor
	planner  *planner.Planner
	jobs     *jobs.Jobs
	worker   *jobs.Worker
	steering *steer.Steering
	reader   *worker.Worker // of policies
	budget   *budget.Budget
	metrics  maintenanceMetrics
	logger   *slog.Logger
	isOff    bool
}

// newUpkeep creates the upkeep of a store, which is not started.
func newUpkeep(c cli.Config, deps ledger.Deps, made *catalog.Catalog, clock *clocks.Clock,
	metrics *prometheus.Registry) (*upkeep, error) {
	tables := catalog.TablesOf(made.As(moorage.System("expire")))
	e := &upkeep{
		catalog: made, isOff: c.Maintenance == cli.MaintenanceOff, logger: deps.Logger,
		budget: budget.New(budget.Default(), deps.Now), metrics: newMaintenanceMetrics(metrics),
	}
	e.policies = policies.New(deps.Ledger, e.kick)
	kept := retention.ChangesKept(c.ChangeRetention, catalog.ChangeRetentionMin(c.KeyLifetime))
	var err error
	e.jobs, err = jobs.New(jobs.Config{
		Deps: deps, Tables: tables, Doubt: clock.Doubt, Budget: e.budget, FormerKept: kept, Ended: e.metrics.ended,
	})
	if err != nil {
		return nil, err
	}
	e.worker = e.jobs.NewWorker()
	e.monitor, err = monitor.New(monitor.Config{
		Deps: deps, Tables: tables, Policies: e.policies,
		Retention: kept, MadeDue: func() { e.planner.Kick() },
	})
	if err != nil {
		return nil, err
	}
	e.planner, err = planner.New(planner.Config{
		Deps: deps, Jobs: e.jobs, Tables: tables, Policies: e.policies,
		Began: e.worker.Kick, Doubt: clock.Doubt,
	})
	if err != nil {
		return nil, err
	}
	e.steering = &steer.Steering{
		Ledger: deps.Ledger, Policies: e.policies, Jobs: e.jobs, Tables: tables, Kick: e.kick,
	}
	e.reader = worker.New(worker.Config{
		Name: "maintenance policies", Interval: policiesPause, Jitter: newJitter(), Logger: deps.Logger,
		Run: func(ctx context.Context) error { return e.readPolicies(ctx) },
	})
	metrics.MustRegister(upkeepMetrics{e})
	return e, nil
}

// readPolicies reads the policies, and kicks the other parts if a policy enables maintenance.
func (e *upkeep) readPolicies(ctx context.Context) error {
	before := e.policies.Current()
	if before == nil {
		e.warnOfPauses(ctx)
	}
	found, err := e.policies.Reload(ctx)
	if err == nil && found.Asks() && !before.Asks() {
		e.kick()
	}
	return err
}

// warnOfPauses logs what is paused when the server starts. A restored store is paused.
func (e *upkeep) warnOfPauses(ctx context.Context) {
	pauses, err := e.steering.Pauses(ctx)
	if err != nil {
		e.logger.WarnContext(ctx, "what maintenance is paused cannot be read", "error", err)
	}
	for _, pause := range pauses {
		object := steer.ObjectOf(pause)
		e.logger.WarnContext(ctx, "maintenance is paused", "object", object, "since", pause.Since, "by", pause.By,
			"reason", pause.Reason, "end", "moorage maintain resume "+object)
	}
}

// rules returns the maintenance rules of a table; see work.Config. On a node where maintenance is
// off, only rules reads the policies.
func (e *upkeep) rules(ctx context.Context, table registry.Pointer, document *metadata.Document, fresh bool) (
	rules policy.Rules, unchanged []registry.Condition, err error) {
	matcher := e.policies.Current()
	switch {
	case fresh:
		matcher, unchanged, err = e.policies.ReloadFor(ctx, table.Warehouse)
	case matcher == nil || e.isOff:
		matcher, err = e.policies.Reload(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	return policy.Effective(matcher.Chain(table.ID, table.Identifier()), document.Properties()), unchanged, nil
}

// kick makes the monitor, the planner and the jobs work now, if they are started.
func (e *upkeep) kick() {
	e.monitor.Kick()
	e.planner.Kick()
	e.worker.Kick()
}

// start starts the upkeep, unless maintenance is off.
func (e *upkeep) start() {
	if e.isOff {
		return
	}
	e.reader.Kick()
	e.reader.Start()
	e.monitor.Start()
	e.planner.Start()
	e.worker.Start()
}

// stop ends the upkeep, and waits. A second call does nothing.
func (e *upkeep) stop() {
	e.reader.Stop()
	e.planner.Stop()
	e.monitor.Stop()
	e.worker.Stop()
}

// caretaker returns maintenance with a caller's rights.
func (e *upkeep) caretaker(caller moorage.Caller) management.Caretaker {
	return management.Caretaker{
		Scopes: catalog.ScopesOf(e.catalog.As(caller)), Policies: e.policies, Steering: e.steering, Jobs: e.jobs,
		Caller: caller.Name,
	}
}
