package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"moorage"
	"moorage/internal/cli"
	"moorage/management/client"
	"moorage/registry/pebble"
	"moorage/registry/postgres"
)

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
	fmt.Fprintf(env.Stdout, "the tables are up to date, after %s\n", counted(steps, "step"))
	return nil
}

func checkStore(ctx context.Context, c cli.Config, env cli.Environment) (err error) {
	var report client.Report
	if c.URI != "" {
		report, err = serverOf(c).Check(ctx)
	} else {
		err = withStopped(ctx, c, env, func(node *node) error {
			found, err := node.checker.Check(ctx)
			report = client.Report(found)
			return err
		})
	}
	if err != nil {
		return orAsk(err)
	}
	fmt.Fprintf(env.Stdout, "%s, %s, %s, %s\n", counted(report.Warehouses, "warehouse"),
		counted(report.Namespaces, "namespace"), counted(report.Tables, "table"), counted(report.Views, "view"))
	for _, problem := range report.Problems {
		fmt.Fprintln(env.Stdout, "problem: "+moorage.OneLine(problem))
	}
	for _, unread := range report.Unread {
		fmt.Fprintln(env.Stdout, "not looked at: "+moorage.OneLine(unread))
	}
	switch {
	case len(report.Problems) > 0:
		return errors.New(counted(len(report.Problems), "problem"))
	case len(report.Unread) > 0:
		return fmt.Errorf("no problems in what was looked at; the files of %s could not be",
			counted(len(report.Unread), "storage"))
	}
	fmt.Fprintln(env.Stdout, "no problems")
	return nil
}

// serverOf returns a client of the server at c.URI.
func serverOf(c cli.Config) *client.Client { return client.New(c.URI, c.Token).Trusting(c.Authorities) }

// orAsk extends the refusal of a store that a running server has open: --uri calls that server.
func orAsk(err error) error {
	if errors.Is(err, pebble.ErrLocked) {
		return fmt.Errorf("%w, or ask it with --uri", err)
	}
	return err
}

// counted returns a number with its noun: "1 table", "2 tables".
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// withStopped runs do on a database, or on the store of a server that is stopped.
func withStopped(ctx context.Context, c cli.Config, env cli.Environment, do func(*node) error) (err error) {
	node, err := openStopped(ctx, c, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.close()) }()
	return do(node)
}

// openStopped opens a database, or the store of a stopped server. It creates nothing.
func openStopped(ctx context.Context, c cli.Config, env cli.Environment) (*node, error) {
	store, err := openStoppedStore(ctx, c, env)
	if err != nil {
		return nil, err
	}
	return newNode(ctx, c, store, stoppedLogger(env))
}

func backup(ctx context.Context, c cli.Config, env cli.Environment) error {
	back := backupStopped
	if c.URI != "" {
		back = func(ctx context.Context, c cli.Config, _ cli.Environment) (client.Backup, error) {
			return serverOf(c).Backup(ctx, c.Operand)
		}
	}
	made, err := back(ctx, c, env)
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Stdout, "%s in %s\nmetadata and data files are not in it; "+
		"to restore it, stop the server and run moorage serve --data %s\n",
		counted(made.Records, "record"), made.Folder, made.Folder)
	return nil
}

// backupStopped opens the store, which no other process may have open, and copies it.
func backupStopped(ctx context.Context, c cli.Config, env cli.Environment) (made client.Backup, err error) {
	dir, err := filepath.Abs(c.Operand)
	if err != nil {
		return made, fmt.Errorf("find %s: %w", c.Operand, err)
	}
	if c.InDatabase() {
		return made, errDatabaseBackup
	}
	store, err := openStoppedStore(ctx, c, env)
	if err != nil {
		return made, orAsk(err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	records, err := store.(backuper).Backup(ctx, dir, cli.StoreFolder, keepFiles)
	return client.Backup{Folder: dir, Records: records}, err
}
