package gate

import (
	"context"
	"sync/atomic"
	"time"

	"moorage/access"
)

// lookPause is the minimum time between the starts of two looks.
const lookPause = 100 * time.Millisecond

// looks runs one look at a time. A look is a read of the policy for a credential that this process
// does not know.
type looks struct {
	turn  chan struct{} // held by the running look; it guards last and found
	begun atomic.Uint64 // the number of looks that have begun
	last  time.Time     // when the last look began
	found found         // the result of the last successful look
}

// found is the result of a look. number is the look's number; looks are numbered in the order in
// which they begin.
type found struct {
	number  uint64
	policy  *access.Snapshot
	enabled bool
}

// FreshForUnknown is like Fresh, for a caller with a credential that is unknown to this process,
// such as the ID of a key. Another node may have just created it, or the caller may have invented
// it. To limit the load of invented ids, concurrent calls share one read of the policy. Reads begin
// at least 100 ms apart, and each begins after the calls that share it.
//
// Errors: KindUnavailable.
func (g *Guard) FreshForUnknown(ctx context.Context) (policy *access.Snapshot, enabled bool, err error) {
	if _, wanted := g.Key(); !wanted {
		return g.Fresh(ctx) // in this case, it reads nothing
	}
	before := g.looks.begun.Load()
	select {
	case g.looks.turn <- struct{}{}:
		defer func() { <-g.looks.turn }()
	case <-ctx.Done():
		return nil, false, unavailable(ctx.Err())
	}
	if last := g.looks.found; last.number > before {
		return last.policy, last.enabled, nil
	}
	// The minimum prevents a longer pause if the clock was set back.
	pause := min(g.looks.last.Add(lookPause).Sub(g.config.Now()), lookPause)
	select {
	case <-time.After(pause):
	case <-ctx.Done():
		return nil, false, unavailable(ctx.Err())
	}
	g.looks.last = g.config.Now()
	number := g.looks.begun.Add(1)
	if policy, enabled, err = g.Fresh(ctx); err == nil {
		g.looks.found = found{number, policy, enabled}
	}
	return policy, enabled, err
}
