package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// CutOver is what became of a mirror at the cut-over.
type CutOver struct {
	Verified
	Ended bool `json:"ended"` // it is an ordinary table or view now
}

// Cutover ends the mirrors of the source, each after a last comparison without a difference. The
// caller has stopped all writers at the source, or the Source is a Detacher and detach is true.
// Then each object leaves the source first, with its last metadata file, and then moves here to
// that file.
//
// An object that differs stays a mirror. A run that was killed can be repeated with its journal.
func (r *Run) Cutover(ctx context.Context, detach bool) ([]CutOver, error) {
	source, canDetach := r.Source.(Detacher)
	if detach && !canDetach {
		return nil, fmt.Errorf("%s cannot let go of tables in one step: stop its writers and use --source-frozen",
			r.Source.Name())
	}
	all, err := r.list(ctx)
	if err != nil {
		return nil, err
	}
	listed := make(map[string]bool)
	for _, o := range all {
		listed[o.key()] = true
	}
	for key, p := range r.Journal.past { // an earlier run detached it
		if p.detached != nil && !p.ended && !listed[key] {
			all = append(all, *p.detached)
		}
	}
	result := make([]CutOver, len(all))
	err = each(ctx, r, StageCutover, all, func(ctx context.Context, i int, o Object) (err error) {
		if r.Journal.of(o).ended && !detach {
			result[i] = CutOver{Verified: Verified{Object: o}, Ended: true}
			return nil
		}
		result[i], err = r.cutOne(ctx, o, source, detach)
		return err
	})
	return slices.DeleteFunc(result, func(c CutOver) bool { return c.Object.Name == "" }), err
}

// cutOne ends one mirror. The result is zero if the target has no such mirror.
func (r *Run) cutOne(ctx context.Context, o Object, source Detacher, detach bool) (c CutOver, err error) {
	last := r.Journal.of(o).detached
	if last == nil {
		planned, err := r.planOne(ctx, o)
		isMirror := planned.mirror != "" && planned.mirror == r.Source.Name()
		if err != nil || !isMirror {
			return CutOver{}, err
		}
		if c.Verified, err = r.verifyOne(ctx, planned); err != nil || !c.IsAlike() {
			return c, err
		}
		if !detach {
			return r.end(ctx, c)
		}
		detached, err := source.Detach(ctx, c.Object)
		if err != nil {
			c.Why = "The source did not let go of it: " + err.Error()
			return c, ctx.Err()
		}
		last = &detached
		if err := r.Journal.add(entry{Step: stepDetached, Object: last}); err != nil {
			return c, err
		}
	}
	c.Object = *last
	there, err := r.Target.Load(ctx, r.Choice.there(*last))
	if err != nil && !errors.Is(err, ErrGone) {
		return c, fmt.Errorf("load %s: %w", o, err)
	}
	if err != nil || there.MetadataLocation != last.MetadataLocation {
		if err := r.Target.Register(ctx, r.Choice.there(*last), r.Source.Name()); err != nil {
			return c, fmt.Errorf("move %s to %s, which the source had last: %w", o, last.MetadataLocation, err)
		}
	}
	return r.end(ctx, c)
}

// end makes the mirror of c an ordinary table or view.
func (r *Run) end(ctx context.Context, c CutOver) (CutOver, error) {
	if err := r.Target.EndMirror(ctx, r.Choice.there(c.Object)); err != nil {
		return c, fmt.Errorf("end the mirror %s: %w", c.Object, err)
	}
	c.Ended = true
	return c, r.Journal.add(entry{Step: stepEnded, Object: &c.Object})
}
