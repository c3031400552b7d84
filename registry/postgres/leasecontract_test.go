package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"moorage/locks"
)

// leaseStore is the store under test.
type leaseStore struct {
	// Leases has no sessions yet. Other tests may use other stores at the same time.
	Leases locks.Leases
	// Pass makes the duration d pass, as seen by the store: it moves the store's clock, or the
	// times in its records. If d is negative, the clock is set back.
	Pass func(t *testing.T, d time.Duration)
}

// runLeaseContract checks the contract of locks.Leases. Each promise is one test.
func runLeaseContract(t *testing.T, open func(t *testing.T) leaseStore) {
	for _, test := range []struct {
		name string
		body func(t *testing.T, s leaseStore)
	}{
		{"Matrix", testMatrix},
		{"OneSessionExcludesNothing", testOneSession},
		{"AllOrNothing", testAllOrNothing},
		{"BlockedIsTheFirst", testBlockedIsTheFirst},
		{"Release", testRelease},
		{"Names", testNames},
		{"ManyAtOnce", testManyAtOnce},
		{"ContextEnded", testContextEnded},

		{"WantHoldsOffNewer", testWantHoldsOffNewer},
		{"WantLetsOlderPass", testWantLetsOlderPass},
		{"WantExcludesLikeALease", testWantExcludesLikeALease},
		{"WantCoversAllLeases", testWantCoversAllLeases},
		{"WantGrowsAndKeepsItsAge", testWantGrows},
		{"WantEndsWithGrant", testWantEndsWithGrant},
		{"WantEndsWithRelease", testWantEndsWithRelease},
		{"WantEndsWithSession", testWantEndsWithSession},
		{"NoTicketNoWant", testNoTicketNoWant},
		{"Wanted", testWanted},

		{"SessionUnknown", testSessionUnknown},
		{"SessionOpensOnce", testSessionOpensOnce},
		{"SessionEnds", testSessionEnds},
		{"Reap", testReap},
		{"ReapNeverRenewed", testReapNeverRenewed},
		{"ReapAfterClockSetBack", testReapAfterClockSetBack},
		{"SilentIsPassedOver", testSilentIsPassedOver},
		{"SilentLosesNothingInVain", testSilentLosesNothingInVain},
		{"SilentWantsAreIgnored", testSilentWantsAreIgnored},
		{"SilentWantsAreNotWanted", testSilentWantsAreNotWanted},
		{"SilenceIsTheSessions", testSilenceIsTheSessions},
		{"SilenceOfWantsIsTheSessions", testSilenceOfWantsIsTheSessions},
		{"AnnounceEndsPredecessor", testAnnounceEndsPredecessor},
		{"AnnounceUnsureEndsNobody", testAnnounceUnsureEndsNobody},
		{"AnnounceEnded", testAnnounceEnded},
		{"RenewTellsLosses", testRenewTellsLosses},
		{"RenewEndsOrphans", testRenewEndsOrphans},

		{"ExcludesUnderContention", testExcludesUnderContention},
		{"EverybodyGetsThrough", testEverybodyGetsThrough},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.body(t, open(t))
		})
	}
}

// Durations of the suite. No test waits for them, or takes nearly as long as one of them.
const (
	ttl     = time.Hour
	silence = 30 * time.Minute
	// The store's clock keeps running, and a test may take up to margin. So tests check at margin
	// before and margin after a duration.
	margin = 10 * time.Minute
)

// node is a session that is controlled by the test.
type node struct {
	t      *testing.T
	leases locks.Leases
	name   string
	id     int64 // the last drawn ID
}

// begin opens a session with only a name.
func (s leaseStore) begin(t *testing.T, name string) *node {
	t.Helper()
	return s.open(t, locks.Session{Name: name})
}

// open opens a session.
func (s leaseStore) open(t *testing.T, session locks.Session) *node {
	t.Helper()
	if err := s.Leases.Open(t.Context(), session); err != nil {
		t.Fatalf("open %q: %v", session.Name, err)
	}
	return &node{t: t, leases: s.Leases, name: session.Name}
}

// want is a requested lease.
type want struct {
	mode locks.Mode
	path string
}

func (n *node) draw() int64 { n.id++; return n.id }

func (n *node) lease(w want) locks.Lease {
	return locks.Lease{ID: n.draw(), Path: w.path, Mode: uint8(w.mode)}
}

// try requests leases with a ticket, or 0 for none. It returns their IDs, and the index of the
// blocked one.
func (n *node) try(ticket int64, wants ...want) (ids []int64, blocked int) {
	n.t.Helper()
	ids, blocked, err := n.ask(n.t.Context(), ticket, wants)
	if err != nil {
		n.t.Fatalf("%s: %v", n.name, err)
	}
	return ids, blocked
}

// ask is like try, for goroutines other than that of the test.
func (n *node) ask(ctx context.Context, ticket int64, wants []want) (ids []int64, blocked int, err error) {
	var leases []locks.Lease
	for _, w := range wants {
		l := n.lease(w)
		leases, ids = append(leases, l), append(ids, l.ID)
	}
	blocked, alive, err := n.leases.Try(ctx, n.name, ticket, leases, silence)
	if err == nil && !alive {
		err = errors.New("the session is not alive")
	}
	if err != nil {
		return nil, -1, fmt.Errorf("try %v: %w", wants, err)
	}
	return ids, blocked, nil
}

// take requests leases that must be available.
func (n *node) take(wants ...want) []int64 {
	n.t.Helper()
	ids, blocked := n.try(0, wants...)
	if blocked >= 0 {
		n.t.Fatalf("%s: try %v: blocked at %v, want all taken", n.name, wants, wants[blocked])
	}
	return ids
}

// mustNot requests leases that must not be available, without a ticket.
func (n *node) mustNot(wants ...want) {
	n.t.Helper()
	if _, blocked := n.try(0, wants...); blocked < 0 {
		n.t.Fatalf("%s: try %v: granted, want it blocked", n.name, wants)
	}
}

// queue requests leases that must not be available yet, with a new ticket.
func (n *node) queue(wants ...want) (ticket int64) {
	n.t.Helper()
	ticket = n.draw()
	if _, blocked := n.try(ticket, wants...); blocked < 0 {
		n.t.Fatalf("%s: try %v: granted, want it blocked", n.name, wants)
	}
	return ticket
}

func (n *node) release(ids ...int64) {
	n.t.Helper()
	if err := n.leases.Release(n.t.Context(), n.name, ids); err != nil {
		n.t.Fatalf("%s: release: %v", n.name, err)
	}
}

func (n *node) renew(orphaned time.Duration, known ...int64) (lost []int64, alive bool) {
	n.t.Helper()
	lost, alive, err := n.leases.Renew(n.t.Context(), n.name, known, orphaned)
	if err != nil {
		n.t.Fatalf("%s: renew: %v", n.name, err)
	}
	return lost, alive
}

func (n *node) mustBeWanted(ids ...int64) {
	n.t.Helper()
	got, err := n.leases.Wanted(n.t.Context(), n.name, silence)
	if err != nil || !slices.Equal(got, ids) {
		n.t.Errorf("%s: wanted: got %v, error %v, want %v", n.name, got, err, ids)
	}
}
