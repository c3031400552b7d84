package locks_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"moorage/locks"
)

// stream keeps several overlapping holds of request, so that at least one exists at any time. It
// returns a function that ends the holders and waits for them.
func stream(t *testing.T, manager locks.Manager, request func(i int) locks.Request) (end func()) {
	const holders = 4
	stop := make(chan struct{})
	var all sync.WaitGroup
	for i := range holders {
		all.Go(func() {
			time.Sleep(time.Duration(i) * time.Millisecond)
			for {
				hold, err := manager.Acquire(t.Context(), request(i), locks.Options{})
				if err != nil {
					t.Errorf("stream %d: %v", i, err)
					return
				}
				time.Sleep(holders * time.Millisecond)
				hold.Release()
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	return func() {
		close(stop)
		all.Wait()
	}
}

// underStream checks that a writer gets its lock within a stream of other operations, in the time
// that one of them holds.
func underStream(t *testing.T, manager locks.Manager, request func(i int) locks.Request, writer locks.Request) {
	defer stream(t, manager, request)()
	time.Sleep(20 * time.Millisecond)
	taker := try(t.Context(), manager, writer, locks.Options{})
	taker.mustWait(t, "writer under a stream")
	<-taker.done
	if taker.err != nil || taker.took > 4*time.Millisecond {
		t.Errorf("writer under a stream: got %v after %s, want it within 4ms", taker.err, taker.took)
	}
	if taker.err == nil {
		taker.hold.Release()
	}
}

// A stream of readers of one path does not keep a writer out.
func testWriterUnderReaders(t *testing.T, manager locks.Manager) {
	underStream(t, manager, func(int) locks.Request { return read(namespace("a")) }, write(namespace("a")))
}

// A stream of writers inside a subtree does not keep out an operation on the whole subtree.
func testSubtreeWriterUnderWriters(t *testing.T, manager locks.Manager) {
	inside := func(i int) locks.Request { return write(namespace("a").Shard(uint8(i))) }
	underStream(t, manager, inside, write(namespace("a")))
}

// Operations that exclude each other are served in the order of arrival. Readers between two
// writers hold together.
func testArrivalOrder(t *testing.T, manager locks.Manager) {
	holder := acquire(t, manager, write(namespace("a")))
	requests := []locks.Request{
		write(namespace("a")), read(namespace("a")), read(namespace("a").Shard(1)), write(namespace("a")),
		write(namespace("a").Shard(1)), write(namespace("a").Shard(2)), read(namespace("a")),
	}
	together := [][]int{{0}, {1, 2}, {3}, {4, 5}, {6}}

	var attempts []*attempt
	for i, request := range requests {
		attempts = append(attempts, try(t.Context(), manager, request, locks.Options{}))
		attempts[i].mustWait(t, fmt.Sprintf("taker %d behind the holder", i))
	}
	holder.Release()
	for _, group := range together {
		synctest.Wait()
		for i, a := range attempts {
			if a != nil && a.isDone() != slices.Contains(group, i) {
				t.Fatalf("when %v are due: taker %d is done: %t", group, i, a.isDone())
			}
		}
		for _, i := range group {
			attempts[i].mustHold(t, fmt.Sprintf("taker %d", i)).Release()
			attempts[i] = nil
		}
	}
}

// Holders and waiters that an operation does not exclude do not delay it.
func testCompatibleDoNotQueue(t *testing.T, manager locks.Manager) {
	reader := acquire(t, manager, read(namespace("a")))
	writer := try(t.Context(), manager, write(namespace("a").Shard(1)), locks.Options{}) // WA waits for R
	writer.mustWait(t, "writer inside what is read")
	inner := try(t.Context(), manager, read(namespace("a").Shard(2)), locks.Options{}) // RA excludes neither
	inner.mustHold(t, "reader inside what is read").Release()
	second := try(t.Context(), manager, read(namespace("a")), locks.Options{}) // R excludes the waiting WA
	second.mustWait(t, "reader behind the waiting writer")

	reader.Release()
	writer.mustHold(t, "writer").Release()
	second.mustHold(t, "second reader").Release()
}
