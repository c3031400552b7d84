package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"moorage"
)

// CutOver is what became of a mirror at the cut-over.
type CutOver struct {
	Verified
	Ended bool `json:"ended"` // it is an ordinary table or view now
}

// Cutover ends the mirrors of the source, each after a last comparison without a difference. The
// caller has stopped all writers at the source, or the Source is a Detacher and detach is true. If
// detach is true, Cutover first detaches each object from the source, which returns its last
// metadata file, and then makes that file the object's current one here.
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
	for key, p := range r.Journal.past { // an earlier run detached it, or was about to
		switch {
		case listed[key] || p.ended:
		case p.detached != nil:
			all = append(all, *p.detached)
		case p.leaves != nil && detach:
			all = append(all, p.leaves.Object)
		}
	}
	result := make([]CutOver, len(all))
	err = each(ctx, r, StageCutover, all, func(ctx context.Context, i int, o Object) (err error) {
		if r.Journal.of(o).ended && !detach {
			result[i] = CutOver{Verified: Verified{Object: o}, Ended: true}
			return nil
		}
		if !detach {
			result[i], err = r.cutOne(ctx, o, nil)
			return err
		}
		if was := r.Journal.of(o); was.leaves != nil && was.detached == nil && !listed[o.key()] {
			result[i], err = r.finishDetach(ctx, source, *was.leaves)
			return err
		}
		result[i], err = r.cutOne(ctx, o, source)
		return err
	})
	return slices.DeleteFunc(result, func(c CutOver) bool { return c.Object.Name == "" }), err
}

// cutOne ends one mirror. source lets go of the object first, unless it is nil. The result is zero
// if the target has no such mirror.
func (r *Run) cutOne(ctx context.Context, o Object, source Detacher) (c CutOver, err error) {
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
		if source == nil {
			return r.end(ctx, c)
		}
		if last, c.Why, err = r.detach(ctx, source, c.Object); err != nil || last == nil {
			return c, err
		}
	}
	return r.moveAndEnd(ctx, *last)
}

// detachTimeout bounds an attempt to detach an object, which a cancelled run does not interrupt.
const detachTimeout = 5 * time.Minute

// detach has the source let go of o. A line in the journal comes before each attempt: if its end is
// not seen, finishDetach repeats it. last is nil if the source still has the object, or has no such
// object: then why has the reason.
func (r *Run) detach(ctx context.Context, source Detacher, o Object) (last *Object, why string, err error) {
	if !source.CanDetach(o) {
		return nil, "The source cannot let go of it: stop its writers and use --source-frozen", nil
	}
	ctx, cancel := moorage.Detached(ctx, detachTimeout)
	defer cancel()
	attempt := Attempt{Object: o, Key: uuid.NewString()}
	for {
		if err := r.Journal.add(entry{Step: stepLeaves, Object: &attempt.Object, Key: attempt.Key}); err != nil {
			return nil, "", err
		}
		left, err := source.Detach(ctx, attempt)
		switch {
		case err == nil:
			return &left, "", r.Journal.add(entry{Step: stepDetached, Object: &left})
		case errors.Is(err, ErrMoved) && ctx.Err() == nil:
			attempt.Object = left
		case errors.Is(err, ErrGone) || aboutObject(err) != nil:
			why = "The source did not let go of it: " + err.Error()
			return nil, why, r.Journal.add(entry{Step: stepStays, Object: &o})
		default:
			return nil, "", fmt.Errorf("detach %s: %w", o, err)
		}
	}
}

// finishDetach ends the mirror of an object that the source has no more, after an attempt to detach
// it whose end was not seen. The object stays a mirror if the source does not name its last
// metadata file: the source may have dropped it.
func (r *Run) finishDetach(ctx context.Context, source Detacher, attempt Attempt) (CutOver, error) {
	last, err := source.Detach(ctx, attempt)
	switch {
	case errors.Is(err, ErrGone) || aboutObject(err) != nil:
		const why = "The source has it no more, and does not name its last metadata file: end the mirror with " +
			"moorage api POST /management/v1/mirror/end, and if the file is not the newest one, use " +
			"moorage register --replace"
		return CutOver{Verified: Verified{Object: attempt.Object, Why: why}}, nil
	case err != nil:
		return CutOver{}, fmt.Errorf("detach %s: %w", attempt.Object, err)
	}
	if err := r.Journal.add(entry{Step: stepDetached, Object: &last}); err != nil {
		return CutOver{}, err
	}
	return r.moveAndEnd(ctx, last)
}

// moveAndEnd moves the mirror of an object that left the source to its last metadata file, and ends
// the mirror.
func (r *Run) moveAndEnd(ctx context.Context, last Object) (c CutOver, err error) {
	c.Object = last
	there, err := r.Target.Load(ctx, r.Choice.there(last))
	if err != nil && !errors.Is(err, ErrGone) {
		return c, fmt.Errorf("load %s: %w", last, err)
	}
	if err != nil || there.MetadataLocation != last.MetadataLocation {
		if err := r.Target.Register(ctx, r.Choice.there(last), r.Source.Name()); err != nil {
			return c, fmt.Errorf("move %s to %s, which the source had last: %w", last, last.MetadataLocation, err)
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
