package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

const (
	// leaseTTL is the lifetime of a silent server's lease; a pause is longer.
	leaseTTL = 15 * time.Second
	// passedOverSpan is the length of a pause in which other servers take a server's locks, but do
	// not end its session.
	passedOverSpan = 10 * time.Second
	// transactionDeadline is the age at which any server may abort a transaction.
	transactionDeadline = time.Minute
)

// fault is a disturbance of a server or of the database.
type fault string

const (
	faultKill       fault = "killed"                         // SIGKILL and a restart
	faultCut        fault = "cut off"                        // its database connections break, and new ones fail
	faultStall      fault = "held up"                        // nothing moves between it and the database
	faultHiccup     fault = "paused"                         // SIGSTOP
	faultPassedOver fault = "paused until it is passed over" // for longer than others wait for its locks
	faultLongStop   fault = "paused past a lease"            // for longer than leaseTTL
	faultDeadline   fault = "paused too long"                // for longer than a transaction may take
	faultDatabase   fault = "the database, killed"           // SIGKILL of PostgreSQL and a restart
)

// span returns the duration of a fault.
func (f fault) span(random *rand.Rand) time.Duration {
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(random.Int64N(int64(most-least)))
	}
	switch f {
	case faultKill, faultDatabase:
		return between(50*time.Millisecond, 1500*time.Millisecond)
	case faultCut:
		return between(10*time.Millisecond, 3*time.Second)
	case faultStall:
		return between(time.Second, 8*time.Second)
	case faultDeadline:
		return transactionDeadline + between(time.Second, 10*time.Second)
	case faultPassedOver:
		return passedOverSpan
	case faultLongStop:
		return leaseTTL + between(time.Second, 2*time.Second)
	}
	return between(200*time.Millisecond, 3*time.Second)
}

// step is one fault of a script.
type step struct {
	at    time.Duration // since the start of the script
	node  int           // -1: the database
	fault fault
	span  time.Duration
}

// String describes the step.
func (s step) String() string {
	return fmt.Sprintf("%6.2f s: node %d %s for %.2f s", s.at.Seconds(), s.node, s.fault, s.span.Seconds())
}

// onDatabase is the value of node for a step that disturbs the database.
const onDatabase = -1

// newScript draws the faults of a history. Each server has its own sequence, so several may be
// disturbed at once. A server gets all faults of the deck before any of them repeats. calm bounds
// the time between two faults.
func newScript(random *rand.Rand, duration time.Duration, deck []fault, calm time.Duration) (script []step) {
	for node := range nodesCount {
		script = append(script, newPart(random, node, duration, deck, calm)...)
	}
	script = append(script, newPart(random, onDatabase, duration, []fault{faultDatabase}, min(duration/2, 40*time.Second))...)
	slices.SortFunc(script, func(a, b step) int { return int(a.at - b.at) })
	return script
}

// newPart draws the faults of one server.
func newPart(random *rand.Rand, node int, duration time.Duration, deck []fault, calm time.Duration) (part []step) {
	deck = slices.Clone(deck)
	at := time.Duration(0)
	for i := 0; ; i++ {
		if i%len(deck) == 0 {
			random.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		at += calm/4 + time.Duration(random.Int64N(int64(calm)))
		next := step{at: at, node: node, fault: deck[i%len(deck)]}
		next.span = next.fault.span(random)
		at += next.span
		if at > duration {
			return part
		}
		part = append(part, next)
	}
}

// play executes a script, and returns when everything is healed.
func (c *cluster) play(ctx context.Context, script []step) error {
	began := time.Now()
	errs := make([]error, nodesCount+1)
	var group sync.WaitGroup
	for node := onDatabase; node < nodesCount; node++ {
		group.Go(func() {
			for _, s := range script {
				if s.node != node {
					continue
				}
				if pause(ctx, s.at-time.Since(began)) != nil {
					return
				}
				if err := c.suffer(ctx, s); err != nil {
					errs[node+1] = fmt.Errorf("%s: %w", s, err)
					return
				}
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// suffer injects one fault and heals it.
func (c *cluster) suffer(ctx context.Context, s step) error {
	if s.fault == faultDatabase {
		if err := c.database.Kill(); err != nil {
			return err
		}
		_ = pause(ctx, s.span) // it is healed in any case
		return c.database.Restart()
	}
	n := c.nodes[s.node]
	switch s.fault {
	case faultKill:
		n.process.Kill()
		_ = pause(ctx, s.span)
		return n.start(ctx, c.binary)
	case faultCut:
		n.proxy.Cut()
		_ = pause(ctx, s.span)
		n.proxy.Restore()
	case faultStall:
		n.proxy.Stall()
		_ = pause(ctx, s.span)
		n.proxy.Restore()
	case faultHiccup, faultPassedOver, faultLongStop, faultDeadline:
		if err := n.process.Pause(); err != nil {
			return err
		}
		_ = pause(ctx, s.span)
		return n.process.Resume()
	}
	return nil
}
