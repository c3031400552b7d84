package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"moorage/catalog/warehouses"
	"moorage/cluster"
	"moorage/internal/cli"
	"moorage/internal/worker"
)

// serve runs the catalog until ctx ends.
func serve(ctx context.Context, c cli.Config, env cli.Environment) error {
	return runServer(ctx, c, env, opening{greet: greet})
}

// opening describes what a server does when it begins to answer requests.
type opening struct {
	// fill makes the node's first content. Until it returns, GET /readyz gets 503. It may be nil.
	fill func(ctx context.Context, n *node) error
	// greet prints how clients reach the ready server at uri. warehouse is nil if the warehouse
	// default could not be created yet.
	greet func(ctx context.Context, env cli.Environment, n *node, warehouse *warehouses.Warehouse, uri string)
}

// greet prints the banner of serve.
func greet(ctx context.Context, env cli.Environment, n *node, warehouse *warehouses.Warehouse, uri string) {
	if warehouse == nil {
		fmt.Fprintf(env.Stdout, "Warehouse %s could not be made yet; the log says why\nMoorage is ready at %s\n",
			defaultWarehouse, uri)
		return
	}
	writeBanner(env.Stdout, uri, *warehouse, n.shownConfig(ctx, warehouse.Name), shownTo(n.config))
}

// runServer runs a server until ctx ends.
func runServer(ctx context.Context, c cli.Config, env cli.Environment, begin opening) (err error) {
	logger := newLogger(c, env.Stderr)
	encryption, err := openTLS(c, time.Now, logger)
	if err != nil {
		return err
	}
	if err := checkListen(ctx, c); err != nil {
		return err
	}
	node, err := openNode(ctx, c, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.close()) }()

	if err := refuseOpenStore(ctx, c, node.catalog); err != nil {
		return err
	}
	node.isFilling.Store(begin.fill != nil)
	warehouse, err := node.first.ensure(ctx)
	if err != nil {
		return err
	}
	listener, err := listen(ctx, c)
	if err != nil {
		return err
	}
	stopDebug, err := serveDebug(ctx, c, node.probes, logger)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer stopDebug()
	bounded := boundListener(listener, c.ConnectionsMax, c.TrustedProxies)
	meterConnections(node.metrics, bounded)
	server := newServer(cluster.DropHeaders(node.handler))
	server.TLSConfig = encryption
	server.ErrorLog = slog.NewLogLogger(probeFilter{logger.Handler()}, slog.LevelWarn)
	node.locks.announce(listener.Addr())
	node.peers.start()
	node.start()
	defer node.stop()
	if to := c.AuditTo(); to != cli.AuditOff && to != cli.AuditStderr && env.OnHangup != nil {
		env.OnHangup(node.audit.Reopen)
	}
	node.outgrown.worker.Start()
	defer node.outgrown.worker.Stop()

	stopProbe := node.probeStorage(logger)
	defer stopProbe()
	stopTrying := node.first.keepTrying()
	defer stopTrying()

	raiseProcessors(env.Environ)
	holdHeapFloor(env.Environ)
	freeing := newFreeing(logger)
	freeing.Start()
	defer freeing.Stop()
	served := make(chan error, 1)
	go func() { served <- serveOn(server, bounded) }()

	if begin.fill != nil {
		if err := begin.fill(ctx, node); err != nil {
			err = errors.Join(err, shutdown(server, c.ShutdownTimeout))
			if ctx.Err() != nil {
				return nil // the next start continues
			}
			return err
		}
		node.isFilling.Store(false)
	}
	uri := printedURI(c, listener.Addr(), encryption != nil)
	begin.greet(ctx, env, node, warehouse, uri)
	open := warnOpen(c, listener.Addr(), logger)
	defer open()
	logger.Info("ready", "uri", uri, "store", c.StoreName(), "version", version())

	select {
	case err := <-served:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	case <-node.outgrown.noticed:
		go node.stop() // stops in the background; the deferred call waits for the end
		node.outgrown.linger(ctx)
	}
	logger.Info("stopping", "timeout", c.ShutdownTimeout)
	// Both run at the same time, because each may have to wait for a hanging database.
	var leaving sync.WaitGroup
	leaving.Go(node.peers.leave)
	node.locks.withdraw()
	leaving.Wait()
	var answering sync.WaitGroup
	var peersErr error
	answering.Go(func() { peersErr = node.peers.close(c.ShutdownTimeout) })
	err = shutdown(server, c.ShutdownTimeout)
	answering.Wait()
	if err = errors.Join(err, peersErr); err != nil {
		return errors.Join(node.outgrown.cause(), err)
	}
	<-served
	logger.Info("stopped")
	return node.outgrown.cause()
}

// warnOpen logs a warning each minute, until stop is called, if every caller has all privileges. It
// does so only if the server listens beyond loopback, or if the store has access control.
func warnOpen(c cli.Config, address net.Addr, logger *slog.Logger) (stop func()) {
	if c.Authenticates() || !c.InsecureNoAuth {
		return func() {}
	}
	warning := worker.New(worker.Config{
		Name: "open server", Interval: openStoreInterval, Jitter: newJitter(), Logger: logger,
		Run: func(context.Context) error {
			logger.Warn("anybody who can reach this address can change every table: there is no authentication",
				"address", address.String())
			return nil
		},
	})
	warning.Kick()
	warning.Start()
	return warning.Stop
}
