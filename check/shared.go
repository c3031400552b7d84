package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"moorage"
	"moorage/internal/worker"
)

// runs lets callers of Check share one run, because each run reads every record and every metadata
// file, and holds all pointers in memory. It is safe for concurrent use.
type runs struct {
	mu      sync.Mutex // guards the field below and the fields of the run; no lock is taken under it
	current *run       // nil if no run is in progress
}

// run is one run. It ends when it is done, or when its last caller has left.
type run struct {
	cancel  context.CancelFunc
	callers int
	done    chan struct{} // closed when report and err are set
	report  Report
	err     error
}

// do calls look, and returns its result. Callers that arrive while look runs share the result.
func (r *runs) do(ctx context.Context, look func(context.Context) (Report, error)) (Report, error) {
	run := r.join(ctx, look)
	defer r.leave(run)
	select {
	case <-run.done:
		report := run.report
		report.Problems = slices.Clone(report.Problems)
		return report, run.err
	case <-ctx.Done():
		return Report{}, ctx.Err()
	}
}

// join returns the current run, or begins one. If look panics, the run ends with an error.
func (r *runs) join(ctx context.Context, look func(context.Context) (Report, error)) *run {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current == nil {
		begun := &run{done: make(chan struct{})}
		ctx, begun.cancel = context.WithCancel(context.WithoutCancel(ctx))
		r.current = begun
		go func() {
			begun.err = worker.Safely(ctx, func(ctx context.Context) (err error) {
				begun.report, err = look(ctx)
				return err
			})
			if panicked, ok := errors.AsType[*worker.PanicError](begun.err); ok {
				begun.err = fmt.Errorf("%w\n%s", panicked, panicked.Stack)
				begun.err = moorage.E("check.join", "", moorage.KindInternal, begun.err)
			}
			r.mu.Lock()
			r.forgetLocked(begun)
			r.mu.Unlock()
			close(begun.done)
		}()
	}
	r.current.callers++
	return r.current
}

// leave ends the run if no other caller waits for it.
func (r *runs) leave(left *run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if left.callers--; left.callers == 0 {
		left.cancel()
		r.forgetLocked(left)
	}
}

// forgetLocked lets the next caller begin another run. r.mu must be held.
func (r *runs) forgetLocked(ended *run) {
	if r.current == ended {
		r.current = nil
	}
}
