package jobs_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"moorage/ledger"
	"moorage/maintenance/jobs"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/testkit/registrytest"
)

// clockWorld is a store and the clocks around it. No clock moves by itself.
type clockWorld struct {
	t     *testing.T
	store registry.Store
	now   time.Time     // by the store's clock
	boot  time.Duration // since the machine was started
	said  []jobs.ClockReading
	clock *jobs.Clock
}

func newClockWorld(t *testing.T) *clockWorld {
	t.Parallel()
	w := &clockWorld{t: t, now: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), boot: time.Minute}
	w.store = memory.NewWithClock(rand.Reader, func() time.Time { return w.now })
	w.change()
	w.start()
	return w
}

// start starts a process.
func (w *clockWorld) start() {
	w.clock = jobs.NewClock(jobs.ClockConfig{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: w.store}), Boot: func() time.Duration { return w.boot },
		Ask: func(context.Context) []jobs.ClockReading { return w.said },
	})
}

// change writes a change with the present time.
func (w *clockWorld) change() {
	w.t.Helper()
	id, err := registry.NewID(rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = w.store.Apply(w.t.Context(), registry.Batch{Change: &registry.Change{ID: id, Principal: "ann", Time: w.now}})
	if err != nil {
		w.t.Fatal(err)
	}
}

// pass advances all clocks by d. Storages report the right time.
func (w *clockWorld) pass(d time.Duration) {
	w.now, w.boot = w.now.Add(d), w.boot+d
	for i := range w.said {
		w.said[i].Time = w.said[i].Time.Add(d)
	}
}

// resume ends the doubt, as an operator's command would.
func (w *clockWorld) resume() {
	w.t.Helper()
	_, err := registrytest.Ledger(w.store).Step(w.t.Context(), registry.Batch{Writes: []registry.Write{registry.Delete(registry.ClockKey())}})
	if err != nil {
		w.t.Fatal(err)
	}
}

// want checks the result of Doubt twice.
func (w *clockWorld) want(at, why string) {
	w.t.Helper()
	for range 2 {
		got, err := w.clock.Doubt(w.t.Context())
		if err != nil || (got == "") != (why == "") || !strings.Contains(got, why) || got != w.clock.Last() {
			w.t.Errorf("%s: %q, %v, want %q; last %q", at, got, err, why, w.clock.Last())
		}
	}
}

const jumped = "was set 8760h0m0s ahead while this process ran"

// TestJump: a clock that is set while a process runs is in doubt. Records written with the new time
// do not confirm it.
func TestJump(t *testing.T) {
	w := newClockWorld(t)
	w.want("at the start", "")
	w.now = w.now.Add(time.Hour)
	w.want("an hour ahead", "")
	w.now = w.now.Add(-time.Hour + 365*24*time.Hour)
	w.want("a year ahead", jumped)
	w.change()
	w.want("after a change by that clock", jumped)
	w.start()
	w.want("in the next process", jumped)
	w.change()
	w.pass(24 * time.Hour)
	w.want("a day later", jumped)
	w.resume()
	w.want("after an operator's word", "")
	w.pass(24 * time.Hour)
	w.want("a day later", "")
	w.now = w.now.Add(-2 * time.Hour)
	w.want("set back", "was set 2h0m0s back")
}

// TestOtherNode: an operator's decision counts for every process that has seen the doubt.
func TestOtherNode(t *testing.T) {
	w := newClockWorld(t)
	w.want("at the start", "")
	first := w.clock
	w.start()
	w.want("at the start of the other", "")
	w.now = w.now.AddDate(1, 0, 0)
	w.want("the other one", jumped)
	second := w.clock
	w.clock = first
	w.want("the first one", jumped)
	w.resume()
	w.want("the first one, then", "")
	w.clock = second
	w.want("the other one, then", "")
}

// TestSleep: neither sleep nor a machine that was off causes doubt.
func TestSleep(t *testing.T) {
	w := newClockWorld(t)
	w.want("at the start", "")
	w.pass(90 * 24 * time.Hour) // the clock leaps together with the time since the start
	w.want("after the sleep", "")
	w.pass(365 * 24 * time.Hour)
	w.boot = time.Minute
	w.start()
	w.want("after a year without a process", "")
}

// TestBehind: if the newest change is far in the future when a process starts, the clock is in
// doubt.
func TestBehind(t *testing.T) {
	w := newClockWorld(t)
	w.now = w.now.Add(-time.Hour)
	w.start()
	w.want("an hour behind", "")
	w.now = w.now.Add(-time.Second)
	w.start()
	w.want("more than an hour behind", "behind the newest change")
	w.resume()
	w.want("after an operator's word", "")
	w.change()
	w.start()
	w.want("after another change", "")
}

// TestStorages: the times that storages report can cause a doubt, and can end it.
func TestStorages(t *testing.T) {
	w := newClockWorld(t)
	w.said = []jobs.ClockReading{{Source: "s3://lake", Time: w.now.Add(time.Hour)}, {Source: "s3://sea", Time: w.now}}
	w.want("at the start", "")
	right := w.now
	w.now = w.now.AddDate(1, 0, 0)
	w.change()
	w.start()
	w.want("in a process that starts with a wrong clock", "of s3://")
	w.now = right
	w.pass(time.Minute)
	for range 10 {
		w.want("once it is right", "of s3://")
		w.pass(time.Minute)
	}
	w.want("ten minutes later", "")
	w.start()
	w.want("in the next process, before a change", "behind the newest change")
	w.change()
	for range 12 {
		_, err := w.clock.Doubt(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.pass(time.Minute)
	}
	w.want("later", "")

	w.said[0].Time = w.said[0].Time.Add(-3 * time.Hour)
	w.pass(10 * time.Minute)
	w.want("one storage goes wrong", "s3://lake is set 2h0m0s back")
	w.pass(time.Hour)
	w.want("an hour later", "s3://lake is set 2h0m0s back")
	w.resume()
	w.want("after an operator's word", "")
	w.pass(time.Hour)
	w.want("an hour after that", "")
	w.said = nil
	w.now = w.now.Add(3 * time.Hour)
	w.pass(time.Hour)
	w.want("a jump without storages", "was set 3h0m0s ahead")
	w.pass(time.Hour)
	w.want("which nothing ends", "was set 3h0m0s ahead")
}
