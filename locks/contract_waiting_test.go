package locks_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"moorage/locks"
)

func testEmptyRequest(t *testing.T, manager locks.Manager) {
	hold := acquire(t, manager, locks.Request{})
	hold.Release()
}

// wantConflict fails the test unless err states that the lock on path was unavailable.
func wantConflict(t *testing.T, err error, path locks.Path) {
	t.Helper()
	conflict, ok := errors.AsType[*locks.ConflictError](err)
	if want := (locks.Grant{Path: path, Mode: locks.W}); !ok || conflict.Blocked != want ||
		!errors.Is(err, locks.ErrConflict) {
		t.Errorf("got %v, want a conflict at %s", err, want)
	}
}

// A non-blocking Acquire fails at once and names the lock. Locks that it took before it failed are
// free again.
func testNonBlocking(t *testing.T, manager locks.Manager) {
	holder := acquire(t, manager, write(namespace("b")))
	refused := try(t.Context(), manager, write(namespace("a"), namespace("b"), namespace("c")),
		locks.Options{NonBlocking: true})
	if !refused.isDone() || refused.took != 0 {
		t.Errorf("got %v after %s, want an error at once", refused.err, refused.took)
	}
	wantConflict(t, refused.err, namespace("b"))
	if refused.hold != nil {
		t.Error("a refused Acquire returned a hold")
	}
	acquire(t, manager, write(namespace("a"))).Release()
	acquire(t, manager, write(namespace("c"))).Release()

	// The refused request does not stay in a queue.
	waiter := try(t.Context(), manager, write(namespace("b")), locks.Options{})
	holder.Release()
	waiter.mustHold(t, "the only waiter").Release()
}

// An Acquire gives up after its timeout, not earlier and not later, and holds nothing then.
func testTimeout(t *testing.T, manager locks.Manager) {
	const limit = 7 * time.Second
	holder := acquire(t, manager, write(namespace("b")))
	taker := try(t.Context(), manager, write(namespace("a"), namespace("b")),
		locks.Options{Timeout: locks.FixedTimeout(limit)})
	time.Sleep(limit - time.Nanosecond)
	taker.mustWait(t, "before the timeout")
	time.Sleep(time.Nanosecond)
	synctest.Wait()
	if !taker.isDone() || !errors.Is(taker.err, locks.ErrTimeout) {
		t.Fatalf("after the timeout: done %t, error %v, want ErrTimeout", taker.isDone(), taker.err)
	}
	acquire(t, manager, write(namespace("a"))).Release()
	holder.Release()
	acquire(t, manager, write(namespace("b"))).Release()
}

// The timeout limits the total of the waits of one Acquire, not each of them.
func testTimeoutBoundsAllWaits(t *testing.T, manager locks.Manager) {
	const limit = 10 * time.Second
	first, second := acquire(t, manager, write(namespace("a"))), acquire(t, manager, write(namespace("b")))
	taker := try(t.Context(), manager, write(namespace("a"), namespace("b")),
		locks.Options{Timeout: locks.FixedTimeout(limit)})
	time.Sleep(limit - time.Nanosecond)
	first.Release()
	synctest.Wait()
	taker.mustWait(t, "at its second lock")
	<-taker.done
	if !errors.Is(taker.err, locks.ErrTimeout) || taker.took != limit {
		t.Errorf("got %v after %s, want ErrTimeout after %s", taker.err, taker.took, limit)
	}
	second.Release()
}

// A shared Timeout grows when waits time out, and shrinks when they succeed.
func testTimeoutLearns(t *testing.T, manager locks.Manager) {
	timeout := locks.NewTimeout(10*time.Second, 5*time.Second)
	wait := func(release bool) {
		holder := acquire(t, manager, write(namespace("a")))
		taker := try(t.Context(), manager, write(namespace("a")), locks.Options{Timeout: timeout})
		if release {
			holder.Release()
			taker.mustHold(t, "after release").Release()
			return
		}
		<-taker.done
		holder.Release()
	}
	for range 64 {
		wait(false)
	}
	grown := timeout.Duration()
	if grown <= 10*time.Second {
		t.Errorf("after 64 timeouts: got %s, want more than 10 s", grown)
	}
	for range 256 {
		wait(true)
	}
	if got := timeout.Duration(); got >= grown || got < 5*time.Second {
		t.Errorf("after 256 short waits: got %s, want less than %s and at least 5 s", got, grown)
	}
}

// Options without a Timeout wait for WaitMax.
func testTimeoutByDefault(t *testing.T, manager locks.Manager) {
	holder := acquire(t, manager, write(namespace("a")))
	taker := try(t.Context(), manager, write(namespace("a")), locks.Options{})
	<-taker.done
	if !errors.Is(taker.err, locks.ErrTimeout) || taker.took != locks.WaitMax {
		t.Errorf("got %v after %s, want ErrTimeout after %s", taker.err, taker.took, locks.WaitMax)
	}
	holder.Release()
}

// The end of the context ends a wait at once, with its error and nothing held.
func testCancel(t *testing.T, manager locks.Manager) {
	holder := acquire(t, manager, write(namespace("b")))

	ctx, cancel := context.WithCancel(t.Context())
	cancelled := try(ctx, manager, write(namespace("a"), namespace("b")), locks.Options{})
	cancelled.mustWait(t, "before cancel")
	cancel()
	synctest.Wait()
	if !cancelled.isDone() || !errors.Is(cancelled.err, context.Canceled) || cancelled.took != 0 {
		t.Fatalf("got %v after %s, want context.Canceled at once", cancelled.err, cancelled.took)
	}

	ctx, cancel = context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	late := try(ctx, manager, write(namespace("a"), namespace("b")), locks.Options{})
	<-late.done
	if !errors.Is(late.err, context.DeadlineExceeded) || errors.Is(late.err, locks.ErrTimeout) ||
		late.took != time.Second {
		t.Errorf("got %v after %s, want context.DeadlineExceeded after 1s", late.err, late.took)
	}

	acquire(t, manager, write(namespace("a"))).Release()
	holder.Release()
	acquire(t, manager, write(namespace("b"))).Release()
}

// A context that has ended takes nothing, even if everything is free.
func testCancelledBefore(t *testing.T, manager locks.Manager) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, options := range []locks.Options{{}, {NonBlocking: true}} {
		if hold, err := manager.Acquire(ctx, write(namespace("a")), options); hold != nil ||
			!errors.Is(err, context.Canceled) {
			t.Errorf("options %+v: got hold %v, error %v, want context.Canceled", options, hold, err)
		}
	}
	acquire(t, manager, write(namespace("a"))).Release()
}

// When an operation gives up, operations behind it stop waiting for it.
func testCancelLetsOthersIn(t *testing.T, manager locks.Manager) {
	reader := acquire(t, manager, read(namespace("a")))
	ctx, cancel := context.WithCancel(t.Context())
	writer := try(ctx, manager, write(namespace("a")), locks.Options{})
	second := try(t.Context(), manager, read(namespace("a")), locks.Options{})
	second.mustWait(t, "reader behind a waiting writer")
	cancel()
	second.mustHold(t, "reader after the writer gave up").Release()
	<-writer.done
	reader.Release()
}

// When the operation at the front of a queue gives up, all operations continue that can. None
// overtakes another operation that it would delay.
func testCancelKeepsOrder(t *testing.T, manager locks.Manager) {
	ns := namespace("a")
	holder := acquire(t, manager, write(ns.Shard(0)))
	ctx, cancel := context.WithCancel(t.Context())
	first := try(ctx, manager, write(ns), locks.Options{})
	reader := try(t.Context(), manager, read(ns), locks.Options{})
	writer := try(t.Context(), manager, write(ns.Shard(1)), locks.Options{})
	innerReader := try(t.Context(), manager, read(ns.Shard(2)), locks.Options{})
	innerReader.mustWait(t, "reader inside, behind the writer that waits for all")
	cancel()
	<-first.done

	innerReader.mustHold(t, "reader inside").Release()
	reader.mustWait(t, "reader of what is written")
	writer.mustWait(t, "writer inside, behind the waiting reader")
	holder.Release()
	reader.mustHold(t, "reader").Release()
	writer.mustHold(t, "writer inside").Release()
}
