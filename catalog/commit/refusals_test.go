package commit

import (
	"testing"
	"time"
)

// TestRefusalsAreBounded: a node stores a bounded number of refusals of a caller in a minute, of
// each caller by itself, and begins again with the next minute.
func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	var r refusals
	now := time.Date(2026, 11, 27, 10, 0, 30, 0, time.UTC)
	for i := range refusalsMax {
		if !r.admit("ann", now) {
			t.Fatalf("refusal %d is not stored", i)
		}
	}
	if r.admit("ann", now.Add(29*time.Second)) {
		t.Error("one more is stored in the same minute")
	}
	if !r.admit("bob", now) {
		t.Error("another caller's is not stored")
	}
	if !r.admit("ann", now.Add(30*time.Second)) {
		t.Error("none is stored in the next minute")
	}
}
