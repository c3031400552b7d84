package gate

import (
	"context"
	"sync/atomic"
	"time"

	"moorage/access"
)

// lookPause is the least time between the starts of two looks.
const lookPause = 100 * time.Millisecond

// looks runs looks, reads of the store for credentials that this process does not know, one at a
// time.
type looks struct {
	turn  chan struct{} // has capacity for the running look, which owns last and found
	begun atomic.Uint64 // the number of looks that have begun
	last  time.Time     // when the last look began
	found found         // by the last look that succeeded
}

// found is the result of a look. number is its number in the order of looks.
type found struct {
	number uint64
	policy *access.Snapshot
	on     bool
}

// FreshForUnknown is Fresh for a caller that presents something unknown to this process, such as
// the id of a key. Another node may have just created it, or the caller has invented it. So that
// invented ids cost the store little, calls share looks, which begin at least 100 ms apart. Each
// look begins after the calls that share it.
//
// Errors: KindUnavailable.
func (g *Guard) FreshForUnknown(ctx context.Context) (policy *access.Snapshot, on bool, err error) {
	if _, wanted := g.Key(); !wanted {
		return g.Fresh(ctx) // reads nothing in this case
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
	// A clock that was set back must not prolong the pause.
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
