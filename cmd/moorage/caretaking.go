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
)

// caretakers carries out maintenance commands: maintenance of this process, or a running server.
type caretakers interface {
	MaintenancePolicy(ctx context.Context, object client.Object, of string) (client.MaintenancePolicy, error)
	PutMaintenancePolicy(ctx context.Context, object client.Object, of string, said client.MaintenancePolicy) error
	DeleteMaintenancePolicy(ctx context.Context, object client.Object, of string) error
	PreviewMaintenancePolicy(ctx context.Context, object client.Object, of string, said client.MaintenancePolicy,
		page client.Page) ([]client.MaintenancePreview, string, error)
	MaintenanceStatus(ctx context.Context, object client.Object) (client.MaintenanceStatus, error)
	PauseMaintenance(ctx context.Context, change client.MaintenanceChange) error
	ResumeMaintenance(ctx context.Context, change client.MaintenanceChange) error
	RescanMaintenance(ctx context.Context, change client.MaintenanceChange) error
	RunMaintenance(ctx context.Context, asked client.MaintenanceByHand) (client.MaintenanceBegun, error)
	PlanMaintenance(ctx context.Context, asked client.MaintenanceByHand) (client.MaintenancePlan, error)
	AdoptOrphans(ctx context.Context, warehouse string) (client.MaintenanceAdopted, error)
	MaintenanceJobs(ctx context.Context, page client.Page) ([]client.MaintenanceJob, string, error)
	MaintenanceFiles(ctx context.Context, job string, page client.Page) ([]string, string, error)
	ChangeMaintenanceJob(ctx context.Context, asked client.MaintenanceJobChange) error
	MaintenanceBlockers(ctx context.Context, page client.Page) ([]client.MaintenanceBlocker, string, error)
}

// care runs do on the server at c.URI, or on the store.
func care(ctx context.Context, c cli.Config, env cli.Environment, do func(caretakers) error) error {
	if c.URI != "" {
		return do(client.MaintenanceOf(serverOf(c)))
	}
	return orAsk(withStopped(ctx, c, env, func(n *node) error {
		return do(n.maintenance.caretaker(moorage.System(whoOpened)))
	}))
}

// maintainPolicy carries out all commands about the maintenance of an object.
func maintainPolicy(ctx context.Context, c cli.Config, env cli.Environment) error {
	object, kind := c.Maintain.Table, policy.Kind(c.Maintain.Kind)
	of, _ := policy.TypeOf(kind)
	change := client.MaintenanceChange{Object: object, Reason: c.Maintain.Reason}
	return care(ctx, c, env, func(a caretakers) (err error) {
		switch c.Maintain.Change {
		case "enable":
			err = enableMaintenance(ctx, a, c, env.Stdout, of)
			if c.Maintain.DryRun {
				return err
			}
		case "disable":
			no := client.MaintenancePolicy{Status: string(policy.Disabled)}
			if err = a.PutMaintenancePolicy(ctx, object, string(of), no); err == nil {
				fmt.Fprintln(env.Stdout, "jobs that have begun go on; see moorage maintain jobs")
			}
		case "inherit":
			err = a.DeleteMaintenancePolicy(ctx, object, string(of))
		case "pause":
			err = a.PauseMaintenance(ctx, change)
		case "resume":
			err = resumeMaintenance(ctx, a, change, env.Stdout)
		case "rescan":
			err = a.RescanMaintenance(ctx, change)
		case "now":
			_, err = a.RunMaintenance(ctx, client.MaintenanceByHand{Object: object, Kind: string(kind)})
		default:
			status, err := a.MaintenanceStatus(ctx, object)
			if err == nil {
				writeMaintenance(env.Stdout, status)
			}
			return err
		}
		if err == nil {
			fmt.Fprintln(env.Stdout, "done")
		}
		return err
	})
}

// enableMaintenance prints what maintenance would do, and enables it unless it is a dry run.
func enableMaintenance(ctx context.Context, a caretakers, c cli.Config, out io.Writer, of policy.Type) error {
	said := client.MaintenancePolicy{Status: string(policy.Enabled), Unsafe: c.Maintain.Unsafe}
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
		said.Settings = map[string]client.MaintenanceSettings{string(of): settings}
	}
	err := writePreview(ctx, a, out, c.Maintain, string(of), said)
	if err != nil || c.Maintain.DryRun {
		return err
	}
	if err := a.PutMaintenancePolicy(ctx, c.Maintain.Table, string(of), said); err != nil {
		return err
	}
	// Earlier settings are gone unless they were given again. A caller that may set the policy may
	// lack the right to read it.
	status, err := a.MaintenanceStatus(ctx, c.Maintain.Table)
	switch {
	case isUnseen(err):
	case err != nil:
		return fmt.Errorf("it is enabled, and what is said of it cannot be read: %w", err)
	default:
		writeSaid(out, status)
	}
	return nil
}

// isUnseen reports whether err means that the caller may not see an object.
func isUnseen(err error) bool {
	if answered, ok := errors.AsType[*client.Error](err); ok {
		switch answered.Code {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
			return true
		}
		return false
	}
	switch moorage.KindOf(err) {
	case moorage.KindNotAuthorized, moorage.KindForbidden, moorage.KindNoSuchWarehouse, moorage.KindNoSuchNamespace,
		moorage.KindNoSuchTable:
		return true
	}
	return false
}

// writeMaintenance prints the state of an object's maintenance.
func writeMaintenance(out io.Writer, status client.MaintenanceStatus) {
	for _, pause := range status.Pauses {
		writePause(out, "paused", pause)
	}
	writeSaid(out, status)
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
	writeRuns(out, status.Runs)
	if len(status.Pauses)+len(status.Policies)+len(status.Kinds) == 0 {
		fmt.Fprintf(out, "%s says nothing\n", status.Object)
	}
}

// writePause prints a pause, after words about what happened to it.
func writePause(out io.Writer, words string, pause client.MaintenancePause) {
	fmt.Fprintf(out, "%s since %s", words, pause.Since.UTC().Format(time.RFC3339))
	if pause.By != "" { // otherwise the store was restored
		fmt.Fprintf(out, " by %s", pause.By)
	}
	fmt.Fprintf(out, " on %s: %s\n", pause.Object, pause.Reason)
}

// writeSaid prints the policies of an object itself.
func writeSaid(out io.Writer, status client.MaintenanceStatus) {
	for _, of := range slices.Sorted(maps.Keys(status.Policies)) {
		said := status.Policies[of]
		fmt.Fprintf(out, "%s says: %s %s", status.Object, of, said.Status)
		for _, name := range slices.Sorted(maps.Keys(said.Settings[of])) {
			fmt.Fprintf(out, " %s=%s", name, said.Settings[of][name])
		}
		fmt.Fprintln(out)
	}
}

// resumeMaintenance ends the pause of an object. If the caller may see the object, it prints
// whether there was no pause, and which scopes around the object are still paused.
func resumeMaintenance(ctx context.Context, a caretakers, change client.MaintenanceChange, out io.Writer) error {
	status, unseen := a.MaintenanceStatus(ctx, change.Object)
	if err := a.ResumeMaintenance(ctx, change); err != nil || isUnseen(unseen) {
		return err
	}
	if unseen != nil {
		return fmt.Errorf("it is resumed, and what else is paused cannot be read: %w", unseen)
	}
	own := change.Object.String()
	others := slices.DeleteFunc(slices.Clone(status.Pauses), func(pause client.MaintenancePause) bool {
		return pause.Object.String() == own
	})
	if len(others) == len(status.Pauses) {
		fmt.Fprintf(out, "%s was not paused itself\n", own)
	}
	for _, pause := range others {
		writePause(out, "still paused", pause)
	}
	return nil
}

// maintainBlockers prints what is blocked.
func maintainBlockers(ctx context.Context, c cli.Config, env cli.Environment) error {
	return care(ctx, c, env, func(a caretakers) error {
		blocked := 0
		for page := (client.Page{Limit: 1000}); ; {
			found, next, err := a.MaintenanceBlockers(ctx, page)
			if err != nil {
				return err
			}
			for _, b := range found {
				table := "a table that is gone"
				if b.Object != nil {
					table = b.Object.String()
				}
				fmt.Fprintf(env.Stdout, "%s of %s since %s: %s\n", b.Kind, table,
					b.Since.UTC().Format(time.RFC3339), b.Reason)
			}
			blocked += len(found)
			if page.After = next; next == "" {
				break
			}
		}
		if blocked == 0 {
			fmt.Fprintln(env.Stdout, "nothing is blocked")
			return nil
		}
		return errors.New(counted(blocked, "blocker"))
	})
}
