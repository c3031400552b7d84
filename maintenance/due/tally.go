package due

import (
	"context"
	"time"

	"moorage/ledger"
	"moorage/maintenance/policy"
	"moorage/registry"
)

// tally counts the due records of a shard, by kind.
//
// An ordinary round lists only the records of the last hour and later ones. Older records are
// counted as of the last round that listed them. So for up to fullPause, a tally can include
// records that are no longer due.
type tally map[string]due

// due counts the due records of one kind.
type due struct {
	count int64
	first time.Time // when the oldest due record became due
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

// overdue returns how long the oldest due record has been due at time now.
func (t tally) overdue(now time.Time) (longest time.Duration) {
	for _, each := range t {
		longest = max(longest, now.Sub(each.first))
	}
	return longest
}

// keep counts a record that is still due but is not in the range of the next round.
func (r *round) keep(key registry.Key) {
	if key.ID <= r.next {
		r.kept.count(key)
	}
}

// keepLeft counts the records that are still due after the checks of their tables. It looks up only
// the records that are outside the range of the next round.
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

// others handles due records for work that programs outside the server do. It returns the records
// that such a program can get. It removes all other records, because no other code would. They
// belong to dropped tables, or to work that no policy requires any more. It reads no document. The
// table's own properties are checked when a program gets the work.
func (p *Planner) others(ctx context.Context, due []registry.Key) (left []registry.Key, err error) {
	if len(due) == 0 {
		return nil, nil
	}
	keys := make([]registry.Key, 0, 2*len(due))
	for _, key := range due {
		pointer, _, _, err := registry.ParseDue(key)
		if err != nil {
			return nil, err
		}
		keys = append(keys, registry.PointerKey(pointer), registry.ScheduleKey(pointer))
	}
	records, err := p.ledger.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	// The policies in memory may be older than the change that made the table due.
	matcher, err := p.config.Policies.Reload(ctx)
	if err != nil { // then it is unknown what the policies require
		p.log.WarnContext(ctx, "maintenance: the policies cannot be read", "error", err)
		return due, nil
	}
	for i, key := range due {
		change, isOver, err := overOf(ctx, p, matcher, key, records[2*i], records[2*i+1])
		if err != nil {
			p.log.WarnContext(ctx, "maintenance: a table that is due cannot be read", "record", key.String(),
				"error", err)
		}
		if !isOver {
			left = append(left, key)
			continue
		}
		_, err = p.ledger.Step(ctx, registry.Batch{Conditions: change.Conditions, Writes: change.Writes})
		if _, failed := registry.FailedCondition(err); failed {
			continue // the next round checks again
		}
		if err != nil {
			return nil, ledger.StepError("due.others", err)
		}
	}
	return left, nil
}

// overOf returns the change that removes a due record if its kind is no longer due. The change
// requires that the policies still equal those in matcher.
func overOf(ctx context.Context, p *Planner, matcher *policy.Matcher, key registry.Key,
	pointer, record registry.Record) (change Change, isOver bool, err error) {
	id, kind, at, err := registry.ParseDue(key)
	if err != nil {
		return change, false, err
	}
	schedule, err := DecodeSchedule(id, record)
	if err != nil {
		return change, false, err
	}
	job := schedule.Value.Job(kind)
	switch {
	case !job.Due.Equal(at): // the schedule has a different time, so this due record is obsolete
		return Change{Writes: []registry.Write{registry.Delete(key)}}, true, nil
	case !pointer.Exists():
		return schedule.End(), true, nil
	}
	var required []registry.Condition
	if pointer.State == registry.StateLive {
		table, err := ledger.Decode[registry.Pointer](pointer)
		if err != nil || isRequired(matcher, table, kind) {
			return change, false, err
		}
		_, required, err = p.config.Policies.ConditionsFor(ctx, matcher, table.Warehouse)
		if err != nil || required == nil {
			return change, false, err
		}
	}
	job.Due, job.Outcome, job.Error = time.Time{}, outcomeOff, ""
	change, err = schedule.Move(schedule.Value.With(job))
	change.Conditions = append(change.Conditions, required...)
	return change, err == nil, err
}

// isRequired reports whether a policy requires this kind of work on a table. For a kind that this
// version does not know, it returns true, because a policy of a later version may require it.
func isRequired(matcher *policy.Matcher, table registry.Pointer, kind string) bool {
	t, known := policy.TypeOf(policy.Kind(kind))
	chain := matcher.Chain(table.ID, table.Identifier())
	return !known || !table.View && policy.Effective(chain, nil)[t].Enabled
}
