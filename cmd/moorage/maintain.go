package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"moorage"
	"moorage/internal/cli"
	"moorage/management/client"
	"moorage/registry"
)

// byHandOf returns the job that a command requests.
func byHandOf(words cli.MaintainWords) client.MaintenanceByHand {
	asked := client.MaintenanceByHand{Object: words.Table, Kind: words.Kind, Sample: words.Sample}
	if words.ByPolicy {
		return asked
	}
	seconds := func(d time.Duration) *int64 {
		n := int64(d / time.Second)
		return &n
	}
	asked.Settings = &client.MaintenanceSettingsByHand{
		OlderThanSeconds: seconds(words.OlderThan), QuarantineSeconds: seconds(words.Quarantine),
		EqualAuthorities: words.EqualAuthorities, Confirm: words.Confirm, Adopt: words.Adopt,
	}
	if words.Kind == cli.KindSnapshots {
		least := int64(words.MinSnapshots)
		asked.Settings = &client.MaintenanceSettingsByHand{
			MaxSnapshotAgeSeconds: seconds(words.MaxSnapshotAge), MinSnapshots: &least,
			MaxRefAgeSeconds: seconds(words.MaxRefAge), DelaySeconds: seconds(words.Delay), KeepFiles: words.KeepFiles,
		}
	}
	return asked
}

func maintainPlan(ctx context.Context, c cli.Config, env cli.Environment) error {
	return care(ctx, c, env, func(a caretakers) error {
		plan, err := a.PlanMaintenance(ctx, byHandOf(c.Maintain))
		if err != nil {
			return err
		}
		writePlan(env.Stdout, plan, c.Maintain.Verbose)
		return nil
	})
}

// writePlan prints a plan, on one screen unless it is verbose.
func writePlan(out io.Writer, plan client.MaintenancePlan, verbose bool) {
	if plan.Held != "" {
		fmt.Fprintf(out, "%s is held: %s\n", plan.Object, plan.Held)
		return
	}
	if plan.Kind == cli.KindSnapshots {
		writePlannedSnapshots(out, plan, verbose)
	}
	if plan.Blocked != "" {
		fmt.Fprintf(out, "the job would stop: %s\n", plan.Blocked)
		return
	}
	if plan.Reach == "" {
		return
	}
	fmt.Fprintf(out, "%s would be deleted", counted(int(plan.Files), "file"))
	if plan.Kind == cli.KindOrphans {
		fmt.Fprintf(out, ", %s", sizeOf(uint64(plan.Bytes)))
	}
	fmt.Fprintf(out, "; that reads %s, %s\n", counted(int(plan.Manifests), "manifest"), sizeOf(uint64(plan.ReadBytes)))
	if verbose {
		for _, path := range plan.Sample {
			fmt.Fprintf(out, "  %s\n", path)
		}
	}
	writeKept(out, plan.Kept)
	if !verbose && len(plan.Snapshots)+len(plan.Sample) > 0 {
		fmt.Fprintln(out, "-v names each snapshot, and the first of the files")
	}
}

// reasonsMax bounds the reasons and the refs that a plan prints on one screen.
const reasonsMax = 6

// writePlannedSnapshots prints which snapshots and refs would expire, and why the others stay.
func writePlannedSnapshots(out io.Writer, plan client.MaintenancePlan, verbose bool) {
	var expire, stay []client.MaintenancePlanSnapshot
	for _, s := range plan.Snapshots {
		if s.Expires {
			expire = append(expire, s)
		} else {
			stay = append(stay, s)
		}
	}
	fmt.Fprintf(out, "%s: %s and %s would expire\n", plan.Object, counted(len(expire), "snapshot"),
		counted(len(plan.Refs), "ref"))
	for i, name := range plan.Refs {
		if i == reasonsMax && !verbose {
			fmt.Fprintf(out, "  and %s more\n", counted(len(plan.Refs)-i, "ref"))
			break
		}
		fmt.Fprintf(out, "  expires  ref %s\n", name)
	}
	if verbose {
		for _, s := range plan.Snapshots {
			if s.Expires {
				fmt.Fprintf(out, "  expires  %d of %s\n", s.ID, s.Time.UTC().Format(time.RFC3339))
			} else {
				fmt.Fprintf(out, "  stays    %d, %s\n", s.ID, s.Why)
			}
		}
		return
	}
	if len(expire) > 0 {
		byTime := func(a, b client.MaintenancePlanSnapshot) int { return a.Time.Compare(b.Time) }
		fmt.Fprintf(out, "  expires  those of %s to %s\n",
			slices.MinFunc(expire, byTime).Time.UTC().Format(time.RFC3339),
			slices.MaxFunc(expire, byTime).Time.UTC().Format(time.RFC3339))
	}
	var reasons []string
	number := make(map[string]int)
	for _, s := range stay {
		if number[s.Why]++; number[s.Why] == 1 {
			reasons = append(reasons, s.Why)
		}
	}
	slices.SortStableFunc(reasons, func(a, b string) int { return number[b] - number[a] })
	for i, why := range reasons {
		if i == reasonsMax {
			fmt.Fprintf(out, "  and for %s more\n", counted(len(reasons)-i, "reason"))
			break
		}
		fmt.Fprintf(out, "  stays    %s: %s\n", counted(number[why], "snapshot"), why)
	}
}

func writeKept(out io.Writer, all []client.MaintenanceKept) {
	for _, kept := range all {
		fmt.Fprintf(out, "  kept %s: %s\n", counted(int(kept.Files), "file"), kept.Reason)
	}
}

func maintainRun(ctx context.Context, c cli.Config, env cli.Environment) error {
	if c.Maintain.DryRun {
		return maintainPlan(ctx, c, env)
	}
	if c.URI != "" {
		return care(ctx, c, env, func(a caretakers) error {
			return runByHand(ctx, a, c, env, func(context.Context) error { return nil })
		})
	}
	return orAsk(withStopped(ctx, c, env, func(n *node) error {
		own := n.maintenance.caretaker(moorage.System(whoOpened))
		return runByHand(ctx, own, c, env, func(ctx context.Context) error {
			named := c.Maintain.Table
			table, err := n.maintenance.jobs.Find(ctx, moorage.Identifier{
				Warehouse: named.Warehouse, Namespace: named.Namespace, Name: named.Table,
			})
			if err != nil {
				return err
			}
			return n.maintenance.jobs.Step(ctx, registry.JobKey(table, c.Maintain.Kind))
		})
	}))
}

// runByHand begins a job, and takes its first step.
func runByHand(ctx context.Context, a caretakers, c cli.Config, env cli.Environment,
	step func(ctx context.Context) error) error {
	begun, err := a.RunMaintenance(ctx, byHandOf(c.Maintain))
	if err != nil {
		return err
	}
	if begun.Outcome == client.BegunNothing {
		fmt.Fprintf(env.Stdout, "%s: nothing expires\n", begun.Object)
		return nil
	}
	if c.Maintain.Kind == cli.KindSnapshots {
		fmt.Fprintf(env.Stdout, "%s: %s and %s expired\n", begun.Object, counted(begun.Snapshots, "snapshot"),
			counted(begun.Refs, "ref"))
	}
	if begun.Outcome == client.BegunDone {
		return nil
	}
	if err := step(ctx); err != nil {
		fmt.Fprintf(env.Stderr, "the job is not done with its first step, and servers go on with it: %s\n", err)
	}
	return writeBegun(ctx, a, env.Stdout, begun)
}

// writeBegun prints the job that has begun: its present state, or its outcome.
func writeBegun(ctx context.Context, a caretakers, out io.Writer, begun client.MaintenanceBegun) error {
	status, err := a.MaintenanceStatus(ctx, begun.Object)
	if err != nil {
		return err
	}
	for _, job := range status.Jobs {
		if job.ID == begun.Job {
			writeJob(out, job)
		}
	}
	writeRuns(out, slices.DeleteFunc(status.Runs, func(run client.MaintenanceRun) bool { return run.Job != begun.Job }))
	return nil
}

func maintainStatus(ctx context.Context, c cli.Config, env cli.Environment) error {
	return care(ctx, c, env, func(a caretakers) error { return writeStatus(ctx, a, env.Stdout, c.Maintain.Table) })
}

// writeStatus prints the jobs of a table, and the jobs that ended.
func writeStatus(ctx context.Context, a caretakers, out io.Writer, table client.Object) error {
	status, err := a.MaintenanceStatus(ctx, table)
	if err != nil {
		return err
	}
	for _, job := range status.Jobs {
		writeJob(out, job)
	}
	writeRuns(out, status.Runs)
	if len(status.Jobs)+len(status.Runs) == 0 {
		fmt.Fprintln(out, "not yet run")
	}
	return nil
}

// writeRuns prints jobs that ended.
func writeRuns(out io.Writer, runs []client.MaintenanceRun) {
	for _, run := range runs {
		fmt.Fprintf(out, "%s %s %s: %s; %s deleted\n", run.Ended.UTC().Format(time.RFC3339), run.Kind, run.Outcome,
			counted(int(run.Snapshots), "snapshot"), counted(int(run.Files), "file"))
		writeKept(out, run.Kept)
		if run.Error != "" {
			fmt.Fprintf(out, "  %s\n", run.Error)
		}
	}
}

// writeJob prints a job in progress.
func writeJob(out io.Writer, job client.MaintenanceJob) {
	table := "a table that is gone"
	if job.Object != nil {
		table = job.Object.String()
	}
	fmt.Fprintf(out, "%s %s of %s: %s", job.ID, job.Kind, table, job.State)
	files := counted(int(job.Files), "file")
	if job.State == registry.StateCollecting.String() {
		files = "files that are being looked for"
	}
	if !job.NotBefore.IsZero() { // otherwise it deletes nothing
		fmt.Fprintf(out, ", %s to be deleted not before %s", files, job.NotBefore.UTC().Format(time.RFC3339))
	}
	fmt.Fprintln(out)
	writeKept(out, job.Kept)
	for _, why := range []string{job.Paused, job.LastError} {
		if why != "" {
			fmt.Fprintf(out, "  %s\n", why)
		}
	}
}

// maintainJobs prints the jobs in progress. It fails if one is blocked.
func maintainJobs(ctx context.Context, c cli.Config, env cli.Environment) error {
	return care(ctx, c, env, func(a caretakers) error {
		count, blocked := 0, 0
		for page := (client.Page{Limit: 1000}); ; {
			found, next, err := a.MaintenanceJobs(ctx, page)
			if err != nil {
				return err
			}
			for _, job := range found {
				writeJob(env.Stdout, job)
				if job.State == "blocked" {
					blocked++
				}
			}
			count += len(found)
			if page.After = next; next == "" {
				break
			}
		}
		if count == 0 {
			fmt.Fprintln(env.Stdout, "no maintenance is under way")
		}
		if blocked > 0 {
			return errors.New(counted(blocked, "job") + " blocked")
		}
		return nil
	})
}

// maintainFiles prints the files that a job will delete.
func maintainFiles(ctx context.Context, c cli.Config, env cli.Environment) error {
	return care(ctx, c, env, func(a caretakers) error {
		for page := (client.Page{Limit: 1000}); ; {
			files, next, err := a.MaintenanceFiles(ctx, c.Maintain.Job, page)
			if err != nil {
				return err
			}
			for _, file := range files {
				fmt.Fprintln(env.Stdout, file)
			}
			if page.After = next; next == "" {
				return nil
			}
		}
	})
}

// maintainJob changes a job.
func maintainJob(ctx context.Context, c cli.Config, env cli.Environment) error {
	return care(ctx, c, env, func(a caretakers) error {
		err := a.ChangeMaintenanceJob(ctx, client.MaintenanceJobChange{
			Job: c.Maintain.Job, Change: c.Maintain.Change, Reason: c.Maintain.Reason, Confirm: c.Maintain.Confirm,
		})
		if err == nil {
			fmt.Fprintln(env.Stdout, "done")
		}
		return err
	})
}

// maintainOrphans reports the files outside of all tables of a warehouse, or makes this store the
// store that removes orphans there.
func maintainOrphans(ctx context.Context, c cli.Config, env cli.Environment) error {
	if c.Maintain.Outside != "" {
		return maintainLeftovers(ctx, c, env)
	}
	return care(ctx, c, env, func(a caretakers) error {
		adopted, err := a.AdoptOrphans(ctx, c.Maintain.Warehouse)
		if adopted.Other != "" {
			fmt.Fprintf(env.Stdout, "the store %s removed orphans in the warehouse %s until now\n", adopted.Other,
				c.Maintain.Warehouse)
		}
		if err == nil {
			fmt.Fprintf(env.Stdout, "this store removes orphans in the warehouse %s\n", c.Maintain.Warehouse)
		}
		return err
	})
}
