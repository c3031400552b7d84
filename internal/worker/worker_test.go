package worker_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"moorage/internal/worker"
)

const interval = time.Minute

// probe is the function that a worker runs, and a record of its runs.
type probe struct {
	lasts time.Duration
	fails func(run int) error // nil: no run fails

	mu       sync.Mutex // guards the fields below; leaf
	began    []time.Time
	underWay int
	overlaps int
}

func (p *probe) run(ctx context.Context) error {
	p.mu.Lock()
	p.began = append(p.began, time.Now())
	if p.underWay++; p.underWay > 1 {
		p.overlaps++
	}
	run := len(p.began)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.underWay--
	}()
	if p.lasts > 0 {
		select {
		case <-time.After(p.lasts):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if p.fails != nil {
		return p.fails(run)
	}
	return nil
}

func (p *probe) runs() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.began)
}

// inBubble calls body with a worker in virtual time. It stops the worker's loop at the end. A
// bubble ends only after all of its goroutines, so this also shows that none is left.
func inBubble(t *testing.T, p *probe, logs *bytes.Buffer, body func(t *testing.T, w *worker.Worker)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := worker.Config{Name: "test", Run: p.run, Interval: interval, Jitter: rand.New(rand.NewPCG(1, 1))}
		if logs != nil {
			config.Logger = slog.New(slog.NewTextHandler(logs, nil))
		}
		w := worker.New(config)
		defer w.Stop()
		body(t, w)
		if p.overlaps != 0 {
			t.Errorf("runs that overlapped: got %d, want 0", p.overlaps)
		}
	})
}

// The mean time between runs is one interval. It is never less than half of that nor more than one
// and a half times that, and it differs between workers.
func TestInterval(t *testing.T) {
	var p probe
	inBubble(t, &p, nil, func(t *testing.T, w *worker.Worker) {
		const runs = 200
		before := time.Now()
		w.Start()
		time.Sleep(runs * interval)
		w.Stop()
		if got := p.runs(); got < runs*9/10 || got > runs*11/10 {
			t.Errorf("runs in %d intervals: got %d", runs, got)
		}
		pauses := make(map[time.Duration]bool)
		for i, began := range p.began {
			pause := began.Sub(before)
			if pause < interval/2 || pause > interval*3/2 {
				t.Errorf("pause before run %d: got %s, want %s to %s", i, pause, interval/2, interval*3/2)
			}
			pauses[pause], before = true, began
		}
		if len(pauses) < runs/2 {
			t.Errorf("pauses of different length: got %d, want nearly %d", len(pauses), runs)
		}
	})
}

// A second Start does not start a second loop, and a second Stop returns like the first.
func TestStartStopTwice(t *testing.T) {
	p := probe{lasts: time.Hour}
	inBubble(t, &p, nil, func(t *testing.T, w *worker.Worker) {
		w.Stop()
		for range 3 {
			before := p.runs()
			w.Start()
			w.Start()
			w.Kick()
			synctest.Wait()
			if got := p.runs() - before; got != 1 {
				t.Errorf("runs after two Starts: got %d, want 1", got)
			}
			began := time.Now()
			var stops sync.WaitGroup
			stops.Go(w.Stop)
			stops.Go(w.Stop)
			stops.Wait()
			w.Stop()
			if got := time.Since(began); got != 0 {
				t.Errorf("Stop during a run: took %s, want it at once", got)
			}
			if p.underWay != 0 {
				t.Error("Stop returned during a run")
			}
			w.Kick()
			time.Sleep(10 * interval)
			if got := p.runs() - before; got != 1 {
				t.Errorf("runs after Stop: got %d, want none more than 1", got)
			}
		}
	})
}

// Stop waits for a run that ignores its context. A Start in the meantime also waits for the end of
// that run.
func TestStartWhileStopping(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leave, runs := make(chan struct{}), 0
		w := worker.New(worker.Config{Name: "test", Interval: interval, Jitter: rand.New(rand.NewPCG(1, 1)),
			Run: func(context.Context) error { runs++; <-leave; return nil }})
		w.Kick()
		w.Start()
		synctest.Wait()
		stopped := make(chan struct{})
		go func() { w.Stop(); close(stopped) }()
		synctest.Wait()
		select {
		case <-stopped:
			t.Error("Stop returned during a run")
		default:
		}
		w.Start()
		w.Kick()
		time.Sleep(10 * interval)
		if runs != 1 {
			t.Errorf("runs while the first loop ends: got %d, want 1", runs)
		}
		close(leave)
		<-stopped
		synctest.Wait()
		if runs != 2 {
			t.Errorf("runs of the second loop: got %d, want 1", runs-1)
		}
		w.Stop()
	})
}

// A kick ends a pause. Several kicks count as one. A kick during a run causes one more run, and a
// kick before Start is not lost.
func TestKick(t *testing.T) {
	p := probe{lasts: time.Second}
	inBubble(t, &p, nil, func(t *testing.T, w *worker.Worker) {
		expect := func(want int, when string) {
			t.Helper()
			synctest.Wait()
			if got := p.runs(); got != want {
				t.Errorf("runs %s: got %d, want %d", when, got, want)
			}
		}
		w.Kick()
		w.Kick()
		expect(0, "before Start")
		w.Start()
		expect(1, "after a kick before Start")
		w.Kick()
		w.Kick()
		expect(1, "during the first")
		time.Sleep(time.Second)
		expect(2, "after kicks during the first")
		time.Sleep(2 * time.Second)
		expect(2, "in the pause")
		w.Kick()
		expect(3, "after a kick in the pause")
	})
}

// RunOnce needs no loop. It waits for the end of the loop's run, unless its context ends first.
func TestRunOnce(t *testing.T) {
	wrong := errors.New("wrong")
	p := probe{lasts: time.Second, fails: func(run int) error {
		if run == 1 {
			return wrong
		}
		return nil
	}}
	inBubble(t, &p, nil, func(t *testing.T, w *worker.Worker) {
		if err := w.RunOnce(t.Context()); !errors.Is(err, wrong) {
			t.Errorf("got %v, want the function's error", err)
		}
		w.Kick()
		w.Start()
		synctest.Wait()

		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := w.RunOnce(ctx); !errors.Is(err, context.DeadlineExceeded) || p.runs() != 2 {
			t.Errorf("behind the loop's run: got %v and %d runs, want context.DeadlineExceeded and 2", err, p.runs())
		}
		if err := w.RunOnce(t.Context()); err != nil || p.runs() != 3 {
			t.Errorf("after the loop's run: got %v and %d runs, want none and 3", err, p.runs())
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := w.RunOnce(ended); !errors.Is(err, context.Canceled) || p.runs() != 3 {
			t.Errorf("context that has ended: got %v and %d runs, want context.Canceled and 3", err, p.runs())
		}
	})
}

// A run that fails or panics is logged, a panic with its stack, and the loop continues. A run that
// Stop cut off does not count as a failure.
func TestFailuresAreLogged(t *testing.T) {
	var logs bytes.Buffer
	p := probe{fails: func(run int) error {
		switch run {
		case 1:
			return errors.New("the disk is full")
		case 2:
			panic("the sky fell")
		}
		return nil
	}}
	inBubble(t, &p, &logs, func(t *testing.T, w *worker.Worker) {
		w.Start()
		time.Sleep(5 * interval)
		w.Stop()
		p.lasts = time.Hour
		w.Kick()
		w.Start()
		synctest.Wait()
		w.Stop()
		if got := p.runs(); got < 4 {
			t.Errorf("runs: got %d, want the loop to go on after failures", got)
		}
		lines := strings.Split(strings.TrimSpace(logs.String()), "\n")
		if len(lines) != 3 {
			t.Fatalf("lines logged: got %q, want 3", lines)
		}
		for i, wants := range [][]string{
			{"level=WARN", "worker=test", "the disk is full"},
			{"level=ERROR", "worker=test", "the sky fell", "worker_test.go"},
			{"level=INFO", "worker=test", "run succeeds again", "failed=1"},
		} {
			for _, want := range wants {
				if !strings.Contains(lines[i], want) {
					t.Errorf("line %d: got %q, want %q in it", i+1, lines[i], want)
				}
			}
		}
	})
}

// A lasting failure is logged once a minute, however often the worker runs.
func TestLastingFailureIsLoggedOnceAMinute(t *testing.T) {
	var logs bytes.Buffer
	p := probe{fails: func(int) error { return errors.New("the database is away") }}
	inBubble(t, &p, &logs, func(t *testing.T, w *worker.Worker) {
		w.Start()
		for range 600 { // more runs than minutes
			time.Sleep(time.Second)
			w.Kick()
		}
		w.Stop()
		lines := strings.Count(logs.String(), "level=WARN")
		if lines < 9 || lines > 11 || p.runs() < 500 {
			t.Errorf("%d lines about %d runs in ten minutes, want one a minute:\n%s", lines, p.runs(), logs.String())
		}
	})
}

// RunOnce returns a panic as an error.
func TestRunOncePanic(t *testing.T) {
	p := probe{fails: func(int) error { panic("the sky fell") }}
	inBubble(t, &p, nil, func(t *testing.T, w *worker.Worker) {
		err := w.RunOnce(t.Context())
		panicked, ok := errors.AsType[*worker.PanicError](err)
		if !ok || panicked.Value != "the sky fell" || !strings.Contains(err.Error(), "the sky fell") {
			t.Errorf("got %v, want a PanicError", err)
		}
	})
}

func TestNewRefusesIncompleteConfig(t *testing.T) {
	t.Parallel()
	jitter, run := rand.New(rand.NewPCG(1, 1)), func(context.Context) error { return nil }
	for name, config := range map[string]worker.Config{
		"name":     {Run: run, Interval: 1, Jitter: jitter},
		"run":      {Name: "x", Interval: 1, Jitter: jitter},
		"interval": {Name: "x", Run: run, Jitter: jitter},
		"jitter":   {Name: "x", Run: run, Interval: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if recover() == nil {
					t.Errorf("without %s: got no panic, want one", name)
				}
			}()
			worker.New(config)
		})
	}
}
