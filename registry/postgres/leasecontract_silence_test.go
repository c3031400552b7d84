package postgres

import (
	"testing"
	"time"

	"moorage/locks"
)

// briefly is a Silence of sessions that is shorter than the limit of takers, and atLength is one
// that is longer.
const (
	briefly  = silence / 3
	atLength = 2 * silence
)

// A session is passed over after its own limit of silence, whatever the taker's limit is, because
// nodes with different heartbeats share one store.
func testSilenceIsTheSessions(t *testing.T, s leaseStore) {
	brief, long := s.open(t, locks.Session{Name: "brief", Silence: briefly}),
		s.open(t, locks.Session{Name: "long", Silence: atLength})
	unstated, taker := s.begin(t, "unstated"), s.begin(t, "taker")
	lost := brief.take(want{locks.W, "/w/1"})
	unstated.take(want{locks.W, "/w/2"})
	kept := long.take(want{locks.W, "/w/3"})
	s.Pass(t, briefly+margin/2)
	taker.renew(ttl)
	taker.mustNot(want{locks.W, "/w/2"})
	taker.mustNot(want{locks.W, "/w/3"})
	first := taker.take(want{locks.W, "/w/1"})
	if got, alive := brief.renew(ttl, lost...); !alive || len(got) != 1 {
		t.Errorf("the session that was silent for as long as it said: alive %t, lost %v, want %v", alive, got, lost)
	}
	s.Pass(t, silence-briefly)
	taker.renew(ttl, first...)
	taker.take(want{locks.W, "/w/2"})
	taker.mustNot(want{locks.W, "/w/3"})
	if got, alive := long.renew(ttl, kept...); !alive || len(got) != 0 {
		t.Errorf("the session that was silent for less than it said: alive %t, lost %v, want nothing lost", alive, got)
	}
}

// The wants of a session block others up to its own limit of silence.
func testSilenceOfWantsIsTheSessions(t *testing.T, s leaseStore) {
	holder := s.begin(t, "holder")
	brief, long := s.open(t, locks.Session{Name: "brief", Silence: briefly}),
		s.open(t, locks.Session{Name: "long", Silence: atLength})
	taker := s.begin(t, "taker")
	held := holder.take(want{locks.R, "/w/1"}, want{locks.R, "/w/2"})
	brief.queue(want{locks.W, "/w/1"})
	long.queue(want{locks.W, "/w/2"})
	s.Pass(t, briefly+margin/2)
	taker.renew(ttl)
	taker.take(want{locks.R, "/w/1"})
	taker.mustNot(want{locks.R, "/w/2"})
	holder.mustBeWanted(held[1])
	s.Pass(t, silence)
	taker.renew(ttl)
	taker.mustNot(want{locks.R, "/w/2"})
}

// A shared lease need not be given up if only a silent session wants it.
func testSilentWantsAreNotWanted(t *testing.T, s leaseStore) {
	a, b := s.begin(t, "a"), s.begin(t, "b")
	ids := a.take(want{locks.R, "/w"})
	ticket := b.queue(want{locks.W, "/w"})
	a.mustBeWanted(ids...)
	s.Pass(t, silence+time.Second)
	a.mustBeWanted()
	b.renew(ttl, ticket)
	a.mustBeWanted(ids...)
}

// If a node listens at the former address of another node, it ends that node's session, and can
// take its leases at once.
func testAnnounceEndsPredecessor(t *testing.T, s leaseStore) {
	const address, host = "ship/127.0.0.1:8181", "boot 1, network 1"
	dead := s.open(t, locks.Session{Name: "dead", Address: address, Host: host, Silence: atLength})
	dead.take(want{locks.W, "/w/1"})
	other := s.open(t, locks.Session{Name: "other", Address: "ship/127.0.0.1:8282", Host: host})
	theirs := other.take(want{locks.W, "/w/2"})
	next := s.begin(t, "next")
	mine := next.take(want{locks.W, "/w/3"})
	for _, want := range []int{1, 0} {
		if ended, alive, err := s.Leases.Announce(t.Context(), "next", address, host); ended != want || !alive ||
			err != nil {
			t.Errorf("announce: got %d ended, alive %t, error %v, want %d ended", ended, alive, err, want)
		}
	}
	if _, alive := dead.renew(ttl); alive {
		t.Error("the session of the node that had the address is alive")
	}
	next.take(want{locks.W, "/w/1"})
	if lost, alive := other.renew(ttl, theirs...); !alive || len(lost) > 0 {
		t.Errorf("the node of another address: alive %t, lost %v, want it untouched", alive, lost)
	}
	if lost, alive := next.renew(ttl, mine...); !alive || len(lost) > 0 {
		t.Errorf("the node that announced itself: alive %t, lost %v, want it untouched", alive, lost)
	}

	// The announcement of a session also counts for its successor.
	if ended, alive, err := s.Leases.Announce(t.Context(), "other", address, host); ended != 1 || !alive || err != nil {
		t.Errorf("announce: got %d ended, alive %t, error %v, want 1 ended", ended, alive, err)
	}
}

// A node ends no session if it is not certain: if the host differs, or if an address or a host is
// unknown.
func testAnnounceUnsureEndsNobody(t *testing.T, s leaseStore) {
	const address, host = "ship/0.0.0.0:8181", "boot 1, network 1"
	for name, session := range map[string]locks.Session{
		"same":       {Address: address, Host: host},
		"elsewhere":  {Address: address, Host: "boot 2, network 1"},
		"no host":    {Address: address},
		"no address": {Host: host},
		"nothing":    {},
	} {
		session.Name = name
		s.open(t, session)
	}
	for _, mine := range []locks.Session{{Name: "a", Address: address}, {Name: "b", Host: host}, {Name: "c"},
		{Name: "d", Address: address, Host: "boot 3"}} {
		s.begin(t, mine.Name)
		if ended, alive, err := s.Leases.Announce(t.Context(), mine.Name, mine.Address, mine.Host); ended != 0 ||
			!alive || err != nil {
			t.Errorf("announce %+v: got %d ended, alive %t, error %v, want 0 ended", mine, ended, alive, err)
		}
	}
}

// An ended session announces nothing, and ends no other session.
func testAnnounceEnded(t *testing.T, s leaseStore) {
	const address, host = "ship/0.0.0.0:8181", "boot 1, network 1"
	other := s.open(t, locks.Session{Name: "other", Address: address, Host: host})
	if ended, alive, err := s.Leases.Announce(t.Context(), "ended", address, host); ended != 0 || alive || err != nil {
		t.Errorf("announce: got %d ended, alive %t, error %v, want only that it is not alive", ended, alive, err)
	}
	if _, alive := other.renew(ttl); !alive {
		t.Error("the other session has ended")
	}
}
