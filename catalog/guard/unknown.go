package guard

import (
	"context"
	"sync"
	"time"

	"moorage/access"
)

const (
	// lookPause is the least time between the beginnings of two looks.
	lookPause = 100 * time.Millisecond
	// lookTimeout is how long a look may take.
	lookTimeout = 10 * time.Second
)

// looks are the looks at the store for what this process does not know. One runs and one waits, at
// most. Calls that wait for the same one share it: however many come, the store has ten a second.
type looks struct {
	mutex sync.Mutex
	next  *look      // which has not begun; nil: nobody waits for one
	last  time.Time  // when the last one began
	turn  sync.Mutex // held by the one that runs
}

// look is one look at the store. Its results are there when ended is closed.
type look struct {
	ended  chan struct{}
	policy *access.Snapshot
	on     bool
	err    error
}

// FreshForUnknown is Fresh for a caller who shows what this process does not know, such as the id
// of a key. Another node may have made it just now, or the caller has made it up. So that the
// latter costs the store little, calls share looks that begin 100 ms after each other or later.
// Each look begins after the calls that share it.
//
// Errors: KindUnavailable.
func (g *Guard) FreshForUnknown(ctx context.Context) (policy *access.Snapshot, on bool, err error) {
	if _, wanted := g.Key(); !wanted {
		return g.Fresh(ctx) // which costs nothing
	}
	g.looks.mutex.Lock()
	shared := g.looks.next
	if shared == nil {
		shared = &look{ended: make(chan struct{})}
		g.looks.next = shared
		pause := g.looks.last.Add(lookPause).Sub(g.config.Now())
		go g.lookAfter(context.WithoutCancel(ctx), shared, min(pause, lookPause)) // should the clock be set back
	}
	g.looks.mutex.Unlock()
	select {
	case <-shared.ended:
		return shared.policy, shared.on, shared.err
	case <-ctx.Done():
		return nil, false, unavailable(ctx.Err())
	}
}

// lookAfter makes l after a pause, and when the one before it has ended.
func (g *Guard) lookAfter(ctx context.Context, l *look, pause time.Duration) {
	defer close(l.ended)
	time.Sleep(pause)
	g.looks.turn.Lock()
	defer g.looks.turn.Unlock()
	g.looks.mutex.Lock()
	g.looks.next, g.looks.last = nil, g.config.Now() // who comes now waits for the one behind
	g.looks.mutex.Unlock()
	ctx, end := context.WithTimeout(ctx, lookTimeout)
	defer end()
	l.policy, l.on, l.err = g.Fresh(ctx)
}
