package registrytest

import (
	"fmt"
	"testing"

	"moorage/registry"
)

// reopen closes the harness's store and continues with the result of open.
func (h *harness) reopen(open Open) {
	h.Helper()
	if err := h.store.Close(); err != nil {
		h.Fatalf("close: %v", err)
	}
	h.store = open(h.T)
}

func durableRecords(t *testing.T, open Open) {
	h := newHarness(t, open(t))
	ids := h.putOddIDs()
	h.remove(key(ids[0]))
	before := h.list(registry.TableLocation, "", "", registry.ListLimitMax)
	for range 2 {
		h.reopen(open)
		after := h.list(registry.TableLocation, "", "", registry.ListLimitMax)
		h.wantIDs(after, ids[1:]...)
		for i, r := range after {
			h.wantRecord(r, before[i].Key, before[i].ETag, before[i].State, string(before[i].Value))
			h.wantRecord(h.get(r.Key), r.Key, r.ETag, r.State, string(r.Value))
		}
	}
	h.apply(registry.Batch{
		Conditions: []registry.Condition{registry.ETagIs(before[0].Key, before[0].ETag)},
		Writes:     []registry.Write{registry.Delete(before[0].Key)},
	})
	h.reopen(open)
	h.wantMissing(before[0].Key)
	if err := h.store.Close(); err != nil {
		t.Error(err)
	}
}

func durableChanges(t *testing.T, open Open) {
	h := newHarness(t, open(t))
	for n := range 3 {
		h.applyChange(n)
	}
	h.apply(fence(3))
	before := h.changes(0)
	h.reopen(open)
	h.wantChanges(h.changes(0), 0, 1, 2)
	h.refuse(registry.Batch{Change: change(1)}, 0)
	h.refuse(registry.Batch{Change: change(3)}, 0)
	h.applyChange(4)
	h.wantChanges(h.changes(0), 0, 1, 2, 4)
	h.wantChanges(h.changes(before[2].Position), 4)
	if err := h.store.Close(); err != nil {
		t.Error(err)
	}
}

func durablePositions(t *testing.T, open Open) {
	h := newHarness(t, open(t))
	var last registry.Position
	for n := range 5 {
		h.applyChange(n)
		got := h.changes(last)
		if len(got) != 1 {
			t.Fatalf("after %d there are %d changes, want 1", last, len(got))
		}
		last = got[0].Position
		h.remove(registry.ChangeKey(id(n)))
		h.put(key(fmt.Sprint(n)), registry.StateOwner, "")
		h.reopen(open)
	}
	if err := h.store.Close(); err != nil {
		t.Error(err)
	}
}
