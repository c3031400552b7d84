package locks_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"moorage/locks"
)

// contract configures runContract.
type contract struct {
	// New returns a manager on which nothing is held. It is called inside a bubble of
	// testing/synctest, as is everything that the suite does with the manager.
	New func(t *testing.T) locks.Manager
	// Footprint returns the number of paths that the manager keeps in memory. It is nil only for a
	// wrapper, which keeps none.
	Footprint func(manager locks.Manager) int
	// Lose makes the manager lose every lock that it has granted. It is nil only for a manager that
	// cannot lose any.
	Lose func(manager locks.Manager)
}

// runContract checks the contract of locks.Manager. Each promise is one test.
func runContract(t *testing.T, config contract) {
	for _, test := range []struct {
		name string
		body func(t *testing.T, manager locks.Manager)
	}{
		{"Matrix", testMatrix},
		{"MatrixWaits", testMatrixWaits},
		{"Lineage", testLineage},
		{"EmptyRequest", testEmptyRequest},
		{"NonBlocking", testNonBlocking},
		{"Timeout", testTimeout},
		{"TimeoutBoundsAllWaits", testTimeoutBoundsAllWaits},
		{"TimeoutLearns", testTimeoutLearns},
		{"TimeoutByDefault", testTimeoutByDefault},
		{"Cancel", testCancel},
		{"CancelledBefore", testCancelledBefore},
		{"CancelLetsOthersIn", testCancelLetsOthersIn},
		{"CancelKeepsOrder", testCancelKeepsOrder},
		{"WriterUnderReaders", testWriterUnderReaders},
		{"SubtreeWriterUnderWriters", testSubtreeWriterUnderWriters},
		{"ArrivalOrder", testArrivalOrder},
		{"CompatibleDoNotQueue", testCompatibleDoNotQueue},
		{"HoldContext", testHoldContext},
		{"ReleaseTwice", testReleaseTwice},
		{"OppositeOrders", testOppositeOrders},
		{"ProgressSeed1", progress(1)},
		{"ProgressSeed2", progress(2)},
		{"ProgressSeed3", progress(3)},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, config, test.body)
		})
	}
	if config.Lose != nil {
		t.Run("Lost", func(t *testing.T) {
			t.Parallel()
			inBubble(t, config, func(t *testing.T, manager locks.Manager) { testLost(t, manager, config.Lose) })
		})
	}
}

// inBubble runs body over a new manager, which must be empty afterwards.
func inBubble(t *testing.T, config contract, body func(*testing.T, locks.Manager)) {
	synctest.Test(t, func(t *testing.T) {
		manager := config.New(t)
		body(t, manager)
		synctest.Wait()
		if config.Footprint == nil {
			return
		}
		if paths := config.Footprint(manager); paths != 0 {
			t.Errorf("paths in memory when nothing is held: got %d, want 0", paths)
		}
	})
}

// attempt is an Acquire in its own goroutine.
type attempt struct {
	done chan struct{}
	hold locks.Hold // once done
	err  error      // once done
	took time.Duration
}

// try starts an Acquire. It returns when the Acquire has ended or is waiting.
func try(ctx context.Context, manager locks.Manager, request locks.Request, options locks.Options) *attempt {
	a := &attempt{done: make(chan struct{})}
	began := time.Now()
	go func() {
		defer close(a.done)
		a.hold, a.err = manager.Acquire(ctx, request, options)
		a.took = time.Since(began)
	}()
	synctest.Wait()
	return a
}

func (a *attempt) isDone() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// mustWait fails the test if the attempt has ended.
func (a *attempt) mustWait(t *testing.T, what string) {
	t.Helper()
	if a.isDone() {
		t.Fatalf("%s: must wait, but ended with error %v", what, a.err)
	}
}

// mustHold fails the test unless the attempt was granted, and returns the hold.
func (a *attempt) mustHold(t *testing.T, what string) locks.Hold {
	t.Helper()
	synctest.Wait()
	if !a.isDone() {
		t.Fatalf("%s: must be granted, but waits", what)
	}
	if a.err != nil {
		t.Fatalf("%s: must be granted, but: %v", what, a.err)
	}
	return a.hold
}

// acquire takes locks that must be free.
func acquire(t *testing.T, manager locks.Manager, request locks.Request) locks.Hold {
	t.Helper()
	hold, err := manager.Acquire(t.Context(), request, locks.Options{NonBlocking: true})
	if err != nil {
		t.Fatalf("acquire %v: %v", request, err)
	}
	return hold
}

func read(paths ...locks.Path) locks.Request  { return locks.Request{Reads: paths} }
func write(paths ...locks.Path) locks.Request { return locks.Request{Writes: paths} }

// namespace returns a namespace that no other part of a test uses.
func namespace(name string) locks.Path { return locks.Warehouse("wh").Namespace(name) }
