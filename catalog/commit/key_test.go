package commit

import (
	"testing"
	"time"

	"moorage"
	"moorage/registry"
)

// The outcome of an internal key is kept as long as two nodes may work on one request. The outcome
// of a client's key is kept for the lifetime that clients are told.
func TestInternalKeyIsShort(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	for _, row := range []struct {
		lifetime time.Duration
		internal bool
		want     time.Duration
	}{
		{30 * time.Minute, false, 30*time.Minute + KeyGrace},
		{30 * time.Minute, true, internalKeyLifetime + KeyGrace},
		{time.Minute, true, time.Minute + KeyGrace},
	} {
		p := &Pipeline{now: func() time.Time { return now }, idempotencyLifetime: row.lifetime}
		key := p.ledgerKey(moorage.Anonymous(), Key{ID: "k", Internal: row.internal})
		if got := key.Request.Expires().Sub(now); got != row.want {
			t.Errorf("internal %t of %s: kept for %s, want %s", row.internal, row.lifetime, got, row.want)
		}
	}
}

// TestRefusalsAreBounded: in each minute, a node stores a bounded number of refusals for each
// caller.
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

// A key is remembered only while an attempt with it is in progress.
func TestTwinsDoNotPileUp(t *testing.T) {
	t.Parallel()
	inflight := newInflight()
	key := registry.IdempotencyKey(registry.Hash{1})
	end, twin := inflight.begin(key)
	if end == nil || twin != nil {
		t.Fatal("the first attempt waits")
	}
	none, twin := inflight.begin(key)
	if none != nil || twin == nil {
		t.Fatal("the second attempt does not wait")
	}
	end()
	select {
	case <-twin:
	default:
		t.Error("the first attempt has ended, and the second waits")
	}
	if left := len(inflight.underWay); left > 0 {
		t.Errorf("%d keys are left", left)
	}
}
