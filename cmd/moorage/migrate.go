package main

import (
	"context"
	"fmt"

	"moorage/registry/postgres"
)

func migrateCommand() command {
	return command{
		name:    "migrate",
		summary: "make or update the tables of a database",
		text: "Brings the tables of the PostgreSQL database that --store names to the version of this binary. " +
			"May be called while servers run, and by several at once; it only goes forward.\n",
		settings: storeSettings(),
		validate: func(c config, faults *usageError) {
			if !c.inDatabase() && !isURI(c.Store) {
				faults.addf("--store: a PostgreSQL database is needed, postgres://USER@HOST:PORT/DATABASE")
			}
		},
		run: func(ctx context.Context, c config, env environment) error {
			steps, err := postgres.Migrate(ctx, c.Store)
			if err != nil {
				return err
			}
			if steps == 0 {
				fmt.Fprintln(env.stdout, "the tables are up to date")
				return nil
			}
			fmt.Fprintf(env.stdout, "the tables are up to date, after %s\n", counted(steps, "step"))
			return nil
		},
	}
}
