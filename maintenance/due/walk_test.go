package due_test

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/maintenance/policy"
	"moorage/storage"
)

// countedFiles counts the files that are opened.
type countedFiles struct {
	storage.Store
	opened atomic.Int64
}

func (f *countedFiles) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	f.opened.Add(1)
	return f.Store.Open(ctx, location)
}

// A walk reads 200 documents a second. It does not wait for the next check for changes, which may
// be 3 s away, and it keeps no document in memory.
func TestWalkKeepsItsRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const tables, rate = 1000, 200
		w := newWorld(t, inMemory)
		for n := range tables {
			w.table(fmt.Sprintf("t%d", n), uint64(n))
		}
		w.put(warehouse, policy.SnapshotManagement, nil)
		files := &countedFiles{Store: w.files}
		w.opened = files
		node := w.newNode(w.store, true) // it has read no document
		node.monitor.Start()
		defer node.monitor.Stop()
		took := time.Duration(0)
		for ; node.monitor.Stats().Walked < tables; took += 10 * time.Millisecond {
			time.Sleep(10 * time.Millisecond)
			w.clock.Advance(10 * time.Millisecond)
			if took > time.Minute {
				t.Fatalf("the walk is at %+v", node.monitor.Stats())
			}
		}
		if fastest := tables * time.Second / rate; took < fastest-time.Second || took > fastest+fastest/20 {
			t.Errorf("the walk took %s, want %s", took, fastest)
		}
		if got := files.opened.Load(); got != tables {
			t.Errorf("it opened %d files", got)
		}
		if _, err := node.catalog.As(moorage.Anonymous()).LoadTable(w.ctx, ident("t0")); err != nil {
			t.Fatal(err)
		}
		if got := files.opened.Load(); got != tables+1 {
			t.Errorf("a load after the walk opened %d files", got-tables)
		}
	})
}
