package planner

import (
	"context"
	"time"

	"moorage/ledger"
	"moorage/maintenance/policy"
	"moorage/maintenance/schedule"
	"moorage/registry"
)

// others filters due records of kinds that programs outside the server claim, and returns the
// records that such a program can get. It removes the rest, because nothing else would: records of
// dropped tables, and records that no policy requires any more. It reads no document; the claim
// checks the table's own properties.
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
		keys = append(keys, registry.PointerKey(pointer), registry.CareKey(pointer))
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
			return nil, ledger.StepError("planner.others", err)
		}
	}
	return left, nil
}

// overOf returns the change that removes a due record, if the kind is no longer due. The change
// holds only while the policies are the same as in matcher.
func overOf(ctx context.Context, p *Planner, matcher *policy.Matcher, key registry.Key,
	pointer, record registry.Record) (change schedule.Change, isOver bool, err error) {
	id, kind, at, err := registry.ParseDue(key)
	if err != nil {
		return change, false, err
	}
	care, err := schedule.DecodeSchedule(id, record)
	if err != nil {
		return change, false, err
	}
	job := care.Value.Job(kind)
	switch {
	case !job.Due.Equal(at): // the care record has another time: what was due is done
		return schedule.Change{Writes: []registry.Write{registry.Delete(key)}}, true, nil
	case !pointer.Exists():
		return care.End(), true, nil
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
	change, err = care.Move(care.Value.With(job))
	change.Conditions = append(change.Conditions, required...)
	return change, err == nil, err
}

// isAskedFor reports whether a policy requires a kind on a table. It is true for a kind that only a
// later version knows, because a policy may require it.
func isRequired(matcher *policy.Matcher, table registry.Pointer, kind string) bool {
	t, known := policy.TypeOf(policy.Kind(kind))
	chain := matcher.Chain(table.ID, table.Identifier())
	return !known || !table.View && policy.Effective(chain, nil)[t].Enabled
}
