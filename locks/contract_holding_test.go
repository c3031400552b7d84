package locks_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"moorage/locks"
)

type contextKey struct{}

// A hold's context derives from that of Acquire and ends with Release, which is not a loss.
func testHoldContext(t *testing.T, manager locks.Manager) {
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), contextKey{}, "value"))
	released, err := manager.Acquire(ctx, write(namespace("a")), locks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := released.Context().Value(contextKey{}); got != "value" {
		t.Errorf("value of the context: got %v, want that of Acquire's", got)
	}
	if err := released.Context().Err(); err != nil {
		t.Errorf("context while held: got %v, want none", err)
	}
	released.Release()
	if err := context.Cause(released.Context()); !errors.Is(err, context.Canceled) || errors.Is(err, locks.ErrLost) {
		t.Errorf("context after Release: got cause %v, want context.Canceled", err)
	}

	// The end of Acquire's context ends the hold's, and the locks stay held until Release.
	kept, err := manager.Acquire(ctx, write(namespace("a")), locks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := kept.Context().Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("context after cancel: got %v, want context.Canceled", err)
	}
	if _, err := manager.Acquire(t.Context(), read(namespace("a")), locks.Options{NonBlocking: true}); !errors.Is(err,
		locks.ErrConflict) {
		t.Errorf("after the context ended, before Release: got %v, want ErrConflict", err)
	}
	kept.Release()
}

// A second Release, even a concurrent one, releases no lock of another operation.
func testReleaseTwice(t *testing.T, manager locks.Manager) {
	first := acquire(t, manager, write(namespace("a"), namespace("b")))
	var both sync.WaitGroup
	both.Go(first.Release)
	both.Go(first.Release)
	both.Wait()

	second := acquire(t, manager, write(namespace("a"), namespace("b")))
	first.Release()
	for _, path := range []locks.Path{namespace("a"), namespace("b")} {
		if _, err := manager.Acquire(t.Context(), read(path), locks.Options{NonBlocking: true}); !errors.Is(err,
			locks.ErrConflict) {
			t.Errorf("%s after a second Release of the first hold: got %v, want ErrConflict", path, err)
		}
	}
	second.Release()
}

// After a loss, the holder's context ends and others get the lock. The holder's Release then has no
// effect on them.
func testLost(t *testing.T, manager locks.Manager, lose func(locks.Manager)) {
	first := acquire(t, manager, write(namespace("a")))
	waiter := try(t.Context(), manager, write(namespace("a")), locks.Options{})
	waiter.mustWait(t, "before the loss")
	lose(manager)
	synctest.Wait()
	if err := context.Cause(first.Context()); !errors.Is(err, locks.ErrLost) {
		t.Errorf("context of the lost hold: got cause %v, want ErrLost", err)
	}
	second := waiter.mustHold(t, "after the loss")
	first.Release()
	if err := context.Cause(first.Context()); !errors.Is(err, locks.ErrLost) {
		t.Errorf("context of the lost hold after Release: got cause %v, want ErrLost", err)
	}
	if err := second.Context().Err(); err != nil {
		t.Errorf("context of the second hold: got %v, want none", err)
	}
	if _, err := manager.Acquire(t.Context(), read(namespace("a")), locks.Options{NonBlocking: true}); !errors.Is(err,
		locks.ErrConflict) {
		t.Errorf("after Release of the lost hold: got %v, want ErrConflict", err)
	}
	second.Release()
}
