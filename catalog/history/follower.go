package history

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"moorage"
	"moorage/registry"
)

const (
	// waitsMax is the maximum number of waiting requests on a node.
	waitsMax = 1000
	// keptMax and keptBytesMax bound the number and the memory of the changes that the follower
	// keeps for waiting requests.
	keptMax      = 4096
	keptBytesMax = 16 << 20
	// pollNumbered is the pause between two reads of a shared store, whose changes get their
	// positions only some time after they are made. pollAlone is the pause for other stores.
	pollNumbered = 250 * time.Millisecond
	pollAlone    = time.Second
	// wakePause is the shortest pause between two reads.
	wakePause = 50 * time.Millisecond
	// idleMax is how long the follower keeps reading after the last wait.
	idleMax = 10 * time.Second
)

// follower reads the changes once for all waiting requests. It reads only while requests wait, and
// for a short time afterwards. It is safe for concurrent use.
type follower struct {
	config Config
	poll   time.Duration
	wake   chan struct{} // buffered; capacity one
	closed chan struct{}
	runs   sync.WaitGroup

	mu      sync.Mutex // guards the fields below; leaf; never held during calls
	ended   bool
	stop    context.CancelFunc // ends the present run
	waits   int
	running bool
	idle    time.Time // when the last wait ended
	from    registry.Position
	head    registry.Position
	kept    []placed      // the changes after from, up to head
	bytes   int           // the approximate memory of kept
	news    chan struct{} // closed when head advances
}

func newFollower(config Config) *follower {
	f := &follower{
		config: config, poll: pollAlone, wake: make(chan struct{}, 1), closed: make(chan struct{}),
		news: make(chan struct{}), stop: func() {},
	}
	if _, numbered := registry.Find[registry.Numberer](config.Store); numbered {
		f.poll = pollNumbered
	}
	return f
}

// close stops the follower, and waits until it has ended. A second call does nothing.
func (f *follower) close() {
	f.mu.Lock()
	if !f.ended {
		f.ended = true
		close(f.closed)
		f.stop()
	}
	f.mu.Unlock()
	f.runs.Wait()
}

// poke makes the follower read the latest changes soon.
func (f *follower) poke() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// await waits until there is a change after a position, for at most left. ended is true if there
// was no change in that time, or if stopping or the follower ended the wait.
//
// Errors: KindTooManyRequests if too many requests wait; the error of ctx.
func (f *follower) await(ctx context.Context, after registry.Position, left time.Duration,
	stopping <-chan struct{}) (ended bool, err error) {
	if !f.join(after) {
		return true, moorage.Errorf(moorage.KindTooManyRequests, "%d requests wait for changes on this node already",
			waitsMax)
	}
	defer f.leave()
	timer := time.NewTimer(left)
	defer timer.Stop()
	for {
		f.mu.Lock()
		isNew, news := f.head > after, f.news
		f.mu.Unlock()
		if isNew {
			return false, nil
		}
		select {
		case <-news:
		case <-timer.C:
			return true, nil
		case <-stopping:
			return true, nil
		case <-f.closed:
			return true, nil
		case <-ctx.Done():
			return true, ctx.Err()
		}
	}
}

// join counts a wait. If the follower is not running, join starts it at a position.
func (f *follower) join(after registry.Position) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waits == waitsMax {
		return false
	}
	f.waits++
	if !f.running && !f.ended {
		f.running, f.from, f.head, f.kept, f.bytes = true, after, after, nil, 0
		var ctx context.Context
		ctx, f.stop = context.WithCancel(context.Background())
		f.runs.Go(func() { f.run(ctx) })
	}
	return true
}

func (f *follower) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waits--
	f.idle = f.config.Now()
}

// changesAfter returns at most limit changes after a position, up to where the follower has read.
// ok is false if the follower no longer has all of them.
func (f *follower) changesAfter(position registry.Position, limit int) (changes []placed, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.running || position < f.from || position > f.head {
		return nil, false
	}
	at, found := slices.BinarySearchFunc(f.kept, position, func(c placed, p registry.Position) int {
		return cmp.Compare(c.position, p)
	})
	if found {
		at++
	}
	return slices.Clone(f.kept[at:min(at+limit, len(f.kept))]), true
}

// run reads changes until the follower is idle or closed.
func (f *follower) run(ctx context.Context) {
	failing := false
	for {
		f.mu.Lock()
		if ctx.Err() != nil || f.waits == 0 && f.config.Now().Sub(f.idle) > idleMax {
			f.running, f.kept = false, nil
			f.stop()
			f.mu.Unlock()
			return
		}
		head := f.head
		f.mu.Unlock()
		changes, err := registry.Follow(ctx, f.config.Store, head, chunkMax)
		if errors.Is(err, registry.ErrForgotten) {
			err = f.skip(ctx)
		}
		if err != nil && ctx.Err() == nil && !failing {
			f.config.Logger.Warn("changes cannot be read for requests that wait for them", "error", err)
		}
		failing = err != nil
		if len(changes) > 0 {
			f.add(placedOf(changes))
			if len(changes) == chunkMax {
				continue
			}
		}
		f.rest(ctx)
	}
}

// rest pauses between two reads.
func (f *follower) rest(ctx context.Context) {
	least, most := time.NewTimer(wakePause), time.NewTimer(f.poll)
	defer least.Stop()
	defer most.Stop()
	select {
	case <-f.wake:
		select {
		case <-least.C:
		case <-ctx.Done():
		}
	case <-most.C:
	case <-ctx.Done():
	}
}

// skip continues behind deleted changes. Each waiting request then notices the gap itself.
func (f *follower) skip(ctx context.Context) error {
	horizon, err := registry.ReadHorizon(ctx, f.config.Store)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.from, f.head, f.kept, f.bytes = horizon.Position, horizon.Position, nil, 0
	f.tellLocked()
	return nil
}

// add keeps the events of changes that were read.
func (f *follower) add(changes []placed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, each := range changes {
		f.kept, f.head = append(f.kept, each), each.position
		f.bytes += weightOf(each)
	}
	drop := 0
	for drop < len(f.kept) && (len(f.kept)-drop > keptMax || f.bytes > keptBytesMax) {
		f.from = f.kept[drop].position
		f.bytes -= weightOf(f.kept[drop])
		drop++
	}
	f.kept = slices.Delete(f.kept, 0, drop)
	f.tellLocked()
}

// tellLocked wakes all waiting requests. mu must be held.
func (f *follower) tellLocked() {
	close(f.news)
	f.news = make(chan struct{})
}

// weightOf estimates the memory of the events of a change, in bytes.
func weightOf(change placed) int {
	bytes := 100 + 1200*len(change.events)
	if len(change.events) > 0 {
		bytes += 200 * len(change.events[0].Members) // all events share them
	}
	return bytes
}
