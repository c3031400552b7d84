package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"moorage/internal/cli"
	"moorage/management/client"
)

const (
	// leaseRelease is the time for which a command waits at its end for the release of its lease.
	// Without a release, the lease ends by itself.
	leaseRelease = 5 * time.Second
	// leaseFarewell is the time between SIGTERM and the kill of a program.
	leaseFarewell = 10 * time.Second
	// renewalsInTTL is the number of renewals during one lifetime of a lease, so that one renewal
	// may fail.
	renewalsInTTL = 3
	// levelSeparator joins the levels of a namespace, as in paths of the REST specification.
	levelSeparator = "\x1f"
)

// errLeaseLost is the reason to end a program: another process may already have the lease.
var errLeaseLost = errors.New("the lease was lost, and the program was ended; " +
	"commits that named the lease were refused since")

// leaseRun runs a program under a lease.
func leaseRun(ctx context.Context, c cli.Config, env cli.Environment) (err error) {
	server, words := serverOf(c), c.Lease
	if words.Holder == "" {
		words.Holder = fmt.Sprintf("%s %d", nodeName(), os.Getpid())
	}
	began := time.Now()
	lease, err := server.TakeLease(ctx, client.LeaseRequest{
		Warehouse: words.Warehouse, Namespace: words.Namespace, Name: words.Table, Scope: words.Scope,
		Holder: words.Holder, TTLSeconds: int(words.TTL.Seconds()), WaitSeconds: int(words.Wait.Seconds()),
	})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseRelease)
		defer cancel()
		err = errors.Join(err, server.ReleaseLease(ctx, lease.Lease))
	}()
	held, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		renewLease(held, server, lease.Lease, words.TTL, began, lose)
	}()
	err = runLeased(held, c.URI, words, lease, env)
	lose(nil)
	<-renewed
	return err
}

// renewLease renews a lease until ctx ends. If the lease is lost, or cannot be renewed in time,
// renewLease ends ctx. began is the time at which the lease's present lifetime began.
func renewLease(ctx context.Context, server *client.Client, lease string, ttl time.Duration, began time.Time,
	lose context.CancelCauseFunc) {
	tick := time.NewTicker(ttl / renewalsInTTL)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		asked := time.Now()
		within, stop := context.WithDeadline(ctx, began.Add(ttl))
		renewal, err := server.RenewLeases(within, lease)
		stop()
		switch {
		case err == nil && len(renewal.Lost) > 0, time.Since(began) >= ttl:
			lose(errLeaseLost)
			return
		case err == nil:
			began = asked
		}
	}
}

// job is the content of the file in MOORAGE_JOB.
type job struct {
	URI       string   `json:"uri"`
	Warehouse string   `json:"warehouse"`
	Namespace []string `json:"namespace"`
	Name      string   `json:"name"`
	TableUUID string   `json:"table-uuid"`
	Lease     string   `json:"lease"`
}

// runLeased runs the program until the program or ctx ends. The program gets the names of the table
// and the lease in its environment and in a file, never through a shell.
func runLeased(ctx context.Context, uri string, words cli.LeaseWords, lease client.Lease,
	env cli.Environment) (err error) {
	file, err := os.CreateTemp("", "moorage-job-*.json")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(file.Name())) }()
	err = json.NewEncoder(file).Encode(job{
		uri, words.Warehouse, words.Namespace, words.Table, lease.TableUUID, lease.Lease,
	})
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	program := exec.CommandContext(ctx, words.Exec)
	program.Cancel = func() error { return program.Process.Signal(syscall.SIGTERM) }
	program.WaitDelay = leaseFarewell
	program.Stdout, program.Stderr = env.Stdout, env.Stderr
	program.Env = append(slices.Clone(env.Environ),
		"MOORAGE_URI="+uri, "MOORAGE_WAREHOUSE="+words.Warehouse,
		"MOORAGE_NAMESPACE="+strings.Join(words.Namespace, levelSeparator), "MOORAGE_TABLE="+words.Table,
		"MOORAGE_LEASE="+lease.Lease, "MOORAGE_JOB="+file.Name())
	err = program.Run()
	if errors.Is(context.Cause(ctx), errLeaseLost) {
		return errLeaseLost
	}
	if err != nil {
		return fmt.Errorf("%s: %w", words.Exec, err)
	}
	return nil
}
