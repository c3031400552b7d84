package postgres

import (
	"slices"
	"testing"
	"time"

	"moorage/locks"
)

// A session that was not opened is not alive, and calls on its behalf change nothing.
func testSessionUnknown(t *testing.T, s leaseStore) {
	a := s.begin(t, "a")
	blocked, alive, err := s.Leases.Try(t.Context(), "nobody", 1,
		[]locks.Lease{{ID: 2, Path: "/w", Mode: uint8(locks.W)}}, silence)
	if blocked >= 0 || alive || err != nil {
		t.Errorf("try: blocked at %d, alive %t, error %v, want only that it is not alive", blocked, alive, err)
	}
	lost, alive, err := s.Leases.Renew(t.Context(), "nobody", []int64{1}, ttl)
	if alive || err != nil {
		t.Errorf("renew: lost %v, alive %t, error %v, want only that it is not alive", lost, alive, err)
	}
	if err := s.Leases.End(t.Context(), "nobody"); err != nil {
		t.Errorf("end: %v", err)
	}
	a.take(want{locks.W, "/w"})
}

// A name can be used by only one session.
func testSessionOpensOnce(t *testing.T, s leaseStore) {
	a := s.begin(t, "a")
	ids := a.take(want{locks.W, "/w"})
	if err := s.Leases.Open(t.Context(), locks.Session{Name: "a"}); err == nil {
		t.Error("a second Open of one name: got no error")
	}
	if lost, alive := a.renew(ttl, ids...); !alive || len(lost) > 0 {
		t.Errorf("after a second Open: alive %t, lost %v, want the first untouched", alive, lost)
	}
}

// End removes everything of one session, and nothing of other sessions.
func testSessionEnds(t *testing.T, s leaseStore) {
	a, b, c := s.begin(t, "a"), s.begin(t, "b"), s.begin(t, "c")
	a.take(want{locks.W, "/w/1"}, want{locks.W, "/w/2"})
	b.take(want{locks.W, "/w/3"})
	for range 2 {
		if err := s.Leases.End(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	if _, alive := a.renew(ttl); alive {
		t.Error("after End: alive")
	}
	c.take(want{locks.W, "/w/1"}, want{locks.W, "/w/2"})
	c.mustNot(want{locks.W, "/w/3"})
}

// Reap ends sessions that have been silent for longer than the time to live, with all their leases
// and wants.
func testReap(t *testing.T, s leaseStore) {
	a, b, c := s.begin(t, "a"), s.begin(t, "b"), s.begin(t, "c")
	a.take(want{locks.W, "/w/1"})
	held := b.take(want{locks.W, "/w/2"})
	a.queue(want{locks.W, "/w/2"})
	s.Pass(t, ttl*3/4)
	b.renew(ttl, held...)
	c.renew(ttl)
	s.Pass(t, ttl/2)
	for _, want := range []int{1, 0} {
		if ended, err := s.Leases.Reap(t.Context(), ttl); ended != want || err != nil {
			t.Errorf("reap: got %d, error %v, want %d", ended, err, want)
		}
	}
	if lost, alive := a.renew(ttl); alive || len(lost) > 0 {
		t.Errorf("the silent one: alive %t, lost %v, want it ended", alive, lost)
	}
	if lost, alive := b.renew(ttl, held...); !alive || len(lost) > 0 {
		t.Errorf("the session that renewed: alive %t, lost %v, want it untouched", alive, lost)
	}
	c.take(want{locks.W, "/w/1"})
	c.mustNot(want{locks.R, "/w/2"})
	b.release(held...)
	c.take(want{locks.W, "/w/2"}) // the want of the dead session is gone
}

// A session that dies before its first Renew is reaped like any other.
func testReapNeverRenewed(t *testing.T, s leaseStore) {
	a := s.begin(t, "a")
	a.take(want{locks.W, "/w"})
	s.Pass(t, ttl-margin)
	if ended, err := s.Leases.Reap(t.Context(), ttl); ended != 0 || err != nil {
		t.Errorf("reap before its time: got %d, error %v, want 0", ended, err)
	}
	s.Pass(t, 2*margin)
	b := s.begin(t, "b")
	if ended, err := s.Leases.Reap(t.Context(), ttl); ended != 1 || err != nil {
		t.Errorf("reap: got %d, error %v, want 1", ended, err)
	}
	b.take(want{locks.W, "/w"})
}

// If a session dies when the store's clock is set back, it does not stay alive until the clock has
// caught up.
func testReapAfterClockSetBack(t *testing.T, s leaseStore) {
	a, b := s.begin(t, "a"), s.begin(t, "b")
	a.take(want{locks.W, "/w"})
	held := b.take(want{locks.W, "/x"})
	s.Pass(t, -10*ttl)
	if ended, err := s.Leases.Reap(t.Context(), ttl); ended != 0 || err != nil {
		t.Errorf("reap: got %d, error %v, want 0: nobody was silent by this clock", ended, err)
	}
	s.Pass(t, ttl+margin)
	if lost, alive := b.renew(ttl, held...); !alive || len(lost) > 0 {
		t.Errorf("the live session: alive %t, lost %v, want it untouched", alive, lost)
	}
	if ended, err := s.Leases.Reap(t.Context(), ttl); ended != 1 || err != nil {
		t.Errorf("reap: got %d, error %v, want 1", ended, err)
	}
	b.take(want{locks.W, "/w"})
}

// A session can take the lease of a silent session, and the silent session finds out.
func testSilentIsPassedOver(t *testing.T, s leaseStore) {
	a, b, c := s.begin(t, "a"), s.begin(t, "b"), s.begin(t, "c")
	ids := a.take(want{locks.WA, "/w"}, want{locks.W, "/w/1"}, want{locks.W, "/w/2"}, want{locks.R, "/w/3"})
	s.Pass(t, silence-margin)
	b.renew(ttl)
	c.renew(ttl)
	b.mustNot(want{locks.WA, "/w"}, want{locks.W, "/w/1"})
	s.Pass(t, 2*margin)
	b.take(want{locks.WA, "/w"}, want{locks.W, "/w/1"}, want{locks.R, "/w/3"})
	c.mustNot(want{locks.W, "/w/1"}) // the new holder has it

	lost, alive := a.renew(ttl, ids...)
	if !alive || !slices.Equal(lost, ids[1:2]) {
		t.Errorf("the session that was passed over: alive %t, lost %v, want %v", alive, lost, ids[1:2])
	}
	c.mustNot(want{locks.W, "/w/2"}) // its holder is no longer silent
	if _, blocked := a.try(0, want{locks.W, "/w/1"}); blocked != 0 {
		t.Errorf("the session that was passed over, again: blocked at %d, want 0", blocked)
	}
}

// A silent session loses no lease to a taker that is blocked by another lease.
func testSilentLosesNothingInVain(t *testing.T, s leaseStore) {
	a, b, c := s.begin(t, "a"), s.begin(t, "b"), s.begin(t, "c")
	ids := a.take(want{locks.W, "/w/1"})
	s.Pass(t, silence+time.Second)
	b.renew(ttl)
	c.renew(ttl)
	b.take(want{locks.W, "/w/2"})
	if _, blocked := c.try(0, want{locks.W, "/w/1"}, want{locks.W, "/w/2"}); blocked != 1 {
		t.Errorf("blocked at %d, want 1", blocked)
	}
	if lost, alive := a.renew(ttl, ids...); !alive || len(lost) > 0 {
		t.Errorf("the silent one: alive %t, lost %v, want nothing lost", alive, lost)
	}
}

// The wants of a silent session block no other session.
func testSilentWantsAreIgnored(t *testing.T, s leaseStore) {
	a, b, c := s.begin(t, "a"), s.begin(t, "b"), s.begin(t, "c")
	a.take(want{locks.R, "/w"})
	b.queue(want{locks.W, "/w"})
	s.Pass(t, silence+time.Second)
	a.renew(ttl, 1)
	c.renew(ttl)
	c.take(want{locks.R, "/w"})
	b.renew(ttl, 1)
	c.mustNot(want{locks.R, "/w"})
}

// Renew returns the leases that the session believes to hold but has lost.
func testRenewTellsLosses(t *testing.T, s leaseStore) {
	a, b := s.begin(t, "a"), s.begin(t, "b")
	b.take(want{locks.W, "/w/9"})
	ids := a.take(want{locks.W, "/w/1"}, want{locks.W, "/w/2"}, want{locks.W, "/w/3"})
	ticket := a.queue(want{locks.W, "/w/9"})
	a.release(ids[1])
	known := []int64{4712, ids[2], ids[1], ticket, ids[0], 4711}
	if lost, alive := a.renew(ttl, known...); !alive || !slices.Equal(lost, []int64{4712, ids[1], 4711}) {
		t.Errorf("alive %t, lost %v, want %v", alive, lost, []int64{4712, ids[1], 4711})
	}
}

// Leases and wants that a session does not know about end after some time, and not earlier.
func testRenewEndsOrphans(t *testing.T, s leaseStore) {
	a, b := s.begin(t, "a"), s.begin(t, "b")
	theirs := b.take(want{locks.R, "/w/1"})
	known := a.take(want{locks.W, "/w/2"})
	orphan := a.take(want{locks.W, "/w/3"})
	ticket, forgotten := a.queue(want{locks.W, "/w/1"}), a.queue(want{locks.W, "/w/1"})
	s.Pass(t, ttl/2)
	young := a.take(want{locks.W, "/w/4"})

	a.renew(ttl, known[0], ticket)
	b.renew(ttl, theirs...)
	b.mustNot(want{locks.W, "/w/3"})
	s.Pass(t, ttl/2+time.Second)
	b.renew(ttl, theirs...)
	if lost, alive := a.renew(ttl, known[0], ticket); !alive || len(lost) > 0 {
		t.Errorf("alive %t, lost %v, want nothing lost", alive, lost)
	}
	b.take(want{locks.W, "/w/3"})
	b.mustNot(want{locks.W, "/w/2"})
	b.mustNot(want{locks.W, "/w/4"})
	if lost, _ := a.renew(2*ttl, orphan[0], young[0], ticket, forgotten); !slices.Equal(lost,
		[]int64{orphan[0], forgotten}) {
		t.Errorf("orphans: got %v lost, want %v", lost, []int64{orphan[0], forgotten})
	}
}
