package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"moorage"
	"moorage/internal/cli"
	"moorage/internal/web"
	"moorage/management"
	"moorage/management/client"
	"moorage/registry"
	"moorage/registry/pebble"
	"moorage/registry/postgres"
	"moorage/rest"
)

// operator returns the caller of commands on a stopped store. The access rights of the system
// protect the store, so access control allows this caller everything.
func operator() moorage.Caller { return moorage.System("operator") }

// withServer runs do with a client of the server at c.URI. Without a URI, it opens the store, and
// the management API of this process answers. No running server may then have the store open.
func withServer(ctx context.Context, c cli.Config, env cli.Environment, do func(*client.Client) error) error {
	return withStore(ctx, c, env, openStopped, do)
}

// withStore is like withServer, but calls open to open the store.
func withStore(ctx context.Context, c cli.Config, env cli.Environment,
	open func(context.Context, cli.Config, *slog.Logger) (*node, error), do func(*client.Client) error) (err error) {
	if c.URI != "" {
		return do(serverOf(c))
	}
	logger := stoppedLogger(env)
	node, err := open(ctx, c, logger)
	if errors.Is(err, pebble.ErrLocked) {
		return fmt.Errorf("%w: stop the server first, or ask it with --uri", err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.close()) }()
	node.tellOperator(ctx, logger)
	return do(client.Over(web.InProcess{Handler: node.operatorHandler(ctx, c, env)}))
}

// serverOf returns a client for the server at c.URI.
func serverOf(c cli.Config) *client.Client { return client.New(c.URI, c.Token).Trusting(c.Authorities) }

// openStopped opens a database, or the store of a stopped server. It creates nothing.
func openStopped(ctx context.Context, c cli.Config, logger *slog.Logger) (*node, error) {
	store, err := openStoppedStore(ctx, c, logger)
	if err != nil {
		return nil, err
	}
	return newNode(ctx, c, store, logger)
}

// If access control is on, tellOperator logs that it does not restrict the command.
func (n *node) tellOperator(ctx context.Context, logger *slog.Logger) {
	on, err := n.catalog.As(operator()).Grants().IsOn(ctx)
	if err == nil && on {
		logger.WarnContext(ctx, "access control does not bind this command: it has the store open",
			"caller", operator().Name)
	}
}

// operatorHandler returns the management API for the operator.
func (n *node) operatorHandler(ctx context.Context, c cli.Config, env cli.Environment) http.Handler {
	config := n.managed
	config.DrawKey, config.Authenticates, config.Admins = drawKey, true, []string{operator().Name}
	config.Backup = func(_ context.Context, folder string) (client.Backup, error) {
		return copyStore(ctx, c, n.store, folder) // a signal to the command also ends the copy
	}
	config.Begun = func(ctx context.Context, table moorage.Identifier, kind string) {
		// No worker runs in this process, so this function makes the first step of the job.
		pointer, err := n.maintenance.jobs.Find(ctx, table)
		if err == nil {
			err = n.maintenance.jobs.Step(ctx, registry.JobKey(pointer, kind))
		}
		if err != nil {
			n.logger.WarnContext(ctx, "the first step of a job failed; servers continue the job", "error", err)
		}
	}
	handler := web.New(web.Config{
		Authenticate: func(*http.Request) (moorage.Caller, error) { return operator(), nil },
		// The command itself prints why a request was refused. The log has the causes of internal
		// errors.
		Logger: newLogger(cli.Config{LogLevel: slog.LevelError}, env.Stderr),
	})
	management.Mount(handler, config)
	rest.Mount(handler, rest.Config{
		Catalog: n.catalog, IdempotencyLifetime: c.IdempotencyLifetime, Stages: openStages(n.catalog),
	})
	return handler
}

// migrate migrates the tables of a database to the version of this binary.
func migrate(ctx context.Context, c cli.Config, env cli.Environment) error {
	steps, err := postgres.Migrate(ctx, c.Store)
	if err != nil {
		return err
	}
	if steps == 0 {
		fmt.Fprintln(env.Stdout, "the tables are up to date")
		return nil
	}
	fmt.Fprintf(env.Stdout, "the tables are up to date, after %s\n", moorage.Counted(steps, "step"))
	return nil
}
