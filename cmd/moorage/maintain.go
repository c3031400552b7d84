package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"moorage"
	"moorage/internal/cli"
	"moorage/maintenance/jobs"
	"moorage/management/client"
	"moorage/metadata"
	"moorage/registry"
)

// cliCaller is who asks for jobs by a command that opens the store.
const cliCaller = "cli"

// withTable runs do on the table that the words of c name.
func withTable(ctx context.Context, c cli.Config, env cli.Environment,
	do func(n *node, ident moorage.Identifier, table registry.ID) error) error {
	return withStopped(ctx, c, env, func(n *node) error {
		named := c.Maintain.Table
		ident := moorage.Identifier{Warehouse: named.Warehouse, Namespace: named.Namespace, Name: named.Table}
		table, err := n.care.Find(ctx, ident)
		if err != nil {
			return err
		}
		return do(n, ident, table)
	})
}

func snapshotSettingsOf(c cli.Config) jobs.SnapshotSettings {
	m := c.Maintain
	return jobs.SnapshotSettings{
		Retention: metadata.Retention{
			MaxSnapshotAge: m.MaxSnapshotAge, MinSnapshots: m.MinSnapshots, MaxRefAge: m.MaxRefAge,
		},
		KeepFiles: m.KeepFiles, Delay: m.Delay, Caller: cliCaller,
	}
}

func maintainPlan(ctx context.Context, c cli.Config, env cli.Environment) error {
	return withTable(ctx, c, env, func(n *node, ident moorage.Identifier, table registry.ID) error {
		plan, err := n.care.PlanSnapshots(ctx, table, snapshotSettingsOf(c))
		if err != nil {
			return err
		}
		writePlan(env.Stdout, ident, plan)
		return nil
	})
}

// writePlan prints a plan.
func writePlan(out io.Writer, ident moorage.Identifier, plan jobs.Plan) {
	if plan.Held != "" {
		fmt.Fprintf(out, "%s is held: %s\n", ident, plan.Held)
		return
	}
	fmt.Fprintf(out, "%s: %s and %s would expire\n", ident,
		counted(len(plan.Expiry.Snapshots), "snapshot"), counted(len(plan.Expiry.Refs), "ref"))
	for _, name := range plan.Expiry.Refs {
		fmt.Fprintf(out, "  expires  ref %s\n", name)
	}
	for _, s := range plan.Expiry.Snapshots {
		fmt.Fprintf(out, "  expires  %d of %s\n", s.ID, time.UnixMilli(s.TimestampMS).UTC().Format(time.RFC3339))
	}
	for _, kept := range plan.Expiry.Kept {
		fmt.Fprintf(out, "  stays    %d, %s\n", kept.ID, kept.Why)
	}
}

func maintainRun(ctx context.Context, c cli.Config, env cli.Environment) error {
	return withTable(ctx, c, env, func(n *node, ident moorage.Identifier, table registry.ID) error {
		began, err := beginJob(ctx, c, n, table)
		switch {
		case errors.Is(err, jobs.ErrBusy):
			return fmt.Errorf("there is a job of this kind on %s; see moorage maintain status", ident)
		case err != nil:
			return err
		case began.Outcome == jobs.OutcomeNothing:
			fmt.Fprintf(env.Stdout, "%s: nothing expires\n", ident)
			return nil
		}
		if c.Maintain.Kind == cli.KindSnapshots {
			fmt.Fprintf(env.Stdout, "%s: %s and %s expired\n", ident, counted(began.Snapshots, "snapshot"),
				counted(began.Refs, "ref"))
		}
		if began.Outcome == jobs.OutcomeDone {
			return nil
		}
		if err := n.care.Step(ctx, registry.JobKey(table, c.Maintain.Kind)); err != nil {
			fmt.Fprintf(env.Stderr, "the job is not done with its first step, and servers go on with it: %s\n", err)
		}
		return writeStatus(ctx, n, env.Stdout, table)
	})
}

// beginJob begins the job that the words of c ask for.
func beginJob(ctx context.Context, c cli.Config, n *node, table registry.ID) (jobs.Began, error) {
	m := c.Maintain
	if m.Kind == cli.KindOrphans {
		return n.care.FindOrphans(ctx, table, jobs.OrphanSettings{
			OlderThan: m.OlderThan, Quarantine: m.Quarantine, EqualAuthorities: m.EqualAuthorities,
			Confirmed: m.Confirm, Caller: cliCaller,
		}, nil)
	}
	return n.care.Expire(ctx, table, snapshotSettingsOf(c), nil)
}

func maintainStatus(ctx context.Context, c cli.Config, env cli.Environment) error {
	return withTable(ctx, c, env, func(n *node, _ moorage.Identifier, table registry.ID) error {
		return writeStatus(ctx, n, env.Stdout, table)
	})
}

// runsShown is how many runs a command prints.
const runsShown = 20

func writeStatus(ctx context.Context, n *node, out io.Writer, table registry.ID) error {
	under, _, err := n.care.List(ctx, table, "", 0)
	if err != nil {
		return err
	}
	for _, job := range under {
		writeJob(out, job)
	}
	runs, err := n.care.Runs(ctx, table, runsShown)
	for _, run := range runs {
		fmt.Fprintf(out, "%s %s %s: %s; %s deleted\n", run.Ended.UTC().Format(time.RFC3339), run.Kind, run.Outcome,
			counted(int(run.Totals.Snapshots), "snapshot"), counted(int(run.Totals.Files), "file"))
		if run.Error != "" {
			fmt.Fprintf(out, "  %s\n", run.Error)
		}
	}
	if len(under)+len(runs) == 0 && err == nil {
		fmt.Fprintln(out, "not yet run")
	}
	return err
}

func writeJob(out io.Writer, job jobs.Under) {
	files := int64(0)
	for _, list := range job.Lists {
		files += list.Count
	}
	table := job.Table.String()
	if job.Table.Name == "" {
		table = "a table that is gone"
	}
	fmt.Fprintf(out, "%s %s of %s: %s, %s to be deleted not before %s\n", job.ID, job.Kind, table, job.State,
		counted(int(files), "file"), job.NotBefore.UTC().Format(time.RFC3339))
	for _, kept := range job.Totals.Kept {
		fmt.Fprintf(out, "  kept %s: %s\n", counted(int(kept.Files), "file"), kept.Reason)
	}
	if job.LastError != "" {
		fmt.Fprintf(out, "  %s\n", job.LastError)
	}
}

func maintainJobs(ctx context.Context, c cli.Config, env cli.Environment) error {
	if c.URI != "" {
		return askJobs(ctx, c, env)
	}
	return withStopped(ctx, c, env, func(n *node) error {
		all, _, err := n.care.List(ctx, registry.ID{}, "", 0)
		if err != nil {
			return err
		}
		blocked := 0
		for _, job := range all {
			writeJob(env.Stdout, job)
			if job.State == registry.StateBlocked {
				blocked++
			}
		}
		if len(all) == 0 {
			fmt.Fprintln(env.Stdout, "no maintenance is under way")
		}
		if blocked > 0 {
			return fmt.Errorf("%s blocked", counted(blocked, "job"))
		}
		return nil
	})
}

// filesPage is how many files a command reads at a time.
const filesPage = 10_000

func maintainFiles(ctx context.Context, c cli.Config, env cli.Environment) error {
	return withStopped(ctx, c, env, func(n *node) error {
		id, err := jobID(c)
		if err != nil {
			return err
		}
		for skip := 0; ; skip += filesPage {
			files, err := n.care.Files(ctx, id, skip, filesPage)
			if err != nil {
				return err
			}
			for _, file := range files {
				fmt.Fprintln(env.Stdout, file.Path)
			}
			if len(files) < filesPage {
				return nil
			}
		}
	})
}

func jobID(c cli.Config) (id registry.ID, err error) {
	return id, id.UnmarshalText([]byte(c.Maintain.Job))
}

func maintainJob(ctx context.Context, c cli.Config, env cli.Environment) error {
	if c.URI != "" {
		asked := client.MaintenanceOf(client.New(c.URI, c.Token))
		err := asked.ChangeMaintenanceJob(ctx, c.Maintain.Job, c.Maintain.Change, c.Maintain.Reason)
		if err == nil {
			fmt.Fprintln(env.Stdout, "done")
		}
		return err
	}
	return withStopped(ctx, c, env, func(n *node) error {
		id, err := jobID(c)
		if err != nil {
			return err
		}
		switch c.Maintain.Change {
		case "cancel":
			err = n.care.Cancel(ctx, id, cliCaller)
		case "retry":
			err = n.care.Retry(ctx, id)
		default:
			err = n.care.Quarantine(ctx, id, c.Maintain.Reason, cliCaller)
		}
		if err == nil {
			fmt.Fprintln(env.Stdout, "done")
		}
		return err
	})
}

func maintainOrphans(ctx context.Context, c cli.Config, env cli.Environment) error {
	return withStopped(ctx, c, env, func(n *node) error {
		other, err := n.care.Adopt(ctx, c.Maintain.Warehouse)
		if other != "" {
			fmt.Fprintf(env.Stdout, "the store %s removed orphans in the warehouse %s until now\n", other,
				c.Maintain.Warehouse)
		}
		if err == nil {
			fmt.Fprintf(env.Stdout, "this store removes orphans in the warehouse %s\n", c.Maintain.Warehouse)
		}
		return err
	})
}
