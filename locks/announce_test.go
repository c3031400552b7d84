package locks_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"moorage/locks"
)

const (
	shipAddress = "ship/127.0.0.1:8181"
	shipHost    = "boot 1, network 1"
)

// announcer is the interface that both kinds of nodes share.
type announcer interface {
	Announce(address, host string)
	Withdraw(ctx context.Context) error
}

// An announced node has a session, with its address, before any operation needs one. It ends the
// session of its predecessor, whose locks are free at once.
func TestAnnounceEndsPredecessor(t *testing.T) {
	both(t, func(t *testing.T, c *cluster, newNode func(...func(*locks.DistributedConfig)) locks.Manager) {
		dead := locks.Session{Name: "dead", Address: shipAddress, Host: shipHost, Silence: locks.SilenceMax}
		if err := c.memory.Open(t.Context(), dead); err != nil {
			t.Fatal(err)
		}
		held := locks.Lease{ID: 1, Path: shard(1).String(), Mode: uint8(locks.W)}
		if blocked, alive, err := c.memory.Try(t.Context(), "dead", 0, []locks.Lease{held}, 0); blocked >= 0 || !alive || err != nil {
			t.Fatal(blocked, alive, err)
		}
		began := time.Now()
		node := newNode(func(config *locks.DistributedConfig) { config.Version = "v1.2" })
		node.(announcer).Announce(shipAddress, shipHost)
		synctest.Wait()
		sessions := c.memory.Sessions()
		if len(sessions) != 1 || sessions[0] == "dead" {
			t.Fatalf("sessions: got %q, want the new node's", sessions)
		}
		want := locks.Session{Name: sessions[0], Version: "v1.2", Address: shipAddress, Host: shipHost, Silence: locks.SilenceMax}
		if got, _ := c.memory.Session(sessions[0]); got != want {
			t.Errorf("got the session %+v, want %+v", got, want)
		}
		mustAcquire(t, node, writes(shard(1))).Release()
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %s, want no time", took)
		}
	})
}

// If a node already had a session before it listened, it announces that session.
func TestAnnounceLate(t *testing.T) {
	both(t, func(t *testing.T, c *cluster, newNode func(...func(*locks.DistributedConfig)) locks.Manager) {
		node := newNode()
		hold := mustAcquire(t, node, writes(shard(1)))
		node.(announcer).Announce(shipAddress, shipHost)
		synctest.Wait()
		sessions := c.memory.Sessions()
		if got, _ := c.memory.Session(sessions[0]); len(sessions) != 1 || got.Address != shipAddress || got.Host != shipHost {
			t.Errorf("sessions: %q, the first is %+v", sessions, got)
		}
		mustBeHeld(t, hold)
		hold.Release()
	})
}

// If the store is unavailable during Announce, the node is announced later, once.
func TestAnnounceWhileStoreIsAway(t *testing.T) {
	both(t, func(t *testing.T, c *cluster, newNode func(...func(*locks.DistributedConfig)) locks.Manager) {
		for _, method := range []string{"Open", "Announce"} {
			c.store.Reset()
			c.store.SetHook(func(_ context.Context, called string, call func()) error {
				if called == method {
					return errors.New("away")
				}
				call()
				return nil
			})
			newNode().(announcer).Announce(shipAddress+method, shipHost)
			time.Sleep(time.Minute)
			c.store.SetHook(nil)
			if c.store.Calls(method) < 2 {
				t.Errorf("%s: it was not tried again", method)
			}
			c.store.Reset()
			time.Sleep(2 * locks.SweepInterval)
			if got := c.store.Calls("Announce"); got != 1 {
				t.Errorf("%s: it was announced %d times, want once", method, got)
			}
		}
	})
}

// Another node with the same address may end a node's session, perhaps by mistake. The node then
// opens a new session with the address, and ends no session. So two nodes do not end each other in
// turns.
func TestAnnouncedNodeIsEnded(t *testing.T) {
	both(t, func(t *testing.T, c *cluster, newNode func(...func(*locks.DistributedConfig)) locks.Manager) {
		node := newNode()
		node.(announcer).Announce(shipAddress, shipHost)
		synctest.Wait()
		hold := mustAcquire(t, node, writes(shard(1)))
		other := newNode()
		other.(announcer).Announce(shipAddress, shipHost)
		synctest.Wait()
		theirs := mustAcquire(t, other, writes(shard(1)))
		time.Sleep(locks.HeartbeatMax)
		synctest.Wait()
		mustBeLost(t, hold)
		time.Sleep(2 * locks.SweepInterval)
		sessions := c.memory.Sessions()
		if len(sessions) != 2 {
			t.Errorf("sessions: got %q, want one for each node", sessions)
		}
		for _, name := range sessions {
			if got, _ := c.memory.Session(name); got.Address != shipAddress || got.Host != shipHost {
				t.Errorf("the session %+v has another address", got)
			}
		}
		time.Sleep(time.Minute)
		mustBeHeld(t, theirs)
		if got := c.memory.Sessions(); len(got) != 2 || got[0] != sessions[0] || got[1] != sessions[1] {
			t.Errorf("a minute later there are the sessions %q, want %q", got, sessions)
		}
		hold.Release()
		theirs.Release()
	})
}

// A node whose session is ended while it announces itself ends no session later.
func TestAnnounceAtTheSameTime(t *testing.T) {
	both(t, func(t *testing.T, c *cluster, newNode func(...func(*locks.DistributedConfig)) locks.Manager) {
		c.store.SetHook(func(_ context.Context, method string, call func()) error {
			if method == "Announce" {
				c.endSessions()
			}
			call()
			return nil
		})
		newNode().(announcer).Announce(shipAddress, shipHost)
		time.Sleep(time.Minute)
		sessions := c.memory.Sessions()
		if got := c.store.Calls("Announce"); got != 1 || len(sessions) != 1 {
			t.Fatalf("announced %d times, the sessions are %q, want one of each", got, sessions)
		}
		if got, _ := c.memory.Session(sessions[0]); got.Address != shipAddress || got.Host != shipHost {
			t.Errorf("the session is %+v", got)
		}
	})
}

// A node that withdraws before it stops listening keeps its locks while its successor runs, even if
// it has lost its session.
func TestWithdraw(t *testing.T) {
	both(t, func(t *testing.T, c *cluster, newNode func(...func(*locks.DistributedConfig)) locks.Manager) {
		node := newNode()
		node.(announcer).Announce(shipAddress, shipHost)
		hold := mustAcquire(t, node, writes(shard(1)))
		if err := node.(announcer).Withdraw(t.Context()); err != nil {
			t.Fatal(err)
		}
		next := newNode()
		next.(announcer).Announce(shipAddress, shipHost)
		theirs := mustAcquire(t, next, writes(shard(2)))
		time.Sleep(time.Minute)
		mustBeHeld(t, hold)
		mustBeHeld(t, theirs)
		if got := c.memory.Sessions(); len(got) != 2 {
			t.Errorf("sessions: got %q, want one for each node", got)
		}
		hold.Release()
		theirs.Release()
	})
}

// If a node's announcement did not reach the store, it does not end the session of the node's
// successor later.
func TestWithdrawWhileStoreIsAway(t *testing.T) {
	both(t, func(t *testing.T, c *cluster, newNode func(...func(*locks.DistributedConfig)) locks.Manager) {
		away := errors.New("away")
		c.store.SetHook(func(_ context.Context, method string, call func()) error {
			if method == "Announce" {
				return away
			}
			call()
			return nil
		})
		node := newNode()
		node.(announcer).Announce(shipAddress, shipHost)
		synctest.Wait()
		if err := node.(announcer).Withdraw(t.Context()); !errors.Is(err, away) {
			t.Errorf("answered %v", err)
		}
		c.store.SetHook(nil)
		next := newNode()
		next.(announcer).Announce(shipAddress, shipHost)
		theirs := mustAcquire(t, next, writes(shard(1)))
		time.Sleep(time.Minute)
		mustBeHeld(t, theirs)
		theirs.Release()
	})
}
