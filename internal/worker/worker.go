// Package worker runs a function repeatedly in the background. Every background loop of the server
// is a Worker. Sleep is also for other code that waits between two attempts.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"moorage"
)

// reportPause is the time between two log lines about consecutive failed runs.
const reportPause = time.Minute

// Config configures a Worker. Fields without a default are required.
type Config struct {
	// Name identifies the worker in logs.
	Name string
	// Run does a bounded piece of work, and calls Kick if there is more to do. It must return soon
	// after its context ends.
	Run func(ctx context.Context) error
	// Interval is the mean pause between two runs. The worker draws each pause between 0.5 and 1.5
	// times Interval. So nodes that were started together do not run at the same times.
	Interval time.Duration
	// Jitter is the source of randomness for the pauses. After New, only the worker may use it,
	// because it is not safe for concurrent use.
	Jitter *rand.Rand

	Logger *slog.Logger // by default nothing is logged
}

// Worker is a loop that can be started and stopped. It is safe for concurrent use.
type Worker struct {
	config Config
	log    *slog.Logger
	kicks  chan struct{} // contains a value if a kick has not been handled yet
	slot   chan struct{} // has room for one run, so runs never overlap

	failures, panics spell // used only by the loop

	mu     sync.Mutex         // guards the fields below; innermost lock; never held over a wait
	cancel context.CancelFunc // ends the loop; nil while there is none
	ended  chan struct{}      // closed when the last loop that was started has ended; nil before the first
}

// New returns a worker that is not started. It panics if a required field of config is missing.
func New(config Config) *Worker {
	if config.Name == "" || config.Run == nil || config.Interval <= 0 || config.Jitter == nil {
		panic("worker: Name, Run, Interval and Jitter are required")
	}
	w := &Worker{config: config, log: config.Logger, kicks: make(chan struct{}, 1), slot: make(chan struct{}, 1)}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	w.log = w.log.With("worker", config.Name)
	return w
}

// Start starts the loop: a pause, a run, a pause, and so on. It does nothing if the loop is already
// started. A Kick before or after Start makes the first run begin at once.
func (w *Worker) Start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	before, ended := w.ended, make(chan struct{})
	w.cancel, w.ended = cancel, ended
	go func() {
		defer close(ended)
		if before != nil {
			<-before // an earlier loop that was stopped but has not ended yet
		}
		w.loop(ctx)
	}()
}

// Stop ends the context of a run in progress, and returns when the loop has ended. It does nothing
// if there is no loop. After Stop the worker can be started again.
func (w *Worker) Stop() {
	w.mu.Lock()
	if w.cancel != nil {
		w.cancel()
		w.cancel = nil
	}
	ended := w.ended
	w.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

// Kick makes the loop run without waiting for the end of its pause. During a run, Kick requests one
// more run after the current run. Before Start, Kick is remembered for the first run. Several kicks
// before a run count as one. Kick never blocks.
func (w *Worker) Kick() {
	select {
	case w.kicks <- struct{}{}:
	default:
	}
}

// RunOnce calls Run once, in the caller's goroutine, whether or not the loop is started. It first
// waits for the end of a run in progress. It returns Run's error, a *PanicError if Run panicked, or
// the context's error.
func (w *Worker) RunOnce(ctx context.Context) error {
	select {
	case w.slot <- struct{}{}:
		defer func() { <-w.slot }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return Safely(ctx, w.config.Run)
}

// PanicError reports a panic during a run.
type PanicError struct {
	Value any // the argument of panic
	Stack []byte
}

// Error returns the value without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Safely calls run and returns its error, or a *PanicError if it panicked. Use it for work whose
// panic must not end other work, and in goroutines, where a panic would end the process.
func Safely(ctx context.Context, run func(context.Context) error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{value, debug.Stack()}
		}
	}()
	return run(ctx)
}

func (w *Worker) loop(ctx context.Context) {
	for w.pause(ctx) {
		err := w.RunOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		w.report(ctx, err)
	}
}

// Sleep waits for d. It returns false if ctx ends earlier.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// pause waits until the next run or the end of the loop. It returns true when it is time to run,
// and false when the loop must end.
func (w *Worker) pause(ctx context.Context) bool {
	half := w.config.Interval / 2
	timer := time.NewTimer(half + time.Duration(w.config.Jitter.Int64N(int64(w.config.Interval)+1)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.kicks:
		if ctx.Err() != nil {
			w.Kick() // keep the kick for the loop that the next Start begins
		}
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// report logs the result of a run. While runs fail, it logs one line a minute, and it logs one line
// when they succeed again. Otherwise a worker that runs each second would fill the log.
func (w *Worker) report(ctx context.Context, err error) {
	if err == nil {
		if w.failures.runs > 0 {
			w.log.InfoContext(ctx, "run succeeds again", "failed", w.failures.runs)
		}
		w.failures, w.panics = spell{}, spell{}
		return
	}
	if panicked, ok := errors.AsType[*PanicError](err); ok {
		if w.panics.isDue() {
			w.log.ErrorContext(ctx, "run panicked", "error", err, "stack", string(panicked.Stack))
		}
		return
	}
	if w.failures.isDue() {
		w.log.WarnContext(ctx, "run failed", "error", moorage.OneLine(err.Error()), "runs", w.failures.runs)
	}
}

// spell is a sequence of failed runs. It is not safe for concurrent use.
type spell struct {
	runs  int
	quiet *time.Timer // fires when the next line may be logged; nil before the first line
}

// isDue counts a failed run, and reports whether to log it.
func (s *spell) isDue() bool {
	s.runs++
	if s.quiet != nil {
		select {
		case <-s.quiet.C:
		default:
			return false
		}
	}
	s.quiet = time.NewTimer(reportPause)
	return true
}
