package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"moorage"
	"moorage/audit"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/catalog/vending"
	"moorage/check"
	"moorage/console"
	"moorage/identity"
	"moorage/internal/cli"
	"moorage/internal/trace"
	"moorage/internal/web"
	"moorage/internal/worker"
	"moorage/ledger"
	"moorage/maintenance/jobs"
	"moorage/maintenance/leases"
	"moorage/maintenance/policy"
	"moorage/maintenance/purge"
	"moorage/maintenance/retention"
	"moorage/management"
	"moorage/management/client"
	"moorage/recovery"
	"moorage/registry"
	"moorage/rest"
	"moorage/secrets"
)

// metricsWait is the time for which GET /metrics waits for the present access policy of the store.
// After that, the access policy in memory decides, because operators need metrics most while the
// store does not answer.
const metricsWait = time.Second

// transactionWait is the time for which a commit to several tables waits for a table that another
// operation has locked. After that, the server refuses the commit. While it waits, the commit holds
// no lock on a table.
const transactionWait = 2 * time.Second

// node is a catalog with its parts. newNode sets the fields in this order.
type node struct {
	config  cli.Config
	logger  *slog.Logger
	metrics *prometheus.Registry // the source of the handler's metrics
	tracer  *trace.Tracer        // nil if nothing is traced
	closers closers
	store   registry.Store // the store that the node opened, without wrappers
	metered *meteredStore  // the same, measured

	audit    *audit.Log
	locks    nodeLocks
	peers    *peers
	sealer   secrets.Source // nil if there are no keys
	health   *storageHealth
	storages *storages

	gate     *audited
	guard    *gate.Guard
	ledger   ledger.Deps
	healthy  func(context.Context) error // health check of the store
	outgrown *outgrown
	horizon  *worker.Worker // nil without a database

	clock     *jobs.Clock
	retention *retention.Retention
	catalog   *catalog.Catalog
	purges    *purge.Worker
	recovery  *recovery.Recovery
	checker   *check.Checker

	maintenance *maintenance
	managed     management.Config // the API for operators

	who      *identity.Authenticator // nil without authentication
	expiries *expiries
	expiry   *worker.Worker
	first    *firstWarehouse
	// isFilling is true while the node makes its first content; see opening.
	isFilling atomic.Bool
	handler   http.Handler
	probes    http.Handler // for --debug-listen
}

// defaultWarehouse is the name of the warehouse that the first start creates. Requests without a
// prefix use that warehouse.
const defaultWarehouse = moorage.DefaultWarehouse

// whoServes is the name of the caller of a node's own operations.
const whoServes = "node"

// openNode opens the store and a catalog on it. If the folder contains no store, it creates one.
func openNode(ctx context.Context, c cli.Config, logger *slog.Logger) (*node, error) {
	// Only this user may read the folder, because it contains the store and the audit log. Engines
	// that run as other users need a warehouse outside of the folder, or access from the operator.
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	store, err := openStore(ctx, c, logger)
	if err != nil {
		return nil, err
	}
	return newNode(ctx, c, store, logger)
}

// newNode builds a node on store, and closes store if it fails. It does not start the node's
// workers. Each step uses the fields that earlier steps have set.
func newNode(ctx context.Context, c cli.Config, store registry.Store, logger *slog.Logger) (_ *node, err error) {
	n := &node{config: c, logger: logger, metrics: newMetrics(), store: store}
	n.closers.add(store.Close)
	if n.tracer, err = openTracer(c, logger); err != nil {
		return nil, errors.Join(err, n.close())
	}
	n.closers.add(n.closeTracer)
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	if n.audit, err = openAudit(c, n.metrics, logger); err != nil {
		return nil, err
	}
	if n.locks, err = openLocks(ctx, c, n.metrics, logger); err != nil {
		return nil, err
	}
	n.closers.add(n.leaveCluster)
	if n.peers, err = openPeers(ctx, c, n.locks, n.metrics, logger); err != nil {
		return nil, err
	}
	if n.sealer, err = openSealer(c); err != nil {
		return nil, err
	}
	n.health = newStorageHealth(c, n.metrics, n.tracer, logger)
	n.storages = openStorages(c, n.sealer, n.health, logger)
	n.closers.add(n.storages.close)

	if err := n.openLedger(); err != nil {
		return nil, err
	}
	if err := n.openCatalog(); err != nil {
		return nil, err
	}
	if n.maintenance, err = newMaintenance(c, n.ledger, n.catalog, n.clock, n.metrics, n.purges.Kick); err != nil {
		return nil, err
	}
	if n.who, err = openIdentity(c, n.catalog, n.audit, logger); err != nil {
		return nil, err
	}
	n.expiries = newExpiries(c, n.catalog, logger)
	n.metrics.MustRegister(n.expiries)
	n.expiry = n.expiries.worker()
	n.first = newFirstWarehouse(c, n.catalog, logger)
	n.mountFaces(ctx.Done())
	return n, nil
}

// openLedger makes the ledger. The ledger uses the store through two wrappers: one measures the
// calls, and the other is the guard of access control, which watches them.
func (n *node) openLedger() (err error) {
	metered := meterStore(n.store, n.metrics, n.tracer)
	n.metered = metered
	alone := !n.config.InDatabase()
	n.gate = newAudited(n.audit)
	n.guard = gate.New(gate.Config{
		Store: metered, Alone: alone, Admins: n.config.Admins, Logger: n.logger, Decided: n.gate.Decided,
	})
	n.gate.Authorizer = n.guard
	n.healthy = metered.Healthy
	n.horizon = watchHorizon(n.store, n.metrics, n.logger)
	n.outgrown, err = watchStore(n.store, n.logger)
	if err != nil {
		return err
	}
	n.ledger, err = ledger.New(ledger.Config{
		Store: n.guard.Watch(metered), Alone: alone, Now: time.Now, Random: rand.Reader, Logger: n.logger,
		Applied: func() { n.catalog.History().Wake() }, // no mutation begins before n.catalog is set
		Tracer:  n.tracer,
	})
	return err
}

// openCatalog makes the catalog, and the workers that finish what requests have begun.
func (n *node) openCatalog() (err error) {
	c := n.config
	n.clock = newClock(n.ledger, func() *catalog.Catalog { return n.catalog })
	n.retention, err = retention.New(retention.Config{
		Deps:            n.ledger,
		Doubt:           n.clock.Doubt,
		KeyLife:         catalog.ChangeRetentionMin(c.IdempotencyLifetime),
		UndropWindow:    c.UndropWindow,
		ChangeRetention: c.ChangeRetention,
	})
	if err != nil {
		return err
	}
	n.catalog, err = catalog.New(catalog.Config{
		Gate:                n.gate,
		Guard:               n.guard,
		UndropWindow:        c.UndropWindow,
		PurgeDelay:          c.UndropWindow,
		KickPurge:           func() { n.purges.Kick() },
		KickRecovery:        func() { n.recovery.Kick() },
		StagedFolder:        n.retention.RememberStaged,
		Deps:                n.ledger,
		Locks:               n.locks,
		OpenStorage:         n.storages.open,
		BorrowStorage:       n.storages.borrow,
		Sealer:              n.sealer,
		Given:               func(ctx context.Context, given vending.Given) { noteGiven(ctx, n.audit, given) },
		LocalFolder:         newLocalFolders(c).check,
		CacheBytes:          c.CacheBytes,
		IdempotencyLifetime: c.IdempotencyLifetime,
		TransactionWait:     transactionWait,
		CommitsCarried:      meterGroups(n.metrics),
		RaceLost:            n.peers.raceLost(n.metrics),
		AppendsMoved:        meterRebased(n.metrics),
		AppendRefused:       meterNotRebased(n.metrics),
		HedgeWrites:         c.HedgeWrites,
		AbortPending:        !c.InDatabase(),
		AwaitOldNodes:       awaitOldNodes(c.InDatabase()),
	})
	if err != nil {
		return err
	}
	n.purges, err = purge.New(purge.Config{Deps: n.ledger, Tables: n.catalog.Documents(), Doubt: n.clock.Doubt})
	if err != nil {
		return err
	}
	checks := check.Config{Deps: n.ledger, Files: n.catalog.Documents()}
	ending := recovery.Config{
		Deps: n.ledger, Locks: n.locks, DeleteSurplus: n.catalog.DeleteSurplus, RetryPurge: n.purges.Retry,
	}
	if !c.InDatabase() { // no earlier process can still hold locks
		checks.Opened = n.ledger.Now()
		ending.AbandonedBefore = checks.Opened
	}
	n.checker, n.recovery = check.New(checks), recovery.New(ending)
	meterRecovery(n.metrics, n.recovery.Stats)
	meterPurges(n.metrics, n.purges.Stats)
	return nil
}

// mountFaces makes the HTTP handler, with the routes for the catalog and for operators. stopping is
// closed when the server begins to stop.
func (n *node) mountFaces(stopping <-chan struct{}) {
	c := n.config
	handler := web.New(web.Config{
		Authenticate: asking(n.who),
		Logger:       n.logger,
		Registry:     n.metrics,
		Ready:        n.filled(withAudit(storeReady(n.healthy), n.audit)),
		Notices:      n.notices,
		Details:      n.health.details,
		Refusal:      n.outgrown.refusal,
		Tracer:       n.tracer,
		Measure: func(ctx context.Context, caller moorage.Caller) error {
			ctx, cancel := context.WithTimeout(ctx, metricsWait)
			defer cancel()
			request := gate.Request{Caller: caller, Verb: gate.LoadMetrics}
			return gate.Pass(ctx, n.gate, request, func() error { return nil })
		},
		Hosts: c.HostNames(),
		Home:  n.homePage, HomePath: homePath(c),
	})
	if c.Maintenance != cli.MaintenanceOnly {
		faces := rest.Config{
			Catalog: n.catalog, IdempotencyLifetime: c.IdempotencyLifetime, Router: n.peers.restRouter(),
			Stages: openStages(n.catalog),
		}
		if n.who != nil {
			faces.Tokens = n.who
		}
		rest.Mount(handler, faces)
	}
	n.managed = n.manage(stopping)
	management.Mount(handler, n.managed)
	if hasConsole(c) {
		console.Mount(handler, n.consoleConfig())
	}
	n.peers.attach(n.catalog, handler)
	n.handler, n.probes = handler, handler.Probes()
}

// filled returns a readiness check that fails while the node makes its first content, and then
// calls ready.
func (n *node) filled(ready func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if n.isFilling.Load() {
			return moorage.Errorf(moorage.KindUnavailable, "The server makes its sample tables")
		}
		return ready(ctx)
	}
}

// manage returns the configuration of the API for operators.
func (n *node) manage(stopping <-chan struct{}) management.Config {
	c := n.config
	drawn := drawKey
	if !c.APIKeys {
		drawn = nil // no client could use a key
	}
	leased, find := leases.New(n.ledger.Ledger), n.catalog.Pointers().FindForLease
	return management.Config{
		History:  n.catalog.History(),
		Recovery: n.recovery, Purges: n.purges, Check: n.checker.Check, Findings: n.findings,
		Backup: newBackups(c, n.store), Gate: n.gate,
		Access: func(caller moorage.Caller) management.Access { return n.catalog.As(caller).Grants() },
		Warehouses: func(caller moorage.Caller) management.Warehouses {
			return n.catalog.As(caller).Warehouses()
		},
		Browse: func(caller moorage.Caller) management.Browse { return n.catalog.As(caller).Browse() },
		Labels: func(caller moorage.Caller, key *catalog.Key) management.Labels {
			return n.catalog.As(caller).Keyed(key).Labels()
		},
		Dropped: func(caller moorage.Caller, key *catalog.Key) management.Dropped {
			return n.catalog.As(caller).Keyed(key).Dropped()
		},
		Protections: func(caller moorage.Caller, key *catalog.Key) management.Protections {
			return n.catalog.As(caller).Keyed(key).Protections()
		},
		Mirrors: func(caller moorage.Caller, key *catalog.Key) management.Mirrors {
			return n.catalog.As(caller).Keyed(key).Mirrors()
		},
		Health: n.health.healthOf, RotateSecrets: rotations(n.catalog, n.sealer), EndSessions: n.endSessions,
		Versions: func(caller moorage.Caller, key *catalog.Key, lease *catalog.Lease) management.Versions {
			return n.catalog.For(caller, key, lease).(*catalog.Catalog)
		},
		Scopes:   func(caller moorage.Caller) policy.Scopes { return n.catalog.As(caller).Scopes() },
		Policies: n.maintenance.policies, Steering: n.maintenance.steering, Jobs: n.maintenance.jobs,
		Stopping: stopping,
		Note:     n.audit.Note, Denials: n.audit.Denials, LastDenials: n.audit.LastDenials, DrawKey: drawn,
		Activity: n.catalog.Activity(), Node: nodeName(), Nodes: n.peers.count, AskPeers: n.peers.ask,
		State:         n.state,
		Authenticates: c.Authenticates(), Admins: c.Admins,
		Leases: leased, FindTable: find,
		Work: leases.NewWork(leases.WorkConfig{
			Ledger: n.ledger.Ledger, Leases: leased, Find: find,
			Tables: n.catalog.As(moorage.System(whoMaintains)).Tables(),
			Rules:  n.maintenance.rules, Logger: n.logger,
		}),
	}
}

// notices returns the problems that do not stop the node from working, by subject.
func (n *node) notices() map[string]string {
	return n.first.addNotice(n.expiries.addNotices(withClock(auditNotice(n.audit), n.clock)))
}

// findings returns the findings that the node reports about itself to operators.
func (n *node) findings(ctx context.Context) (found []client.Finding) {
	found = n.lookAtNode(ctx).findings()
	if caller, known := moorage.CallerOf(ctx); known {
		found = append(found, callerFinding(caller, time.Now()))
	}
	notices := n.notices()
	for _, what := range slices.Sorted(maps.Keys(notices)) {
		found = append(found, client.Finding{Level: client.LevelWarn, What: what, Fact: notices[what]})
	}
	return append(found, n.health.findings()...)
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
	n.maintenance.start()
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
	n.maintenance.stop()
	n.retention.Stop()
	n.purges.Stop()
	n.recovery.Stop()
}

// shownConfig returns, for the banner, the configuration that engines need for a warehouse. It
// returns nil if the storage cannot be opened. probeStorage logs that.
func (n *node) shownConfig(ctx context.Context, warehouse string) map[string]string {
	config, err := n.catalog.As(moorage.System(whoServes)).ClientConfig(ctx, warehouse)
	if err != nil {
		return nil
	}
	return config
}

// probeStorage logs in the background which warehouses are not reachable, until stop is called.
// Meanwhile the other warehouses are usable, and an unreachable one may become reachable later.
func (n *node) probeStorage(logger *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var probing sync.WaitGroup
	probing.Go(func() {
		err := n.catalog.Warehouses().ProbeStorage(ctx, func(warehouse, location string, err error) {
			if n.health.watch.Fails(warehouse) {
				return // the node has already logged it
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

// close closes everything that newNode has opened, even if newNode failed. It closes the documents
// first, because their last deletions need the storages. It closes the audit log last, because
// requests that were cut off may end while the other parts are closed.
func (n *node) close() error {
	if n.catalog != nil {
		n.catalog.History().Close()
		n.catalog.Documents().Close()
	}
	err := n.closers.close()
	if n.audit == nil {
		return err
	}
	return errors.Join(err, n.audit.Close())
}

// leaveCluster ends this node's locks. It also closes the node's port for other nodes if that is
// still open.
func (n *node) leaveCluster() error { return errors.Join(n.peers.abandon(), n.locks.close()) }

// closers collects the functions that close the parts of a node.
type closers []func() error

// add adds a function for close to call.
func (c *closers) add(closer func() error) { *c = append(*c, closer) }

// close calls all functions at the same time, because each may have to wait for a database or a
// disk that hangs.
func (c closers) close() error {
	faults := make([]error, len(c))
	var closing sync.WaitGroup
	for i, closer := range c {
		closing.Go(func() { faults[i] = closer() })
	}
	closing.Wait()
	return errors.Join(faults...)
}

// newJitter returns a source of randomness for pauses, so that two nodes do not act at the same
// times.
func newJitter() *mathrand.Rand {
	var seed [16]byte
	rand.Read(seed[:])
	return mathrand.New(mathrand.NewPCG(binary.BigEndian.Uint64(seed[:8]), binary.BigEndian.Uint64(seed[8:])))
}
