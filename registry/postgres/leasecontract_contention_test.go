package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"moorage/internal/worker"
	"moorage/locks"
	"moorage/testkit/locktest"
)

// The sizes of the contention tests.
const (
	contenders = 8
	rounds     = 20
	places     = 3
	// takerAttemptsMax bounds the tries of one taker. A taker that needs more is starving.
	takerAttemptsMax = 100_000
)

// witness records which leases are held.
type witness struct {
	mu   sync.Mutex // guards the field below; leaf
	held map[string][]locks.Mode
}

// enter records a grant, and returns an error if it excludes another grant.
func (w *witness) enter(wants []want) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, wanted := range wants {
		for _, other := range w.held[wanted.path] {
			if !wanted.mode.Compatible(other) {
				return fmt.Errorf("%s %s was granted while %s is held", wanted.mode, wanted.path, other)
			}
		}
		w.held[wanted.path] = append(w.held[wanted.path], wanted.mode)
	}
	return nil
}

func (w *witness) leave(wants []want) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, left := range wants {
		modes := w.held[left.path]
		for i, mode := range modes {
			if mode == left.mode {
				w.held[left.path] = append(modes[:i:i], modes[i+1:]...)
				break
			}
		}
	}
}

// randomWants returns one or more random leases, sorted.
func randomWants(random *rand.Rand) []want {
	var wants []want
	for i := range places {
		if random.IntN(2) == 0 || (i == places-1 && len(wants) == 0) {
			wants = append(wants, want{locktest.Modes()[random.IntN(4)], fmt.Sprint("/w/", i)})
		}
	}
	return wants
}

// contender is the work of a session under contention. It runs in its own goroutine.
type contender func(ctx context.Context, n *node, random *rand.Rand) error

// contend runs body concurrently for several sessions.
func contend(t *testing.T, s leaseStore, body contender) {
	t.Helper()
	var nodes []*node
	for i := range contenders {
		nodes = append(nodes, s.begin(t, fmt.Sprint("node ", i)))
	}
	if err := together(t.Context(), nodes, body); err != nil {
		t.Fatal(err)
	}
}

// together runs body concurrently for each of nodes, waits for all, and returns the first error. An
// error ends the context of the others, because they may wait for leases that will never be given
// back.
func together(ctx context.Context, nodes []*node, body contender) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() {
			if err := body(ctx, n, rand.New(rand.NewPCG(1, uint64(i)))); err != nil {
				stop(fmt.Errorf("%s: %w", n.name, err))
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// No two concurrent sessions get leases that exclude each other.
func testExcludesUnderContention(t *testing.T, s leaseStore) {
	held := witness{held: make(map[string][]locks.Mode)}
	contend(t, s, held.tryOnce)
}

// tryOnce is a contender that requests each of its random wants once.
func (w *witness) tryOnce(ctx context.Context, n *node, random *rand.Rand) error {
	for range rounds {
		wants := randomWants(random)
		ids, blocked, err := n.ask(ctx, 0, wants)
		if err != nil {
			return err
		}
		if blocked >= 0 {
			continue
		}
		if err := w.enter(wants); err != nil {
			return err
		}
		lost, alive, err := n.leases.Renew(ctx, n.name, ids, ttl) // meanwhile, others can try
		if err != nil {
			return fmt.Errorf("renew: %w", err)
		}
		if len(lost) > 0 || !alive {
			return fmt.Errorf("renew: lost %v of %v, alive %t", lost, ids, alive)
		}
		w.leave(wants)
		if err := n.leases.Release(ctx, n.name, ids); err != nil {
			return fmt.Errorf("release: %w", err)
		}
	}
	return nil
}

// A session that repeats its request with the same ticket gets its leases, whatever the others do.
func testEverybodyGetsThrough(t *testing.T, s leaseStore) {
	held := witness{held: make(map[string][]locks.Mode)}
	contend(t, s, held.getThrough)
}

// getThrough is a contender that repeats each of its requests until it is granted.
func (w *witness) getThrough(ctx context.Context, n *node, random *rand.Rand) error {
	for range rounds {
		wants, ticket := randomWants(random), n.draw()
		ids, blocked, err := n.ask(ctx, ticket, wants)
		for tries := 1; err == nil && blocked >= 0; tries++ {
			if tries == takerAttemptsMax {
				return fmt.Errorf("%v after %d tries: still blocked", wants, tries)
			}
			worker.Sleep(ctx, time.Millisecond) // so that the number of tries does not depend on the machine
			ids, blocked, err = n.ask(ctx, ticket, wants)
		}
		if err != nil {
			return err
		}
		if err := w.enter(wants); err != nil {
			return err
		}
		w.leave(wants)
		if err := n.leases.Release(ctx, n.name, ids); err != nil {
			return fmt.Errorf("release: %w", err)
		}
	}
	return nil
}
