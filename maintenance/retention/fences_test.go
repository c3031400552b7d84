package retention_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"moorage/maintenance/retention"
	"moorage/registry"
)

// racingStore is a store that calls a function, once, before a batch of conditional deletions.
type racingStore struct {
	registry.Store
	before func()
}

func (s *racingStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	if before := s.before; before != nil && len(batch.Conditions) > 0 && batch.Writes[0].Delete {
		s.before = nil
		before()
	}
	return s.Store.Apply(ctx, batch)
}

// There are more fences than are remembered, and the sweep deletes them part by part. A fence that
// another node has deleted does not stop it. If a change was written instead of a fence, the change
// stays, whether the sweep notices it when it searches or only when it deletes.
func TestSweepOfManyFences(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	racing := &racingStore{Store: f.store}
	node := f.other(racing)
	const count = retention.ForgetPage + 10
	var fences []registry.Write
	for n := range count {
		value, err := registry.Encode(registry.Change{ID: numbered(n), Operation: "test", Time: f.clock.Now().Add(-8 * 24 * time.Hour)})
		must(t, err)
		fences = append(fences, registry.Put(registry.ChangeKey(numbered(n)), registry.StateVoid, value))
	}
	for part := range slices.Chunk(fences, 500) {
		f.write(part...)
	}
	comesTrue := func(n int) {
		f.write(registry.Delete(registry.ChangeKey(numbered(n))))
		_, err := f.store.Apply(f.ctx, registry.Batch{Change: &registry.Change{ID: numbered(n), Operation: "test", Time: f.clock.Now()}})
		must(t, err)
	}
	wantLeft := func(round string, fences, changes, remembered int) {
		t.Helper()
		left := map[bool]int{}
		records, err := f.store.List(f.ctx, registry.TableChange, "ff", "", registry.ListLimitMax)
		must(t, err)
		for _, record := range records {
			left[record.State == registry.StateVoid]++
		}
		if left[true] != fences || left[false] != changes {
			t.Errorf("%s: %d fences and %d changes are left, want %d and %d", round, left[true], left[false], fences, changes)
		}
		if got := node.SeenFences(); got != remembered {
			t.Errorf("%s: %d fences are remembered, want %d", round, got, remembered)
		}
	}
	must(t, node.RunOnce(f.ctx, retention.Changes))
	wantLeft("the first", count, 0, retention.ForgetPage)
	f.clock.Advance(retention.KeptMin)
	comesTrue(7)
	racing.before = func() { comesTrue(8) }
	must(t, node.RunOnce(f.ctx, retention.Changes))
	wantLeft("one in which two nodes meet", count-2, 2, retention.ForgetPage)
	must(t, node.RunOnce(f.ctx, retention.Changes))
	wantLeft("the one after", 10, 2, 10)
	f.clock.Advance(retention.KeptMin / 2)
	must(t, node.RunOnce(f.ctx, retention.Changes))
	wantLeft("one half an hour later", 10, 2, 10)
}

// A fence whose writer's clock was a year ahead is deleted once this process has known it for the
// retention of fences.
func TestSweepOfFenceFromTheFuture(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	key := registry.ChangeKey(numbered(1))
	f.put(key, registry.StateVoid, registry.Change{ID: numbered(1), Time: f.clock.Now().Add(365 * 24 * time.Hour)})
	wantThere := func(want bool) {
		t.Helper()
		must(t, f.RunOnce(f.ctx, retention.Changes))
		records, err := f.store.Get(f.ctx, key)
		if err != nil || records[0].Exists() != want {
			t.Errorf("the fence is there: %t, want %t; %v", records[0].Exists(), want, err)
		}
	}
	wantThere(true)
	f.clock.Advance(week)
	wantThere(true)
	f.clock.Advance(time.Second)
	wantThere(false)
}

// This process measures durations with a clock that cannot be set.
func TestSweepKeepsMonotonicTime(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *retention.Config) { c.Now = time.Now })
	f.put(registry.ChangeKey(numbered(1)), registry.StateVoid, registry.Change{ID: numbered(1), Time: time.Now().Add(-8 * 24 * time.Hour)})
	times := f.MeasuredSince() // when the process began
	must(t, f.RunOnce(f.ctx, retention.Changes))
	times = append(times, f.MeasuredSince()...)
	if len(times) != 3 {
		t.Fatalf("measures since %v, want three times", times)
	}
	for _, since := range times {
		if since == since.Round(0) {
			t.Errorf("%v has no monotonic reading", since)
		}
	}
}
