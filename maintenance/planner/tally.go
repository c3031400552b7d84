package planner

import (
	"context"
	"time"

	"moorage/registry"
)

// tally is what is due of a shard, by kind.
//
// An ordinary round lists the last hour only. What is due for longer is counted by the last round
// that listed it: that which began at the start, or the last before it was an hour old. So for at
// most fullPause it counts what is not due any more.
type tally map[string]due

// due is what is due of one kind.
type due struct {
	count int64
	first time.Time // when what is due for longest was due
}

// count counts a due record. One whose key cannot be read is none.
func (t tally) count(key registry.Key) {
	if _, kind, at, err := registry.ParseDue(key); err == nil {
		t.add(tally{kind: {1, at}})
	}
}

// add adds what other has counted.
func (t tally) add(other tally) {
	for kind, more := range other {
		all := t[kind]
		if all.count == 0 || more.first.Before(all.first) {
			all.first = more.first
		}
		all.count += more.count
		t[kind] = all
	}
}

// counts returns how many records are due, by kind.
func (t tally) counts() map[string]int64 {
	counts := make(map[string]int64, len(t))
	for kind, each := range t {
		counts[kind] = each.count
	}
	return counts
}

// overdue returns for how long something has been due at now.
func (t tally) overdue(now time.Time) (longest time.Duration) {
	for _, each := range t {
		longest = max(longest, now.Sub(each.first))
	}
	return longest
}

// pass counts a record that is still due, if the next round does not list it.
func (r *round) pass(key registry.Key) {
	if key.ID <= r.next {
		r.passed.count(key)
	}
}

// passLeft passes those records that the looks at their tables have left due. It reads which those
// are if the next round does not.
func (r *round) passLeft(ctx context.Context, looked []registry.Key) error {
	var old []registry.Key
	for _, key := range looked {
		if key.ID <= r.next {
			old = append(old, key)
		}
	}
	if len(old) == 0 {
		return nil
	}
	records, err := r.ledger.Get(ctx, old...)
	if err != nil {
		return err
	}
	for i, record := range records {
		if record.Exists() {
			r.pass(old[i])
		}
	}
	return nil
}
