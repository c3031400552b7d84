package planner

import (
	"context"
	"time"

	"moorage/ledger"
	"moorage/maintenance/policies"
	"moorage/maintenance/policy"
	"moorage/maintenance/schedule"
	"moorage/registry"
)

// others looks at due records of kinds that programs outside the server claim, and returns those
// that such a program can get. It removes the others, which nobody would: those of tables that are
// gone, and those for which no policy asks any more. It reads no document; what a table says itself
// is heeded by the claim.
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
	// Those that this node knows may be older than what made the table due.
	matcher, err := p.config.Policies.Reload(ctx)
	if err != nil { // then nothing is known of what they ask for
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
			continue // the next round looks again
		}
		if err != nil {
			return nil, ledger.StepError("planner.others", err)
		}
	}
	return left, nil
}

// overOf returns the change that removes a due record, if the kind is not to be done any more. It
// holds only while the policies are those of matcher.
func overOf(ctx context.Context, p *Planner, matcher *policies.Matcher, key registry.Key,
	pointer, record registry.Record) (change schedule.Change, isOver bool, err error) {
	id, kind, at, err := registry.ParseDue(key)
	if err != nil {
		return change, false, err
	}
	care, err := schedule.Decode(id, record)
	if err != nil {
		return change, false, err
	}
	job := care.Value.Job(kind)
	switch {
	case !job.Due.Equal(at): // care does not say so: what was due is done
		return schedule.Change{Writes: []registry.Write{registry.Delete(key)}}, true, nil
	case !pointer.Exists():
		return care.End(), true, nil
	}
	var required []registry.Condition
	if pointer.State == registry.StateLive {
		table, err := ledger.Decode[registry.Pointer](pointer)
		if err != nil || isAskedFor(matcher, table, kind) {
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

// isAskedFor reports whether a policy asks for a kind on a table, or may ask for one that only a
// later version knows.
func isAskedFor(matcher *policies.Matcher, table registry.Pointer, kind string) bool {
	t, known := policy.TypeOf(policy.Kind(kind))
	chain := matcher.Chain(table.ID, table.Identifier())
	return !known || !table.View && policy.Effective(chain, nil)[t].Enabled
}
