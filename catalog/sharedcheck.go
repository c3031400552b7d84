package catalog

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"moorage"
)

// sharedChecks lets callers of Check share one run: each reads every record and every metadata file, and holds all pointers in memory.
// It is safe for concurrent use.
type sharedChecks struct {
	// mu guards the fields below and those of the run; a leaf.
	mu      sync.Mutex
	current *checkRun // nil: none is under way
}

// checkRun is one run. It ends when it is done, or when its last caller has left.
type checkRun struct {
	cancel  context.CancelFunc
	callers int
	done    chan struct{} // closed when report and err are set
	report  Report
	err     error
}

// do returns what check returns: to all callers that come before it does.
func (s *sharedChecks) do(ctx context.Context, check func(context.Context) (Report, error)) (Report, error) {
	run := s.join(ctx, check)
	defer s.leave(run)
	select {
	case <-run.done:
		report := run.report
		report.Problems = slices.Clone(report.Problems)
		return report, run.err
	case <-ctx.Done():
		return Report{}, ctx.Err()
	}
}

// join returns the run that is under way, or begins one.
func (s *sharedChecks) join(ctx context.Context, check func(context.Context) (Report, error)) *checkRun {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		run := &checkRun{done: make(chan struct{})}
		ctx, run.cancel = context.WithCancel(context.WithoutCancel(ctx))
		s.current = run
		go func() {
			defer close(run.done)
			defer s.forget(run)
			run.report, run.err = recovered(ctx, check)
		}()
	}
	s.current.callers++
	return s.current
}

// leave ends run if its caller is the last.
func (s *sharedChecks) leave(run *checkRun) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if run.callers--; run.callers == 0 {
		run.cancel()
		s.forgetLocked(run)
	}
}

// forget lets the next caller begin another run.
func (s *sharedChecks) forget(run *checkRun) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked(run)
}

func (s *sharedChecks) forgetLocked(run *checkRun) {
	if s.current == run {
		s.current = nil
	}
}

// recovered calls check, and turns a panic into an error: its goroutine is nobody's request.
func recovered(ctx context.Context, check func(context.Context) (Report, error)) (report Report, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = moorage.E("catalog.Check", "", moorage.KindInternal, fmt.Errorf("panic: %v\n%s", reason, debug.Stack()))
		}
	}()
	return check(ctx)
}
