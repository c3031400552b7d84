package soak

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"moorage/testkit/servers"
)

const (
	// takeoverWithin bounds a change through another node after one was killed or paused. Waiters
	// skip a session that has been silent for 3 s; the rest is slack for a busy machine.
	takeoverWithin = 8 * time.Second
	// takeoverClients clients create and drop tables through the node that is lost. takeoverDrops
	// tables are then dropped through another node.
	takeoverClients = 16
	takeoverDrops   = 32
	// busyFor is the clients' time before the node is lost.
	busyFor = time.Second
	// triesMax is the number of attempts at what takes too long.
	triesMax = 3
	// pausedFor is the length of a node's pause.
	pausedFor = 10 * time.Second
)

// errLate means that everything was done, but later than it should be.
var errLate = errors.New("late")

// inTime calls do until its error is not errLate, a few times: the machine itself may be slow.
func inTime(do func() error) (err error) {
	for range triesMax {
		if err = do(); !errors.Is(err, errLate) {
			return err
		}
	}
	return err
}

// restart kills and restarts a node. It returns an error if that takes longer than within.
func (w *world) restart(ctx context.Context, n *node, within time.Duration) error {
	return inTime(func() error {
		n.process.Kill()
		began := time.Now()
		err := n.start(ctx)
		if took := time.Since(began); err == nil && took > within {
			err = fmt.Errorf("%w: a node took %s to start", errLate, took)
		}
		return err
	})
}

// singleKilled (12): the node over the embedded store is killed while it commits.
// BenchmarkApplyToLarge in registry/pebble measures the cost of its commits over many changes; here
// it is only under continuous load.
func singleKilled(ctx context.Context, w *world) (func(context.Context) error, error) {
	return nil, w.restart(ctx, w.single, startsWithin)
}

// nodeKilled (takeover): the locks of a killed node are free within seconds.
func nodeKilled(ctx context.Context, w *world) (func(context.Context) error, error) {
	lost := w.nodes[1+w.random.IntN(nodesCount-1)]
	return w.loseNode(ctx, lost, func() error {
		lost.process.Kill()
		return nil
	}, func() error { return lost.start(ctx) })
}

// nodePaused (takeover): the locks of a paused node are free within seconds, and the node does no
// harm when it resumes.
func nodePaused(ctx context.Context, w *world) (func(context.Context) error, error) {
	lost := w.nodes[w.random.IntN(nodesCount)]
	began := time.Now()
	return w.loseNode(ctx, lost, func() error {
		began = time.Now()
		return lost.process.Pause()
	}, func() error {
		_ = pause(ctx, pausedFor-time.Since(began))
		return lost.process.Resume()
	})
}

// loseNode takes down a node through which clients create and drop tables. It times drops in the
// same namespace through another node, and brings the first one back.
func (w *world) loseNode(ctx context.Context, lost *node, lose, back func() error) (func(context.Context) error, error) {
	var cleanups []func(context.Context) error
	err := inTime(func() error {
		cleanup, err := w.loseNodeOnce(ctx, lost, lose, back)
		if cleanup != nil {
			cleanups = append(cleanups, cleanup)
		}
		return err
	})
	return func(ctx context.Context) error {
		var errs []error
		for _, cleanup := range cleanups {
			errs = append(errs, cleanup(ctx))
		}
		return errors.Join(errs...)
	}, err
}

// loseNodeOnce is like loseNode. Its error is errLate if the drops were only late.
func (w *world) loseNodeOnce(ctx context.Context, lost *node, lose, back func() error) (func(context.Context) error, error) {
	other := w.nodes[0]
	if other == lost {
		other = w.nodes[1]
	}
	namespace := w.name("takeover")
	if a := other.client.CreateNamespace(ctx, namespace); a.Outcome != servers.Acknowledged {
		return nil, fmt.Errorf("create %s: %d %s", namespace, a.Status, a.Text)
	}
	for n := range takeoverDrops {
		if a := other.client.Create(ctx, namespace, fmt.Sprintf("drop%d", n), nil); a.Outcome != servers.Acknowledged {
			return nil, fmt.Errorf("create a table: %d %s", a.Status, a.Text)
		}
	}
	busy, idle := context.WithCancel(ctx)
	var clients sync.WaitGroup
	for n := range takeoverClients {
		clients.Go(func() {
			for i := 0; busy.Err() == nil; i++ {
				name := fmt.Sprintf("busy%d_%d", n, i)
				lost.client.Create(busy, namespace, name, nil)
				lost.client.Drop(busy, namespace, name, true)
			}
		})
	}
	_ = pause(ctx, busyFor)
	err := lose()
	if err == nil {
		err = dropAll(ctx, other, namespace)
	}
	idle()
	clients.Wait()
	if failed := back(); failed != nil {
		return nil, fmt.Errorf("%w; before: %v", failed, err) // not errLate
	}
	return func(ctx context.Context) error { return w.clear(ctx, namespace) }, err
}

// dropAll drops tables in parallel. Its error is errLate if all were dropped, but some too late.
func dropAll(ctx context.Context, n *node, namespace string) error {
	errs, took := make([]error, takeoverDrops), make([]time.Duration, takeoverDrops)
	var group sync.WaitGroup
	for i := range takeoverDrops {
		group.Go(func() {
			began := time.Now()
			a := n.client.Drop(ctx, namespace, fmt.Sprintf("drop%d", i), true)
			took[i] = time.Since(began)
			if a.Outcome != servers.Acknowledged {
				errs[i] = fmt.Errorf("a drop through another node: %d %s after %s", a.Status, a.Text, took[i])
			}
		})
	}
	group.Wait()
	if longest := slices.Max(took); longest > takeoverWithin && errors.Join(errs...) == nil {
		return fmt.Errorf("%w: a drop through another node took %s", errLate, longest)
	}
	return errors.Join(errs...)
}
