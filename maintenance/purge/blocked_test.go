package purge_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"moorage/catalog"
	"moorage/maintenance/purge"
	"moorage/registry"
	"moorage/storage"
)

// brokenStorage is a storage that fails to delete while broken is set.
type brokenStorage struct {
	storage.Store
	broken *bool
}

func (s brokenStorage) Delete(ctx context.Context, locations ...string) error {
	if *s.broken {
		return errors.New("the storage is away")
	}
	return s.Store.Delete(ctx, locations...)
}

// refusingStorage is a storage whose Delete fails for each of a thousand files.
type refusingStorage struct{ storage.Store }

func (refusingStorage) Delete(context.Context, ...string) error {
	var failures []error
	for i := range 1000 {
		failures = append(failures, fmt.Errorf("file:///lake/%d: permission denied", i))
	}
	return errors.Join(failures...)
}

// TestFailureOfManyFiles makes a purge fail for many files. The log and the record of the task,
// which are written with each attempt, name only the first few files.
func TestFailureOfManyFiles(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	f := newFixture(t, func(c *catalog.Config) {
		open := c.OpenStorage
		c.OpenStorage = func(place storage.Place) (storage.Store, error) {
			store, err := open(place)
			return refusingStorage{store}, err
		}
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	f.create("t")
	if err := f.DropTable(f.ctx, ident("t"), catalog.DropOptions{Purge: true}); err != nil {
		t.Fatal(err)
	}
	if err := f.purgeAll(f.ctx); err != nil {
		t.Fatal(err)
	}
	const want = "file:///lake/0: permission denied; file:///lake/1: permission denied; file:///lake/2: permission denied; and 997 more"
	records, err := f.store.List(f.ctx, registry.TableTask, "", "", 10)
	if err != nil || len(records) != 1 {
		t.Fatalf("tasks: %v, %v", records, err)
	}
	if task, err := registry.DecodeTask(records[0]); err != nil || task.LastError != want {
		t.Errorf("the task has %q, %v; want %q", task.LastError, err, want)
	}
	if !strings.Contains(log.String(), `msg="purge did not finish"`) || !strings.Contains(log.String(), want+`"`) {
		t.Errorf("the log has %q, want %q in it", log.String(), want)
	}
}

// TestBlockedPurge makes a purge fail until it is given up, and then repairs the storage. The files
// must be deleted an hour later, and not before.
func TestBlockedPurge(t *testing.T) {
	t.Parallel()
	broken := true
	f := newFixture(t, func(c *catalog.Config) {
		open := c.OpenStorage
		c.OpenStorage = func(place storage.Place) (storage.Store, error) {
			store, err := open(place)
			return brokenStorage{store, &broken}, err
		}
	})
	table := f.create("t")
	if err := f.DropTable(f.ctx, ident("t"), catalog.DropOptions{Purge: true}); err != nil {
		t.Fatal(err)
	}
	state := func() registry.State {
		records, err := f.store.List(f.ctx, registry.TableTask, "", "", 10)
		if err != nil || len(records) != 1 {
			t.Fatalf("tasks: %v, %v", records, err)
		}
		return records[0].State
	}
	wantStats := func(want purge.Stats) {
		t.Helper()
		if got := f.PurgeStats(); got != want {
			t.Errorf("stats: got %+v, want %+v", got, want)
		}
	}
	wantStats(purge.Stats{})
	for i := range int64(purge.AttemptsMax) {
		if state() == registry.StateBlocked {
			t.Fatal("given up too early")
		}
		if i > 0 {
			wantStats(purge.Stats{Unfinished: 1, Failures: i})
		}
		if err := f.purgeAll(f.ctx); err != nil {
			t.Fatal(err)
		}
	}
	wantStats(purge.Stats{Unfinished: 1, Blocked: 1, Failures: purge.AttemptsMax})
	if state() != registry.StateBlocked {
		t.Fatal("not given up")
	}
	report, err := f.Check(f.ctx)
	if err != nil || len(report.Problems) == 0 {
		t.Errorf("check says nothing of it: %v, %v", report, err)
	}
	broken = false
	f.clock.Advance(purge.BlockedPause - time.Second)
	if err := f.purgeAll(f.ctx); err != nil {
		t.Fatal(err)
	}
	if state() != registry.StateBlocked {
		t.Error("tried again too early")
	}
	wantStats(purge.Stats{Unfinished: 1, Blocked: 1, Failures: purge.AttemptsMax})
	f.clock.Advance(time.Second)
	if err := f.purgeAll(f.ctx); err != nil {
		t.Fatal(err)
	}
	wantStats(purge.Stats{Failures: purge.AttemptsMax})
	if _, err := f.files.Stat(f.ctx, table.MetadataLocation); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("the file is still there (%v)", err)
	}
	if report, err := f.Check(f.ctx); err != nil || len(report.Problems) > 0 {
		t.Errorf("check: %v, %v", report, err)
	}
}

// Only the node that gave up a purge logs that, not a node that came too late.
func TestBlockedPurgeIsLoggedOnce(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"in time": false, "too late": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var logs bytes.Buffer
			overtake := func() {}
			f := newFixture(t, func(c *catalog.Config) {
				c.Logger = slog.New(slog.NewTextHandler(&logs, nil))
				broken := true
				wrapStorage(c, func(inner storage.Store) storage.Store {
					return &hookedDeletes{brokenStorage{inner, &broken}, func() { overtake() }}
				})
			})
			f.create("t")
			must(t, f.DropTable(f.ctx, ident("t"), catalog.DropOptions{Purge: true}))
			record := f.list(registry.TableTask)[0]
			task, err := registry.DecodeTask(record)
			must(t, err)
			task.Attempts = purge.AttemptsMax - 1
			f.put(record.Key, registry.StateNone, task)
			if late {
				overtake = func() {
					task.Attempts = purge.AttemptsMax
					f.put(record.Key, registry.StateBlocked, task)
				}
			}
			must(t, f.purgeAll(f.ctx))
			if got := strings.Contains(logs.String(), "purge is given up"); got == late {
				t.Errorf("the log tells of it: %t", got)
			}
			if got := f.list(registry.TableTask)[0].State; got != registry.StateBlocked {
				t.Errorf("the task is %s", got)
			}
		})
	}
}

// Log lines of a purge about files name the table of the files, and the id of the purge.
func TestPurgeSaysWhose(t *testing.T) {
	t.Parallel()
	var logs bytes.Buffer
	f := newFixture(t, func(c *catalog.Config) { c.Logger = slog.New(slog.NewTextHandler(&logs, nil)) })
	table := f.create("t")
	if _, err := f.Commit(f.ctx, ident("t"), appendSnapshot(t, table)); err != nil { // its manifest list was never written
		t.Fatal(err)
	}
	if err := f.DropTable(f.ctx, ident("t"), catalog.DropOptions{Purge: true}); err != nil {
		t.Fatal(err)
	}
	tasks, err := f.store.List(f.ctx, registry.TableTask, "", "", 2)
	if err != nil || len(tasks) != 1 {
		t.Fatal(len(tasks), err)
	}
	if err := f.purgeAll(f.ctx); err != nil {
		t.Fatal(err)
	}
	line := logs.String()
	for _, want := range []string{"purge: an unreadable manifest or list is skipped", "task=" + tasks[0].Key.ID, "ident=" + ident("t").String()} {
		if !strings.Contains(line, want) {
			t.Errorf("the log does not have %q: %s", want, line)
		}
	}
}

// A purge that finds no metadata file ends and logs that, because its disk may not be mounted.
func TestPurgeSaysThatItFindsNothing(t *testing.T) {
	t.Parallel()
	var logs bytes.Buffer
	f := newFixture(t, func(c *catalog.Config) { c.Logger = slog.New(slog.NewTextHandler(&logs, nil)) })
	table := f.create("t")
	must(t, f.DropTable(f.ctx, ident("t"), catalog.DropOptions{Purge: true}))
	must(t, f.files.Delete(f.ctx, table.MetadataLocation))
	must(t, f.purgeAll(f.ctx))
	for _, want := range []string{"level=WARN", "purge finds no metadata file", "ident=" + ident("t").String(), "file=" + table.MetadataLocation} {
		if !strings.Contains(logs.String(), want) {
			t.Errorf("the log does not have %q: %s", want, logs.String())
		}
	}
}
