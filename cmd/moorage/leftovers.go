package main

import (
	"context"
	"fmt"
	"io"

	"moorage"
	"moorage/internal/cli"
	"moorage/management/client"
	"moorage/registry"
)

// maintainLeftovers looks for files outside of all tables of a warehouse. With --run it makes a job
// that deletes them.
func maintainLeftovers(ctx context.Context, c cli.Config, env cli.Environment) error {
	words := c.Maintain
	words.Kind, words.Table = cli.KindOrphans, client.Object{Warehouse: words.Outside}
	asked := byHandOf(words)
	if !words.Run {
		return care(ctx, c, env, func(a caretakers) error {
			plan, err := a.PlanMaintenance(ctx, asked)
			if err == nil {
				writePlan(env.Stdout, plan)
			}
			return err
		})
	}
	asked.Sample = 0
	if c.URI != "" {
		return care(ctx, c, env, func(a caretakers) error { return runLeftovers(ctx, a, env.Stdout, asked, nil) })
	}
	return orAsk(withStopped(ctx, c, env, func(n *node) error {
		step := func(ctx context.Context, job string) error { return stepJob(ctx, n, job) }
		return runLeftovers(ctx, n.upkeep.caretaker(moorage.System(whoOpened)), env.Stdout, asked, step)
	}))
}

// runLeftovers begins the job, takes its first step unless step is nil, and prints it.
func runLeftovers(ctx context.Context, a caretakers, out io.Writer, asked client.MaintenanceByHand,
	step func(ctx context.Context, job string) error) error {
	begun, err := a.RunMaintenance(ctx, asked)
	if err != nil {
		return err
	}
	if step != nil {
		if err := step(ctx, begun.Job); err != nil {
			return err
		}
	}
	for page := (client.Page{Limit: 1000}); ; {
		jobs, next, err := a.MaintenanceJobs(ctx, page)
		if err != nil {
			return err
		}
		for _, job := range jobs {
			if job.ID == begun.Job {
				writeJob(out, job)
				return nil
			}
		}
		if page.After = next; next == "" {
			fmt.Fprintf(out, "%s: the job has ended, and found no file\n", asked.Object)
			return nil
		}
	}
}

// stepJob takes the job with an id as far as it goes.
func stepJob(ctx context.Context, n *node, id string) error {
	found, _, err := n.care.List(ctx, registry.ID{}, "", 0)
	if err != nil {
		return err
	}
	for _, job := range found {
		if job.ID.String() == id {
			return n.care.Step(ctx, registry.JobKey(job.Pointer, job.Kind))
		}
	}
	return nil
}
