package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"moorage"
	"moorage/internal/cli"
	"moorage/maintenance/policy"
	"moorage/management/client"
	"moorage/registry"
)

// maintainedObject returns the request body of a command about the maintenance of an object.
func maintainedObject(c cli.Config) (any, error) {
	return client.MaintenanceChange{Object: c.Maintain.Object, Reason: c.Maintain.Reason}, nil
}

func printChanged(out io.Writer, _ cli.Config, _ client.MaintenanceChange) error {
	_, err := fmt.Fprintln(out, "done")
	return err
}

// maintainStatus prints the maintenance of an object, or all jobs in progress.
func maintainStatus(ctx context.Context, c cli.Config, env cli.Environment) error {
	return withServer(ctx, c, env, func(server *client.Client) error {
		if !c.Maintain.Named {
			return writeJobs(ctx, server, env.Stdout)
		}
		status, err := server.MaintenanceStatus(ctx, c.Maintain.Object)
		if err == nil {
			writeMaintenance(env.Stdout, status)
		}
		return err
	})
}

// writeJobs prints the jobs in progress. The exit code is cli.ExitNo if a job is blocked.
func writeJobs(ctx context.Context, server *client.Client, out io.Writer) error {
	count, blocked := 0, 0
	jobs := client.Request{Method: http.MethodGet, Path: client.Path("maintenance", "jobs")}
	err := client.Pages(ctx, server, jobs, func(page client.MaintenanceJobsPage) bool {
		for _, job := range page.Jobs {
			writeJob(out, job)
			if job.State == "blocked" {
				blocked++
			}
		}
		count += len(page.Jobs)
		return true
	})
	switch {
	case err != nil:
		return err
	case blocked > 0:
		return cli.No("%s blocked", moorage.Counted(blocked, "job"))
	case count == 0:
		fmt.Fprintln(out, "no maintenance is in progress")
	}
	return nil
}

// writeMaintenance prints the state of an object's maintenance.
func writeMaintenance(out io.Writer, status client.MaintenanceStatus) {
	for _, pause := range status.Pauses {
		writePause(out, "paused", pause)
	}
	writePolicies(out, status)
	for _, kind := range status.Kinds {
		fmt.Fprintf(out, "%s: %s (%s)", kind.Kind, strings.ReplaceAll(kind.State, "_", " "), kind.From)
		if kind.Why != "" {
			fmt.Fprintf(out, ": %s", kind.Why)
		}
		if !kind.Due.IsZero() {
			fmt.Fprintf(out, ", due %s", kind.Due.UTC().Format(time.RFC3339))
		}
		fmt.Fprintln(out)
		if kind.State == "Disabled" {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(kind.Settings)) {
			fmt.Fprintf(out, "  %s = %s (%s)\n", name, kind.Settings[name].Value, kind.Settings[name].From)
		}
	}
	for _, job := range status.Jobs {
		writeJob(out, job)
	}
	writeRuns(out, status.Runs)
	switch {
	case len(status.Kinds) > 0 && len(status.Jobs)+len(status.Runs) == 0: // a table without jobs
		fmt.Fprintln(out, "not yet run")
	case len(status.Pauses)+len(status.Policies)+len(status.Kinds) == 0:
		fmt.Fprintf(out, "%s has no policy of its own\n", status.Object)
	}
}

// writePause prints words and then the pause. words describes what happened to the pause.
func writePause(out io.Writer, words string, pause client.MaintenancePause) {
	fmt.Fprintf(out, "%s since %s", words, pause.Since.UTC().Format(time.RFC3339))
	if pause.By != "" { // if empty, a restore of the store set the pause
		fmt.Fprintf(out, " by %s", pause.By)
	}
	fmt.Fprintf(out, " on %s: %s\n", pause.Object, pause.Reason)
}

// writePolicies prints the object's own policies.
func writePolicies(out io.Writer, status client.MaintenanceStatus) {
	for _, of := range slices.Sorted(maps.Keys(status.Policies)) {
		set := status.Policies[of]
		fmt.Fprintf(out, "%s: %s %s", status.Object, of, set.Status)
		for _, name := range slices.Sorted(maps.Keys(set.Settings[of])) {
			fmt.Fprintf(out, " %s=%s", name, set.Settings[of][name])
		}
		fmt.Fprintln(out)
	}
}

// maintainSet sets an object's policy for a type of job, or removes it.
func maintainSet(ctx context.Context, c cli.Config, env cli.Environment) error {
	object, of := c.Maintain.Object, policyType(c.Maintain.Kind)
	return withServer(ctx, c, env, func(server *client.Client) (err error) {
		switch c.Maintain.Set {
		case cli.SetOn:
			err = enableMaintenance(ctx, server, c, env.Stdout, of)
			if c.Maintain.DryRun {
				return err
			}
		case cli.SetOff:
			disabled := client.MaintenancePolicy{Status: string(policy.Disabled)}
			err = server.PutMaintenancePolicy(ctx, object, of, disabled)
			if err == nil {
				fmt.Fprintln(env.Stdout, "jobs in progress go on; see moorage maintain status")
			}
		default:
			err = server.Do(ctx, client.Request{
				Method: http.MethodDelete, Path: client.PolicyPath(of), Query: object.Query(),
			}, new(client.MaintenanceChange))
		}
		if err == nil {
			fmt.Fprintln(env.Stdout, "done")
		}
		return err
	})
}

// policyType returns the type of policy for a kind of job.
func policyType(kind string) string {
	of, _ := policy.TypeOf(policy.Kind(kind)) // the command line checked the kind
	return string(of)
}

// enableMaintenance prints what maintenance would do, and enables it unless this is a dry run.
func enableMaintenance(ctx context.Context, server *client.Client, c cli.Config, out io.Writer, of string) error {
	asked := client.MaintenancePolicy{Status: string(policy.Enabled), Unsafe: c.Maintain.Unsafe}
	settings := make(client.MaintenanceSettings, len(c.Maintain.Settings))
	for name, value := range c.Maintain.Settings {
		if _, err := strconv.ParseInt(value, 10, 64); err == nil {
			settings[name] = json.RawMessage(value)
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		settings[name] = text
	}
	if len(settings) > 0 {
		asked.Settings = map[string]client.MaintenanceSettings{of: settings}
	}
	err := writePreview(ctx, server, out, c.Maintain, of, asked)
	if err != nil || c.Maintain.DryRun {
		return err
	}
	if err := server.PutMaintenancePolicy(ctx, c.Maintain.Object, of, asked); err != nil {
		return err
	}
	// Print the new policy, because it lacks all earlier settings that the command did not repeat.
	// A caller that may set the policy may lack the right to read it.
	status, err := server.MaintenanceStatus(ctx, c.Maintain.Object)
	switch {
	case isUnseen(err):
	case err != nil:
		return fmt.Errorf("it is enabled, and its policy cannot be read: %w", err)
	default:
		writePolicies(out, status)
	}
	return nil
}

// isUnseen reports whether err means that the caller may not see an object.
func isUnseen(err error) bool {
	answered, ok := errors.AsType[*client.Error](err)
	unseen := []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound}
	return ok && slices.Contains(unseen, answered.Code)
}

// maintainResume ends the pause of an object. If the caller may see the object, it prints whether
// there was no pause, and which scopes around the object are still paused.
func maintainResume(ctx context.Context, c cli.Config, env cli.Environment) error {
	return withServer(ctx, c, env, func(server *client.Client) error {
		change := client.MaintenanceChange{Object: c.Maintain.Object}
		status, unseen := server.MaintenanceStatus(ctx, change.Object)
		resume := client.Request{Method: http.MethodPost, Path: client.Path("maintenance", "resume"), Body: change}
		if err := server.Do(ctx, resume, new(client.MaintenanceChange)); err != nil {
			return err
		}
		if unseen != nil && !isUnseen(unseen) {
			return fmt.Errorf("it is resumed, and what else is paused cannot be read: %w", unseen)
		}
		if unseen == nil {
			writePauses(env.Stdout, change.Object, status.Pauses)
		}
		fmt.Fprintln(env.Stdout, "done")
		return nil
	})
}

// writePauses prints which pauses remain for object. pauses are the pauses that were in force
// before the command resumed object.
func writePauses(out io.Writer, object client.Object, pauses []client.MaintenancePause) {
	own := object.String()
	others := slices.DeleteFunc(slices.Clone(pauses), func(pause client.MaintenancePause) bool {
		return pause.Object.String() == own
	})
	if len(others) == len(pauses) {
		fmt.Fprintf(out, "%s was not paused itself\n", own)
	}
	for _, pause := range others {
		writePause(out, "still paused", pause)
	}
}

// maintainRun begins a job on a table, or prints what the job would do.
func maintainRun(ctx context.Context, c cli.Config, env cli.Environment) error {
	return withServer(ctx, c, env, func(server *client.Client) error {
		switch words := c.Maintain; {
		case words.DryRun:
			return writePlanned(ctx, server, env.Stdout, words)
		case words.Object.Table == "":
			return adoptOrphans(ctx, server, env.Stdout, words.Object.Warehouse)
		case words.ByPolicy:
			_, err := server.RunMaintenance(ctx, byHandOf(words))
			if err == nil {
				fmt.Fprintln(env.Stdout, "done: the table is due now")
			}
			return err
		default:
			return runByHand(ctx, server, env.Stdout, words)
		}
	})
}

// writePlanned prints what a job would do. If a search for files outside of all tables could not be
// completed, the exit code is cli.ExitNo.
func writePlanned(ctx context.Context, server *client.Client, out io.Writer, words cli.MaintainWords) error {
	var plan client.MaintenancePlan
	err := server.Do(ctx, client.Request{
		Method: http.MethodPost, Path: client.Path("maintenance", "plan"), Body: byHandOf(words), Reads: true,
	}, &plan)
	switch {
	case err != nil:
		return err
	case words.Object.Table != "":
		writePlan(out, plan, words.Verbose)
	case plan.Blocked != "":
		return cli.No("the report would not be whole, so it names no file: %s", plan.Blocked)
	default:
		writeLeftovers(out, plan)
	}
	return nil
}

// adoptOrphans makes the store the only one that may remove orphans in a warehouse.
func adoptOrphans(ctx context.Context, server *client.Client, out io.Writer, warehouse string) error {
	var adopted client.MaintenanceAdopted
	err := server.Do(ctx, client.Request{
		Method: http.MethodPost, Path: client.Path("maintenance", "adopt"),
		Body: client.MaintenanceAdopted{Warehouse: warehouse},
	}, &adopted)
	if err != nil {
		return err
	}
	if adopted.Other != "" {
		fmt.Fprintf(out, "the store %s removed orphans in the warehouse %s until now\n", adopted.Other, warehouse)
	}
	fmt.Fprintf(out, "this store removes orphans in the warehouse %s\n", warehouse)
	return nil
}

// runByHand begins a job, and prints the job or its outcome.
func runByHand(ctx context.Context, server *client.Client, out io.Writer, words cli.MaintainWords) error {
	begun, err := server.RunMaintenance(ctx, byHandOf(words))
	if err != nil {
		return err
	}
	if begun.Outcome == client.BegunNothing {
		fmt.Fprintf(out, "%s: nothing expires\n", begun.Object)
		return nil
	}
	if words.Kind == cli.KindSnapshots {
		fmt.Fprintf(out, "%s: %s and %s expired\n", begun.Object, moorage.Counted(begun.Snapshots, "snapshot"),
			moorage.Counted(begun.Refs, "ref"))
	}
	if begun.Outcome == client.BegunDone {
		return nil
	}
	status, err := server.MaintenanceStatus(ctx, begun.Object)
	switch {
	case isUnseen(err):
		fmt.Fprintf(out, "the job %s is begun\n", begun.Job)
		return nil
	case err != nil:
		return fmt.Errorf("the job %s is begun, and its state cannot be read: %w", begun.Job, err)
	}
	for _, job := range status.Jobs {
		if job.ID == begun.Job {
			writeJob(out, job)
		}
	}
	writeRuns(out, slices.DeleteFunc(status.Runs, func(run client.MaintenanceRun) bool { return run.Job != begun.Job }))
	return nil
}

// byHandOf returns the job that a command requests. A job by policy gets no settings from the
// command.
func byHandOf(words cli.MaintainWords) client.MaintenanceByHand {
	asked := client.MaintenanceByHand{Object: words.Object, Kind: words.Kind, Sample: words.Sample}
	seconds := func(d time.Duration) *int64 {
		n := int64(d / time.Second)
		return &n
	}
	var settings client.MaintenanceSettingsByHand
	switch {
	case words.ByPolicy:
		return asked
	case words.Kind == cli.KindSnapshots:
		least := int64(words.MinSnapshots)
		settings = client.MaintenanceSettingsByHand{
			MaxSnapshotAgeSeconds: seconds(words.MaxSnapshotAge), MinSnapshots: &least,
			MaxRefAgeSeconds: seconds(words.MaxRefAge), DelaySeconds: seconds(words.Delay), KeepFiles: words.KeepFiles,
		}
	case words.Object.Table != "":
		settings = client.MaintenanceSettingsByHand{
			QuarantineSeconds: seconds(words.Quarantine), EqualAuthorities: words.EqualAuthorities,
			Confirm: words.Confirm, Adopt: words.Adopt,
		}
	default:
		settings.Unsafe = words.Unsafe
	}
	if words.OlderThan > 0 {
		settings.OlderThanSeconds = seconds(words.OlderThan)
	}
	asked.Settings = &settings
	return asked
}

// maintainJob changes a job, or prints the files that it will delete.
func maintainJob(ctx context.Context, c cli.Config, env cli.Environment) error {
	words := c.Maintain
	return withServer(ctx, c, env, func(server *client.Client) error {
		if words.Change == "" {
			path := client.Path("maintenance", "jobs", words.Job, "files")
			files := client.Request{Method: http.MethodGet, Path: path}
			return client.Pages(ctx, server, files, func(page client.MaintenanceFilesPage) bool {
				for _, file := range page.Files {
					fmt.Fprintln(env.Stdout, file)
				}
				return true
			})
		}
		err := server.Do(ctx, client.Request{
			Method: http.MethodPost, Path: client.Path("maintenance", "jobs", words.Job, words.Change),
			Body: client.MaintenanceJobSpec{Reason: words.Reason, Confirm: words.Confirm},
		}, new(client.MaintenanceJobChange))
		if err == nil {
			fmt.Fprintln(env.Stdout, "done")
		}
		return err
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
	fmt.Fprintf(out, "%s would be deleted", moorage.Counted(int(plan.Files), "file"))
	if plan.Kind == cli.KindOrphans {
		fmt.Fprintf(out, ", %s", moorage.SizeOf(uint64(plan.Bytes)))
	}
	fmt.Fprintf(out, "; that reads %s, %s\n", moorage.Counted(int(plan.Manifests), "manifest"),
		moorage.SizeOf(uint64(plan.ReadBytes)))
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

// reasonsMax is the maximum number of reasons, and of refs, that a plan prints on one screen.
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
	fmt.Fprintf(out, "%s: %s and %s would expire\n", plan.Object, moorage.Counted(len(expire), "snapshot"),
		moorage.Counted(len(plan.Refs), "ref"))
	for i, name := range plan.Refs {
		if i == reasonsMax && !verbose {
			fmt.Fprintf(out, "  and %s more\n", moorage.Counted(len(plan.Refs)-i, "ref"))
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
			fmt.Fprintf(out, "  and for %s more\n", moorage.Counted(len(reasons)-i, "reason"))
			break
		}
		fmt.Fprintf(out, "  stays    %s: %s\n", moorage.Counted(number[why], "snapshot"), why)
	}
}

func writeKept(out io.Writer, all []client.MaintenanceKept) {
	for _, kept := range all {
		fmt.Fprintf(out, "  kept %s: %s\n", moorage.Counted(int(kept.Files), "file"), kept.Reason)
	}
}

// writeRuns prints jobs that have ended.
func writeRuns(out io.Writer, runs []client.MaintenanceRun) {
	for _, run := range runs {
		fmt.Fprintf(out, "%s %s %s: %s; %s deleted\n", run.Ended.UTC().Format(time.RFC3339), run.Kind, run.Outcome,
			moorage.Counted(int(run.Snapshots), "snapshot"), moorage.Counted(int(run.Files), "file"))
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
	files := moorage.Counted(int(job.Files), "file")
	if job.State == registry.StateCollecting.String() {
		files = "files that are being looked for"
	}
	if !job.NotBefore.IsZero() { // otherwise the job deletes no files
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

// writeLeftovers prints a plan of a warehouse.
func writeLeftovers(out io.Writer, plan client.MaintenancePlan) {
	more := ""
	if plan.More {
		more = ", and more"
	}
	fmt.Fprintf(out, "%s: %s outside of all tables and views%s, %s; this read %s, %s\n", plan.Object,
		moorage.Counted(int(plan.Files), "file"), more, moorage.Counted(int(plan.Bytes), "byte"),
		moorage.Counted(int(plan.Manifests), "manifest"), moorage.Counted(int(plan.ReadBytes), "byte"))
	for _, path := range plan.Sample {
		fmt.Fprintf(out, "  %s\n", path)
	}
	writeKept(out, plan.Kept)
	for _, folder := range plan.LeftOut {
		fmt.Fprintf(out, "  left out %s: another warehouse\n", folder)
	}
	fmt.Fprintln(out, "Nothing was deleted. Tables of other catalogs that have files here, and their metadata "+
		"elsewhere, are not known: look before you delete.")
}
