package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"moorage/internal/cli"
	"moorage/internal/worker"
	"moorage/management/client"
)

const (
	// workWait is the time for which one request waits for due work.
	workWait = time.Minute
	// workRest is the pause after a failed request.
	workRest = 5 * time.Second
	// workReleased is the outcome of work that the program did not finish, and that the command
	// therefore returns.
	workReleased = "released"
	// workErrorMax is the maximum length of the error text that the command sends to the server.
	workErrorMax = 500
)

// maintainWork claims work and runs a program for each piece, until ctx ends.
func maintainWork(ctx context.Context, c cli.Config, env cli.Environment) error {
	server, words := serverOf(c), c.Maintain
	what := strings.Join(words.Kinds, ", ") + " at " + c.URI
	if !words.Once {
		fmt.Fprintf(env.Stderr, "waiting until work is due: %s\n", what)
	}
	words.Holder = cmp.Or(words.Holder, fmt.Sprintf("%s %d", nodeName(), os.Getpid()))
	for ctx.Err() == nil {
		found, err := workOnce(ctx, server, c.URI, words, env)
		if words.Once {
			if err == nil && !found {
				fmt.Fprintln(env.Stdout, "nothing is due")
			}
			return err
		}
		if err == nil {
			if found && ctx.Err() == nil {
				fmt.Fprintf(env.Stderr, "waiting until more is due: %s\n", what)
			}
			continue
		}
		if ctx.Err() == nil {
			fmt.Fprintln(env.Stderr, err)
		}
		worker.Sleep(ctx, workRest)
	}
	return nil
}

// workOnce claims one piece of work and runs the program for it. found is false if nothing was due.
func workOnce(ctx context.Context, server *client.Client, uri string, words cli.MaintainWords, env cli.Environment) (
	found bool, err error) {
	request := client.WorkRequest{Kinds: words.Kinds, Holder: words.Holder, TTLSeconds: int(words.TTL.Seconds())}
	if !words.Once {
		request.WaitSeconds = int(workWait.Seconds())
	}
	piece, err := server.ClaimWork(ctx, request)
	if err != nil || piece.Job == "" {
		return false, err
	}
	table := client.Object{Warehouse: piece.Warehouse, Namespace: piece.Namespace, Table: piece.Name}
	end, failure := workOn(ctx, server, uri, words, env, piece)
	within, stop := context.WithTimeout(context.WithoutCancel(ctx), leaseRelease)
	defer stop()
	if err := errors.Join(failure, server.FinishWork(within, piece.Job, end)); err != nil {
		return true, err
	}
	if end.Outcome == workReleased {
		fmt.Fprintf(env.Stderr, "%s of %s: given back, because this command was stopped\n", piece.Kind, table)
		return true, nil
	}
	fmt.Fprintf(env.Stdout, "%s of %s: done\n", piece.Kind, table)
	return true, nil
}

// workOn runs the program for a piece of work, and returns the outcome. If ctx ends before the
// program, the outcome is workReleased, and failure is nil.
func workOn(ctx context.Context, server *client.Client, uri string, words cli.MaintainWords, env cli.Environment,
	piece client.Work) (end client.WorkEnd, failure error) {
	hasRun := false
	defer func() {
		switch {
		case failure == nil:
			end = client.WorkEnd{Outcome: "done"}
		case ctx.Err() != nil:
			end, failure = client.WorkEnd{Outcome: workReleased, Error: "the command was stopped"}, nil
		case !hasRun:
			end = client.WorkEnd{Outcome: workReleased, Error: "the program was not run"}
		default:
			text := failure.Error()
			end = client.WorkEnd{Outcome: "failed", Error: text[:min(len(text), workErrorMax)]}
		}
	}()
	// The request for work may have waited, so the start of the lease's lifetime is unknown. A
	// renewal now makes it known.
	began := time.Now()
	if _, err := server.ProgressWork(ctx, piece.Job); err != nil {
		return end, err
	}
	settings, err := json.Marshal(piece.Settings)
	if err != nil {
		return end, err
	}
	held, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		renewLease(held, server, piece.Lease.Lease, words.TTL, began, lose)
	}()
	lease := piece.Lease
	lease.TableUUID = piece.TableUUID
	env.Environ = append(env.Environ[:len(env.Environ):len(env.Environ)],
		"MOORAGE_KIND="+piece.Kind, "MOORAGE_SETTINGS="+string(settings))
	hasRun = true
	failure = runLeased(held, uri, cli.LeaseWords{
		Warehouse: piece.Warehouse, Namespace: piece.Namespace, Table: piece.Name, Exec: words.Exec,
	}, lease, env)
	lose(nil)
	<-renewed
	return end, failure
}
