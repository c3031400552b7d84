package purge_test

import (
	"bytes"
	"context"
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

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/maintenance/purge"
	"moorage/registry"
	"moorage/storage"
)

// purgeWorld is a catalog with several warehouses. The test decides how the storage of each of them
// handles deletions. It runs in a synctest bubble.
type purgeWorld struct {
	*fixture
	logs lockedLog

	mu      sync.Mutex // guards the fields below; leaf
	deletes map[string]func(ctx context.Context) error
	running map[string]int // deletions in progress, by warehouse
	most    map[string]int // maximum of running, by warehouse; "" for all together
}

// lockedLog is a log that is read while it is written.
type lockedLog struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// worldFiles is the storage of one warehouse of a purgeWorld.
type worldFiles struct {
	storage.Store
	world     *purgeWorld
	warehouse string
}

func (f *worldFiles) Delete(ctx context.Context, locations ...string) error {
	w := f.world
	w.mu.Lock()
	do := w.deletes[f.warehouse]
	for _, name := range []string{f.warehouse, ""} {
		w.running[name]++
		w.most[name] = max(w.most[name], w.running[name])
	}
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.running[f.warehouse]--
		w.running[""]--
	}()
	if do != nil {
		if err := do(ctx); err != nil {
			return err
		}
	}
	return f.Store.Delete(ctx, locations...)
}

// hangs is a deletion that never gets an answer.
func hangs(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func newPurgeWorld(t *testing.T, deletes map[string]func(context.Context) error) *purgeWorld {
	t.Helper()
	w := &purgeWorld{deletes: deletes, running: map[string]int{}, most: map[string]int{}}
	w.fixture = newFixture(t, func(c *catalog.Config) {
		c.Now, c.Logger = nil, slog.New(slog.NewTextHandler(&w.logs, nil))
		open := c.OpenStorage
		c.OpenStorage = func(place storage.Place) (storage.Store, error) {
			store, err := open(place)
			return &worldFiles{store, w, strings.TrimPrefix(place.Roots[0], "file:///")}, err
		}
	})
	for name := range deletes {
		_, err := w.Warehouses().Create(w.ctx, warehouses.Spec{Name: name, Location: "file:///" + name})
		must(t, err)
		_, err = w.CreateNamespace(w.ctx, name, moorage.Namespace{"ns"}, nil)
		must(t, err)
	}
	return w
}

// drop makes tables in a warehouse and drops them with a purge. It returns the locations of their
// metadata files.
func (w *purgeWorld) drop(warehouse string, many int) (files []string) {
	w.t.Helper()
	for i := range many {
		ident := moorage.Identifier{Warehouse: warehouse, Namespace: moorage.Namespace{"ns"}, Name: fmt.Sprint("t", i)}
		table, err := w.CreateTable(w.ctx, ident, catalog.CreateTableRequest{Schema: []byte(testSchema), Location: fmt.Sprintf("file:///%s/%d-%d", warehouse, time.Now().UnixNano(), i)})
		must(w.t, err)
		must(w.t, w.DropTable(w.ctx, ident, catalog.DropOptions{Purge: true}))
		files = append(files, table.MetadataLocation)
	}
	return files
}

// tasks returns the remaining tasks.
func (w *purgeWorld) tasks() (tasks []registry.Task) {
	w.t.Helper()
	records, err := w.store.List(w.ctx, registry.TableTask, "", "", 100)
	must(w.t, err)
	for _, record := range records {
		task, err := registry.DecodeTask(record)
		must(w.t, err)
		tasks = append(tasks, task)
	}
	return tasks
}

// Storages that hang delay only their own warehouses. Each of their purges is tried in turn, and
// then recorded as failed.
func TestPurgesBesideStoragesThatHang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newPurgeWorld(t, map[string]func(context.Context) error{"hung": hangs, "stuck": hangs, "good": nil, "slow": func(context.Context) error {
			time.Sleep(time.Second)
			return nil
		}})
		w.drop("hung", 5)
		w.drop("stuck", 1)
		good, slow := w.drop("good", 20), w.drop("slow", 4)
		ctx, cancel := context.WithCancel(w.ctx)
		var round sync.WaitGroup
		round.Go(func() {
			if err := w.purgeAll(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("the round ended with %v", err)
			}
		})

		synctest.Wait()
		if left := w.present(good); len(left) > 0 {
			t.Errorf("%d tables beside the storages that hang are not purged at once", len(left))
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if left := w.present(slow); len(left) > 0 {
			t.Errorf("%d tables in a slow storage are left", len(left))
		}
		if stats := w.PurgeStats(); stats != (purge.Stats{Unfinished: 6}) {
			t.Errorf("stats %+v", stats)
		}
		late := w.drop("good", 3)
		time.Sleep(time.Minute)
		synctest.Wait()
		if left := w.present(late); len(left) > 0 {
			t.Errorf("%d tables that were dropped since are not purged", len(left))
		}
		time.Sleep(3 * purge.StallMax)
		cancel()
		round.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.most["hung"] != purge.OfWarehouse || w.most["slow"] != purge.OfWarehouse || w.most[""] > purge.AtOnce {
			t.Errorf("at once there were %v", w.most)
		}
		for _, task := range w.tasks() {
			if task.Attempts < 1 || task.Attempts > 4 || !strings.Contains(task.LastError, purge.ErrStalled.Error()) {
				t.Errorf("%d attempts, the last failed with %q", task.Attempts, task.LastError)
			}
		}
		if stats := w.PurgeStats(); len(w.tasks()) != 6 || stats.Unfinished != 6 || stats.Blocked != 0 {
			t.Errorf("stats %+v", stats)
		}
	})
}

// A purge that makes progress is not ended, however long it takes.
func TestLongPurge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newPurgeWorld(t, map[string]func(context.Context) error{"slow": func(ctx context.Context) error {
			time.Sleep(purge.StallMax * 2 / 3)
			return ctx.Err()
		}})
		ident := moorage.Identifier{Warehouse: "slow", Namespace: moorage.Namespace{"ns"}, Name: "t"}
		table, err := w.CreateTable(w.ctx, ident, catalog.CreateTableRequest{Schema: []byte(testSchema)})
		must(t, err)
		files := []string{table.MetadataLocation}
		_, err = w.Commit(w.ctx, ident, commitRequest(t, `[{"action":"set-properties","updates":{"a":"1"}}]`)) // makes an earlier metadata file, which is deleted first
		must(t, err)
		must(t, w.DropTable(w.ctx, ident, catalog.DropOptions{Purge: true}))
		began := time.Now()
		must(t, w.purgeAll(w.ctx))
		if took := time.Since(began); took <= purge.StallMax {
			t.Errorf("it took %s only", took)
		}
		if tasks := w.tasks(); len(tasks) > 0 || len(w.present(files)) > 0 {
			t.Errorf("left: %+v", tasks)
		}
		w.wantClean()
	})
}

// A purge also deletes metadata files that have left the log, oldest first. So a purge that was
// interrupted finds the others when it begins again.
func TestPurgeOfEarlierMetadata(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		w := newPurgeWorld(t, map[string]func(context.Context) error{"some": func(context.Context) error {
			if calls.Add(1) == 2 {
				return storage.ErrUnavailable
			}
			return nil
		}})
		ident := moorage.Identifier{Warehouse: "some", Namespace: moorage.Namespace{"ns"}, Name: "t"}
		table, err := w.CreateTable(w.ctx, ident, catalog.CreateTableRequest{Schema: []byte(testSchema)})
		must(t, err)
		files := []string{table.MetadataLocation}
		for i := range 9 {
			table, err = w.Commit(w.ctx, ident, commitRequest(t, fmt.Sprintf(
				`[{"action":"set-properties","updates":{"a":"%d","write.metadata.previous-versions-max":"2"}}]`, i)))
			must(t, err)
			files = append(files, table.MetadataLocation)
		}
		must(t, w.DropTable(w.ctx, ident, catalog.DropOptions{Purge: true}))
		_ = w.purgeAll(w.ctx) // the second deletion fails
		if left := w.present(files); len(left) == 0 || !slices.Equal(left, files[len(files)-len(left):]) {
			t.Errorf("first it leaves %q, want the newest", left)
		}
		time.Sleep(time.Hour)
		must(t, w.purgeAll(w.ctx))
		if left := w.present(files); len(left) > 0 || len(w.tasks()) > 0 {
			t.Errorf("it leaves %q and the tasks %+v", left, w.tasks())
		}
		w.wantClean()
	})
}

// Purges that were given up are retried once an hour, even if they must wait for their turn.
func TestBlockedPurgesWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newPurgeWorld(t, map[string]func(context.Context) error{"slow": func(context.Context) error {
			time.Sleep(purge.StallMax / 2)
			return nil
		}})
		w.drop("slow", 3*purge.OfWarehouse)
		records, err := w.store.List(w.ctx, registry.TableTask, "", "", 100)
		must(t, err)
		for _, record := range records {
			task, err := registry.DecodeTask(record)
			must(t, err)
			task.Attempts, task.LastError = purge.AttemptsMax, "the storage is away"
			w.put(record.Key, registry.StateBlocked, task)
		}
		w.interval = purge.StallMax / 3
		w.node = w.other(w.store)
		must(t, w.purgeAll(w.ctx))
		if left := w.tasks(); len(left) > 0 || w.PurgeStats() != (purge.Stats{}) {
			t.Errorf("%d tasks are left, %+v", len(left), w.PurgeStats())
		}
	})
}

// Stopping the workers does not wait for a storage that hangs. An attempt interrupted in this way
// does not count as failed.
func TestStopWhilePurgesHang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newPurgeWorld(t, map[string]func(context.Context) error{"hung": hangs})
		w.drop("hung", 5)
		w.worker.Start()
		synctest.Wait()
		w.mu.Lock()
		hanging := w.running["hung"]
		w.mu.Unlock()
		began := time.Now()
		w.worker.Stop()
		if took := time.Since(began); took > 0 || hanging != purge.OfWarehouse {
			t.Errorf("with %d deletions under way the end took %s", hanging, took)
		}
		tasks := w.tasks()
		for _, task := range tasks {
			if task.Attempts != 0 {
				t.Errorf("a purge that was stopped is noted as failed: %q", task.LastError)
			}
		}
		w.mu.Lock()
		w.deletes["hung"] = nil
		w.mu.Unlock()
		must(t, w.purgeAll(w.ctx))
		if left := w.tasks(); len(tasks) != 5 || len(left) > 0 {
			t.Errorf("%d tasks were left, and then %d", len(tasks), len(left))
		}
		w.wantClean()
	})
}

// A purge that panics has failed, and the log has the stack. The other purges continue.
func TestPurgePanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newPurgeWorld(t, map[string]func(context.Context) error{"bad": func(context.Context) error { panic("out of range") }, "good": nil})
		w.drop("bad", 3)
		good := w.drop("good", 3)
		must(t, w.purgeAll(w.ctx))
		tasks := w.tasks()
		for _, task := range tasks {
			if task.Attempts != 1 || task.LastError != "panic: out of range" {
				t.Errorf("%d attempts, the last failed with %q", task.Attempts, task.LastError)
			}
		}
		if left := w.present(good); len(tasks) != 3 || len(left) > 0 {
			t.Errorf("%d tasks and %d good tables are left", len(tasks), len(left))
		}
		if text := w.logs.String(); !strings.Contains(text, "round_test.go") {
			t.Errorf("the log does not say where: %s", text)
		}
	})
}

// If nodes purge the same tables at the same time, the result is the same as with one purge.
func TestPurgesOfSeveralNodes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 30 {
		name := fmt.Sprint("t", i)
		f.create(name)
		must(t, f.DropTable(f.ctx, ident(name), catalog.DropOptions{Purge: true}))
	}
	var group sync.WaitGroup
	var nodes []*node
	for range 3 {
		node := f.other(f.store)
		nodes = append(nodes, node)
		group.Go(func() {
			if err := node.purgeAll(f.ctx); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, node := range nodes { // each node counts purges of other nodes until its next search
		must(t, node.purgeAll(f.ctx))
		if stats := node.PurgeStats(); stats != (purge.Stats{}) {
			t.Errorf("stats %+v", stats)
		}
	}
	changes, err := f.store.Changes(f.ctx, 0, registry.ListLimitMax)
	must(t, err)
	seen := make(map[string]int)
	for _, change := range changes {
		seen[change.Change.Operation]++
	}
	if begun, ended := seen["purge"+"-begin"], seen["purge"]; begun != 30 || ended != 30 {
		t.Errorf("%d purges of 30 tables began, %d ended", begun, ended)
	}
	f.wantClean()
}
