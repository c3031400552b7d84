package jobs_test

import (
	"flag"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/registry"
	"moorage/storage/file"
	"moorage/testkit"
	"moorage/testkit/tablefiles"
)

var snapshotsFlag = flag.Int("snapshots", 60, "how many snapshots of ten manifests each are expired at once; 10000 takes minutes")

const (
	manifestsEach = 10
	// heapMax is the maximum memory in use while a history of 10,000 snapshots with 100,000
	// manifests expires. For a shorter history, the limit is lower.
	heapMax = 512 << 20
)

// TestExpireLongHistory expires all snapshots of a table but one. Its files are on the disk.
func TestExpireLongHistory(t *testing.T) {
	w := &world{
		t: t, ctx: t.Context(), clock: testkit.NewClock(), random: newLockedRandom(1),
	}
	folder := t.TempDir()
	files, err := file.New([]string{"file://" + folder})
	must(t, err)
	w.store = inMemory(t, w.random, w.clock)
	w.node = w.newNode(w.store, files)
	ann := w.catalog.As(moorage.Anonymous())
	_, err = ann.Warehouses().Create(w.ctx, warehouses.Spec{Name: "w", Location: "file://" + folder})
	must(t, err)
	_, err = ann.CreateNamespace(w.ctx, "w", moorage.Namespace{"ns"}, nil)
	must(t, err)
	made, err := ann.CreateTable(w.ctx, ident(), catalog.CreateTableRequest{
		Schema: []byte(`{"type":"struct","fields":[{"id":1,"name":"id","type":"long","required":false}]}`),
	})
	must(t, err)
	w.history = tablefiles.New(t, files, made.Document.Location(), rand.New(rand.NewPCG(1, 3)), w.clock.Now().UnixMilli())
	var updates []string
	for n := range *snapshotsFlag {
		if updates = append(updates, w.history.Replace("main", manifestsEach)...); n%500 == 499 || n == *snapshotsFlag-1 {
			w.commit(updates...)
			updates = nil
		}
	}
	w.table, err = w.jobs.Find(w.ctx, ident())
	must(t, err)
	w.history = nil
	w.clock.Advance(time.Hour)
	runtime.GC()
	var highest atomic.Uint64
	go func() {
		for sleepShort(w) {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			highest.Store(max(highest.Load(), now.HeapInuse+now.StackInuse))
		}
	}()
	s := settings(0)
	s.Delay = 0
	began, err := w.jobs.Expire(w.ctx, w.table, s, nil)
	must(t, err)
	must(t, w.jobs.Step(w.ctx, registry.JobKey(w.table, "snapshots")))
	runs, err := w.jobs.Runs(w.ctx, w.table, 1)
	if err != nil || len(runs) != 1 || began.Snapshots != *snapshotsFlag-1 {
		t.Fatalf("%d snapshots expired; runs %+v, %v", began.Snapshots, runs, err)
	}
	want := int64(began.Snapshots * (2*manifestsEach + 1)) // data files, manifests, lists
	if runs[0].Totals.Files < want {
		t.Errorf("%d files were deleted, want at least %d", runs[0].Totals.Files, want)
	}
	t.Logf("%d files, at most %d MiB in use", runs[0].Totals.Files, highest.Load()>>20)
	if highest.Load() > heapMax {
		t.Errorf("%d MiB were in use", highest.Load()>>20)
	}
}

// sleepShort waits until the next measurement of memory. It returns false if the test has ended.
func sleepShort(w *world) bool {
	select {
	case <-time.After(20 * time.Millisecond):
		return true
	case <-w.ctx.Done():
		return false
	}
}
