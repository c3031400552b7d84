package postgres

import (
	"context"
	"sync"
	"testing"
	"time"

	"moorage/locks"
)

// Heartbeats have their own connections, so calls that wait for each other do not make a node
// silent.
func TestHeartbeatBesideCallsThatWait(t *testing.T) {
	t.Parallel()
	const application = "lease_heartbeat"
	leases := newLeases(t, "&application_name="+application)
	if err := leases.Open(t.Context(), locks.Session{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	// This connection is not from the pool of the other calls.
	holder, err := leases.heartbeats.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), "LOCK TABLE moorage_lease_stripe"); err != nil {
		t.Fatal(err)
	}
	const waitingCalls = 2 * leaseConnectionsMax
	var waiting sync.WaitGroup
	for i := range waitingCalls {
		waiting.Go(func() {
			_, _, err := leases.Try(t.Context(), "a", 0, []locks.Lease{{ID: int64(i + 1), Path: "/w", Mode: uint8(locks.RA)}}, time.Minute)
			if err != nil {
				t.Error(err)
			}
		})
	}
	awaitLocks(t, application, leaseConnectionsMax, make(chan struct{}))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // much longer than needed, while the other calls never end
	defer cancel()
	for range 3 {
		if _, alive, err := leases.Renew(ctx, "a", nil, time.Hour); !alive || err != nil {
			t.Errorf("renew beside calls that wait: alive %t, error %v", alive, err)
		}
	}
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	waiting.Wait()
}

// For a session opened by a binary that only knows the steps before 3, the taker's limit of silence
// counts, because such a node sends heartbeats less often. It ends like any other session. Sessions
// of newer nodes have their own limit.
func TestSessionOfFormerBinary(t *testing.T) {
	t.Parallel()
	leases := newLeases(t, "")
	const former = "INSERT INTO moorage_lease_session (session, renewed) SELECT $1::text, clock_timestamp()"
	if _, err := leases.connections.pool.Exec(t.Context(), former, "former"); err != nil {
		t.Fatal(err)
	}
	now := locks.Session{Name: "now", Version: "v2", Address: "ship/127.0.0.1:8181", Host: "boot", Silence: locks.SilenceMax}
	for _, session := range []locks.Session{now, {Name: "taker", Silence: time.Hour}} {
		if err := leases.Open(t.Context(), session); err != nil {
			t.Fatal(err)
		}
	}
	try := func(session, path string, silence time.Duration) (blocked int) {
		t.Helper()
		blocked, alive, err := leases.Try(t.Context(), session, 0, []locks.Lease{{ID: 1, Path: path, Mode: uint8(locks.W)}}, silence)
		if !alive || err != nil {
			t.Fatal(alive, err)
		}
		return blocked
	}
	if try("former", "/w/1", time.Minute) >= 0 || try("now", "/w/2", time.Minute) >= 0 {
		t.Fatal("a free lease was not granted")
	}
	leases.pass(t, locks.SilenceMax+time.Second)
	const allowed = 10 * time.Minute // no test takes that long
	if try("taker", "/w/1", allowed) < 0 {
		t.Error("the former binary's session was passed over too early")
	}
	if try("taker", "/w/2", allowed) >= 0 {
		t.Error("a session that says how long it may be silent was not passed over")
	}
	leases.pass(t, allowed)
	if _, err := leases.connections.pool.Exec(t.Context(), "DELETE FROM moorage_lease WHERE session = 'taker'"); err != nil {
		t.Fatal(err)
	}
	if try("taker", "/w/1", allowed) >= 0 {
		t.Error("the former binary's session was not passed over")
	}

	var version, address, host string
	var silence time.Duration
	row := leases.connections.pool.QueryRow(t.Context(), "SELECT version, address, host, silence FROM moorage_lease_session WHERE session = 'now'")
	if err := row.Scan(&version, &address, &host, &silence); err != nil {
		t.Fatal(err)
	}
	if got := (locks.Session{Name: "now", Version: version, Address: address, Host: host, Silence: silence}); got != now {
		t.Errorf("the database has %+v, want %+v", got, now)
	}
	if ended, err := leases.Reap(t.Context(), time.Minute); ended != 3 || err != nil {
		t.Errorf("reap: got %d, error %v, want 3", ended, err)
	}
}
