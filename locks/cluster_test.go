package locks_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"moorage/locks"
	"moorage/testkit/locktest"
)

// If a node's heartbeats do not get through, it ends its holds no later than its session ends. It
// logs that and opens another session.
func TestHeartbeatsPaused(t *testing.T) {
	both(t, func(t *testing.T, c *cluster, newNode func(...func(*locks.DistributedConfig)) locks.Manager) {
		var seen events
		var logs lockedBuffer
		node := newNode(func(config *locks.DistributedConfig) {
			config.Name, config.Observer, config.Logger = "paused", &seen, slog.New(slog.NewTextHandler(&logs, nil))
		})
		began := time.Now()
		hold := mustAcquire(t, node, writes(shard(1), locks.Warehouse("wh").Pointer("1")))
		c.cutOff("Renew")
		<-hold.Context().Done()
		mustBeLost(t, hold)
		if took := time.Since(began); took != locks.SessionTTL {
			t.Errorf("the hold ended after %s, want %s", took, locks.SessionTTL)
		}
		synctest.Wait()
		want := []string{"pointer held 15s", "pointer lost", "session lost", "shard held 15s", "shard lost"}
		if got := seen.take(); !slices.Equal(got, want) {
			t.Errorf("observed: got %q, want %q", got, want)
		}
		if text := logs.String(); !strings.Contains(text, "lost the session") || !strings.Contains(text, "session=paused/") || !strings.Contains(text, "operations=1") {
			t.Errorf("logged: got %q, want that the session was lost", text)
		}
		hold.Release()

		c.store.SetHook(nil)
		again := mustAcquire(t, node, writes(shard(1)))
		time.Sleep(10 * locks.SessionTTL)
		mustBeHeld(t, again)
		if got := len(c.memory.Sessions()); got != 1 {
			t.Errorf("sessions: got %d, want 1", got)
		}
		again.Release()
	})
}

// The time counts from the sending of a heartbeat, because its answer may be delayed.
func TestHeartbeatAnsweredLate(t *testing.T) {
	both(t, func(t *testing.T, c *cluster, newNode func(...func(*locks.DistributedConfig)) locks.Manager) {
		hold := mustAcquire(t, newNode(), writes(shard(1)))
		var renewed time.Time
		c.store.SetHook(func(ctx context.Context, method string, call func()) error {
			switch {
			case method != "Renew":
				call()
				return nil
			case renewed.IsZero():
				renewed = time.Now()
				call()
				time.Sleep(4 * time.Second)
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		})
		<-hold.Context().Done()
		mustBeLost(t, hold)
		if took := time.Since(renewed); took != locks.SessionTTL {
			t.Errorf("the hold ended %s after the last heartbeat that was answered, want %s", took, locks.SessionTTL)
		}
		hold.Release()
	})
}

// If another node has ended a node's session, the node learns that with its next heartbeat, and
// opens a new session.
func TestSessionReaped(t *testing.T) {
	both(t, func(t *testing.T, c *cluster, newNode func(...func(*locks.DistributedConfig)) locks.Manager) {
		node, other := newNode(), newNode()
		hold := mustAcquire(t, node, writes(shard(1)))
		c.endSessions()
		theirs := mustAcquire(t, other, writes(shard(1)))
		mustBeHeld(t, hold)
		time.Sleep(locks.HeartbeatMax)
		synctest.Wait()
		mustBeLost(t, hold)
		mustBeHeld(t, theirs)
		hold.Release()
		if _, err := node.Acquire(t.Context(), writes(shard(1)), locks.Options{NonBlocking: true}); !errors.Is(err, locks.ErrConflict) {
			t.Errorf("the lock of the other node: got %v, want ErrConflict", err)
		}
		mustAcquire(t, node, writes(shard(2))).Release()
		theirs.Release()
	})
}

// A node also learns from a Try that its session was ended.
func TestSessionReapedFoundByTry(t *testing.T) {
	both(t, func(t *testing.T, c *cluster, newNode func(...func(*locks.DistributedConfig)) locks.Manager) {
		node := newNode()
		hold := mustAcquire(t, node, writes(shard(1)))
		c.endSessions()
		mustAcquire(t, node, writes(shard(2))).Release()
		synctest.Wait()
		mustBeLost(t, hold)
	})
}

// If a session is lost during a Try, it does not keep the granted leases. The operation starts
// again in the next session.
func TestSessionLostDuringTry(t *testing.T) {
	both(t, func(t *testing.T, c *cluster, newNode func(...func(*locks.DistributedConfig)) locks.Manager) {
		node := newNode()
		mustAcquire(t, node, writes(shard(9))).Release()
		tries := 0
		c.store.SetHook(func(_ context.Context, method string, call func()) error {
			call()
			if method == "Try" {
				if tries++; tries == 1 {
					c.endSessions()
					time.Sleep(locks.HeartbeatMax) // so that the node learns about it
				}
			}
			return nil
		})
		hold := mustAcquire(t, node, writes(shard(1)))
		if got, want := c.holds(), []string{"W /wh/ns/#1", "WA /wh", "WA /wh/ns"}; tries != 2 || !slices.Equal(got, want) {
			t.Errorf("after %d tries: got %q held, want %q after 2", tries, got, want)
		}
		mustBeHeld(t, hold)
		hold.Release()
	})
}

// When a node has died, others can take its leases after the silence stated in its session, with
// blocking and non-blocking requests. A node of a version that states no silence sends fewer
// heartbeats, and is allowed more time.
func TestNodeDies(t *testing.T) {
	for _, tt := range []struct {
		options          locks.Options
		states, passedAt time.Duration
	}{
		{locks.Options{}, locks.SilenceMax, locks.SilenceMax},
		{locks.Options{NonBlocking: true}, locks.SilenceMax, locks.SilenceMax},
		{locks.Options{}, 0, locks.SessionTTL},
		{locks.Options{NonBlocking: true}, 0, 6 * time.Second},
	} {
		options, limit := tt.options, tt.passedAt
		t.Run(fmt.Sprintf("non-blocking %t, states %s", options.NonBlocking, tt.states), func(t *testing.T) {
			both(t, func(t *testing.T, c *cluster, newNode func(...func(*locks.DistributedConfig)) locks.Manager) {
				// The dead node is a session without a process, which never renewed.
				dead := locks.Lease{ID: 1, Path: shard(1).String(), Mode: uint8(locks.W)}
				if err := c.memory.Open(t.Context(), locks.Session{Name: "dead", Silence: tt.states}); err != nil {
					t.Fatal(err)
				}
				if blocked, alive, err := c.memory.Try(t.Context(), "dead", 0, []locks.Lease{dead}, 0); blocked >= 0 || !alive || err != nil {
					t.Fatal(blocked, alive, err)
				}
				node, began := newNode(), time.Now()
				latest := limit + 200*time.Millisecond
				if options.NonBlocking {
					latest = limit + time.Millisecond
				}
				hold, err := node.Acquire(t.Context(), writes(shard(1)), options)
				for errors.Is(err, locks.ErrConflict) {
					time.Sleep(time.Millisecond)
					hold, err = node.Acquire(t.Context(), writes(shard(1)), options)
				}
				if took := time.Since(began); err != nil || took < limit || took > latest {
					t.Fatalf("got error %v after %s, want a grant after %s to %s", err, took, limit, latest)
				}
				hold.Release()
				time.Sleep(locks.SessionTTL + 2*locks.SweepInterval - time.Since(began))
				if got := c.memory.Sessions(); slices.Contains(got, "dead") {
					t.Errorf("sessions: got %q, want the dead one reaped", got)
				}
			})
		})
	}
}

// A node that was silent for a while keeps the leases that no other node needed. It learns which
// leases were taken from it.
func TestPassedOver(t *testing.T) {
	both(t, func(t *testing.T, c *cluster, newNode func(...func(*locks.DistributedConfig)) locks.Manager) {
		var seen events
		node := newNode(func(config *locks.DistributedConfig) { config.Observer = &seen })
		lost, kept := mustAcquire(t, node, writes(shard(1))), mustAcquire(t, node, writes(shard(2)))
		c.cutOff("Renew", "Reap")
		time.Sleep(locks.SilenceMax + time.Millisecond)
		// The other node has no session yet, so it does not count as silent.
		other := newNode()
		theirs := mustAcquire(t, other, writes(shard(1)))
		mustBeHeld(t, lost)
		c.store.SetHook(nil)
		time.Sleep(locks.HeartbeatMax + 5*time.Second) // includes the rest of the call that hangs
		synctest.Wait()
		mustBeLost(t, lost)
		mustBeHeld(t, kept)
		mustBeHeld(t, theirs)
		if got := seen.take(); len(got) != 2 || got[1] != "shard lost" {
			t.Errorf("observed: got %q, want the loss of one shard, and no session lost", got)
		}
		lost.Release()
		if _, err := node.Acquire(t.Context(), writes(shard(1)), locks.Options{NonBlocking: true}); !errors.Is(err, locks.ErrConflict) {
			t.Errorf("what was taken: got %v, want ErrConflict", err)
		}
		kept.Release()
		theirs.Release()
	})
}

// An Acquire whose context ends during a call returns at once. Leases that the call may have taken
// are released.
func TestCancelDuringCall(t *testing.T) {
	both(t, func(t *testing.T, c *cluster, newNode func(...func(*locks.DistributedConfig)) locks.Manager) {
		node, other := newNode(), newNode()
		mustAcquire(t, node, writes(shard(9))).Release()
		c.store.SetHook(func(ctx context.Context, method string, call func()) error {
			call() // the store carries out the call, and its answer is lost
			if method == "Try" {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := node.Acquire(ctx, writes(shard(1)), locks.Options{})
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, locks.ErrUnavailable) || took != time.Second {
			t.Errorf("got %v after %s, want context.DeadlineExceeded after 1s", err, took)
		}
		synctest.Wait()
		c.store.SetHook(nil)
		mustAcquire(t, other, writes(shard(1))).Release()
		mustAcquire(t, node, writes(shard(1))).Release()
	})
}

// If the store refuses or does not answer, Acquire does not wait for locks, and leaves nothing
// behind.
func TestStoreAway(t *testing.T) {
	both(t, func(t *testing.T, c *cluster, newNode func(...func(*locks.DistributedConfig)) locks.Manager) {
		refused := errors.New("refused")
		node := newNode()
		for _, method := range []string{"Open", "Try"} {
			c.store.SetHook(func(_ context.Context, called string, call func()) error {
				if called == method {
					return refused
				}
				call()
				return nil
			})
			began := time.Now()
			for _, options := range []locks.Options{{}, {NonBlocking: true}} {
				if _, err := node.Acquire(t.Context(), writes(shard(1)), options); !errors.Is(err, locks.ErrUnavailable) || time.Since(began) != 0 {
					t.Errorf("%s refused: got %v after %s, want ErrUnavailable at once", method, err, time.Since(began))
				}
			}
			c.cutOff(method)
			_, err := node.Acquire(t.Context(), writes(shard(1)), locks.Options{})
			if took := time.Since(began); !errors.Is(err, locks.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || took != 5*time.Second {
				t.Errorf("%s hangs: got %v after %s, want ErrUnavailable after 5s", method, err, took)
			}
			c.store.SetHook(nil)
			mustAcquire(t, node, writes(shard(9))).Release()
		}
	})
}

// Leases that could not be released are released when the store is available again.
func TestReleaseFails(t *testing.T) {
	both(t, func(t *testing.T, c *cluster, newNode func(...func(*locks.DistributedConfig)) locks.Manager) {
		node, other := newNode(), newNode()
		hold := mustAcquire(t, node, writes(shard(1)))
		c.cutOff("Release")
		began := time.Now()
		hold.Release()
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("Release: took %s, want it to give up after 5s", took)
		}
		c.store.SetHook(nil)
		time.Sleep(locks.HeartbeatMax)
		synctest.Wait()
		mustAcquire(t, other, writes(shard(1))).Release()
	})
}

// A lease ends if the node does not know about it, because the answer to the Try was lost and the
// Release came too early.
func TestOrphansEnd(t *testing.T) {
	both(t, func(t *testing.T, c *cluster, newNode func(...func(*locks.DistributedConfig)) locks.Manager) {
		node, other := newNode(), newNode()
		mustAcquire(t, node, writes(shard(1))).Release()
		session := c.memory.Sessions()[0]
		if !strings.HasPrefix(session, "node/") {
			t.Errorf("the session of a node without a name is called %q", session)
		}
		orphan := locks.Lease{ID: 4711, Path: shard(2).String(), Mode: uint8(locks.W)}
		if blocked, alive, err := c.memory.Try(t.Context(), session, 0, []locks.Lease{orphan}, 0); blocked >= 0 || !alive || err != nil {
			t.Fatal(blocked, alive, err)
		}
		began := time.Now()
		hold, err := other.Acquire(t.Context(), writes(shard(2)), locks.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if took, limit := time.Since(began), locks.SessionTTL+locks.HeartbeatMax+200*time.Millisecond; took > limit {
			t.Errorf("got it after %s, want at most %s", took, limit)
		}
		hold.Release()
	})
}

// A node that is closed gives everything up at once, and grants nothing more.
func TestClose(t *testing.T) {
	both(t, func(t *testing.T, c *cluster, newNode func(...func(*locks.DistributedConfig)) locks.Manager) {
		node, other := newNode(), newNode()
		hold := mustAcquire(t, node, writes(shard(1)))
		node.(interface{ Close() }).Close()
		mustBeLost(t, hold)
		mustAcquire(t, other, writes(shard(1))).Release()
		hold.Release()
		if _, err := node.Acquire(t.Context(), writes(shard(1)), locks.Options{}); !errors.Is(err, locks.ErrUnavailable) {
			t.Errorf("after Close: got %v, want ErrUnavailable", err)
		}
		node.(interface{ Close() }).Close()
	})
}

// Locks taken with InProcess exclude only the operations of that node, and make no calls to the
// store. Neither does an empty request.
func TestInProcess(t *testing.T) {
	both(t, func(t *testing.T, c *cluster, newNode func(...func(*locks.DistributedConfig)) locks.Manager) {
		var seen events
		node, other := newNode(func(config *locks.DistributedConfig) { config.Observer = &seen }), newNode()
		mustAcquire(t, node, locks.Request{}).Release()
		inProcess := locks.Options{InProcess: true, NonBlocking: true}
		hold, err := node.Acquire(t.Context(), writes(shard(1)), inProcess)
		if err != nil {
			t.Fatal(err)
		}
		for _, options := range []locks.Options{inProcess, {NonBlocking: true}} {
			if _, err := node.Acquire(t.Context(), writes(shard(1)), options); !errors.Is(err, locks.ErrConflict) {
				t.Errorf("on the same node with %+v: got %v, want ErrConflict", options, err)
			}
		}
		if calls := c.store.Calls("Open") + c.store.Calls("Try"); calls != 0 {
			t.Errorf("calls to the store: got %d, want none", calls)
		}
		mustAcquire(t, other, writes(shard(1))).Release()
		seen.take()
		time.Sleep(time.Minute)
		hold.Release()
		if got := seen.take(); !slices.Equal(got, []string{"shard held 1m0s"}) {
			t.Errorf("observed: got %q, want how long it was held", got)
		}
		mustAcquire(t, node, writes(shard(1))).Release()
	})
}

// NewDistributed panics if a required field is missing.
func TestDistributedNeeds(t *testing.T) {
	t.Parallel()
	leases, jitter := locktest.NewMemoryLeases(time.Now), rand.New(rand.NewPCG(1, 1))
	for _, config := range []locks.DistributedConfig{{Leases: leases}, {Jitter: jitter}} {
		func() {
			defer func() {
				if said := recover(); said != "locks: Leases and Jitter are required" {
					t.Errorf("%+v: %v", config, said)
				}
			}()
			locks.NewDistributed(config)
		}()
	}
}

// An Observer gets the same reports of conflicts and waits for leases as of those within the
// process.
func TestNodesObserver(t *testing.T) {
	both(t, func(t *testing.T, c *cluster, newNode func(...func(*locks.DistributedConfig)) locks.Manager) {
		var seen events
		node, other := newNode(func(config *locks.DistributedConfig) { config.Observer = &seen }), newNode()
		theirs := mustAcquire(t, other, writes(shard(1)))
		expect := func(want ...string) {
			t.Helper()
			synctest.Wait()
			if got := seen.take(); !slices.Equal(got, want) {
				t.Errorf("observed: got %q, want %q", got, want)
			}
		}
		if _, err := node.Acquire(t.Context(), writes(shard(1)), locks.Options{NonBlocking: true}); !errors.Is(err, locks.ErrConflict) {
			t.Errorf("got %v, want ErrConflict", err)
		}
		expect("shard conflicted")
		if _, err := node.Acquire(t.Context(), writes(shard(1)), locks.Options{Timeout: locks.FixedTimeout(time.Second)}); !errors.Is(err, locks.ErrTimeout) {
			t.Errorf("got %v, want ErrTimeout", err)
		}
		expect("shard conflicted", "shard waited: locks: timed out")
		time.AfterFunc(time.Second, theirs.Release)
		hold, err := node.Acquire(t.Context(), writes(shard(1)), locks.Options{})
		if err != nil {
			t.Fatal(err)
		}
		expect("shard conflicted", "shard waited: <nil>")
		time.Sleep(time.Minute)
		hold.Release()
		expect("shard held 1m0s")
	})
}
