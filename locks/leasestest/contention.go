package leasestest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"moorage/locks"
)

// What the tests of contention run.
const (
	contenders = 8
	rounds     = 20
	places     = 3
	// triesMax bounds the tries of one taker: whoever needs more is being starved.
	triesMax = 100_000
)

// witness knows who holds what.
type witness struct {
	mu   sync.Mutex // guards the field below; leaf
	held map[string][]locks.Mode
}

// enter notes a grant, which is a fault if it excludes another.
func (w *witness) enter(t *testing.T, wants []want) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, wanted := range wants {
		for _, other := range w.held[wanted.path] {
			if !wanted.mode.Compatible(other) {
				t.Errorf("%s %s was granted while %s is held", wanted.mode, wanted.path, other)
			}
		}
		w.held[wanted.path] = append(w.held[wanted.path], wanted.mode)
	}
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

// randomWants returns one lease or more, sorted.
func randomWants(random *rand.Rand) []want {
	var wants []want
	for i := range places {
		if random.IntN(2) == 0 || (i == places-1 && len(wants) == 0) {
			wants = append(wants, want{locks.Modes()[random.IntN(4)], fmt.Sprint("/w/", i)})
		}
	}
	return wants
}

// contend runs body for each of several sessions at once.
func contend(t *testing.T, s Store, body func(n *node, random *rand.Rand)) {
	var all sync.WaitGroup
	for i := range contenders {
		n := s.begin(t, fmt.Sprint("node ", i))
		all.Go(func() { body(n, rand.New(rand.NewPCG(1, uint64(i)))) })
	}
	all.Wait()
}

// Of sessions that try at the same time no two get what excludes one another.
func testExcludesUnderContention(t *testing.T, s Store) {
	held := witness{held: make(map[string][]locks.Mode)}
	contend(t, s, func(n *node, random *rand.Rand) {
		for range rounds {
			wants := randomWants(random)
			ids, blocked := n.try(0, wants...)
			if blocked >= 0 {
				continue
			}
			held.enter(t, wants)
			if lost, alive := n.renew(ttl, ids...); len(lost) > 0 || !alive { // and lets others try meanwhile
				t.Errorf("%s: lost %v of %v, alive %t", n.name, lost, ids, alive)
			}
			held.leave(wants)
			n.release(ids...)
		}
	})
}

// Who keeps asking with one ticket gets what it asks for, whatever the others do.
func testEverybodyGetsThrough(t *testing.T, s Store) {
	held := witness{held: make(map[string][]locks.Mode)}
	contend(t, s, func(n *node, random *rand.Rand) {
		for range rounds {
			wants, ticket := randomWants(random), n.draw()
			ids, blocked := n.try(ticket, wants...)
			for tries := 1; blocked >= 0; tries++ {
				if tries == triesMax {
					t.Errorf("%s: %v after %d tries: still blocked", n.name, wants, tries)
					n.release(ticket)
					return
				}
				ids, blocked = n.try(ticket, wants...)
			}
			held.enter(t, wants)
			held.leave(wants)
			n.release(ids...)
		}
	})
}
