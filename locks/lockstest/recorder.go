// Package lockstest holds Recorder, which notes what locks an operation takes.
package lockstest

import (
	"context"
	"slices"
	"sync"

	"moorage/locks"
)

// Recorder is a Manager that notes every Acquire and hands it on, for tests that compare what an
// operation takes with what it should take. It is safe for concurrent use.
type Recorder struct {
	manager locks.Manager

	mu    sync.Mutex // guards the field below; leaf
	calls []Call
}

// Call is one Acquire.
type Call struct {
	Request locks.Request
	Options locks.Options
	Grants  []locks.Grant // what locks.Plan makes of Request, ancestors included, in the order of taking
	Err     error         // what Acquire returned
	// Nested means that the caller's context belongs to a hold which was not released: a second
	// Acquire while holding, which the order of locks forbids.
	Nested bool
}

// Named returns the grants in mode R or W, as "W /wh/ns/#3", in order: what the operation asked
// for, without the ancestor modes that follow from it.
func (c Call) Named() []string {
	var named []string
	for _, grant := range c.Grants {
		if grant.Mode == locks.R || grant.Mode == locks.W {
			named = append(named, grant.String())
		}
	}
	return named
}

// NewRecorder returns a Recorder over manager.
func NewRecorder(manager locks.Manager) *Recorder { return &Recorder{manager: manager} }

// Calls returns what was recorded, in the order in which the calls returned.
func (r *Recorder) Calls() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// Reset forgets what was recorded.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = nil
}

// Acquire implements locks.Manager.
func (r *Recorder) Acquire(ctx context.Context, request locks.Request, options locks.Options) (locks.Hold, error) {
	outer, _ := ctx.Value(recordedKey{}).(*recordedHold)
	call := Call{
		Request: locks.Request{Reads: slices.Clone(request.Reads), Writes: slices.Clone(request.Writes)},
		Options: options,
		Grants:  locks.Plan(request),
		Nested:  outer != nil && outer.Hold.Context().Err() == nil,
	}
	hold, err := r.manager.Acquire(ctx, request, options)
	call.Err = err
	r.mu.Lock()
	r.calls = append(r.calls, call)
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return &recordedHold{hold}, nil
}

type recordedKey struct{}

// recordedHold is a Hold whose context can be distinguished from others.
type recordedHold struct{ locks.Hold }

func (h *recordedHold) Context() context.Context {
	return context.WithValue(h.Hold.Context(), recordedKey{}, h)
}
