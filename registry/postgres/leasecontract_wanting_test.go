package postgres

import (
	"slices"
	"testing"

	"moorage/locks"
	"moorage/testkit/locktest"
)

// If a ticket waits for a lease, a later request for it is blocked, even after the lease has become
// free.
func testWantHoldsOffNewer(t *testing.T, s leaseStore) {
	a, b, c := s.begin(t, "a"), s.begin(t, "b"), s.begin(t, "c")
	held := a.take(want{locks.R, "/w"})
	ticket := b.queue(want{locks.W, "/w"})
	c.mustNot(want{locks.R, "/w"}) // compatible with the holder
	later := c.queue(want{locks.R, "/w"})
	a.release(held...)
	c.mustNot(want{locks.R, "/w"})
	if _, blocked := c.try(later, want{locks.R, "/w"}); blocked != 0 {
		t.Errorf("the newer ticket: blocked at %d, want 0", blocked)
	}
	ids, blocked := b.try(ticket, want{locks.W, "/w"})
	if blocked >= 0 {
		t.Fatalf("the older ticket: blocked at %d, want it granted", blocked)
	}
	b.release(ids...)
	if _, blocked := c.try(later, want{locks.R, "/w"}); blocked >= 0 {
		t.Errorf("the newer ticket, alone: blocked at %d, want it granted", blocked)
	}
}

// A ticket is blocked only by older tickets, whatever the order of their tries.
func testWantLetsOlderPass(t *testing.T, s leaseStore) {
	holder := s.begin(t, "holder")
	held := holder.take(want{locks.W, "/w"})
	var waiting []*node
	var tickets []int64
	for _, name := range []string{"d", "b", "c", "a"} { // their order of arrival differs from that of their names
		n := s.begin(t, name)
		waiting, tickets = append(waiting, n), append(tickets, n.queue(want{locks.W, "/w"}))
	}
	holder.release(held...)
	for first := range waiting {
		for i := len(waiting) - 1; i > first; i-- {
			if _, blocked := waiting[i].try(tickets[i], want{locks.W, "/w"}); blocked < 0 {
				t.Fatalf("ticket %d was granted before ticket %d", i, first)
			}
		}
		ids, blocked := waiting[first].try(tickets[first], want{locks.W, "/w"})
		if blocked >= 0 {
			t.Fatalf("ticket %d, the oldest: blocked at %d", first, blocked)
		}
		waiting[first].release(ids...)
	}
}

// A want excludes requests according to the matrix of leases, but never requests of its own
// session.
func testWantExcludesLikeALease(t *testing.T, s leaseStore) {
	a, b, c := s.begin(t, "a"), s.begin(t, "b"), s.begin(t, "c")
	for _, wanted := range locktest.Modes() {
		for _, newer := range locktest.Modes() {
			a.take(want{locks.W, "/w"})
			ticket := b.queue(want{wanted, "/w"})
			a.release(a.id)
			got, blocked := c.try(0, want{newer, "/w"})
			if want := !wanted.Compatible(newer); (blocked >= 0) != want {
				t.Errorf("%s is wanted, %s newer: blocked at %d, want a refusal: %t", wanted, newer, blocked, want)
			}
			c.release(got...)
			b.release(b.take(want{newer, "/w"})...)
			b.release(ticket)
		}
	}
}

// A ticket waits for all its requested leases, including free ones.
func testWantCoversAllLeases(t *testing.T, s leaseStore) {
	a, b, c := s.begin(t, "a"), s.begin(t, "b"), s.begin(t, "c")
	a.take(want{locks.W, "/w/2"})
	b.queue(want{locks.WA, "/w"}, want{locks.W, "/w/1"}, want{locks.W, "/w/2"}, want{locks.W, "/w/3"})
	c.mustNot(want{locks.R, "/w"})
	c.mustNot(want{locks.RA, "/w/1"})
	c.mustNot(want{locks.RA, "/w/3"})
	c.take(want{locks.WA, "/w"}, want{locks.W, "/w/4"})
}

// Later wants of a ticket are as old as its first want.
func testWantGrows(t *testing.T, s leaseStore) {
	a, b, c := s.begin(t, "a"), s.begin(t, "b"), s.begin(t, "c")
	first := a.take(want{locks.W, "/w/1"})
	second := a.take(want{locks.W, "/w/2"})
	older := b.queue(want{locks.W, "/w/2"})
	newer := c.queue(want{locks.W, "/w/1"})
	if _, blocked := b.try(older, want{locks.W, "/w/1"}, want{locks.W, "/w/2"}); blocked != 0 {
		t.Fatalf("the older ticket while both are held: blocked at %d, want 0", blocked)
	}
	a.release(first...)
	a.release(second...)
	if _, blocked := c.try(newer, want{locks.W, "/w/1"}); blocked < 0 {
		t.Error("the newer ticket passed the older one's second wish")
	}
	ids, blocked := b.try(older, want{locks.W, "/w/1"}, want{locks.W, "/w/2"})
	if blocked >= 0 {
		t.Fatalf("the older ticket: blocked at %d, want it granted", blocked)
	}
	b.release(ids...)
	if _, blocked := c.try(newer, want{locks.W, "/w/1"}); blocked >= 0 {
		t.Errorf("the newer ticket, alone: blocked at %d, want it granted", blocked)
	}
}

// A grant ends all wants of its ticket, including wants for leases that were not taken.
func testWantEndsWithGrant(t *testing.T, s leaseStore) {
	a, b, c := s.begin(t, "a"), s.begin(t, "b"), s.begin(t, "c")
	held := a.take(want{locks.W, "/w/1"}, want{locks.W, "/w/2"})
	ticket := b.queue(want{locks.W, "/w/1"}, want{locks.W, "/w/2"})
	other := b.queue(want{locks.W, "/w/1"})
	a.release(held...)
	ids, blocked := b.try(ticket, want{locks.W, "/w/2"})
	if blocked >= 0 {
		t.Fatalf("blocked at %d, want it granted", blocked)
	}
	c.mustNot(want{locks.W, "/w/1"}) // wanted by the other ticket
	b.release(other)
	c.take(want{locks.W, "/w/1"})
	c.mustNot(want{locks.W, "/w/2"})
	b.release(ids...)
	c.take(want{locks.W, "/w/2"})
}

// Release withdraws only the given ticket.
func testWantEndsWithRelease(t *testing.T, s leaseStore) {
	a, b, c := s.begin(t, "a"), s.begin(t, "b"), s.begin(t, "c")
	a.take(want{locks.R, "/w/1"}, want{locks.R, "/w/2"})
	first, second := b.queue(want{locks.W, "/w/1"}), b.queue(want{locks.W, "/w/2"})
	c.draw()
	c.release(first, second) // ids of another session
	c.mustNot(want{locks.R, "/w/1"})
	b.release(first)
	c.take(want{locks.R, "/w/1"})
	c.mustNot(want{locks.R, "/w/2"})
}

// The wants of a session end with it.
func testWantEndsWithSession(t *testing.T, s leaseStore) {
	a, b, c := s.begin(t, "a"), s.begin(t, "b"), s.begin(t, "c")
	a.take(want{locks.R, "/w"})
	b.queue(want{locks.W, "/w"})
	c.mustNot(want{locks.R, "/w"})
	if err := s.Leases.End(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	c.take(want{locks.R, "/w"})
}

// A Try without a ticket blocks no other session.
func testNoTicketNoWant(t *testing.T, s leaseStore) {
	a, b, c := s.begin(t, "a"), s.begin(t, "b"), s.begin(t, "c")
	ids := a.take(want{locks.R, "/w"})
	b.mustNot(want{locks.W, "/w"})
	c.take(want{locks.R, "/w"})
	a.mustBeWanted()
	a.release(ids...)
}

// A session learns which of its leases block other sessions. Its own wants do not count.
func testWanted(t *testing.T, s leaseStore) {
	a, b, c := s.begin(t, "a"), s.begin(t, "b"), s.begin(t, "c")
	ids := a.take(want{locks.WA, "/w"}, want{locks.W, "/w/1"}, want{locks.W, "/w/2"}, want{locks.R, "/w/3"})
	again := a.take(want{locks.WA, "/w"})
	a.mustBeWanted()
	a.try(a.draw(), want{locks.W, "/w/1"})
	a.mustBeWanted()

	first := b.queue(want{locks.WA, "/w"}, want{locks.W, "/w/2"})
	second := c.queue(want{locks.W, "/w/2"}, want{locks.R, "/w/3"})
	a.mustBeWanted(ids[2])
	third := c.queue(want{locks.W, "/w"})
	a.mustBeWanted(slices.Concat(ids[:1], ids[2:3], again)...)
	b.release(first)
	c.release(second, third)
	a.mustBeWanted()
	b.mustBeWanted()
	if ids, err := s.Leases.Wanted(t.Context(), "nobody", silence); err != nil || len(ids) > 0 {
		t.Errorf("wanted of an unknown session: got %v, error %v, want nothing", ids, err)
	}
}
