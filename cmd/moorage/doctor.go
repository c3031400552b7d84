package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"moorage"
	"moorage/internal/cli"
	"moorage/internal/term"
	"moorage/management/client"
	"moorage/registry/pebble"
)

// examine calls visit for each finding, and first for the one about the clock of this machine. If
// deep is true, it requests a deep examination.
func examine(ctx context.Context, server *client.Client, deep bool, visit func(client.Finding)) error {
	var answered time.Time
	asked := client.Request{
		Method: http.MethodGet, Path: client.Path("doctor"), Query: url.Values{"deep": {strconv.FormatBool(deep)}},
		Date: &answered,
	}
	isFirst := true
	return client.Pages(ctx, server, asked, func(page client.FindingsPage) bool {
		if isFirst && !answered.IsZero() {
			visit(clientClock(time.Since(answered)))
		}
		isFirst = false
		for _, finding := range page.Findings {
			visit(finding)
		}
		return true
	})
}

// diagnose prints all findings. The exit code is cli.ExitNo if a finding is bad.
func diagnose(ctx context.Context, c cli.Config, env cli.Environment) error {
	bad := 0
	bar := term.StartProgress(env.Stderr, env.Environ, "doctor", 0)
	defer bar.End()
	out := bar.Over(env.Stdout)
	err := withServer(ctx, c, env, func(server *client.Client) error {
		return examine(ctx, server, c.Deep, func(found client.Finding) {
			printFinding(out, found)
			if found.Level == client.LevelBad {
				bad++
			}
		})
	})
	bar.End()
	switch {
	case err != nil:
		return err
	case bad > 0:
		return cli.No("%s", moorage.Counted(bad, "bad finding"))
	}
	fmt.Fprintln(env.Stdout, "nothing is bad")
	return nil
}

// clientClock returns the finding about the clock of this machine. ahead is its lead over the
// server's clock. The server's answer is in whole seconds.
func clientClock(ahead time.Duration) client.Finding {
	finding := client.Finding{
		Level: client.LevelOK, What: "clock here", Fact: fmt.Sprintf("within %s of the server's",
			max(time.Second, ahead.Abs().Round(time.Second))),
	}
	if ahead.Abs() > clocksApart {
		finding.Level = client.LevelWarn
		finding.Fact = fmt.Sprintf("%s %s the server's", ahead.Abs().Round(time.Second),
			map[bool]string{true: "ahead of", false: "behind"}[ahead > 0])
		finding.Remedy = "Synchronise both clocks, as with NTP: storages refuse requests that are signed minutes off"
	}
	return finding
}

// printFinding prints a finding, and its remedy on a second line.
func printFinding(out io.Writer, found client.Finding) {
	what := found.What
	if found.ID != "" {
		what = found.ID + " " + what
	}
	fmt.Fprintf(out, "%-5s %s: %s\n", found.Level, moorage.OneLine(what), moorage.OneLine(found.Fact))
	if found.Remedy != "" {
		fmt.Fprintf(out, "      %s\n", moorage.OneLine(found.Remedy))
	}
}

// doctorPath returns the path of an action on the transaction, purge or job named in a command.
func doctorPath(action string) path {
	return func(c cli.Config) (string, url.Values) { return client.Path("doctor", c.Operand, action), nil }
}

// retry retries one transaction, purge or job, or all that are bad. A failed retry does not stop
// the others.
func retry(ctx context.Context, c cli.Config, env cli.Environment) error {
	return withServer(ctx, c, env, func(server *client.Client) error {
		if c.Operand != cli.Everything {
			retried, err := retryOne(ctx, server, c.Operand)
			if err == nil {
				fmt.Fprintln(env.Stdout, describeRetried(retried))
			}
			return err
		}
		var ids []string
		err := examine(ctx, server, false, func(found client.Finding) {
			if found.Level == client.LevelBad && found.ID != "" {
				ids = append(ids, found.ID)
			}
		})
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			fmt.Fprintln(env.Stdout, "nothing was given up")
		}
		var failures []error
		for _, id := range ids {
			if retried, err := retryOne(ctx, server, id); err != nil {
				failures = append(failures, fmt.Errorf("%s: %w", id, err))
			} else {
				fmt.Fprintf(env.Stdout, "%s  %s\n", id, describeRetried(retried))
			}
		}
		return errors.Join(failures...)
	})
}

func retryOne(ctx context.Context, server *client.Client, id string) (retried client.Retried, err error) {
	err = server.Do(ctx, client.Request{Method: http.MethodPost, Path: client.Path("doctor", id, "retry")}, &retried)
	return retried, err
}

func describeRetried(r client.Retried) string {
	switch {
	case r.Ended:
		return "the transaction is ended; nothing is left of it"
	case r.Kind == client.KindTransaction:
		return "the servers try the transaction again; the first attempt: " + moorage.OneLine(r.Reason)
	}
	return "the servers try the " + r.Kind + " again"
}

func printAborted(out io.Writer, _ cli.Config, a client.Aborted) error {
	switch {
	case a.Kind == client.KindJob:
		fmt.Fprintf(out, "the job, which was %s, is cancelled; the files that it has not deleted stay\n", a.Was)
	case !a.Forgotten:
		fmt.Fprintln(out, "the transaction is aborted; the servers delete its files")
	default:
		fmt.Fprintf(out, "the transaction, which was %s, is forgotten; %s of it may be left\n",
			a.Was, moorage.Counted(len(a.Left), "file"))
	}
	for _, file := range a.Left {
		fmt.Fprintln(out, file)
	}
	return nil
}

// forget makes the store forget all files that it planned to delete. It changes the store directly,
// not through a catalog, which might refuse the store's records. No server may run on the store.
func forget(ctx context.Context, c cli.Config, env cli.Environment) (err error) {
	store, err := openStoppedStore(ctx, c, stoppedLogger(env))
	if errors.Is(err, pebble.ErrLocked) {
		return fmt.Errorf("%w: stop the server first", err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	off, err := cancelDeletions(ctx, store)
	if err == nil {
		fmt.Fprintf(env.Stdout, "%s forgotten, %s called off; files that they would have deleted are left over\n",
			moorage.Counted(off.Transactions, "transaction"), moorage.Counted(off.Purges, "purge"))
	}
	return err
}
