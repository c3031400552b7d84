package due_test

import (
	"context"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/internal/jsontext"
	"moorage/maintenance/jobs"
	"moorage/maintenance/policy"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
	memorystorage "moorage/storage/memory"
	"moorage/testkit/tablefiles"
)

// hangingFiles is a storage in which calls on files in one folder hang, as on a mount whose server
// is gone. Such a call returns only when its context ends.
type hangingFiles struct {
	*memorystorage.Store
	below string
	hangs atomic.Bool
}

func (h *hangingFiles) wait(ctx context.Context, location string) error {
	if !h.hangs.Load() || !strings.HasPrefix(location, h.below) {
		return nil
	}
	<-ctx.Done()
	return storage.ErrUnavailable
}

func (h *hangingFiles) Create(ctx context.Context, location string, body []byte) error {
	if err := h.wait(ctx, location); err != nil {
		return err
	}
	return h.Store.Create(ctx, location, body)
}

func (h *hangingFiles) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	if err := h.wait(ctx, location); err != nil {
		return nil, storage.Info{}, err
	}
	return h.Store.Open(ctx, location)
}

func (h *hangingFiles) Stat(ctx context.Context, location string) (storage.Info, error) {
	if err := h.wait(ctx, location); err != nil {
		return storage.Info{}, err
	}
	return h.Store.Stat(ctx, location)
}

func (h *hangingFiles) Delete(ctx context.Context, locations ...string) error {
	if err := h.wait(ctx, locations[0]); err != nil {
		return err
	}
	return h.Store.Delete(ctx, locations...)
}

func (h *hangingFiles) List(ctx context.Context, folder, after string, limit int) (storage.Page, error) {
	if err := h.wait(ctx, folder); err != nil {
		return storage.Page{}, err
	}
	return h.Store.List(ctx, folder, after, limit)
}

// tableIn makes a table with some snapshots in a warehouse.
func (w *world) tableIn(warehouse, name string) registry.ID {
	w.t.Helper()
	at := moorage.Identifier{Warehouse: warehouse, Namespace: moorage.Namespace{"ns"}, Name: name}
	made, err := w.ann().CreateTable(w.ctx, at, catalog.CreateTableRequest{
		Schema: []byte(`{"type":"struct","fields":[{"id":1,"name":"id","type":"long","required":false}]}`),
	})
	must(w.t, err)
	history := tablefiles.New(w.t, w.files, made.Document.Location(), rand.New(rand.NewPCG(1, 3)), w.clock.Now().UnixMilli())
	for range 5 {
		checked, err := jsontext.Check([]byte("[" + strings.Join(history.Append("main", 1), ",") + "]"))
		must(w.t, err)
		decoded, err := metadata.DecodeUpdates(checked)
		must(w.t, err)
		_, err = w.ann().Commit(w.ctx, at, catalog.CommitRequest{Updates: decoded})
		must(w.t, err)
	}
	id, err := w.catalog.As(moorage.System("expire")).Tables().Find(w.ctx, at)
	must(w.t, err)
	return id
}

// TestHungWarehouse: every call on the storage of one warehouse hangs. Meanwhile the tables of
// another warehouse are checked, and their jobs end. The work in the first warehouse counts as
// overdue, and continues when its storage answers again.
func TestHungWarehouse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, inMemory)
		files := &hangingFiles{Store: w.files, below: "file:///wh/"}
		w.opened = files
		w.node = w.newNode(w.store, true)
		_, err := w.ann().Warehouses().Create(w.ctx, warehouses.Spec{Name: "v", Location: "file:///healthy"})
		must(t, err)
		_, err = w.ann().CreateNamespace(w.ctx, "v", moorage.Namespace{"ns"}, nil)
		must(t, err)
		w.put(moorage.Identifier{}, policy.SnapshotManagement, policy.Settings{
			policy.MaxSnapshotAgeHours: "1", policy.DeleteDelayHours: "0", policy.MinSnapshotsToExpire: "1",
		})
		w.put(moorage.Identifier{}, policy.UnreferencedFileRemoval, policy.Settings{})
		const tables = 20
		var hung, healthy []registry.ID
		for i := range tables {
			name := "t" + string(rune('a'+i))
			hung, healthy = append(hung, w.tableIn("w", name)), append(healthy, w.tableIn("v", name))
		}
		w.tend(w.node)
		w.clock.Advance(30 * time.Minute)
		w.tend(w.node) // from now on the server knows the snapshots
		w.clock.Advance(3 * time.Hour)
		files.hangs.Store(true)
		node := w.newNode(w.store, true) // it has read no document
		worker := node.jobs.NewWorker()
		defer func() {
			files.hangs.Store(false)
			node.planner.Stop()
			node.monitor.Stop()
			worker.Stop()
		}()
		began := time.Now()
		node.monitor.Start()
		node.planner.Start()
		worker.Start()
		done := func(ids []registry.ID, kind string) (n int) {
			for _, id := range ids {
				if outcome := w.schedule(id).Job(kind).Outcome; outcome == "done" || outcome == "nothing" {
					n++
				}
			}
			return n
		}
		for done(healthy, "snapshots") < tables || done(healthy, "orphans") < tables {
			time.Sleep(time.Second)
			w.clock.Advance(time.Second)
			if time.Since(began) > 2*jobs.AnswerMax {
				for _, id := range healthy[:3] {
					t.Logf("now %s schedule %+v", w.clock.Now(), w.schedule(id))
				}
				t.Logf("stats %+v", node.planner.Stats())
				t.Fatalf("%d and %d of %d healthy tables were looked at in %s", done(healthy, "snapshots"),
					done(healthy, "orphans"), tables, time.Since(began))
			}
		}
		if n := done(hung, "snapshots"); n != 0 {
			t.Errorf("%d tables were looked at in a storage that hangs", n)
		}
		if overdue := node.planner.Stats().Overdue; overdue < time.Hour {
			t.Errorf("what waits is overdue for %s", overdue)
		}
		for time.Since(began) < 3*jobs.AnswerMax {
			time.Sleep(time.Second)
			w.clock.Advance(time.Second)
		}
		for _, id := range healthy {
			if runs, err := node.jobs.Runs(w.ctx, id, 10); err != nil || len(runs) == 0 || runs[0].Outcome != "done" {
				t.Errorf("the runs of a healthy table: %+v, %v", runs, err)
			}
		}
		files.hangs.Store(false)
		for began = time.Now(); done(hung, "snapshots") < tables; {
			time.Sleep(10 * time.Second)
			w.clock.Advance(10 * time.Second)
			if time.Since(began) > time.Hour {
				t.Fatalf("%d of %d tables were looked at in a storage that answers again", done(hung, "snapshots"), tables)
			}
		}
	})
}
