package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"moorage/locks"
	"moorage/testkit/locktest"
)

// For each pair of modes of two sessions on one path, the second is granted or refused according to
// the matrix.
func testMatrix(t *testing.T, s leaseStore) {
	a, b := s.begin(t, "a"), s.begin(t, "b")
	refused := map[[2]locks.Mode]bool{
		{locks.RA, locks.W}: true, {locks.R, locks.WA}: true, {locks.R, locks.W}: true, {locks.WA, locks.R}: true,
		{locks.WA, locks.W}: true,
		{locks.W, locks.RA}: true, {locks.W, locks.R}: true, {locks.W, locks.WA}: true, {locks.W, locks.W}: true,
	}
	for _, held := range locktest.Modes() {
		for _, wanted := range locktest.Modes() {
			ids := a.take(want{held, "/w"})
			got, blocked := b.try(0, want{wanted, "/w"})
			if (blocked >= 0) != refused[[2]locks.Mode{held, wanted}] {
				t.Errorf("held %s, wanted %s: blocked at %d, want a refusal: %t", held, wanted, blocked,
					!(blocked >= 0))
			}
			a.release(ids...)
			b.release(got...)
		}
	}
	a.take(want{locks.W, "/w"})
	b.take(want{locks.W, "/w/x"}) // here, paths are only names; nodes handle ancestors
}

// A session may hold several leases on a path, in any modes, and loses only the leases that it
// releases.
func testOneSession(t *testing.T, s leaseStore) {
	a, b := s.begin(t, "a"), s.begin(t, "b")
	first := a.take(want{locks.W, "/w"})
	second := a.take(want{locks.W, "/w"})
	third := a.take(want{locks.RA, "/w"})
	a.release(first...)
	b.mustNot(want{locks.RA, "/w"})
	a.release(second...)
	reads := b.take(want{locks.R, "/w"})
	b.mustNot(want{locks.W, "/w"})
	a.release(third...)
	b.take(want{locks.W, "/w"})
	b.release(reads...)
}

// If one lease is not available, none is taken.
func testAllOrNothing(t *testing.T, s leaseStore) {
	a, b, c := s.begin(t, "a"), s.begin(t, "b"), s.begin(t, "c")
	a.take(want{locks.W, "/w/2"})
	b.mustNot(want{locks.WA, "/w"}, want{locks.W, "/w/1"}, want{locks.W, "/w/2"}, want{locks.W, "/w/3"})
	c.take(want{locks.W, "/w"}, want{locks.W, "/w/1"}, want{locks.W, "/w/3"})
}

// If several leases are not available, the first is reported.
func testBlockedIsTheFirst(t *testing.T, s leaseStore) {
	a, b := s.begin(t, "a"), s.begin(t, "b")
	a.take(want{locks.WA, "/w"}, want{locks.W, "/w/2"}, want{locks.W, "/w/4"})
	for _, test := range []struct {
		blocked int
		wants   []want
	}{
		{0, []want{{locks.R, "/w"}, {locks.W, "/w/2"}}},
		{1, []want{{locks.WA, "/w"}, {locks.R, "/w/2"}, {locks.W, "/w/4"}}},
		{3, []want{{locks.WA, "/w"}, {locks.R, "/w/1"}, {locks.W, "/w/3"}, {locks.W, "/w/4"}, {locks.W, "/w/5"}}},
	} {
		for _, ticket := range []int64{0, b.draw()} {
			if _, blocked := b.try(ticket, test.wants...); blocked != test.blocked {
				t.Errorf("try %v with ticket %d: blocked at %d, want %d", test.wants, ticket, blocked, test.blocked)
			}
		}
	}
}

// Release gives back only the named leases of the named session.
func testRelease(t *testing.T, s leaseStore) {
	a, b := s.begin(t, "a"), s.begin(t, "b")
	ids := a.take(want{locks.W, "/w/1"}, want{locks.W, "/w/2"}, want{locks.W, "/w/3"})
	b.release(ids...)
	a.release()
	b.mustNot(want{locks.RA, "/w/1"})
	a.release(ids[2], ids[0], 4711)
	a.release(ids[0])
	b.take(want{locks.W, "/w/1"}, want{locks.W, "/w/3"})
	b.mustNot(want{locks.RA, "/w/2"})
	if err := s.Leases.Release(t.Context(), "nobody", ids); err != nil {
		t.Errorf("release of an unknown session: %v", err)
	}
}

// All bytes of a path count, however long it is.
func testNames(t *testing.T, s leaseStore) {
	a, b := s.begin(t, "host:8181 é/1"), s.begin(t, "host:8181 é/2")
	long := "/w/" + strings.Repeat("0123456789abcdef", 2000)
	paths := []string{"/", "/w", "/W", "/w/%00", "/w/%25", "/w/_", "/w/'", `/w/\`, "/w/\"", long, long + "0",
		long + "1"}
	for _, path := range paths {
		a.take(want{locks.W, path})
	}
	for _, path := range paths {
		b.mustNot(want{locks.R, path})
		b.take(want{locks.W, path + "x"})
	}
}

// One call takes many leases, and one call gives them back.
func testManyAtOnce(t *testing.T, s leaseStore) {
	const count = 1000
	a, b := s.begin(t, "a"), s.begin(t, "b")
	var wants []want
	for i := range count {
		wants = append(wants, want{locks.W, fmt.Sprintf("/w/%04d", i)})
	}
	ids := a.take(wants...)
	if _, blocked := b.try(0, wants[count-1:]...); blocked != 0 {
		t.Errorf("the last of %d: blocked at %d, want 0", count, blocked)
	}
	if lost, alive := a.renew(ttl, ids...); len(lost) > 0 || !alive {
		t.Errorf("renew with %d leases: lost %v, alive %t, want none lost", count, lost, alive)
	}
	a.release(ids...)
	b.take(wants...)
}

// A call with an ended context changes nothing.
func testContextEnded(t *testing.T, s leaseStore) {
	a, b := s.begin(t, "a"), s.begin(t, "b")
	held := a.take(want{locks.W, "/w/1"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	_, _, tried := s.Leases.Try(ctx, "a", 0, []locks.Lease{a.lease(want{locks.W, "/w/2"})}, silence)
	_, _, renewed := s.Leases.Renew(ctx, "a", nil, 0)
	_, wanted := s.Leases.Wanted(ctx, "a", silence)
	_, _, announced := s.Leases.Announce(ctx, "a", "address", "host")
	_, reaped := s.Leases.Reap(ctx, 0)
	for method, err := range map[string]error{
		"Open": s.Leases.Open(ctx, locks.Session{Name: "c"}), "Announce": announced, "Renew": renewed, "Try": tried,
		"Release": s.Leases.Release(ctx, "a", held),
		"Wanted":  wanted, "Reap": reaped, "End": s.Leases.End(ctx, "a"),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got error %v, want context.Canceled", method, err)
		}
	}
	b.mustNot(want{locks.W, "/w/1"})
	b.take(want{locks.W, "/w/2"})
	s.begin(t, "c")
}
