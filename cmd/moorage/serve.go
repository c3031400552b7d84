package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"moorage/catalog"
)

// Bounds of the HTTP server. There is none on the time that writing an answer takes as a
// whole, because a load may be large; stallingConn bounds each part of it.
const (
	// readHeaderTimeout is more than any client needs that means to send a request.
	readHeaderTimeout = 10 * time.Second
	// idleTimeout is longer than common clients keep an idle connection, so that it is
	// they who close it and no request meets a connection that just ended.
	idleTimeout = 3 * time.Minute
	// writeStallTimeout is how long a client may not take what is sent to it.
	writeStallTimeout = time.Minute
)

func serveCommand() command {
	return command{
		name:    "serve",
		summary: "run the catalog",
		text: "Runs the catalog until SIGTERM, SIGINT or, unless it was started to ignore that, SIGHUP, then lets the requests under way end.\n\n" +
			"Each setting is a flag, an environment variable, and a key of the YAML file that --config names. " +
			"A flag wins over the environment, the environment over the file, the file over the default. " +
			"In the file the names stand without dashes:\n\n" +
			"  data: /var/lib/moorage\n  listen: 127.0.0.1:8181\n  allow-location: [\"file:///srv/lake\"]\n\n" +
			"Endpoints beside the catalog's own: /healthz (the process runs), /readyz (its store takes writes), " +
			"/metrics (Prometheus), and below /management/v1 what check, backup and recover ask with --uri.\n",
		settings: serverSettings(),
		validate: validateServe,
		run:      serve,
	}
}

func validateServe(c config, faults *usageError) {
	if checkHostPort(c.Listen) == nil && !c.Insecure && !isLoopback(c.Listen) {
		faults.addf("--listen: %s can be reached from other machines and there is no authentication; "+
			"listen on 127.0.0.1, or say --insecure", c.Listen)
	}
	validateS3(c, faults)
	if least := catalog.ChangeRetentionMin(c.KeyLifetime); c.ChangeRetention > 0 && c.ChangeRetention < least {
		faults.addf("--change-retention: %s is shorter than the %s for which keys are honoured", c.ChangeRetention, least)
	}
	if c.Migrate && !c.inDatabase() && !isURI(c.Store) {
		faults.addf("--migrate: --store does not name a PostgreSQL database")
	}
}

// serve runs the catalog until ctx ends.
func serve(ctx context.Context, c config, env environment) (err error) {
	logger := newLogger(c, env.stderr)
	if err := checkListen(ctx, c); err != nil {
		return err
	}
	node, err := openNode(ctx, c, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.close()) }()

	warehouse, err := node.ensureDefaultWarehouse(ctx, c, logger)
	if err != nil {
		return err
	}
	clientConfig, err := node.catalog.ClientConfig(ctx, warehouse.Name)
	if err != nil {
		return err
	}
	listener, err := listen(ctx, c)
	if err != nil {
		return err
	}
	bounded := boundListener(listener, c.ConnectionsMax)
	meterConnections(node.metrics, bounded)
	server := newServer(node.handler)
	server.ErrorLog = slog.NewLogLogger(logger.Handler(), slog.LevelWarn)
	node.locks.announce(listener.Addr())
	node.catalog.Start()
	defer node.catalog.Stop()
	node.outgrown.worker.Start()
	defer node.outgrown.worker.Stop()

	stopProbe := node.probeStorage(logger)
	defer stopProbe()

	served := make(chan error, 1)
	go func() { served <- server.Serve(stallingListener{bounded}) }()

	uri := printedURI(listener.Addr())
	writeBanner(env.stdout, uri, warehouse, clientConfig)
	if !isLoopback(listener.Addr().String()) {
		logger.Warn("anybody who can reach this address can change every table: there is no authentication", "address", listener.Addr().String())
	}
	logger.Info("ready", "uri", uri, "store", c.storeName(), "version", version())

	select {
	case err := <-served:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	case <-node.outgrown.noticed:
		go node.catalog.Stop() // at once; the deferred call waits for it
		node.outgrown.linger(ctx)
	}
	logger.Info("stopping", "timeout", c.ShutdownTimeout)
	node.locks.withdraw()
	if err := shutdown(server, c.ShutdownTimeout); err != nil {
		return errors.Join(node.outgrown.cause(), err)
	}
	<-served
	logger.Info("stopped")
	return node.outgrown.cause()
}

// checkListen finds an address that cannot be listened on before anything is opened, made or migrated. It does not keep the port: until
// the server is ready clients are to be refused, so that they know that nothing happened and ask another node. Who takes the port
// in between is met by listen.
func checkListen(ctx context.Context, c config) error {
	listener, err := listen(ctx, c)
	if err != nil {
		return err
	}
	return listener.Close()
}

// listen opens the port, and turns what commonly goes wrong into one sentence.
func listen(ctx context.Context, c config) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", c.Listen)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use by another process; choose another address with --listen", c.Listen)
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w", c.Listen, err)
	}
	// The name localhost means what the machine's owner says it means.
	addr, ok := listener.Addr().(*net.TCPAddr)
	if !c.Insecure && (!ok || !addr.IP.IsLoopback()) {
		return nil, errors.Join(
			fmt.Errorf("%s is %s, which can be reached from other machines, and there is no authentication; "+
				"say --insecure if that is meant", c.Listen, listener.Addr()),
			listener.Close())
	}
	return listener, nil
}

// shutdown lets the requests under way end, but no longer than timeout.
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

// newLogger returns the log of a command; it writes to out as the settings ask.
func newLogger(c config, out io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.LogLevel}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(out, options))
	}
	return slog.New(slog.NewTextHandler(out, options))
}
