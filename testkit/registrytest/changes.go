package registrytest

import (
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"moorage/registry"
)

// applyChange applies a batch that carries change n and writes one pointer.
func (h *harness) applyChange(n int) registry.ETag {
	h.Helper()
	return h.apply(h.exactly(change(n), registry.Put(registry.PointerKey(id(n)), registry.StateLive, nil)))[0]
}

// wantChanges fails the test unless the changes have these numbers, in this order.
func (h *harness) wantChanges(got []registry.PositionedChange, want ...int) {
	h.Helper()
	numbers := make(map[registry.ID]int)
	for _, n := range want {
		numbers[id(n)] = n
	}
	var found []int
	for _, c := range got {
		n, known := numbers[c.Change.ID]
		if !known {
			h.Fatalf("changes hold %s, which is none of %v", c.Change.ID, want)
		}
		found = append(found, n)
	}
	if len(found) != len(want) || (len(want) > 0 && !reflect.DeepEqual(found, want)) {
		h.Fatalf("changes are %v, want %v", found, want)
	}
}

func changesOrder(h *harness) {
	h.wantChanges(h.changes(0))
	numbers := []int{5, 3, 9, 1, 7, 2, 8, 4, 6, 0}
	for _, n := range numbers {
		h.applyChange(n)
		h.put(key("between"), registry.StateOwner, "no change")
	}
	got := h.changes(0)
	h.wantChanges(got, numbers...)
	for i, n := range numbers {
		want := *change(n)
		want.Versions = got[i].Change.Versions
		if !reflect.DeepEqual(got[i].Change, want) {
			h.Errorf("change %d came back as %+v, want %+v", n, got[i].Change, want)
		}
		record := h.get(registry.ChangeKey(id(n)))
		if stored, err := registry.Decode[registry.Change](record); err != nil ||
			!reflect.DeepEqual(stored, got[i].Change) {
			h.Errorf("the record of change %d holds %+v, %v; want %+v", n, stored, err, got[i].Change)
		}
		if record.State != registry.StateNone {
			h.Errorf("the record of change %d has state %s", n, record.State)
		}
	}
}

func changesPages(h *harness) {
	const count = 10
	for n := range count {
		h.applyChange(n)
	}
	all := h.changes(0)
	for i := range count {
		for _, limit := range []int{1, 3, registry.ListLimitMax} {
			page, err := h.store.Changes(h.ctx, all[i].Position, limit)
			if err != nil {
				h.Fatal(err)
			}
			want := all[i+1 : min(i+1+limit, count)]
			if len(page) != len(want) || (len(want) > 0 && !reflect.DeepEqual(page, want)) {
				h.Fatalf("changes after %d, at most %d: %v, want %v", all[i].Position, limit, page, want)
			}
		}
	}
}

func changesVersions(h *harness) {
	pointer, entry, namespace, warehouse := registry.PointerKey(id(1)), registry.EntryKey(id(2), "t"),
		registry.NamespaceKey(id(3), id(3), "n"), registry.WarehouseKey("w")
	h.put(pointer, registry.StateLive, `{"a":1,"b":{"x":[2]},"c":"3"}`)
	h.put(entry, registry.StateTable, `{"pointer":"p"}`)
	h.put(namespace, registry.StateDropping, "not an object")
	secret, role := registry.SecretKey(id(4)), registry.RoleKey("r")
	h.put(secret, registry.StateNone, `{"sealed":"1"}`)
	h.put(role, registry.StateNone, `{"members":[]}`)
	batch := h.exactly(change(1),
		registry.Put(pointer, registry.StateDropped, []byte(`{"b":{"x":[2]},"d":true,"c":"4"}`)),
		registry.Put(key("file:/x"), registry.StateOwner, nil),
		registry.Put(namespace, registry.StateLive, []byte(`{}`)),
		registry.Put(registry.UUIDKey("u"), registry.StateNone, nil),
		registry.Put(warehouse, registry.StateLive, []byte(`{}`)),
		registry.Put(registry.TaskKey(id(9)), registry.StateNone, nil),
		registry.Delete(entry),
		registry.Put(secret, registry.StateNone, []byte(`{"sealed":"2"}`)),
		registry.Delete(role),
	)
	etags := h.apply(batch)
	old := func(i int) registry.ETag { return batch.Writes[i].Was.ETag }
	want := []registry.Version{
		{Key: pointer, Old: old(0), New: etags[0], Before: &registry.Before{
			State: registry.StateLive, Set: []byte(`{"a":1,"c":"3"}`), Gone: []string{"d"},
		}},
		{Key: namespace, Old: old(2), New: etags[2], Before: &registry.Before{
			State: registry.StateDropping, Cut: true,
		}},
		{Key: warehouse, New: etags[4]},
		{Key: entry, Old: old(6), Before: &registry.Before{State: registry.StateTable, Set: []byte(`{"pointer":"p"}`)}},
		{Key: secret, Old: old(7), New: etags[7]},
		{Key: role, Old: old(8)},
	}
	got := h.changes(0)
	h.wantChanges(got, 1)
	if !reflect.DeepEqual(got[0].Change.Versions, want) {
		h.Errorf("versions are %+v, want %+v", got[0].Change.Versions, want)
	}
}

func changesTwice(h *harness) {
	etag := h.applyChange(1)
	h.refuse(h.exactly(change(1), registry.Put(registry.PointerKey(id(1)), registry.StateDropped, nil)), 1)
	h.wantRecord(h.get(registry.PointerKey(id(1))), registry.PointerKey(id(1)), etag, registry.StateLive, "")
	h.wantChanges(h.changes(0), 1)
}

func changesRefused(h *harness) {
	h.applyChange(1)
	batch := h.exactly(change(2), registry.Put(registry.PointerKey(id(1)), registry.StatePurging, nil))
	batch.Conditions = append(batch.Conditions, registry.StateIs(registry.PointerKey(id(1)), registry.StateDropped))
	h.refuse(batch, 1)
	h.applyChange(3)
	h.wantChanges(h.changes(0), 1, 3)
}

// fence returns the batch that ensures that change n can no longer happen.
func fence(n int) registry.Batch {
	k := registry.ChangeKey(id(n))
	return registry.Batch{
		Conditions: []registry.Condition{registry.Absent(k)},
		Writes:     []registry.Write{registry.Put(k, registry.StateVoid, []byte("{}"))},
	}
}

func changesVoid(h *harness) {
	h.applyChange(1)
	h.apply(fence(2))
	h.applyChange(3)
	h.apply(fence(4))
	h.wantChanges(h.changes(0), 1, 3)
	if got := h.get(registry.ChangeKey(id(2))); got.State != registry.StateVoid {
		h.Errorf("the fence is %s, want state void", describe(got))
	}
}

func changesFence(h *harness) {
	h.apply(fence(1))
	h.refuse(h.exactly(change(1), registry.Put(registry.PointerKey(id(1)), registry.StateLive, nil)), 1)
	h.wantMissing(registry.PointerKey(id(1)))
	h.applyChange(2)
	h.refuse(fence(2), 0)
	h.wantChanges(h.changes(0), 2)

	// A commit and its fence race: exactly one of them must happen.
	for round := range contentionRounds {
		n := 10 + round
		var won [2]bool
		h.together(2, func(i int) error {
			batch := fence(n)
			var err error
			if i == 0 {
				put := registry.Put(registry.PointerKey(id(n)), registry.StateLive, nil)
				if batch, err = h.exact(change(n), put); err != nil {
					return err
				}
			}
			_, err = h.store.Apply(h.ctx, batch)
			won[i] = err == nil
			if err != nil && !isRefused(err) {
				return err
			}
			return nil
		})
		if won[0] == won[1] || won[0] != h.get(registry.PointerKey(id(n))).Exists() {
			h.Fatalf("round %d: commit succeeded: %t, fence: %t", round, won[0], won[1])
		}
	}
}

func changesDeleted(h *harness) {
	for n := range 5 {
		h.applyChange(n)
	}
	last := h.changes(0)[4].Position
	h.apply(registry.Batch{Writes: []registry.Write{registry.Delete(registry.ChangeKey(id(1))),
		registry.Delete(registry.ChangeKey(id(4))), registry.Delete(registry.ChangeKey(id(77)))}})
	h.wantChanges(h.changes(0), 0, 2, 3)
	h.wantMissing(registry.ChangeKey(id(4)))
	// The id is free again, and a change with this id gets a new position.
	h.applyChange(4)
	h.wantChanges(h.changes(0), 0, 2, 3, 4)
	if got := h.changes(last); len(got) != 1 {
		h.Errorf("a reader that saw position %d sees %d new changes, want 1", last, len(got))
	}
}

func changesOverwritten(h *harness) {
	for n := range 3 {
		h.applyChange(n)
	}
	h.put(registry.ChangeKey(id(1)), registry.StateNone, "not what a change looks like")
	h.wantChanges(h.changes(0), 0, 2)
	h.remove(registry.ChangeKey(id(1)))
	h.wantChanges(h.changes(0), 0, 2)
}

func changesBadPages(h *harness) {
	for _, limit := range []int{-1, 0, registry.ListLimitMax + 1} {
		if _, err := h.store.Changes(h.ctx, 0, limit); !errors.Is(err, registry.ErrBadBatch) {
			h.Errorf("changes with limit %d: %v, want ErrBadBatch", limit, err)
		}
	}
}

func changesKeyOrder(h *harness) {
	const keys = 3
	h.together(contenders, func(i int) error {
		for round := range contentionRounds {
			n := i*contentionRounds + round
			if err := h.increment(registry.PointerKey(id(n%keys)), change(n)); err != nil {
				return err
			}
		}
		return nil
	})
	changes := h.changes(0)
	if len(changes) != contenders*contentionRounds {
		h.Fatalf("%d changes, want %d", len(changes), contenders*contentionRounds)
	}
	current := make(map[registry.Key]registry.ETag)
	for _, c := range changes {
		for _, v := range c.Change.Versions {
			if v.Old != current[v.Key] {
				h.Fatalf("position %d turns %s from %s, but it stood at %s", c.Position, v.Key, v.Old, current[v.Key])
			}
			current[v.Key] = v.New
		}
	}
	for k, etag := range current {
		if got := h.get(k); got.ETag != etag {
			h.Errorf("%s has etag %s, its last change says %s", k, got.ETag, etag)
		}
	}
}

// In changesCausalOrder, each goroutine records in its change which version of its neighbour's
// record it has seen. The change that wrote that version must be ordered before the goroutine's
// change.
func changesCausalOrder(h *harness) {
	h.together(contenders, func(i int) error {
		for round := range contentionRounds {
			seen, err := h.store.Get(h.ctx, registry.PointerKey(id((i+1)%contenders)))
			if err != nil {
				return err
			}
			c := change(i*contentionRounds + round)
			c.Operation = seen[0].ETag.String()
			batch, err := h.exact(c, registry.Put(registry.PointerKey(id(i)), registry.StateLive, nil))
			if err != nil {
				return err
			}
			if _, err = h.store.Apply(h.ctx, batch); err != nil {
				return err
			}
		}
		return nil
	})
	written := map[string]bool{registry.ETag{}.String(): true}
	for _, c := range h.changes(0) {
		if !written[c.Change.Operation] {
			h.Fatalf("position %d saw version %s, whose change stands behind it", c.Position, c.Change.Operation)
		}
		written[c.Change.Versions[0].New.String()] = true
	}
}

// In changesFollow, readers follow the order while it grows. A reader that has seen a position must
// never miss a change with an earlier position.
func changesFollow(h *harness) {
	const total, followers = contenders * contentionRounds, 2
	var followed [followers][]registry.PositionedChange
	var failed atomic.Bool
	h.together(contenders+followers, func(i int) (err error) {
		defer func() {
			if err != nil {
				failed.Store(true)
			}
		}()
		if i < contenders {
			for round := range contentionRounds {
				n := i*contentionRounds + round
				batch, err := h.exact(change(n), registry.Put(registry.PointerKey(id(n)), registry.StateLive, nil))
				if err == nil {
					_, err = h.store.Apply(h.ctx, batch)
				}
				if err != nil {
					return fmt.Errorf("apply: %w", err)
				}
			}
			return nil
		}
		mine := &followed[i-contenders]
		var after registry.Position
		for len(*mine) < total && !failed.Load() {
			page, err := h.store.Changes(h.ctx, after, 1+len(*mine)%5)
			if err != nil {
				return fmt.Errorf("follow: %w", err)
			}
			if len(page) > 0 {
				after = page[len(page)-1].Position
			}
			*mine = append(*mine, page...)
		}
		return nil
	})
	for i := range followed {
		if !reflect.DeepEqual(followed[i], h.changes(0)) {
			h.Errorf("reader %d followed another order than is there now", i)
		}
	}
}

// changesClocksSetBack applies changes whose writers' clocks are set back between changes. Each
// writer has seen the previous change.
func changesClocksSetBack(h *harness) {
	const count = 20
	var want []int
	for n := range count {
		if n > 0 && !h.get(registry.PointerKey(id(n-1))).Exists() {
			h.Fatalf("change %d does not see the one before it", n)
		}
		c := change(n)
		c.Time = c.Time.Add(-time.Duration(n) * time.Hour)
		h.apply(h.exactly(c, registry.Put(registry.PointerKey(id(n)), registry.StateLive, nil)))
		want = append(want, n)
	}
	h.wantChanges(h.changes(0), want...)
}

// changesHorizon deletes the first changes and writes the horizon in one batch. A reader must see
// both effects together.
func changesHorizon(h *harness) {
	for n := range 4 {
		h.applyChange(n)
	}
	all := h.changes(0)
	value, err := registry.Encode(registry.Horizon{Position: all[1].Position})
	if err != nil {
		h.Fatal(err)
	}
	h.apply(registry.Batch{
		Conditions: []registry.Condition{registry.Absent(registry.HorizonKey())},
		Writes: []registry.Write{
			registry.Put(registry.HorizonKey(), registry.StateNone, value),
			registry.Delete(registry.ChangeKey(id(0))), registry.Delete(registry.ChangeKey(id(1))),
		},
	})
	if _, err := registry.Follow(h.ctx, h.store, all[0].Position, 10); !errors.Is(err, registry.ErrForgotten) {
		h.Errorf("a reader behind the horizon is answered %v", err)
	}
	page, err := registry.Follow(h.ctx, h.store, all[1].Position, 10)
	if err != nil {
		h.Fatal(err)
	}
	h.wantChanges(page, 2, 3)
	if head, err := registry.Head(h.ctx, h.store, 0); err != nil || head != all[3].Position {
		h.Errorf("the head is %d, want %d (%v)", head, all[3].Position, err)
	}
}
