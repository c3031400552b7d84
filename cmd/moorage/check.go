package main

import (
	"context"
	"errors"
	"fmt"

	"moorage"
	"moorage/catalog"
	"moorage/management/client"
	"moorage/registry/pebble"
)

func checkCommand() command {
	return command{
		name:    "check",
		summary: "look whether everything in the store holds together",
		text: "Checks that every record can be read, that every table's and view's metadata file exists and can be read, that names and tables or views " +
			"belong to each other one to one, and that no record names a missing file. Prints what is wrong, " +
			"changes nothing, and exits with 0 if all is well and 1 if not.\n\n" +
			"Without --uri it opens the store itself; if that is a folder, its server must be stopped.\n",
		settings: append(nodeSettings(), uriSetting("Ask the server that runs at this address to check itself.")),
		validate: validateS3,
		run:      check,
	}
}

func check(ctx context.Context, c config, env environment) error {
	look := checkStopped
	if c.URI != "" {
		look = func(ctx context.Context, c config, _ environment) (catalog.Report, error) {
			return client.New(c.URI).Check(ctx)
		}
	}
	report, err := look(ctx, c, env)
	if err != nil {
		return err
	}
	fmt.Fprintf(env.stdout, "%s, %s, %s, %s\n",
		counted(report.Warehouses, "warehouse"), counted(report.Namespaces, "namespace"), counted(report.Tables, "table"), counted(report.Views, "view"))
	if len(report.Problems) == 0 {
		fmt.Fprintln(env.stdout, "no problems")
		return nil
	}
	for _, problem := range report.Problems {
		fmt.Fprintln(env.stdout, "problem: "+moorage.OneLine(problem))
	}
	return errors.New(counted(len(report.Problems), "problem"))
}

// counted returns a number and what it counts: "1 table", "2 tables".
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// checkStopped opens the store, which nobody else may have open, and checks it.
func checkStopped(ctx context.Context, c config, env environment) (_ catalog.Report, err error) {
	node, err := openStopped(ctx, c, env)
	if errors.Is(err, pebble.ErrLocked) {
		err = fmt.Errorf("%w, or ask it with --uri", err)
	}
	if err != nil {
		return catalog.Report{}, err
	}
	defer func() { err = errors.Join(err, node.close()) }()
	return node.catalog.Check(ctx)
}
