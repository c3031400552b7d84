package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"moorage/locks"
	"moorage/registry/postgres"
)

// nodeLocks is what orders the operations of a node, and of the other nodes if there can be any.
type nodeLocks struct {
	locks.Manager
	close func() error
}

// openLocks returns locks in the process for a store that has one process, and locks that nodes share for a
// database. What they do is measured in metrics.
func openLocks(ctx context.Context, c config, metrics prometheus.Registerer, logger *slog.Logger) (nodeLocks, error) {
	observer := newLockMetrics(metrics)
	if !c.inDatabase() {
		return nodeLocks{locks.NewLocal(locks.LocalConfig{Observer: observer}), func() error { return nil }}, nil
	}
	leases, err := postgres.OpenLeases(ctx, c.Store)
	if err != nil {
		return nodeLocks{}, err
	}
	manager := locks.NewCoalesced(locks.NewDistributed(locks.DistributedConfig{
		Leases: meterLeases(leases, metrics), Name: nodeName(), Jitter: newJitter(), Random: rand.Reader, Observer: observer, Logger: logger,
	}))
	return nodeLocks{manager, func() error { return closeShared(manager.Close, leases.Close) }}, nil
}

// leavePatience is how long a node that ends waits until the others know that it gives back its locks. If the database
// stands still they find out without it.
const leavePatience = 2 * time.Second

// closeShared calls leave, then shut; after leavePatience shut at once, which ends what leave waits for.
func closeShared(leave func(), shut func() error) error {
	var leaving sync.WaitGroup
	left := make(chan struct{})
	leaving.Go(func() {
		defer close(left)
		leave()
	})
	patience := time.NewTimer(leavePatience)
	defer patience.Stop()
	select {
	case <-left:
	case <-patience.C:
	}
	err := shut()
	leaving.Wait()
	return err
}

// nodeName says in the store which process has a lock.
func nodeName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

// newJitter returns a source of chance for pauses, in which no two nodes may be in step.
func newJitter() *mathrand.Rand {
	var seed [16]byte
	rand.Read(seed[:])
	return mathrand.New(mathrand.NewPCG(binary.BigEndian.Uint64(seed[:8]), binary.BigEndian.Uint64(seed[8:])))
}
