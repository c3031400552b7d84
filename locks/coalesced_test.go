package locks_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"moorage/locks"
)

// giveUpMax is the maximum time until a node learns that others want its shares. shareIdle is the
// maximum time that it keeps unused shares.
const (
	giveUpMax = 225 * time.Millisecond
	shareIdle = time.Second
)

func reads(paths ...locks.Path) locks.Request { return locks.Request{Reads: paths} }

// oneCluster runs body for a cluster, in a synctest bubble.
func oneCluster(t *testing.T, body func(t *testing.T, c *cluster)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { body(t, newCluster()) })
}

// holds returns the leases that the cluster's only session holds in the store.
func (c *cluster) holds() []string {
	held := c.memory.Held(c.memory.Sessions()[0])
	slices.Sort(held)
	return held
}

// After the first create, each create takes one lease and releases one, in a call each. A plain
// Distributed also takes the leases of the ancestors.
func TestRoundTripsOfCreate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		kind string
		new  func(t *testing.T, c *cluster) locks.Manager
		rows int
	}{
		{"distributed", func(t *testing.T, c *cluster) locks.Manager { return c.distributed(t) }, 3},
		{"coalesced", func(t *testing.T, c *cluster) locks.Manager { return c.coalesced(t) }, 1},
	} {
		t.Run(test.kind, func(t *testing.T) {
			oneCluster(t, func(t *testing.T, c *cluster) {
				node := test.new(t, c)
				mustAcquire(t, node, writes(shard(0))).Release()
				const creates = 100
				c.store.Reset()
				for i := range creates {
					time.Sleep(10 * time.Millisecond)
					hold, err := node.Acquire(t.Context(), writes(shard(uint8(i%16))), locks.Options{})
					if err != nil {
						t.Fatal(err)
					}
					hold.Release()
				}
				for method, rows := range map[string]int{"Try": test.rows, "Release": test.rows, "Open": 0} {
					calls := min(rows, 1)
					if got := c.store.Calls(method); got != calls*creates {
						t.Errorf("calls of %s: got %d, want %d", method, got, calls*creates)
					}
					if got := c.store.Rows(method); got != rows*creates {
						t.Errorf("rows of %s: got %d, want %d", method, got, rows*creates)
					}
				}
				if got, most := c.store.Calls("Wanted"), 15; got > most {
					t.Errorf("calls of Wanted in a second: got %d, want at most %d", got, most)
				}
				time.Sleep(2 * time.Second)
				c.store.Reset()
				time.Sleep(time.Minute)
				if calls, rows := c.store.Calls("Renew"), c.store.Rows("Renew"); calls < 60 || calls > 180 || rows != 0 {
					t.Errorf("idle for a minute: got %d calls of Renew with %d ids, want 60 to 180 with none", calls, rows)
				}
				if calls := c.store.Calls("Wanted"); calls != 0 {
					t.Errorf("idle for a minute: got %d calls of Wanted, want none", calls)
				}
			})
		})
	}
}

// Many operations that begin at the same time take their shares in one call.
func TestReadersShareOneLease(t *testing.T) {
	oneCluster(t, func(t *testing.T, c *cluster) {
		node := c.coalesced(t)
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { mustAcquire(t, node, reads(shard(1).Parent())).Release() })
			all.Go(func() {
				hold, err := node.Acquire(t.Context(), reads(shard(1).Parent()), locks.Options{})
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Millisecond)
				hold.Release()
			})
		}
		all.Wait()
		if calls := c.store.Calls("Try"); calls != 1 {
			t.Errorf("calls of Try: got %d, want 1", calls)
		}
		if got, want := c.holds(), []string{"R /wh/ns", "RA /wh"}; !slices.Equal(got, want) {
			t.Errorf("held: got %q, want %q", got, want)
		}
	})
}

// Many operations that wait for one share make no more calls than a single one would. All of them
// continue when the share is taken.
func TestFollowersDoNotAsk(t *testing.T) {
	oneCluster(t, func(t *testing.T, c *cluster) {
		node, other := c.coalesced(t), c.coalesced(t)
		writer := mustAcquire(t, other, writes(shard(1).Parent()))
		c.store.Reset()
		var all sync.WaitGroup
		took := make(chan time.Duration, 100)
		for range 100 {
			all.Go(func() {
				hold, err := node.Acquire(t.Context(), reads(shard(1).Parent()), locks.Options{})
				if err != nil {
					t.Error(err)
					return
				}
				took <- 0
				time.Sleep(time.Millisecond)
				hold.Release()
			})
		}
		const held = 10 * time.Second
		time.Sleep(held)
		if calls, most := c.store.Calls("Try"), int(held/(100*time.Millisecond))+10; calls > most {
			t.Errorf("calls of Try while 100 operations wait for %s: got %d, want at most %d", held, calls, most)
		}
		writer.Release()
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if got := len(took); got != 100 {
			t.Errorf("granted after the writer's release: got %d, want 100", got)
		}
		all.Wait()
	})
}

// If the operation that tries to take a share for all gives up, another one tries.
func TestFollowersReplaceTheirLeader(t *testing.T) {
	oneCluster(t, func(t *testing.T, c *cluster) {
		node, other := c.coalesced(t), c.coalesced(t)
		writer := mustAcquire(t, other, writes(shard(1).Parent()))
		var cancels []context.CancelFunc
		granted := make(chan int, 4)
		for i := range cap(granted) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cancels = append(cancels, cancel)
			go func() {
				if hold, err := node.Acquire(ctx, reads(shard(1).Parent()), locks.Options{}); err == nil {
					granted <- i
					hold.Release()
				}
			}()
			synctest.Wait()
		}
		cancels[0]()
		cancels[2]()
		time.Sleep(time.Second)
		writer.Release()
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if len(granted) != 2 || <-granted+<-granted != 1+3 {
			t.Errorf("granted: got %d of the two that did not give up", len(granted))
		}
	})
}

// An operation that follows a leader uses no share in the meantime, because the leader may be
// waiting for an operation that wants that share.
func TestFollowersUseNothing(t *testing.T) {
	oneCluster(t, func(t *testing.T, c *cluster) {
		node, other := c.coalesced(t), c.coalesced(t)
		p, q := shard(1), shard(2)
		first := mustAcquire(t, node, reads(p))
		granted := make(chan string, 3)
		start := func(name string, manager locks.Manager, request locks.Request) {
			go func() {
				hold, err := manager.Acquire(t.Context(), request, locks.Options{})
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				granted <- name
				hold.Release()
			}()
			synctest.Wait()
		}
		start("writer", other, writes(p, q))
		start("leader", node, reads(q))      // behind the writer's want
		start("follower", node, reads(p, q)) // p is shared, and not known to be wanted yet
		first.Release()
		time.Sleep(giveUpMax + 200*time.Millisecond)
		synctest.Wait()
		if len(granted) == 0 || <-granted != "writer" {
			t.Error("the writer was not granted first")
		}
		time.Sleep(time.Second)
		if len(granted) != 2 {
			t.Errorf("granted behind the writer: got %d, want 2", len(granted))
		}
	})
}

// Operations that wait in a session that ends continue in the next one, including followers.
func TestWaitersSurviveTheirSession(t *testing.T) {
	oneCluster(t, func(t *testing.T, c *cluster) {
		other := c.coalesced(t)
		writer := mustAcquire(t, other, writes(shard(1)))
		theirs := c.memory.Sessions()[0]
		node := c.coalesced(t)
		granted := make(chan time.Time, 3)
		for range cap(granted) {
			go func() {
				hold, err := node.Acquire(t.Context(), reads(shard(1)), locks.Options{})
				if err != nil {
					t.Error(err)
					return
				}
				granted <- time.Now()
				hold.Release()
			}()
		}
		time.Sleep(time.Second)
		for _, session := range c.memory.Sessions() {
			if session != theirs {
				if err := c.memory.End(t.Context(), session); err != nil {
					t.Error(err)
				}
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if len(granted) > 0 {
			t.Error("somebody was granted while the writer still held")
		}
		writer.Release()
		time.Sleep(giveUpMax + 200*time.Millisecond)
		synctest.Wait()
		if len(granted) != cap(granted) {
			t.Errorf("granted: got %d, want %d", len(granted), cap(granted))
		}
	})
}

// An operation that loses a share while it takes the rest starts again, instead of holding fewer
// locks than it needs.
func TestShareLostWhileTaking(t *testing.T) {
	oneCluster(t, func(t *testing.T, c *cluster) {
		node := c.coalesced(t)
		mustAcquire(t, node, writes(shard(1))).Release()
		session := c.memory.Sessions()[0]
		goOn := make(chan struct{})
		c.store.SetHook(func(_ context.Context, method string, call func()) error {
			if method == "Try" {
				<-goOn
			}
			call()
			return nil
		})
		granted := make(chan locks.Hold, 1)
		go func() {
			hold, err := node.Acquire(t.Context(), writes(shard(2)), locks.Options{})
			if err != nil {
				t.Error(err)
			}
			granted <- hold
		}()
		time.Sleep(time.Second)
		if err := c.memory.Release(t.Context(), session, []int64{1, 2, 3, 4}); err != nil { // the first operation's
			t.Fatal(err)
		}
		c.store.Reset()
		for c.store.Calls("Renew") == 0 {
			time.Sleep(time.Millisecond)
		}
		close(goOn)
		hold := <-granted
		synctest.Wait()
		mustBeHeld(t, hold)
		if got, want := c.holds(), []string{"W /wh/ns/#2", "WA /wh", "WA /wh/ns"}; !slices.Equal(got, want) {
			t.Errorf("held: got %q, want %q", got, want)
		}
		hold.Release()
	})
}

// A share is kept while it is in use, and for a second after that.
func TestShareEndsWhenIdle(t *testing.T) {
	oneCluster(t, func(t *testing.T, c *cluster) {
		node := c.coalesced(t)
		hold := mustAcquire(t, node, writes(shard(1)))
		time.Sleep(time.Minute)
		if got, want := c.holds(), []string{"W /wh/ns/#1", "WA /wh", "WA /wh/ns"}; !slices.Equal(got, want) {
			t.Errorf("while it is used: got %q held, want %q", got, want)
		}
		hold.Release()
		time.Sleep(shareIdle - time.Millisecond)
		if got, want := c.holds(), []string{"WA /wh", "WA /wh/ns"}; !slices.Equal(got, want) {
			t.Errorf("just after its use: got %q held, want %q", got, want)
		}
		time.Sleep(giveUpMax + time.Millisecond)
		if got := c.holds(); len(got) > 0 {
			t.Errorf("a second after its use: got %q held, want nothing", got)
		}
	})
}

// An unused share is given up early if another node wants it.
func TestIdleShareIsGivenUp(t *testing.T) {
	oneCluster(t, func(t *testing.T, c *cluster) {
		node, other := c.coalesced(t), c.coalesced(t)
		mustAcquire(t, node, writes(shard(1))).Release()
		began := time.Now()
		hold, err := other.Acquire(t.Context(), writes(shard(1).Parent()), locks.Options{})
		if took, limit := time.Since(began), giveUpMax+200*time.Millisecond; err != nil || took > limit {
			t.Fatalf("got error %v after %s, want it granted within %s", err, took, limit)
		}
		hold.Release()
	})
}

// No operation joins a share that another node wants. Its last user releases it.
func TestUsedShareIsGivenBack(t *testing.T) {
	oneCluster(t, func(t *testing.T, c *cluster) {
		node, other := c.coalesced(t), c.coalesced(t)
		first, second := mustAcquire(t, node, reads(shard(1))), mustAcquire(t, node, reads(shard(1)))
		granted := make(chan locks.Hold, 2)
		acquire := func(manager locks.Manager, request locks.Request) {
			hold, err := manager.Acquire(t.Context(), request, locks.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			granted <- hold
		}
		go acquire(other, writes(shard(1)))
		time.Sleep(giveUpMax)
		synctest.Wait()
		if _, err := node.Acquire(t.Context(), reads(shard(1)), locks.Options{NonBlocking: true}); !errors.Is(err, locks.ErrConflict) {
			t.Errorf("a new reader when a writer waits: got %v, want ErrConflict", err)
		}
		go acquire(node, reads(shard(1)))
		first.Release()
		time.Sleep(time.Second)
		if len(granted) > 0 {
			t.Fatal("somebody was granted while the last reader still held")
		}
		second.Release()
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if len(granted) != 1 {
			t.Fatalf("granted after the last reader's release: got %d, want 1", len(granted))
		}
		(<-granted).Release() // the writer; the reader would have let the other go first
		(<-granted).Release()
	})
}

// The limit also holds if operations take only shares, which the store does not see.
func TestStreamOnSharesEnds(t *testing.T) {
	oneCluster(t, func(t *testing.T, c *cluster) {
		node, other := c.coalesced(t), c.coalesced(t)
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				for ctx.Err() == nil {
					if hold, err := node.Acquire(ctx, reads(shard(1)), locks.Options{}); err == nil {
						time.Sleep(4 * time.Millisecond)
						hold.Release()
					}
				}
			})
		}
		time.Sleep(10 * time.Second)
		if got := c.store.Calls("Try"); got != 1 {
			t.Errorf("calls of Try during the stream: got %d, want 1", got)
		}
		began := time.Now()
		hold, err := other.Acquire(t.Context(), writes(shard(1)), locks.Options{})
		if took, limit := time.Since(began), giveUpMax+210*time.Millisecond; err != nil || took > limit {
			t.Errorf("writer under a stream of shares: got %v after %s, want it within %s", err, took, limit)
		}
		stop()
		if err == nil {
			hold.Release()
		}
		all.Wait()
	})
}

// If a share is taken away, the holds of all its users are lost, and no other holds.
func TestSharePassedOver(t *testing.T) {
	oneCluster(t, func(t *testing.T, c *cluster) {
		node := c.coalesced(t)
		first, second := mustAcquire(t, node, reads(shard(1))), mustAcquire(t, node, reads(shard(1)))
		kept := mustAcquire(t, node, reads(shard(2)))
		c.cutOff("Renew", "Reap")
		time.Sleep(locks.SilenceMax + time.Millisecond)
		theirs := mustAcquire(t, c.coalesced(t), writes(shard(1)))
		c.store.SetHook(nil)
		time.Sleep(locks.HeartbeatMax + 5*time.Second) // the rest of the call that hangs is in it
		synctest.Wait()
		mustBeLost(t, first)
		mustBeLost(t, second)
		mustBeHeld(t, kept)
		if _, err := node.Acquire(t.Context(), reads(shard(1)), locks.Options{NonBlocking: true}); !errors.Is(err, locks.ErrConflict) {
			t.Errorf("what was taken: got %v, want ErrConflict", err)
		}
		for _, hold := range []locks.Hold{first, second, kept, theirs} {
			hold.Release()
		}
	})
}

// BenchmarkCreate takes and releases the locks of a table's creation, and counts the calls to the
// store.
func BenchmarkCreate(b *testing.B) {
	for _, bench := range []struct {
		kind string
		new  func(b *testing.B, c *cluster) locks.Manager
	}{
		{"distributed", func(b *testing.B, c *cluster) locks.Manager { return c.distributed(b) }},
		{"coalesced", func(b *testing.B, c *cluster) locks.Manager { return c.coalesced(b) }},
	} {
		for _, depth := range []int{1, 4} {
			b.Run(fmt.Sprintf("%s/depth=%d", bench.kind, depth), func(b *testing.B) {
				c := newCluster()
				node := bench.new(b, c)
				ns := locks.Warehouse("wh")
				for i := range depth {
					ns = ns.Namespace(fmt.Sprint("level", i))
				}
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					hold, err := node.Acquire(b.Context(), writes(ns.Shard(uint8(i%16))), locks.Options{})
					if err != nil {
						b.Fatal(err)
					}
					hold.Release()
				}
				b.ReportMetric(float64(c.store.Calls("Try")+c.store.Calls("Release")+c.store.Calls("Wanted"))/float64(b.N), "roundtrips/op")
				b.ReportMetric(float64(c.store.Rows("Try")+c.store.Rows("Release"))/float64(b.N), "rows/op")
			})
		}
	}
}
