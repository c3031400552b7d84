package locks

import (
	"slices"
	"testing"
)

// A long-lived session keeps nothing of operations that have ended, whether they got their locks or
// gave up. The wants of an operation that gave up are released.
func TestSessionForgetsTickets(t *testing.T) {
	t.Parallel()
	s := newSession("node")
	got, gaveUp := s.drawTicket(), s.drawTicket()
	s.returnTicket(got)
	s.withdrawTicket(gaveUp)
	if len(s.tickets) != 0 {
		t.Errorf("%d tickets are kept", len(s.tickets))
	}
	if want := []int64{gaveUp}; !slices.Equal(s.unneeded, want) {
		t.Errorf("to be given back: %v, want %v", s.unneeded, want)
	}
}
