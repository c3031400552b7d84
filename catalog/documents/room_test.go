package documents

import "testing"

// A share that holds room and needs more gets room before shares that hold none. Only one share at
// a time can have the reserve.
func TestRoomGoesToThoseThatHoldSome(t *testing.T) {
	t.Parallel()
	r := &Room{bytes: 100, bytesOfOne: 50, reserve: 30, of: make(map[string]int64)}
	enter := func(warehouse string, bytes int64) *Share {
		t.Helper()
		s := &Share{room: r, warehouse: warehouse}
		if s.want(bytes) != nil {
			t.Fatalf("there is no room for %d bytes of %s", bytes, warehouse)
		}
		return s
	}
	isGiven := func(w *wanted) bool {
		select {
		case <-w.given:
			return true
		default:
			return false
		}
	}
	a, b := enter("a", 50), enter("b", 50)
	newcomer := (&Share{room: r, warehouse: "c"}).want(1)
	if a.want(20) != nil {
		t.Fatal("the reserve is free")
	}
	more := b.want(20)
	if newcomer == nil || more == nil || a.want(11) == nil {
		t.Fatal("more was given than there is")
	}
	a.GiveBack()
	if !isGiven(more) || !isGiven(newcomer) || b.borrowed != 20 {
		t.Errorf("given to one that holds some: %t, to a newcomer: %t; of the reserve %d", isGiven(more), isGiven(newcomer), b.borrowed)
	}
	b.GiveBack()
	newcomer.share.GiveBack()
	for _, w := range r.waiting {
		t.Errorf("%s waits for %d", w.share.warehouse, w.bytes)
	}
}
