package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"moorage/internal/cli"
	"moorage/management/client"
)

// maintainLeftovers prints which files of a warehouse lie outside of all tables and views. It fails
// if that is unknown.
func maintainLeftovers(ctx context.Context, c cli.Config, env cli.Environment) error {
	words := c.Maintain
	seconds := int64(words.OlderThan / time.Second)
	return care(ctx, c, env, func(a caretakers) error {
		plan, err := a.PlanMaintenance(ctx, client.MaintenanceByHand{
			Object: client.Object{Warehouse: words.Outside}, Kind: cli.KindOrphans, Sample: words.Sample,
			Settings: &client.MaintenanceSettingsByHand{OlderThanSeconds: &seconds, Unsafe: words.Unsafe},
		})
		if err != nil {
			return err
		}
		if plan.Blocked != "" {
			return errors.New("the report would not be whole, so it names no file: " + plan.Blocked)
		}
		writeLeftovers(env.Stdout, plan)
		return nil
	})
}

// writeLeftovers prints a plan of a warehouse.
func writeLeftovers(out io.Writer, plan client.MaintenancePlan) {
	more := ""
	if plan.More {
		more = ", and more"
	}
	fmt.Fprintf(out, "%s: %s outside of all tables and views%s, %s; this read %s, %s\n", plan.Object,
		counted(int(plan.Files), "file"), more, counted(int(plan.Bytes), "byte"),
		counted(int(plan.Manifests), "manifest"), counted(int(plan.ReadBytes), "byte"))
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
