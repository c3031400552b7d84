package planner

import (
	"context"
	"time"

	"moorage/registry"
)

// tally counts the due records of a shard, by kind.
//
// An ordinary round lists only the last hour. An older record keeps its count from the last round
// that listed it: a round from the start, or the last round before the record was an hour old. So a
// tally can include records that are no longer due, for at most fullPause.
type tally map[string]due

// due counts the due records of one kind.
type due struct {
	count int64
	first time.Time // when the longest-due record was due
}

// count counts a due record. It ignores a record whose key cannot be read.
func (t tally) count(key registry.Key) {
	if _, kind, at, err := registry.ParseDue(key); err == nil {
		t.add(tally{kind: {1, at}})
	}
}

// add adds the counts of other.
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

// overdue returns for how long the longest-due record has been due at now.
func (t tally) overdue(now time.Time) (longest time.Duration) {
	for _, each := range t {
		longest = max(longest, now.Sub(each.first))
	}
	return longest
}

// pass counts a record that is still due, if the next round does not list it.
func (r *round) keep(key registry.Key) {
	if key.ID <= r.next {
		r.kept.count(key)
	}
}

// passLeft passes the records that are still due after the looks at their tables. It reads which
// records are still due only if the next round does not list them.
func (r *round) keepLeft(ctx context.Context, looked []registry.Key) error {
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
			r.keep(old[i])
		}
	}
	return nil
}
