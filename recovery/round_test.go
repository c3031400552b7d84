package recovery_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"moorage"
	"moorage/internal/trace"
	"moorage/internal/worker"
	"moorage/recovery"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/testkit/registrytest"
	"moorage/txlog"
)

// attempts returns the times at which a transaction was tried.
func (r *resolver) attempts(e txlog.Entry) []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.asked[e.ID])
}

// hangs returns a DeleteSurplus that hangs for the transactions of some warehouses.
func (r *resolver) hangs(warehouses ...string) func(context.Context, txlog.Transaction) error {
	return func(ctx context.Context, e txlog.Transaction) error {
		if !slices.Contains(warehouses, e.Warehouse) {
			return r.deleteSurplus(ctx, e)
		}
		r.mu.Lock()
		r.asked[e.ID] = append(r.asked[e.ID], time.Now())
		r.mu.Unlock()
		<-ctx.Done()
		return ctx.Err()
	}
}

// A storage that hangs does not delay other warehouses' transactions at all.
func TestRoundBesideOneThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newResolver(memory.New(rand.Reader))
		var stuck, others []txlog.Entry
		for i := range 10 {
			stuck = append(stuck, r.beginIn(t, "stuck", time.Now().Add(-time.Hour)))
			others = append(others, r.beginIn(t, fmt.Sprint("other", i%3), time.Now().Add(-time.Hour)))
		}
		node := r.node(func(c *recovery.Config) { c.DeleteSurplus = r.hangs("stuck") })
		node.Start()
		defer node.Stop()
		began := time.Now()
		synctest.Wait()
		for _, e := range others {
			if now(t, r.log, e).Exists() {
				t.Errorf("a transaction of %s waits for another warehouse's", e.Warehouse)
			}
		}
		attempts := 0
		for _, e := range stuck {
			attempts += len(r.attempts(e))
		}
		if took := time.Since(began); attempts != 1 || took != 0 {
			t.Errorf("after %s there were %d attempts of what hangs, want one under way", took, attempts)
		}
		// A transaction that becomes due in the meantime is ended in the next round.
		late := r.beginIn(t, "other0", time.Now().Add(-time.Hour))
		time.Sleep(32 * time.Second)
		if now(t, r.log, late).Exists() {
			t.Error("a round lasted longer than one attempt")
		}
	})
}

// A call into a storage that hangs does not end with its context. It does not delay other
// warehouses' transactions, not even transactions that become due later. It is given up in the end,
// and does not keep the recovery from stopping.
func TestRoundBesideOneThatNeverEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(rand.Reader)
		r := newResolver(store)
		answers := make(chan struct{})
		var stuck []txlog.Entry
		for i := range 20 { // more than can have turns at once
			stuck = append(stuck, r.beginIn(t, fmt.Sprint("stuck", i), time.Now().Add(-time.Hour)))
		}
		first := r.beginIn(t, "other", time.Now().Add(-time.Hour))
		node := r.node(func(c *recovery.Config) {
			c.Interval = time.Minute
			c.DeleteSurplus = func(ctx context.Context, e txlog.Transaction) error {
				if strings.HasPrefix(e.Warehouse, "stuck") {
					<-answers
				}
				return r.deleteSurplus(ctx, e)
			}
		})
		node.Start()
		time.Sleep(3 * turnTime)
		if now(t, r.log, first).Exists() {
			t.Error("a transaction of another warehouse is not ended")
		}
		for i := range 3 {
			late := r.beginIn(t, fmt.Sprint("late", i), time.Now().Add(-time.Hour))
			time.Sleep(2 * time.Second)
			if now(t, r.log, late).Exists() {
				t.Errorf("after %d s another transaction of another warehouse is not ended", 2*(i+1))
			}
		}
		behind := r.beginIn(t, "stuck0", time.Now().Add(-time.Hour))
		time.Sleep(6 * time.Minute)
		blocked := 0
		for _, e := range append(stuck, behind) {
			if _, found := blocker(t, store, e); found {
				blocked++
			}
		}
		if stats := node.Stats(); blocked != len(stuck) || stats.Blocked != blocked || stats.Unfinished != len(stuck)+1 {
			t.Errorf("%d were given up, want those %d that are being tried: %+v", blocked, len(stuck), stats)
		}
		began := time.Now()
		node.Stop()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("stopped after %s", took)
		}
		close(answers)
		synctest.Wait()
		for _, e := range stuck { // as an operator does
			if _, err := store.Apply(t.Context(), registry.Batch{Writes: []registry.Write{registry.Delete(registry.TaskKey(e.ID))}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := node.RunOnce(t.Context()); err != nil {
			t.Error(err)
		}
		for _, e := range append(stuck, behind) {
			if now(t, r.log, e).Exists() {
				t.Errorf("that of %s is not ended when its storage answers", e.Warehouse)
			}
		}
	})
}

// turnTime is the time for which a round waits for a hanging turn.
const turnTime = 10 * time.Second

// Transactions that could not be tried because the storage hangs have not failed. In each round,
// one transaction of the warehouse is tried, in turn. Each is given up only because of its own
// attempts.
func TestRoundLeavesTheRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(rand.Reader)
		r := newResolver(store)
		var stuck []txlog.Entry
		for range 3 {
			stuck = append(stuck, r.begin(t, time.Now().Add(-time.Hour)))
		}
		node := r.node(func(c *recovery.Config) { c.DeleteSurplus = r.hangs("w") })
		if err := node.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		attempts := 0
		for _, e := range stuck {
			asked := r.attempts(e)
			attempts += len(asked)
			task, found := blocker(t, store, e)
			if !found || task.Attempts != len(asked) {
				t.Errorf("given up: %t, after %d attempts, want the %d that there were", found, task.Attempts, len(asked))
			}
			// With 30 s for each of the three transactions, five minutes are over at the fourth
			// attempt.
			if len(asked) != 4 || task.Created.Sub(asked[0]) < 5*time.Minute {
				t.Errorf("given up after %d attempts within %s", len(asked), task.Created.Sub(asked[0]))
			}
			for i := 1; i < len(asked); i++ {
				if pause := asked[i].Sub(asked[i-1]); pause < 90*time.Second || pause > 93*time.Second {
					t.Errorf("attempts %s apart, want the others' between", pause)
				}
			}
		}
		wantStats(t, node, recovery.Stats{Unfinished: 3, Blocked: 3, Attempts: int64(attempts), Failures: int64(attempts)})
	})
}

// If one transaction of a warehouse hangs, the next round ends the others, which have not failed.
func TestRoundGoesOnBehindOneThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newResolver(memory.New(rand.Reader))
		var all []txlog.Entry
		for range 5 {
			all = append(all, r.begin(t, time.Now().Add(-time.Hour)))
		}
		first := slices.MinFunc(all, func(a, b txlog.Entry) int { return strings.Compare(a.ID.String(), b.ID.String()) })
		hang := r.hangs("w")
		node := r.node(func(c *recovery.Config) {
			c.DeleteSurplus = func(ctx context.Context, e txlog.Transaction) error {
				if e.ID == first.ID {
					return hang(ctx, e)
				}
				return r.deleteSurplus(ctx, e)
			}
		})
		node.Start()
		defer node.Stop()
		time.Sleep(31 * time.Second)
		for _, e := range all {
			asked, exists := len(r.attempts(e)), now(t, r.log, e).Exists()
			if exists != (e.ID == first.ID) || !exists && asked != 1 {
				t.Errorf("%s was tried %d times and exists: %t", e.ID, asked, exists)
			}
		}
		// The second round is not over, because it retries the first transaction.
		wantStats(t, node, recovery.Stats{Unfinished: 5, Attempts: 5, Failures: 1, Recovered: 4})
	})
}

// TestRoundBounds counts concurrent attempts: at most eight warehouses, with one transaction each,
// in the order of the log.
func TestRoundBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newResolver(memory.New(rand.Reader))
		for i := range 60 {
			r.beginIn(t, fmt.Sprint("w", i%12), time.Now().Add(-time.Hour))
		}
		var mu sync.Mutex // guards the variables below
		var most int
		working, last := make(map[string]int), make(map[string]registry.ID)
		node := r.node(func(c *recovery.Config) {
			c.DeleteSurplus = func(ctx context.Context, e txlog.Transaction) error {
				mu.Lock()
				working[e.Warehouse]++
				most = max(most, len(working))
				if working[e.Warehouse] > 1 || strings.Compare(last[e.Warehouse].String(), e.ID.String()) > 0 {
					t.Errorf("%s: %s beside or after %s", e.Warehouse, e.ID, last[e.Warehouse])
				}
				last[e.Warehouse] = e.ID
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				delete(working, e.Warehouse)
				mu.Unlock()
				return r.deleteSurplus(ctx, e)
			}
		})
		began := time.Now()
		if err := node.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); most != 8 || took != 10*time.Second {
			t.Errorf("%d warehouses at once, within %s; want 8, within 10s", most, took)
		}
		wantStats(t, node, recovery.Stats{Attempts: 60, Recovered: 60})
	})
}

// A round ends with its context, however many attempts are in progress.
func TestRoundEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newResolver(memory.New(rand.Reader))
		for i := range 20 {
			r.beginIn(t, fmt.Sprint("w", i%10), time.Now().Add(-time.Hour))
		}
		node := r.node(func(c *recovery.Config) {
			c.DeleteSurplus = func(ctx context.Context, _ txlog.Transaction) error {
				<-ctx.Done()
				return ctx.Err()
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := node.RunOnce(ctx)
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != time.Second {
			t.Errorf("answered %v after %s", err, took)
		}
		wantStats(t, node, recovery.Stats{Unfinished: 20})
	})
}

// A panic counts as a failed attempt. Other transactions continue, and a transaction that keeps
// panicking is given up.
func TestRoundPanickingAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(rand.Reader)
		r := newResolver(store)
		broken := r.begin(t, time.Now().Add(-time.Hour))
		others := []txlog.Entry{r.begin(t, time.Now().Add(-time.Hour)), r.beginIn(t, "other", time.Now().Add(-time.Hour))}
		var logs bytes.Buffer
		node := r.node(func(c *recovery.Config) {
			c.Logger = slog.New(slog.NewTextHandler(&logs, nil))
			c.DeleteSurplus = func(ctx context.Context, e txlog.Transaction) error {
				if e.ID == broken.ID {
					panic("out of range")
				}
				return r.deleteSurplus(ctx, e)
			}
		})
		if err := node.RunOnce(t.Context()); err != nil {
			t.Errorf("answered %v", err)
		}
		for _, e := range others {
			if now(t, r.log, e).Exists() {
				t.Errorf("a transaction of %s was not ended", e.Warehouse)
			}
		}
		if task, found := blocker(t, store, broken); !found || task.Attempts != 50 || task.LastError != "panic: out of range" {
			t.Errorf("given up: %t, %+v", found, task)
		}
		wantStats(t, node, recovery.Stats{Unfinished: 1, Blocked: 1, Attempts: 52, Failures: 50, Recovered: 2})
		if strings.Count(logs.String(), "stack=") != 1 || !strings.Contains(logs.String(), "round_test.go") {
			t.Errorf("the log does not say once where it was: %s", logs.String())
		}
	})
}

// Any other panic in one warehouse's turn becomes the error of the run. The transactions of other
// warehouses are ended first.
func TestRoundPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newResolver(memory.New(rand.Reader))
		r.beginIn(t, "broken", time.Now().Add(-time.Hour))
		other := r.beginIn(t, "other", time.Now().Add(-time.Hour))
		var stopped atomic.Bool
		node := r.node(func(c *recovery.Config) {
			c.Now = func() time.Time {
				if stopped.Load() {
					panic("no clock")
				}
				return time.Now()
			}
			c.DeleteSurplus = func(ctx context.Context, e txlog.Transaction) error {
				if e.Warehouse == "broken" {
					synctest.Wait() // wait for the other one
					stopped.Store(true)
					return errors.New("no storage")
				}
				return r.deleteSurplus(ctx, e)
			}
		})
		err := node.RunOnce(t.Context())
		if panicked, ok := errors.AsType[*worker.PanicError](err); !ok || panicked.Value != "no clock" {
			t.Errorf("answered %v, want the panic", err)
		}
		if now(t, r.log, other).Exists() {
			t.Error("another warehouse's transaction was not ended")
		}
	})
}

// A transaction is not tried if others end it between the read of the log and its turn.
func TestRoundEndedMeanwhile(t *testing.T) {
	t.Parallel()
	r := newResolver(memory.New(rand.Reader))
	all := []txlog.Entry{r.begin(t, time.Now().Add(-time.Hour)), r.begin(t, time.Now().Add(-time.Hour))}
	node := r.node(func(c *recovery.Config) {
		c.DeleteSurplus = func(ctx context.Context, _ txlog.Transaction) error { return r.log.Finish(ctx, all...) }
	})
	if err := node.RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantStats(t, node, recovery.Stats{Attempts: 1, Recovered: 1})
}

// lateClock gives c a clock. Once late is called, that clock is past the patience of recovery.
func lateClock(c *recovery.Config) (late func()) {
	var passed atomic.Int64
	c.Now = func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
	return func() { passed.Store(int64(5 * time.Minute)) }
}

// A transaction gets no blocker if others end it while it is given up.
func TestRoundEndedBeforeItsBlocker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(rand.Reader)
		r := newResolver(store)
		e := r.begin(t, time.Now().Add(-time.Hour))
		node := r.node(func(c *recovery.Config) {
			late := lateClock(c)
			c.DeleteSurplus = func(ctx context.Context, e txlog.Transaction) error {
				err := r.log.Finish(ctx, txlog.Entry{Transaction: e})
				late()
				return errors.Join(err, errors.New("no answer"))
			}
		})
		if err := node.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, found := blocker(t, store, e); found || now(t, r.log, e).Exists() {
			t.Errorf("blocked: %t", found)
		}
	})
}

// A run ends with the first error of the store, whichever call fails, from the read of the log to
// the write of the blocker.
func TestRoundTellsOfTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for k := 0; ; k++ {
			store := memory.New(rand.Reader)
			raw := newResolver(store)
			e, err := raw.log.Abort(t.Context(), raw.begin(t, time.Now().Add(-time.Hour)))
			if err != nil {
				t.Fatal(err)
			}
			faulty := registrytest.Faulty(store, registrytest.Nth(k, registrytest.Fail))
			err = newResolver(faulty).node(func(c *recovery.Config) {
				late := lateClock(c)
				c.DeleteSurplus = func(context.Context, txlog.Transaction) error {
					late()
					return errors.New("stuck")
				}
			}).RunOnce(t.Context())
			_, blocked := blocker(t, store, e)
			if faulty.Calls() <= k {
				if err != nil || !blocked || k != 5 {
					t.Errorf("after %d calls: %v, given up: %t", k, err, blocked)
				}
				return
			}
			if !errors.Is(err, registry.ErrUnavailable) || blocked {
				t.Errorf("k = %d: answered %v, given up: %t", k, err, blocked)
			}
		}
	})
}

// A log of more than one page is read to its end.
func TestRoundReadsAllPages(t *testing.T) {
	t.Parallel()
	r := newResolver(memory.New(rand.Reader))
	const n = 1001
	for range n {
		r.begin(t, time.Now().Add(-time.Hour))
	}
	node := r.node()
	if err := node.RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantStats(t, node, recovery.Stats{Attempts: n, Recovered: n})
}

// traceHandler passes on the id of the trace of each line of a log.
type traceHandler struct {
	slog.Handler
	id *string
}

func (h traceHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h traceHandler) Handle(ctx context.Context, _ slog.Record) error {
	*h.id = moorage.TraceID(ctx)
	return nil
}

// Each attempt to end a transaction has a trace of its own, with the id that the log has.
func TestTraceOfARecovery(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewInMemoryExporter()
	r, id, logged := newResolver(memory.New(rand.Reader)), "", ""
	r.begin(t, time.Now().Add(-time.Hour))
	node := r.node(func(c *recovery.Config) {
		c.Tracer = trace.New(trace.Config{Processor: sdk.NewSimpleSpanProcessor(spans), Version: "1", Now: time.Now})
		c.DeleteSurplus = func(ctx context.Context, e txlog.Transaction) error {
			id = moorage.TraceID(ctx)
			return r.deleteSurplus(ctx, e)
		}
		c.Logger = slog.New(traceHandler{slog.DiscardHandler, &logged})
	})
	if err := node.RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	made := spans.GetSpans()
	if len(made) != 1 || made[0].Name != "recovery.transaction" || made[0].SpanContext.TraceID().String() != id {
		t.Errorf("the spans are %+v, and the trace is %q", made, id)
	}
	if logged != id {
		t.Errorf("the log has the trace %q, and the attempt %q", logged, id)
	}
}
