package jobs_test

import (
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"moorage/internal/trace"
	"moorage/maintenance/jobs"
	"moorage/registry"
)

// TestExpire expires snapshots of many kinds of histories, and deletes the files that only those
// snapshots reached.
func TestExpire(t *testing.T) {
	t.Parallel()
	gone := 0
	for seed := range uint64(12) {
		w := newWorld(t, inMemory, seed, 12)
		began, err := w.jobs.Expire(w.ctx, w.table, settings(3*time.Second), nil)
		must(t, err)
		if began.Outcome == jobs.OutcomeNothing {
			continue
		}
		must(t, w.jobs.RunOnce(w.ctx))
		if gone := w.judge(w.node, false, "before its time"); gone > 0 {
			t.Errorf("seed %d: %d files are gone before their time", seed, gone)
		}
		if job := w.job(); job == nil || job.State != registry.StateWaiting && job.State != registry.StateCollecting {
			t.Errorf("seed %d: the job is %+v", seed, job)
		}
		w.clock.Advance(time.Hour - time.Second)
		must(t, w.jobs.RunOnce(w.ctx))
		if gone := w.judge(w.node, false, "a second before its time"); gone > 0 {
			t.Errorf("seed %d: %d files are gone a second too early", seed, gone)
		}
		w.clock.Advance(time.Second)
		must(t, w.jobs.RunOnce(w.ctx))
		gone += w.judge(w.node, true, "in the end")
		if job := w.job(); job != nil {
			t.Errorf("seed %d: the job is left: %+v", seed, job)
		}
		if own := w.own(); len(own) > 0 {
			t.Errorf("seed %d: the job has left %q", seed, own)
		}
		runs, err := w.jobs.Runs(w.ctx, w.table, 10)
		if err != nil || len(runs) != 1 || runs[0].Outcome != jobs.OutcomeDone || runs[0].Caller != "ann" ||
			runs[0].Totals.Snapshots != int64(began.Snapshots) {
			t.Errorf("seed %d: the runs are %+v, %v", seed, runs, err)
		}
	}
	if gone < 50 {
		t.Errorf("only %d files were deleted: the histories are too short", gone)
	}
}

// An expiry that finds nothing writes nothing, not even a higher format version, which would make
// older servers refuse the store.
func TestAnExpiryOfNothingRaisesNoFormat(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inMemory, 1, 3)
	before, err := w.store.Get(w.ctx, registry.FormatKey(), registry.StoreIDKey())
	must(t, err)
	began, err := w.jobs.Expire(w.ctx, w.table, settings(1000*time.Hour), nil)
	if err != nil || began.Outcome != jobs.OutcomeNothing || began.Table.Name != "t" {
		t.Fatalf("it began %+v, %v", began, err)
	}
	after, err := w.store.Get(w.ctx, registry.FormatKey(), registry.StoreIDKey())
	must(t, err)
	for i := range before {
		if before[i].ETag != after[i].ETag {
			t.Errorf("%v was written", before[i].Key)
		}
	}
	if own := w.own(); len(own) > 0 {
		t.Errorf("there are %q", own)
	}
}

// Each run of a job has a trace of its own.
func TestTraceOfAJob(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewInMemoryExporter()
	w := newWorld(t, inMemory, 5, 8)
	w.tracer = trace.New(trace.Config{Processor: sdk.NewSimpleSpanProcessor(spans), Version: "1", Now: w.clock.Now})
	w.node = w.newNode(w.store, w.files)
	_, err := w.jobs.Expire(w.ctx, w.table, settings(3*time.Second), nil)
	must(t, err)
	must(t, w.jobs.RunOnce(w.ctx))
	made := spans.GetSpans()
	if len(made) == 0 {
		t.Fatal("there are no spans")
	}
	work := made[len(made)-1]
	if work.Name != "maintenance.snapshots" || work.Parent.IsValid() || work.Attributes[0].Value.AsString() != "w" {
		t.Errorf("the last span is %+v", work)
	}
}
