package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
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
	// announce tells the other nodes that this one listens on an address, and ends the session of the
	// process that did before.
	announce func(address net.Addr)
	// withdraw takes that back before the node stops listening, so that the process that does next
	// leaves this one its locks.
	withdraw func()
	close    func() error
}

// openLocks returns locks in the process for a store that has one process, and locks that nodes share for a
// database. What they do is measured in metrics.
func openLocks(ctx context.Context, c config, metrics prometheus.Registerer, logger *slog.Logger) (nodeLocks, error) {
	observer := newLockMetrics(metrics)
	if !c.inDatabase() {
		return nodeLocks{locks.NewLocal(locks.LocalConfig{Observer: observer}), func(net.Addr) {}, func() {}, func() error { return nil }}, nil
	}
	leases, err := postgres.OpenLeases(ctx, c.Store)
	if err != nil {
		return nodeLocks{}, err
	}
	manager := locks.NewCoalesced(locks.NewDistributed(locks.DistributedConfig{
		Leases: meterLeases(leases, metrics), Name: nodeName(), Version: version(), Jitter: newJitter(), Random: rand.Reader, Observer: observer, Logger: logger,
	}))
	return nodeLocks{
		Manager:  manager,
		announce: func(address net.Addr) { manager.Announce(nodeAddress(address), hostIdentity()) },
		withdraw: func() { withdraw(manager, logger) },
		close:    func() error { return closeShared(manager.Close, leases.Close) },
	}, nil
}

// leavePatience is how long a node that ends waits until the others know that it withdraws, and that it gives back its locks. If the database
// stands still they find out without it.
const leavePatience = 2 * time.Second

// withdraw takes back what manager has announced.
func withdraw(manager *locks.Coalesced, logger *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), leavePatience)
	defer cancel()
	if err := manager.Withdraw(ctx); err != nil {
		logger.Warn("a process that listens on this address next may take the locks of what is still under way", "error", err)
	}
}

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
	return fmt.Sprintf("%s:%d", hostName(), os.Getpid())
}

// nodeAddress says in the store where a process listens. The name of the machine is in it, because many listen on
// all its addresses, or on an address that others have too.
func nodeAddress(address net.Addr) string { return hostName() + "/" + address.String() }

// newJitter returns a source of chance for pauses, in which no two nodes may be in step.
func newJitter() *mathrand.Rand {
	var seed [16]byte
	rand.Read(seed[:])
	return mathrand.New(mathrand.NewPCG(binary.BigEndian.Uint64(seed[:8]), binary.BigEndian.Uint64(seed[8:])))
}
