package locks_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"moorage/locks"
	"moorage/testkit/locktest"
)

// nodesContract configures runNodesContract.
type nodesContract struct {
	// New returns at least three managers that share their locks, on which nothing is held. It is
	// called inside a bubble of testing/synctest.
	New func(t *testing.T) []locks.Manager
	// Handover is the maximum time from a release on one node to the grant on another node that
	// waits for nothing else.
	Handover time.Duration
	// Footprint returns the number of remaining paths, leases and wants.
	Footprint func(nodes []locks.Manager) int
}

// runNodesContract checks the promises of managers that share locks, in addition to what
// runContract checks of each manager.
func runNodesContract(t *testing.T, config nodesContract) {
	for _, test := range []struct {
		name string
		body func(t *testing.T, c nodesContract, nodes []locks.Manager)
	}{
		{"Matrix", testNodesMatrix},
		{"Lineage", testNodesLineage},
		{"NonBlocking", testNodesNonBlocking},
		{"Timeout", testNodesTimeout},
		{"Cancel", testNodesCancel},
		{"ArrivalOrder", testNodesArrivalOrder},
		{"WriterUnderReaders", testNodesWriterUnderReaders},
		{"SubtreeWriterUnderWriters", testNodesSubtreeWriterUnderWriters},
		{"OppositeOrders", testNodesOppositeOrders},
		{"AncestorsCrossed", testNodesAncestorsCrossed},
		{"ProgressSeed1", nodesProgress(1)},
		{"ProgressSeed2", nodesProgress(2)},
		{"ProgressSeed3", nodesProgress(3)},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				nodes := config.New(t)
				test.body(t, config, nodes)
				synctest.Wait()
				if left := config.Footprint(nodes); left != 0 {
					t.Errorf("left when nothing is held: got %d, want 0", left)
				}
			})
		})
	}
}

// mustHoldWithin fails the test unless the attempt is granted in time.
func (a *attempt) mustHoldWithin(t *testing.T, limit time.Duration, what string) locks.Hold {
	t.Helper()
	select {
	case <-a.done:
	case <-time.After(limit):
	}
	return a.mustHold(t, what)
}

// Each pair of modes on two nodes is granted at once or after the release, according to the matrix.
func testNodesMatrix(t *testing.T, c nodesContract, nodes []locks.Manager) {
	for _, held := range locktest.Modes() {
		for _, wanted := range locktest.Modes() {
			time.Sleep(2 * time.Second) // the shares that nodes keep for their next operations end
			holder := acquire(t, nodes[0], requestFor(held, namespace("a"), "of the holder"))
			taker := try(t.Context(), nodes[1], requestFor(wanted, namespace("a"), "of the taker"), locks.Options{})
			what := wanted.String() + " while another node holds " + held.String()
			if compatible[held][wanted] {
				taker.mustHold(t, what).Release()
				holder.Release()
				continue
			}
			time.Sleep(locks.WaitMax / 2)
			taker.mustWait(t, what)
			holder.Release()
			taker.mustHoldWithin(t, c.Handover, what+", after its release").Release()
		}
	}
}

// Two wishes on two nodes exclude each other exactly when the rule of lineage requires it.
func testNodesLineage(t *testing.T, c nodesContract, nodes []locks.Manager) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		time.Sleep(2 * time.Second)
		first, second := randomWish(random), randomWish(random)
		holder := acquire(t, nodes[0], first.request())
		taker, err := nodes[1].Acquire(t.Context(), second.request(), locks.Options{NonBlocking: true})
		switch {
		case err == nil:
			taker.Release()
			if first.mayExclude(second) {
				t.Errorf("held %s on one node: %s was granted on another", first, second)
			}
		case !errors.Is(err, locks.ErrConflict) || !first.mayExclude(second):
			t.Errorf("held %s on one node: %s on another: got %v", first, second, err)
		}
		holder.Release()
	}
}

// A non-blocking Acquire is refused at once, names the lock, and leaves nothing behind.
func testNodesNonBlocking(t *testing.T, c nodesContract, nodes []locks.Manager) {
	pointer := func(id string) locks.Path { return locks.Warehouse("wh").Pointer(id) }
	holder := acquire(t, nodes[0], write(pointer("2")))
	refused := try(t.Context(), nodes[1], write(pointer("1"), pointer("2"), pointer("3")),
		locks.Options{NonBlocking: true})
	if !refused.isDone() || refused.took != 0 {
		t.Errorf("got %v after %s, want an error at once", refused.err, refused.took)
	}
	wantConflict(t, refused.err, pointer("2"))
	acquire(t, nodes[2], write(pointer("1"), pointer("3"))).Release()
	holder.Release()
	acquire(t, nodes[2], write(pointer("2"))).Release()
}

// An Acquire gives up after its timeout, not earlier and not later. After that, it delays no other
// operation.
func testNodesTimeout(t *testing.T, c nodesContract, nodes []locks.Manager) {
	const limit = 7 * time.Second
	holder := acquire(t, nodes[0], read(namespace("b")))
	taker := try(t.Context(), nodes[1], write(namespace("a"), namespace("b")),
		locks.Options{Timeout: locks.FixedTimeout(limit)})
	<-taker.done
	if !errors.Is(taker.err, locks.ErrTimeout) || taker.took != limit {
		t.Errorf("got %v after %s, want ErrTimeout after %s", taker.err, taker.took, limit)
	}
	synctest.Wait()
	acquire(t, nodes[2], locks.Request{Writes: []locks.Path{namespace("a")},
		Reads: []locks.Path{namespace("b")}}).Release()
	holder.Release()
}

// The end of the context ends a wait at once, and the operation that was queued behind it gets its
// lock.
func testNodesCancel(t *testing.T, c nodesContract, nodes []locks.Manager) {
	holder := acquire(t, nodes[0], read(namespace("a")))
	ctx, cancel := context.WithCancel(t.Context())
	writer := try(ctx, nodes[1], write(namespace("a")), locks.Options{})
	reader := try(t.Context(), nodes[2], read(namespace("a")), locks.Options{})
	time.Sleep(time.Second)
	reader.mustWait(t, "reader behind the writer of another node")
	cancel()
	synctest.Wait()
	if !writer.isDone() || !errors.Is(writer.err, context.Canceled) || writer.took != time.Second {
		t.Errorf("got %v after %s, want context.Canceled at once", writer.err, writer.took)
	}
	reader.mustHoldWithin(t, c.Handover, "reader after the writer gave up").Release()
	holder.Release()
}

// Nodes that wait for one lock get it in the order of their requests.
func testNodesArrivalOrder(t *testing.T, c nodesContract, nodes []locks.Manager) {
	holder := acquire(t, nodes[0], write(namespace("a").Shard(1)))
	var queue []*attempt
	for i := range 9 {
		// Each node requests the lock twice, the second time behind its own first request.
		queue = append(queue, try(t.Context(), nodes[i%3], write(namespace("a").Shard(1)),
			locks.Options{Timeout: locks.FixedTimeout(time.Hour)}))
		time.Sleep(time.Millisecond)
	}
	holder.Release()
	for range 9 {
		var granted *attempt
		for deadline := time.Now().Add(c.Handover); granted == nil &&
			time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			synctest.Wait()
			for _, a := range queue {
				if a.isDone() {
					granted = a
					break
				}
			}
		}
		if granted == nil {
			t.Fatal("nobody is granted in time")
		}
		for i, a := range queue {
			if a == granted {
				if i > 2 {
					t.Errorf("place %d of the queue came before the first", i)
				}
				queue = append(queue[:i:i], queue[i+1:]...)
				break
			}
		}
		granted.mustHold(t, "the next").Release()
	}
}

// underNodesStream checks that a writer on one node gets its lock among streams on all other nodes.
func underNodesStream(t *testing.T, c nodesContract, nodes []locks.Manager, request func(i int) locks.Request,
	writer locks.Request) {
	for _, node := range nodes[1:] {
		defer stream(t, node, request)()
	}
	time.Sleep(time.Second)
	taker := try(t.Context(), nodes[0], writer, locks.Options{})
	taker.mustWait(t, "writer under streams of other nodes")
	<-taker.done
	if limit := c.Handover + 10*time.Millisecond; taker.err != nil || taker.took > limit {
		t.Errorf("writer under streams of other nodes: got %v after %s, want it within %s", taker.err, taker.took,
			limit)
	}
	if taker.err == nil {
		time.Sleep(time.Second)
		taker.hold.Release()
	}
}

// Streams of readers on other nodes do not keep a writer out.
func testNodesWriterUnderReaders(t *testing.T, c nodesContract, nodes []locks.Manager) {
	underNodesStream(t, c, nodes, func(int) locks.Request { return read(namespace("a")) }, write(namespace("a")))
}

// Streams of writers inside a subtree do not keep out an operation on the whole subtree.
func testNodesSubtreeWriterUnderWriters(t *testing.T, c nodesContract, nodes []locks.Manager) {
	inside := func(i int) locks.Request { return write(namespace("a").Shard(uint8(i))) }
	underNodesStream(t, c, nodes, inside, write(namespace("a")))
}

// Operations on all nodes with the same paths in opposite orders all get their locks.
func testNodesOppositeOrders(t *testing.T, c nodesContract, nodes []locks.Manager) {
	a, b := namespace("a").Shard(1), namespace("b").Shard(1)
	everybodyGetsThrough(t, nodes, []locks.Request{
		write(a, b), write(b, a), {Reads: []locks.Path{a}, Writes: []locks.Path{b}},
		{Reads: []locks.Path{b}, Writes: []locks.Path{a}},
	})
}

// Two operations each read a subtree in which the other writes. The node of each still holds shares
// that the other operation lacks. Both operations get their locks.
func testNodesAncestorsCrossed(t *testing.T, c nodesContract, nodes []locks.Manager) {
	a, b := namespace("a"), namespace("b")
	everybodyGetsThrough(t, nodes, []locks.Request{
		{Reads: []locks.Path{a}, Writes: []locks.Path{b.Shard(1)}},
		{Reads: []locks.Path{b}, Writes: []locks.Path{a.Shard(1)}},
		write(a.Shard(2)), write(b.Shard(2)), read(a), read(b), write(a.Shard(3), b.Shard(3)),
	})
}

func everybodyGetsThrough(t *testing.T, nodes []locks.Manager, requests []locks.Request) {
	var all sync.WaitGroup
	for i, node := range nodes {
		for j := range requests {
			request := requests[(i+j)%len(requests)] // no two nodes request in the same order
			all.Go(func() {
				for range 10 {
					hold, err := node.Acquire(t.Context(), request,
						locks.Options{Timeout: locks.FixedTimeout(time.Hour)})
					if err != nil {
						t.Errorf("%v: %v", request, err)
						return
					}
					time.Sleep(holdMax)
					hold.Release()
				}
			})
		}
	}
	all.Wait()
}

// nodesProgress returns a test in which workers on all nodes take random sets. All get their locks,
// and no two hold locks that the rule of lineage excludes.
func nodesProgress(seed uint64) func(t *testing.T, c nodesContract, nodes []locks.Manager) {
	return func(t *testing.T, c nodesContract, nodes []locks.Manager) {
		const workers, rounds = 6, 15
		var held witness
		var all sync.WaitGroup
		for i, node := range nodes {
			for worker := range workers {
				random := rand.New(rand.NewPCG(seed, uint64(i*workers+worker)))
				patient := patientManager{node, locks.FixedTimeout(time.Hour)}
				all.Go(func() {
					for range rounds {
						takeOnce(t, patient, random, &held)
					}
				})
			}
		}
		all.Wait()
		if total := workers * rounds * len(nodes); held.granted < total/3 {
			t.Errorf("seed %d: got %d grants of %d, want at least a third", seed, held.granted, total)
		}
	}
}

// patientManager waits indefinitely unless a timeout was requested. If an operation times out,
// there was a deadlock.
type patientManager struct {
	locks.Manager
	timeout *locks.Timeout
}

// Acquire implements locks.Manager.
func (m patientManager) Acquire(ctx context.Context, request locks.Request, options locks.Options) (locks.Hold, error) {
	if !options.NonBlocking && options.Timeout == nil {
		options.Timeout = m.timeout
	}
	hold, err := m.Manager.Acquire(ctx, request, options)
	if err != nil {
		return nil, fmt.Errorf("patient: %w", err)
	}
	return hold, nil
}
