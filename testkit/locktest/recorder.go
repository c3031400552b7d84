package locktest

import (
	"context"
	"slices"
	"sync"

	"moorage/locks"
)

// Recorder is a Manager that records every Acquire, and then calls another Manager. It is for tests
// that compare the locks of an operation with the expected locks. It is safe for concurrent use.
type Recorder struct {
	manager locks.Manager

	mu    sync.Mutex // guards the field below; no other lock is taken under it
	calls []Call
}

// Call is one Acquire.
type Call struct {
	Request locks.Request
	Options locks.Options
	Grants  []locks.Grant // the result of locks.Plan for Request, with ancestors, in the order of taking
	Err     error         // the error of Acquire
	// Nested is true if the caller's context belongs to an unreleased hold. The rules of package
	// locks forbid such a second Acquire.
	Nested bool
}

// Named returns the grants in mode R or W, as "W /wh/ns/#3", in order. These are the requested
// locks, without the ancestor modes that follow from them.
func (c Call) Named() []string {
	var named []string
	for _, grant := range c.Grants {
		if grant.Mode == locks.R || grant.Mode == locks.W {
			named = append(named, grant.String())
		}
	}
	return named
}

// NewRecorder returns a Recorder that calls manager.
func NewRecorder(manager locks.Manager) *Recorder { return &Recorder{manager: manager} }

// Calls returns the recorded calls, in the order in which they returned.
func (r *Recorder) Calls() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// Reset forgets the recorded calls.
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

// recordedHold is a Hold whose context marks the operations under it.
type recordedHold struct{ locks.Hold }

func (h *recordedHold) Context() context.Context {
	return context.WithValue(h.Hold.Context(), recordedKey{}, h)
}
