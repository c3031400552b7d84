package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// manyHeld is a large number of locks, which must not affect the cost of another lock.
const manyHeld = 100_000

// holdMany takes n locks that exclude only themselves, in two namespaces. It returns a function
// that releases them.
func holdMany(tb testing.TB, l *Local, n int) (release func()) {
	var holds []Hold
	for i := range n {
		path := Warehouse("wh").Namespace(fmt.Sprint("ns", i%2)).Namespace(fmt.Sprint("of ", i))
		hold, err := l.Acquire(tb.Context(), Request{Writes: []Path{path}}, Options{NonBlocking: true})
		if err != nil {
			tb.Fatal(err)
		}
		holds = append(holds, hold)
	}
	return func() {
		for _, hold := range holds {
			hold.Release()
		}
	}
}

// An Acquire and its Release visit each path of the plan twice, whatever else is held.
func TestLocalWorkIsFlat(t *testing.T) {
	t.Parallel()
	l := NewLocal(LocalConfig{})
	request := Request{
		Reads:  []Path{Warehouse("wh").Namespace("ns0").Namespace("mine")},
		Writes: []Path{Warehouse("wh").Namespace("ns1").Shard(1)},
	}
	work := func() int64 {
		before := l.steps
		hold, err := l.Acquire(t.Context(), request, Options{NonBlocking: true})
		if err != nil {
			t.Fatal(err)
		}
		hold.Release()
		return l.steps - before
	}
	want := int64(2 * len(Plan(request)))
	if got := work(); got != want {
		t.Errorf("steps with nothing held: got %d, want %d", got, want)
	}
	release := holdMany(t, l, manyHeld)
	if got := work(); got != want {
		t.Errorf("steps with %d locks held: got %d, want %d", manyHeld, got, want)
	}
	// The subtree writer finds the conflict with the first of them, without visiting all.
	before := l.steps
	if _, err := l.Acquire(t.Context(), Request{Writes: []Path{Warehouse("wh").Namespace("ns0")}}, Options{NonBlocking: true}); !errors.Is(err, ErrConflict) {
		t.Errorf("writer of a subtree with locks held in it: got %v, want ErrConflict", err)
	}
	if got := l.steps - before; got > 4 {
		t.Errorf("steps of a refusal: got %d, want at most 4", got)
	}
	release()
}

// A long queue is walked only as far as some waiter in it could be granted a lock.
func TestLocalQueueIsNotWalkedInVain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const waiters = 1000
		l := NewLocal(LocalConfig{})
		path := Warehouse("wh").Namespace("ns")
		var writers []Hold // two, so that the first Release grants nothing
		for i := range uint8(2) {
			hold, err := l.Acquire(t.Context(), Request{Writes: []Path{path.Shard(i)}}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			writers = append(writers, hold)
		}
		var all sync.WaitGroup
		queue := func(request Request) {
			all.Go(func() {
				hold, err := l.Acquire(t.Context(), request, Options{})
				if err != nil {
					t.Error(err)
					return
				}
				hold.Release()
			})
			synctest.Wait()
		}
		queue(Request{Reads: []Path{path}}) // R behind WA
		for i := range waiters {
			queue(Request{Writes: []Path{path.Namespace(fmt.Sprint(i))}}) // WA behind the waiting R
		}
		if got := l.Stats().Waiters; got != waiters+1 {
			t.Fatalf("waiters: got %d, want %d", got, waiters+1)
		}
		before := l.steps
		writers[0].Release()
		if got := l.steps - before; got > 6 {
			t.Errorf("steps of a Release that lets nobody in, with %d waiters: got %d, want at most 6", waiters, got)
		}
		before = l.steps
		writers[1].Release()
		synctest.Wait()
		all.Wait()
		if got := l.steps - before; got > 12*waiters {
			t.Errorf("steps of letting %d waiters through: got %d, want at most 12 each", waiters, got)
		}
	})
}

// Released locks leave nothing behind, not even space in the map.
func TestLocalForgets(t *testing.T) {
	t.Parallel()
	l := NewLocal(LocalConfig{})
	release := holdMany(t, l, 10_000)
	if got, want := l.Stats().Paths, 10_000+3; got != want {
		t.Errorf("paths while held: got %d, want %d", got, want)
	}
	release()
	if got := l.Stats(); got != (Stats{}) {
		t.Errorf("after release: got %+v, want nothing", got)
	}
	if l.peak != 0 {
		t.Errorf("the map was kept, with room for %d paths", l.peak)
	}
	if got := len(l.spare); got != nodesSpareMax {
		t.Errorf("%d nodes are kept for other paths, want %d", got, nodesSpareMax)
	}
}

// watcher is an Observer that records reports.
type watcher struct {
	mu     sync.Mutex // guards the field below; leaf
	events []string
}

func (w *watcher) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, fmt.Sprintf(format, args...))
}

func (w *watcher) LockConflicted(level Level) { w.note("%s conflicted", level) }
func (w *watcher) LockWaited(level Level, waited time.Duration, err error) {
	w.note("%s waited %s: %v", level, waited, err)
}
func (w *watcher) LockHeld(level Level, held time.Duration) { w.note("%s held %s", level, held) }
func (w *watcher) LockLost(level Level)                     { w.note("%s lost", level) }
func (w *watcher) SessionLost()                             { w.note("session lost") }

func TestLocalObserver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var watcher watcher
		l := NewLocal(LocalConfig{Observer: &watcher})
		expect := func(want ...string) {
			t.Helper()
			synctest.Wait()
			watcher.mu.Lock()
			defer watcher.mu.Unlock()
			if !slices.Equal(watcher.events, want) {
				t.Errorf("got %q, want %q", watcher.events, want)
			}
			watcher.events = nil
		}
		shard, pointer := Warehouse("wh").Namespace("ns").Shard(1), Warehouse("wh").Pointer("1")
		both := Request{Writes: []Path{shard, pointer}}

		first, err := l.Acquire(t.Context(), both, Options{})
		if err != nil {
			t.Fatal(err)
		}
		expect()
		if _, err := l.Acquire(t.Context(), Request{Reads: []Path{shard.Parent()}}, Options{NonBlocking: true}); !errors.Is(err, ErrConflict) {
			t.Errorf("got %v, want ErrConflict", err)
		}
		expect("namespace conflicted")
		if _, err := l.Acquire(t.Context(), Request{Writes: []Path{pointer}}, Options{Timeout: FixedTimeout(time.Second)}); !errors.Is(err, ErrTimeout) {
			t.Errorf("got %v, want ErrTimeout", err)
		}
		expect("pointer conflicted", "pointer waited 1s: locks: timed out")
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if _, err := l.Acquire(ctx, Request{Writes: []Path{shard}}, Options{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want context.DeadlineExceeded", err)
		}
		expect("shard conflicted", "shard waited 2s: context deadline exceeded")

		go func() {
			second, err := l.Acquire(t.Context(), Request{Writes: []Path{shard}}, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			second.Release()
		}()
		synctest.Wait()
		time.Sleep(4 * time.Second)
		expect("shard conflicted")
		first.Release()
		synctest.Wait()
		watcher.mu.Lock()
		slices.Sort(watcher.events) // the two operations report in any order
		watcher.mu.Unlock()
		expect("pointer held 7s", "shard held 0s", "shard held 7s", "shard waited 4s: <nil>")
	})
}

// An Acquire whose context ends at the moment of the grant keeps no lock.
func TestLocalAbandonsWhatWasJustGranted(t *testing.T) {
	t.Parallel()
	l := NewLocal(LocalConfig{})
	request := Request{Writes: []Path{Warehouse("wh")}}
	holder, err := l.Acquire(t.Context(), request, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, turn := l.take(Plan(request), false)
	_, next := l.take(Plan(request), false)
	holder.Release()
	<-turn.granted
	l.abandon(Warehouse("wh"), turn)
	<-next.granted
	l.abandon(Warehouse("wh"), next)
	if got := l.Stats(); got != (Stats{}) {
		t.Errorf("after both gave up: got %+v, want nothing", got)
	}
}

func BenchmarkLocal(b *testing.B) {
	for _, held := range []int{0, manyHeld} {
		b.Run(fmt.Sprintf("held=%d", held), func(b *testing.B) {
			l := NewLocal(LocalConfig{})
			release := holdMany(b, l, held)
			defer release()
			request := Request{Writes: []Path{Warehouse("wh").Namespace("ns1").Shard(1)}}
			b.ReportAllocs()
			for b.Loop() {
				hold, err := l.Acquire(b.Context(), request, Options{})
				if err != nil {
					b.Fatal(err)
				}
				hold.Release()
			}
		})
	}
}
