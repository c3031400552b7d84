package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"moorage/internal/worker"
	"moorage/registry"
	"moorage/registry/postgres"
)

const (
	// horizonInterval is the pause between two checks of the database's open transactions.
	horizonInterval = 15 * time.Second
	// horizonAge is how long a transaction may stay open. After a minute, commits of a hot table
	// are a third slower.
	horizonAge = time.Minute
	// horizonWarning is the time between two log lines about a transaction that stays open.
	horizonWarning = 10 * time.Minute
)

// watchHorizon returns a worker that finds long open transactions of the database, and measures the
// oldest. It returns nil for a store of another kind.
func watchHorizon(store registry.Store, metrics prometheus.Registerer, logger *slog.Logger) *worker.Worker {
	database, ok := store.(*postgres.Store)
	if !ok {
		return nil
	}
	horizon := database.Horizon()
	var oldest atomic.Int64
	metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "moorage_database_oldest_transaction_seconds",
		Help: "How long the oldest open transaction or slot has kept PostgreSQL from clearing away old rows.",
	}, func() float64 { return time.Duration(oldest.Load()).Seconds() }))
	warned := horizonAge // the next line is logged at this age
	return worker.New(worker.Config{
		Name: "open transactions of the database", Interval: horizonInterval, Jitter: newJitter(), Logger: logger,
		Run: func(ctx context.Context) error {
			found, err := horizon.Oldest(ctx)
			if err != nil {
				return err
			}
			oldest.Store(int64(found.Age))
			switch {
			case found.Age < horizonAge:
				warned = horizonAge
			case found.Age >= warned:
				warned = found.Age + horizonWarning
				logger.WarnContext(ctx, "an open transaction of the database slows commits down",
					"open", found.Age.Round(time.Second), "what", found.What)
			}
			return nil
		},
	})
}
