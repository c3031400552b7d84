package locks_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"moorage/locks"
)

// Sizes of progress. All holds together last at most workers × rounds × holdMax = 6.4 s, less than
// WaitMax. So a wait that times out means a deadlock.
const (
	workers = 64
	rounds  = 50
	holdMax = 2 * time.Millisecond
)

// Two operations with the same paths in opposite orders always both get their locks.
func testOppositeOrders(t *testing.T, manager locks.Manager) {
	a, b := namespace("a").Shard(1), namespace("b").Shard(1)
	var all sync.WaitGroup
	for _, request := range []locks.Request{write(a, b), write(b, a),
		{Reads: []locks.Path{a}, Writes: []locks.Path{b}}, {Reads: []locks.Path{b}, Writes: []locks.Path{a}}} {
		all.Go(func() {
			for range rounds {
				hold, err := manager.Acquire(t.Context(), request, locks.Options{})
				if err != nil {
					t.Errorf("%v: %v", request, err)
					return
				}
				time.Sleep(holdMax)
				hold.Release()
			}
		})
	}
	all.Wait()
}

// progress returns a test in which many workers take random sets. All get their locks, and no two
// hold locks that the rule of lineage excludes.
func progress(seed uint64) func(t *testing.T, manager locks.Manager) {
	return func(t *testing.T, manager locks.Manager) {
		var held witness
		var all sync.WaitGroup
		for worker := range workers {
			random := rand.New(rand.NewPCG(seed, uint64(worker)))
			all.Go(func() {
				for range rounds {
					takeOnce(t, manager, random, &held)
				}
			})
		}
		all.Wait()
		if held.granted < workers*rounds/2 {
			t.Errorf("seed %d: got %d grants of %d, want at least half", seed, held.granted, workers*rounds)
		}
	}
}

// takeOnce makes one random Acquire, which may be refused only if it is non-blocking.
func takeOnce(t *testing.T, manager locks.Manager, random *rand.Rand, held *witness) {
	wanted := randomWish(random)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var options locks.Options
	var mayFail error
	switch random.IntN(8) {
	case 0:
		options.NonBlocking, mayFail = true, locks.ErrConflict
	case 1:
		options.Timeout, mayFail = locks.FixedTimeout(holdMax), locks.ErrTimeout
	case 2:
		time.AfterFunc(time.Duration(random.Int64N(int64(holdMax))), cancel)
		mayFail = context.Canceled
	}
	pause := time.Duration(random.Int64N(int64(holdMax)))

	hold, err := manager.Acquire(ctx, wanted.request(), options)
	if err != nil {
		if mayFail == nil || !errors.Is(err, mayFail) {
			t.Errorf("%s with %+v: got %v, want a grant or %v", wanted, options, err, mayFail)
		}
		return
	}
	held.enter(t, wanted)
	time.Sleep(pause)
	held.leave(wanted)
	hold.Release()
}

// randomWish returns one to three places. Places near the root are less frequent, because they
// exclude all others.
func randomWish(random *rand.Rand) wish {
	places := tree()
	var w wish
	for range 1 + random.IntN(3) {
		p := places[max(random.IntN(len(places)), random.IntN(len(places)))]
		if random.IntN(2) == 0 {
			w.reads = append(w.reads, p)
		} else {
			w.writes = append(w.writes, p)
		}
	}
	return w
}

// witness checks a run. It knows which operation holds which locks.
type witness struct {
	mu      sync.Mutex // guards the fields below; leaf
	holders []wish
	granted int
}

func (w *witness) enter(t *testing.T, entering wish) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, holder := range w.holders {
		if holder.mustExclude(entering) {
			t.Errorf("%s was granted while %s is held", entering, holder)
		}
	}
	w.holders = append(w.holders, entering)
	w.granted++
}

func (w *witness) leave(leaving wish) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.holders, func(holder wish) bool { return holder.String() == leaving.String() })
	w.holders = slices.Delete(w.holders, i, i+1)
}
