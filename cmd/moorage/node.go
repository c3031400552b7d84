package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"moorage"
	"moorage/audit"
	"moorage/catalog"
	"moorage/catalog/guard"
	"moorage/catalog/verb"
	"moorage/check"
	"moorage/identity"
	"moorage/internal/cli"
	"moorage/internal/web"
	"moorage/internal/worker"
	"moorage/ledger"
	"moorage/maintenance/jobs"
	"moorage/maintenance/leases"
	"moorage/maintenance/purge"
	"moorage/maintenance/retention"
	"moorage/maintenance/work"
	"moorage/management"
	"moorage/recovery"
	"moorage/registry"
	"moorage/rest"
)

// metricsWait is how long GET /metrics waits for the present policy of the store. After that the
// policy in memory decides: metrics are needed most while the store does not answer.
const metricsWait = time.Second

// node is a catalog with its parts.
type node struct {
	store     registry.Store
	locks     nodeLocks
	storages  *storages
	catalog   *catalog.Catalog
	checker   *check.Checker
	purges    *purge.Worker
	retention *retention.Retention
	recovery  *recovery.Recovery
	care      *jobs.Jobs
	upkeep    *upkeep
	operator  management.Operator // for the API, and for commands on a stopped store
	outgrown  *outgrown
	audit     *audit.Log
	peers     *peers
	who       *identity.Authenticator // nil without authentication
	handler   http.Handler
	probes    http.Handler         // for --debug-listen
	metrics   *prometheus.Registry // the source of the handler's metrics
	expiry    *worker.Worker
	first     *firstWarehouse
	horizon   *worker.Worker // nil without a database
	health    *storageHealth
}

// defaultWarehouse is the warehouse that the first start creates. Requests without a prefix use it.
const defaultWarehouse = rest.DefaultWarehouse

// openNode opens the store and a catalog over it. It creates a store in a folder that has none.
func openNode(ctx context.Context, c cli.Config, logger *slog.Logger) (*node, error) {
	// The folder contains the store and the audit log. Engines that run as other users use a
	// warehouse elsewhere, or the operator gives them access.
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	store, err := openStore(ctx, c, logger)
	if err != nil {
		return nil, err
	}
	return newNode(ctx, c, store, logger)
}

// newNode creates the catalog and its HTTP handler over opened, which it closes if it fails.
func newNode(ctx context.Context, c cli.Config, opened registry.Store, logger *slog.Logger) (*node, error) {
	metrics := newMetrics()
	metered := meterStore(opened, metrics)
	audits, err := openAudit(c, metrics, logger)
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	gate := newAudited(audits)
	guards := guard.New(guard.Config{
		Store: metered, Alone: !c.InDatabase(), Admins: c.Admins, Logger: logger, Decided: gate.Decided,
	})
	gate.Gate = guards
	store := guards.Watch(metered)
	locks, err := openLocks(ctx, c, metrics, logger)
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	peers, err := openPeers(ctx, c, locks, metrics, logger)
	if err != nil {
		return nil, errors.Join(err, locks.close(), opened.Close())
	}
	closeLocks := locks.close
	locks.close = func() error { return errors.Join(peers.abandon(), closeLocks()) }
	s3Options := c.S3Options()
	s3Options.Logger = logger
	sealer, err := openSealer(c)
	if err != nil {
		return nil, errors.Join(err, locks.close(), opened.Close())
	}
	seen := newStorageHealth(c, metrics, logger)
	files := newStorages(s3Options, c.GCSOptions(), c.ADLSOptions(), sealer, seen.watch)
	files.sawFolder = seen.sawFolder
	deps, err := ledger.New(ledger.Config{
		Store: store, Alone: !c.InDatabase(), Now: time.Now, Random: rand.Reader, Logger: logger,
	})
	if err != nil {
		return nil, errors.Join(err, locks.close(), opened.Close())
	}
	var made *catalog.Catalog
	clock := newClock(deps, func() *catalog.Catalog { return made })
	kept, err := retention.New(retention.Config{
		Deps:            deps,
		Doubt:           clock.Doubt,
		KeyLife:         catalog.ChangeRetentionMin(c.KeyLifetime),
		UndropWindow:    c.UndropWindow,
		ChangeRetention: c.ChangeRetention,
	})
	if err != nil {
		return nil, errors.Join(err, locks.close(), opened.Close())
	}
	var dropped *purge.Worker
	var dead *recovery.Recovery
	made, err = catalog.New(catalog.Config{
		Gate:                gate,
		Guard:               guards,
		UndropWindow:        c.UndropWindow,
		PurgeDelay:          c.UndropWindow,
		KickPurge:           func() { dropped.Kick() },
		KickRecovery:        func() { dead.Kick() },
		StagedFolder:        kept.RememberStaged,
		Deps:                deps,
		Locks:               locks,
		OpenStorage:         files.open,
		BorrowStorage:       files.borrow,
		Sealer:              sealer,
		Given:               func(ctx context.Context, given catalog.Given) { noteGiven(ctx, audits, given) },
		AllowedLocations:    c.AllowLocations,
		LocalFolder:         newLocalFolders(c).check,
		DocumentCacheBytes:  c.CacheBytes,
		IdempotencyLifetime: c.KeyLifetime,
		TransactionLockWait: c.TransactionWait,
		CommitGroupMax:      c.CommitGroup,
		CommitsCarried:      meterGroups(metrics),
		RaceLost:            peers.raceLost(metrics),
		NoAppendRebase:      c.NoAppendRebase,
		AppendsMoved:        meterRebased(metrics),
		AppendRefused:       meterNotRebased(metrics),
		HedgeWrites:         c.HedgeWrites,
		AbortPending:        !c.InDatabase(),
	})
	if err != nil {
		return nil, errors.Join(err, locks.close(), opened.Close())
	}
	dropped, err = purge.New(purge.Config{
		Deps: deps, Tables: made.Documents(), Doubt: clock.Doubt,
	})
	if err != nil {
		return nil, errors.Join(err, locks.close(), opened.Close())
	}
	upkeep, err := newUpkeep(c, deps, made, clock, metrics)
	if err != nil {
		return nil, errors.Join(err, locks.close(), opened.Close())
	}
	watch, err := watchStore(opened, logger)
	if err != nil {
		return nil, errors.Join(err, locks.close(), opened.Close())
	}
	checks := check.Config{Deps: deps, Files: made.Documents()}
	ending := recovery.Config{
		Deps: deps, Locks: locks,
		DeleteSurplus: made.DeleteSurplus, RetryPurge: dropped.Retry,
	}
	if !c.InDatabase() { // locks of an earlier process are dead
		checks.Opened = deps.Now()
		ending.AbandonedBefore = checks.Opened
	}
	dead = recovery.New(ending)
	operator := management.Operator{Recovery: dead, Purges: dropped}
	checker := check.New(checks)
	meterRecovery(metrics, dead.Stats)
	meterPurges(metrics, dropped.Stats)
	horizon := watchHorizon(opened, metrics, logger)
	who, err := openIdentity(c, made, audits, logger)
	if err != nil {
		return nil, errors.Join(err, locks.close(), opened.Close())
	}
	ends := newExpiries(c, made, logger)
	metrics.MustRegister(ends)
	first := newFirstWarehouse(c, made, logger)
	handler := web.New(web.Config{
		Authenticate: asking(who),
		Logger:       logger,
		Registry:     metrics,
		Ready:        withAudit(storeReady(metered.Healthy), audits),
		Notices: func() map[string]string {
			return first.with(ends.with(withClock(auditNotice(audits), clock)))
		},
		Details: seen.details,
		Refusal: watch.refusal,
		Measure: func(ctx context.Context, caller moorage.Caller) error {
			ctx, cancel := context.WithTimeout(ctx, metricsWait)
			defer cancel()
			request := verb.Request{Caller: caller, Verb: verb.LoadMetrics}
			return verb.Pass(ctx, gate, request, func() error { return nil })
		},
		Hosts:        c.HostNames(),
		BodyBytesMax: c.BodyBytesMax,
	})
	faces := rest.Config{
		Catalog: made, IdempotencyLifetime: c.KeyLifetime, Router: peers.restRouter(), Stages: openStages(made),
	}
	leased := leases.New(deps.Ledger)
	drawn := drawKey
	if who != nil {
		faces.Tokens = who
	}
	if !c.APIKeys {
		drawn = nil // no client could use one
	}
	if c.Maintenance != cli.MaintenanceOnly {
		rest.Mount(handler, faces)
	}
	management.Mount(handler, management.Config{
		Operator: operator, Check: checker.Check, Backup: newBackups(c, opened), Gate: gate,
		Access:      func(caller moorage.Caller) management.Access { return catalog.AccessOf(made.As(caller)) },
		Warehouses:  func(caller moorage.Caller) management.Keeper { return keeperOf(made, sealer, seen, caller) },
		Maintenance: upkeep.caretaker,
		Stopping:    ctx.Done(),
		Note:        audits.Note, Denials: audits.Denials, DrawKey: drawn,
		Authenticates: c.Authenticates(), Admins: c.Admins,
		Leases: leased, FindTable: catalog.PointersOf(made).FindForLease,
		Work: work.New(work.Config{
			Ledger: deps.Ledger, Leases: leased, Tables: catalog.TablesOf(made.As(moorage.System("expire"))),
			Find: catalog.PointersOf(made).FindForLease, Rules: upkeep.rules, Logger: logger,
		}),
	})
	peers.attach(made, handler)
	return &node{
		peers: peers, store: store, locks: locks, storages: files, catalog: made.As(moorage.System("node")),
		checker: checker,
		purges:  dropped, retention: kept, recovery: dead, operator: operator,
		care: upkeep.jobs, upkeep: upkeep,
		horizon:  horizon,
		outgrown: watch, audit: audits, who: who, handler: handler, probes: handler.Probes(), metrics: metrics,
		expiry: ends.worker(), first: first, health: seen,
	}, nil
}

// start starts the workers.
func (n *node) start() {
	n.audit.Start()
	if n.who != nil {
		n.who.Start()
	}
	n.expiry.Start()
	n.health.worker.Start()
	n.recovery.Start()
	n.purges.Start()
	n.retention.Start()
	n.upkeep.start()
	if n.horizon != nil {
		n.horizon.Start()
	}
}

// stop ends the workers and waits for them. A second call does nothing.
func (n *node) stop() {
	if n.who != nil {
		n.who.Stop()
	}
	n.expiry.Stop()
	n.health.worker.Stop()
	if n.horizon != nil {
		n.horizon.Stop()
	}
	n.upkeep.stop()
	n.retention.Stop()
	n.purges.Stop()
	n.recovery.Stop()
}

// shownConfig returns the configuration that engines need for a warehouse, for the banner. It
// returns nil if the storage cannot be opened, which probeStorage logs.
func (n *node) shownConfig(ctx context.Context, warehouse string) map[string]string {
	config, err := n.catalog.ClientConfig(ctx, warehouse)
	if err != nil {
		return nil
	}
	return config
}

// probeStorage logs in the background which warehouses are not reachable, until stop is called.
// Other warehouses are usable meanwhile, and these may become reachable later.
func (n *node) probeStorage(logger *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var probing sync.WaitGroup
	probing.Go(func() {
		err := n.catalog.ProbeStorage(ctx, func(warehouse, location string, err error) {
			if n.health.watch.Fails(warehouse) {
				return // it has a log line
			}
			logger.Warn("the storage of a warehouse cannot be reached: "+
				"requests for its files are answered 503 until it can",
				"warehouse", warehouse, "location", location, "error", moorage.OneLine(err.Error()))
		})
		if err != nil && ctx.Err() == nil {
			logger.Warn("could not look whether the storage of all warehouses can be reached", "error", err)
		}
	})
	return func() {
		cancel()
		probing.Wait()
	}
}

// close ends the store and what was opened with it. It ends locks and store at the same time,
// because each may have to wait for a database that hangs.
func (n *node) close() error {
	var locksErr error
	n.catalog.Documents().Close()
	var closing sync.WaitGroup
	closing.Go(func() { locksErr = n.locks.close() })
	storeErr := n.store.Close()
	closing.Wait()
	return errors.Join(locksErr, storeErr, n.storages.close(), n.audit.Close())
}

// newJitter returns a source of randomness for pauses, so that no two nodes stay in step.
func newJitter() *mathrand.Rand {
	var seed [16]byte
	rand.Read(seed[:])
	return mathrand.New(mathrand.NewPCG(binary.BigEndian.Uint64(seed[:8]), binary.BigEndian.Uint64(seed[8:])))
}
