package guard

import (
	"context"
	"sync/atomic"
	"time"

	"moorage/access"
)

// lookPause is the least time between the beginnings of two looks.
const lookPause = 100 * time.Millisecond

// looks are the looks at the store for what this process does not know: one at a time.
type looks struct {
	turn  chan struct{} // has room for the call that looks, which owns last and found
	begun atomic.Uint64 // how many have begun
	last  time.Time     // when the last one began
	found found         // by the last one that did not fail
}

// found is what a look found. number is how many looks had begun then.
type found struct {
	number uint64
	policy *access.Snapshot
	on     bool
}

// FreshForUnknown is Fresh for a caller who shows what this process does not know, such as the id
// of a key. Another node may have made it just now, or the caller has made it up. So that made-up
// ids cost the store little, calls share looks, which begin at least 100 ms apart. Each look begins
// after the calls that share it.
//
// Errors: KindUnavailable.
func (g *Guard) FreshForUnknown(ctx context.Context) (policy *access.Snapshot, on bool, err error) {
	if _, wanted := g.Key(); !wanted {
		return g.Fresh(ctx) // which costs nothing
	}
	before := g.looks.begun.Load()
	select {
	case g.looks.turn <- struct{}{}:
		defer func() { <-g.looks.turn }()
	case <-ctx.Done():
		return nil, false, unavailable(ctx.Err())
	}
	if last := g.looks.found; last.number > before {
		return last.policy, last.on, nil
	}
	// A clock that was set back does not make it wait for longer.
	pause := min(g.looks.last.Add(lookPause).Sub(g.config.Now()), lookPause)
	select {
	case <-time.After(pause):
	case <-ctx.Done():
		return nil, false, unavailable(ctx.Err())
	}
	g.looks.last = g.config.Now()
	number := g.looks.begun.Add(1)
	if policy, on, err = g.Fresh(ctx); err == nil {
		g.looks.found = found{number, policy, on}
	}
	return policy, on, err
}
