package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"moorage/internal/cli"
	"moorage/internal/worker"
	"moorage/management/client"
)

const (
	// workWait is how long one request waits for something to be due.
	workWait = time.Minute
	// workRest is the pause after a request that failed.
	workRest = 5 * time.Second
	// workErrorMax bounds what the server is told about a failure.
	workErrorMax = 500
)

// maintainWork claims work and runs a program for each piece, until ctx ends.
func maintainWork(ctx context.Context, c cli.Config, env cli.Environment) error {
	server, words := client.New(c.URI, c.Token), c.Maintain
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
			continue
		}
		if ctx.Err() == nil {
			fmt.Fprintln(env.Stderr, err)
		}
		worker.Sleep(ctx, workRest)
	}
	return nil
}

// workOnce does one piece of work; found is false if nothing was due.
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
	// The request may have waited: only a renewal says when the life of the lease began.
	began := time.Now()
	if _, err := server.ProgressWork(ctx, piece.Job); err != nil {
		return true, err
	}
	settings, err := json.Marshal(piece.Settings)
	if err != nil {
		return true, err
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
	failure := runLeased(held, uri, cli.LeaseWords{
		Warehouse: piece.Warehouse, Namespace: piece.Namespace, Table: piece.Name, Exec: words.Exec,
	}, lease, env)
	lose(nil)
	<-renewed
	end := client.WorkEnd{Outcome: "done"}
	if failure != nil {
		end = client.WorkEnd{Outcome: "failed", Error: failure.Error()[:min(len(failure.Error()), workErrorMax)]}
	}
	within, stop := context.WithTimeout(context.WithoutCancel(ctx), leaseRelease)
	defer stop()
	if err := errors.Join(failure, server.FinishWork(within, piece.Job, end)); err != nil {
		return true, err
	}
	table := client.Object{Warehouse: piece.Warehouse, Namespace: piece.Namespace, Table: piece.Name}
	fmt.Fprintf(env.Stdout, "%s of %s: done\n", piece.Kind, table)
	return true, nil
}
