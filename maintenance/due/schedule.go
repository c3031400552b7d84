package due

import (
	"context"
	"time"

	"moorage/ledger"
	"moorage/maintenance/policy"
	"moorage/registry"
)

// The modes are the reasons for a due time.
const (
	ModeEvent    = "event"
	ModeWalk     = "walk"
	ModeShadow   = "shadow"
	ModeOperator = "operator"
)

// HeldBlocked is the value of Held for a blocked kind.
const HeldBlocked = "blocked"

// Schedule is the schedule of a table as read from the store.
type Schedule struct {
	Pointer registry.ID
	Record  registry.Record // zero if there is no record
	Value   registry.Schedule
}

// ReadSchedules returns the schedules of tables, in their order.
func ReadSchedules(ctx context.Context, l *ledger.Ledger, pointers ...registry.ID) ([]Schedule, error) {
	keys := make([]registry.Key, len(pointers))
	for i, pointer := range pointers {
		keys[i] = registry.ScheduleKey(pointer)
	}
	records, err := l.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	schedules := make([]Schedule, len(pointers))
	for i, record := range records {
		if schedules[i], err = DecodeSchedule(pointers[i], record); err != nil {
			return nil, err
		}
	}
	return schedules, nil
}

// DecodeSchedule returns the schedule of a table in record, which may be missing.
func DecodeSchedule(pointer registry.ID, record registry.Record) (Schedule, error) {
	schedule := Schedule{Pointer: pointer, Record: record}
	if !record.Exists() {
		return schedule, nil
	}
	var err error
	schedule.Value, err = ledger.Decode[registry.Schedule](record)
	return schedule, err
}

// AsOf returns schedule with corrected times. now is the time by the store's clock. The time of an
// event that lies after now was recorded while the clock was ahead, so AsOf replaces it with now.
// Due times stay, because the keys of the index contain them.
func AsOf(schedule registry.Schedule, now time.Time) registry.Schedule {
	if registry.IsAhead(schedule.SeqAt, now) {
		schedule.SeqAt = now
	}
	for _, job := range schedule.Jobs {
		if registry.IsAhead(job.Last, now) {
			job.Last = now
			schedule = schedule.With(job)
		}
	}
	return schedule
}

// Change holds the conditions and writes of one Apply.
type Change struct {
	Conditions []registry.Condition
	Writes     []registry.Write
}

// Add adds other to c.
func (c *Change) Add(other Change) {
	c.Conditions = append(c.Conditions, other.Conditions...)
	c.Writes = append(c.Writes, other.Writes...)
}

// Move returns the change that replaces a table's schedule with next. The change also replaces the
// due records for the times in the schedule. It requires an unchanged schedule. Its first write is
// the schedule.
func (c Schedule) Move(next registry.Schedule) (Change, error) {
	key := registry.ScheduleKey(c.Pointer)
	writes, err := ledger.Encode(ledger.Put(key, registry.StateNone, next))
	if err != nil {
		return Change{}, err
	}
	condition := registry.Absent(key)
	if c.Record.Exists() {
		condition = ledger.Unchanged(c.Record)
	}
	change := Change{Conditions: []registry.Condition{condition}, Writes: writes}
	before := dueKeys(c.Pointer, c.Value)
	present := dueKeys(c.Pointer, next)
	for _, job := range c.Value.Jobs {
		if was, ok := before[job.Kind]; ok && present[job.Kind] != was {
			change.Writes = append(change.Writes, registry.Delete(was))
		}
	}
	for _, job := range next.Jobs {
		is, ok := present[job.Kind]
		if !ok || before[job.Kind] == is {
			continue
		}
		put, err := ledger.Encode(ledger.Put(is, registry.StateNone, registry.Due{}))
		if err != nil {
			return Change{}, err
		}
		change.Writes = append(change.Writes, put...)
	}
	return change, nil
}

// dueKeys returns the keys of the due records of a table, by kind.
func dueKeys(pointer registry.ID, schedule registry.Schedule) map[string]registry.Key {
	keys := make(map[string]registry.Key, len(schedule.Jobs))
	for _, job := range schedule.Jobs {
		if !job.Due.IsZero() {
			keys[job.Kind] = registry.DueKey(pointer, job.Kind, job.Due)
		}
	}
	return keys
}

// End returns the change that removes the schedule of a dropped table, with its due records.
func (c Schedule) End() Change {
	var change Change
	if !c.Record.Exists() {
		return change
	}
	change.Conditions = []registry.Condition{ledger.Unchanged(c.Record)}
	change.Writes = []registry.Write{registry.Delete(c.Record.Key)}
	for _, job := range c.Value.Jobs {
		if !job.Due.IsZero() {
			change.Writes = append(change.Writes, registry.Delete(registry.DueKey(c.Pointer, job.Kind, job.Due)))
		}
		change.Writes = append(change.Writes, registry.Delete(registry.DueBlockedKey(c.Pointer, job.Kind)))
	}
	return change
}

// Block returns the change that blocks a kind on the table. job is the kind's part of the schedule.
// After the change, the kind is no longer due, and a record holds the reason. by names the operator
// that blocks the kind, and is empty if failures block it.
func (c Schedule) Block(job registry.KindSchedule, reason, by string, now time.Time) (Change, error) {
	job.Due, job.Held, job.Error = time.Time{}, HeldBlocked, reason
	change, err := c.Move(c.Value.With(job))
	if err != nil {
		return change, err
	}
	put, err := ledger.Encode(ledger.Put(registry.DueBlockedKey(c.Pointer, job.Kind), registry.StateNone,
		registry.Due{Reason: reason, Since: now, By: by}))
	change.Writes = append(change.Writes, put...)
	return change, err
}

// Unblock returns the change that unblocks a kind of the table and makes it due at the given time.
// blocker is the record with the reason, as read from the store. If the kind was blocked again
// since then, its new record stays.
func (c Schedule) Unblock(kind string, due time.Time, blocker registry.Record) (Change, error) {
	job := c.Value.Job(kind)
	job.Due, job.Set, job.Mode, job.Held = due.UTC().Truncate(time.Second), due, ModeOperator, ""
	job.Tries, job.Laters, job.LaterSince, job.Error = 0, 0, time.Time{}, ""
	change, err := c.Move(c.Value.With(job))
	if blocker.Exists() {
		change.Conditions = append(change.Conditions, ledger.Unchanged(blocker))
		change.Writes = append(change.Writes, registry.Delete(registry.DueBlockedKey(c.Pointer, kind)))
	}
	return change, err
}

// FactsOf returns the facts in summary, which a change records about a version of a table. summary
// may be nil.
func FactsOf(summary *registry.Summary) policy.Facts {
	if summary == nil {
		return policy.Facts{Files: -1}
	}
	known := policy.Facts{Known: true, Snapshots: summary.Snapshots, Files: summary.Files, Rules: summary.Rules}
	if summary.FirstMS > 0 {
		known.First = time.UnixMilli(summary.FirstMS).UTC()
	}
	return known
}

// Observation is the observed state of a table.
type Observation struct {
	Warehouse registry.ID // zero if unknown
	Facts     policy.Facts
	Seq       int64
	Rules     policy.Rules
	Mode      string
	// Exact is true if the rules come from the present version. Then a table whose rule has changed
	// becomes due at the time that the rule requires. Otherwise a changed rule first makes a check
	// due.
	Exact bool
}

// Evaluate returns the new schedule of a table that was observed at about time now, by the store's
// clock. The second result is false if there is nothing to write.
func Evaluate(schedule registry.Schedule, sight Observation, now time.Time) (after registry.Schedule, changed bool) {
	schedule = AsOf(schedule, now)
	after = schedule
	for _, t := range policy.Types() {
		rule := sight.Rules[t]
		job := schedule.Job(string(t.Kind()))
		if job.Held == HeldBlocked {
			continue
		}
		base := baseOf(schedule, job)
		if sight.Exact {
			base.Rule, base.Rules = rule.Hash(), sight.Facts.Rules
		}
		due := policy.Due(sight.Facts, base, rule, now)
		if registry.IsAhead(job.Set, now) {
			job.Due = time.Time{} // its original wait is unknown
			if due.IsZero() {
				due = now
			}
		}
		if due.IsZero() {
			continue
		}
		if due.Before(now) {
			due = now // readers of the index have passed earlier times
		}
		due = due.UTC().Truncate(time.Second)
		if !job.Due.IsZero() && !due.Before(job.Due) {
			continue
		}
		job.Due, job.Set, job.Rule, job.Mode, job.Held = due, now, rule.Hash(), sight.Mode, ""
		after, changed = after.With(job), true
	}
	if changed {
		after.Rules = sight.Facts.Rules
		if !sight.Warehouse.IsZero() {
			after.Warehouse = sight.Warehouse
		}
		if sight.Seq > after.Seq {
			after.Seq, after.SeqAt = sight.Seq, now
		}
	}
	return after, changed
}

// baseOf returns the state of a table after the last job of a kind.
func baseOf(schedule registry.Schedule, job registry.KindSchedule) policy.Base {
	return policy.Base{
		Rule: job.Rule, Rules: schedule.Rules, Ran: job.Last,
		Snapshots: job.Base.Snapshots, Files: job.Base.Files, Interval: job.Base.Interval,
	}
}
