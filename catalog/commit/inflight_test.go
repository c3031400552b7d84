package commit

// This test is in the package because nothing outside shows how many keys are remembered.

import (
	"testing"

	"moorage/registry"
)

// A key is remembered while an attempt with it is under way, and no longer.
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
