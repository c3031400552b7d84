package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"moorage/cluster"
	"moorage/internal/cli"
	"moorage/internal/worker"
)

// serve runs the catalog until ctx ends.
func serve(ctx context.Context, c cli.Config, env cli.Environment) (err error) {
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
	if to := c.AuditTo(c.Authenticates()); to != cli.AuditOff && to != cli.AuditStderr && env.OnHangup != nil {
		env.OnHangup(node.audit.Reopen)
	}
	node.outgrown.worker.Start()
	defer node.outgrown.worker.Stop()

	stopProbe := node.probeStorage(logger)
	defer stopProbe()
	stopTrying := node.first.again()
	defer stopTrying()

	holdHeapFloor(env.Environ)
	served := make(chan error, 1)
	go func() { served <- serveOn(server, bounded) }()

	uri := printedURI(c, listener.Addr(), encryption != nil)
	if warehouse == nil {
		fmt.Fprintf(env.Stdout, "Warehouse %s could not be made yet; the log says why\nMoorage is ready at %s\n",
			defaultWarehouse, uri)
	} else {
		writeBanner(env.Stdout, uri, *warehouse, node.shownConfig(ctx, warehouse.Name), shownTo(c))
	}
	open := warnOpen(c, listener.Addr(), logger)
	defer open()
	logger.Info("ready", "uri", uri, "store", c.StoreName(), "version", version())

	select {
	case err := <-served:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	case <-node.outgrown.noticed:
		go node.stop() // at once; the deferred call waits for it
		node.outgrown.linger(ctx)
	}
	logger.Info("stopping", "timeout", c.ShutdownTimeout)
	// At the same time, because each may have to wait for a database that hangs.
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

// checkListen finds an unusable listen address before anything is opened, created or migrated. It
// does not keep the port. So the system refuses clients until the server is ready. Such clients
// know that nothing happened, and call another node. If another process takes the port in between,
// listen fails.
func checkListen(ctx context.Context, c cli.Config) error {
	listener, err := listen(ctx, c)
	if err != nil {
		return err
	}
	if err := listener.Close(); err != nil || c.DebugListen == "" {
		return err
	}
	if listener, err = openPort(ctx, c.DebugListen, "--debug-listen"); err != nil {
		return err
	}
	return listener.Close()
}

// openPort listens on address, the value of flag. It turns common failures into one sentence.
func openPort(ctx context.Context, address, flag string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use by another process; choose another address with %s", address, flag)
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return listener, nil
}

// debugConnectionsMax bounds the connections of --debug-listen, which has few clients.
const debugConnectionsMax = 64

// serveDebug answers probes on the port of --debug-listen, if there is one, until stop is called.
func serveDebug(ctx context.Context, c cli.Config, probes http.Handler, logger *slog.Logger) (stop func(), err error) {
	if c.DebugListen == "" {
		return func() {}, nil
	}
	listener, err := openPort(ctx, c.DebugListen, "--debug-listen")
	if err != nil {
		return nil, err
	}
	server := newServer(probes)
	server.ReadTimeout = readHeaderTimeout // its requests have no bodies
	var serving sync.WaitGroup
	serving.Go(func() {
		err := server.Serve(boundListener(listener, debugConnectionsMax, nil))
		if !errors.Is(err, http.ErrServerClosed) {
			logger.Error("the port of --debug-listen is closed: start the server again", "error", err)
		}
	})
	logger.Info("metrics need no key on the port of --debug-listen", "uri", "http://"+listener.Addr().String())
	return func() {
		_ = server.Close() // probes can be cut off
		serving.Wait()
	}, nil
}

// listen opens the port for clients.
func listen(ctx context.Context, c cli.Config) (net.Listener, error) {
	listener, err := openPort(ctx, c.Listen, "--listen")
	if err != nil {
		return nil, err
	}
	// The machine's owner decides the meaning of the name localhost.
	addr, ok := listener.Addr().(*net.TCPAddr)
	if !ok || !addr.IP.IsLoopback() {
		if err := c.RefuseListen(fmt.Sprintf("%s, which is %s,", c.Listen, listener.Addr())); err != nil {
			return nil, errors.Join(err, listener.Close())
		}
	}
	return listener, nil
}

// serveOn answers requests from listener, with TLS if the server has a configuration for it.
func serveOn(server *http.Server, listener net.Listener) error {
	if server.TLSConfig != nil {
		return server.ServeTLS(listener, "", "")
	}
	return server.Serve(listener)
}

// warnOpen logs a warning each minute if every caller may do everything, either beyond loopback or
// in a store with access control. It continues until stop is called.
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

// shutdown lets the requests in progress end, but waits no longer than timeout.
func shutdown(server *http.Server, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return errors.Join(
			fmt.Errorf("requests were still under way after %s and were cut off", timeout),
			server.Close())
	}
	return nil
}

// probeFilter drops net/http's log lines about clients that connect to a TLS port and send nothing,
// as TCP probes of load balancers do every few seconds. Only the text of the line identifies them.
type probeFilter struct{ slog.Handler }

func (f probeFilter) Handle(ctx context.Context, record slog.Record) error {
	text := record.Message
	gone := strings.HasSuffix(text, ": EOF") || strings.HasSuffix(text, ": connection reset by peer")
	if gone && strings.HasPrefix(text, "http: TLS handshake error from ") {
		return nil
	}
	return f.Handler.Handle(ctx, record)
}
