package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

// brokenStorage fails to delete while broken.
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

// refusingStorage fails to delete a thousand files.
type refusingStorage struct{ storage.Store }

func (refusingStorage) Delete(context.Context, ...string) error {
	var failures []error
	for i := range 1000 {
		failures = append(failures, fmt.Errorf("file:///lake/%d: permission denied", i))
	}
	return errors.Join(failures...)
}

// TestFailureOfManyFiles lets a purge fail at each of many files: neither the log nor the record of the task, which are written with each
// attempt, has more than the first few.
func TestFailureOfManyFiles(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	f := newFixture(t, func(c *Config) {
		open := c.OpenStorage
		c.OpenStorage = func(place storage.Place) (storage.Store, error) {
			store, err := open(place)
			return refusingStorage{store}, err
		}
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	f.create("t")
	if err := f.DropTable(f.ctx, ident("t"), DropOptions{Purge: true}); err != nil {
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
	if task, err := readTask(records[0]); err != nil || task.LastError != want {
		t.Errorf("the task has %q, %v; want %q", cut(task.LastError, 200), err, want)
	}
	if !strings.Contains(log.String(), `msg="purge did not finish"`) || !strings.Contains(log.String(), want+`"`) {
		t.Errorf("the log has %q, want %q in it", cut(log.String(), 400), want)
	}
}

// TestBlockedPurge lets a purge fail until it is given up, mends the storage, and expects the files to go within
// an hour and not before.
func TestBlockedPurge(t *testing.T) {
	t.Parallel()
	broken := true
	f := newFixture(t, func(c *Config) {
		open := c.OpenStorage
		c.OpenStorage = func(place storage.Place) (storage.Store, error) {
			store, err := open(place)
			return brokenStorage{store, &broken}, err
		}
	})
	table := f.create("t")
	if err := f.DropTable(f.ctx, ident("t"), DropOptions{Purge: true}); err != nil {
		t.Fatal(err)
	}
	state := func() registry.State {
		records, err := f.store.List(f.ctx, registry.TableTask, "", "", 10)
		if err != nil || len(records) != 1 {
			t.Fatalf("tasks: %v, %v", records, err)
		}
		return records[0].State
	}
	wantStats := func(want PurgeStats) {
		t.Helper()
		if got := f.PurgeStats(); got != want {
			t.Errorf("stats: got %+v, want %+v", got, want)
		}
	}
	wantStats(PurgeStats{})
	for i := range int64(purgeAttemptsMax) {
		if state() == registry.StateBlocked {
			t.Fatal("given up too early")
		}
		if i > 0 {
			wantStats(PurgeStats{Unfinished: 1, Failures: i})
		}
		if err := f.purgeAll(f.ctx); err != nil {
			t.Fatal(err)
		}
	}
	wantStats(PurgeStats{Unfinished: 1, Blocked: 1, Failures: purgeAttemptsMax})
	if state() != registry.StateBlocked {
		t.Fatal("not given up")
	}
	report, err := f.Check(f.ctx)
	if err != nil || len(report.Problems) == 0 {
		t.Errorf("check says nothing of it: %v, %v", report, err)
	}
	broken = false
	f.clock.Advance(blockedPause - time.Second)
	if err := f.purgeAll(f.ctx); err != nil {
		t.Fatal(err)
	}
	if state() != registry.StateBlocked {
		t.Error("tried again too early")
	}
	wantStats(PurgeStats{Unfinished: 1, Blocked: 1, Failures: purgeAttemptsMax})
	f.clock.Advance(time.Second)
	if err := f.purgeAll(f.ctx); err != nil {
		t.Fatal(err)
	}
	wantStats(PurgeStats{Failures: purgeAttemptsMax})
	if _, err := f.files.Stat(f.ctx, table.MetadataLocation); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("the file is still there (%v)", err)
	}
	if report, err := f.Check(f.ctx); err != nil || len(report.Problems) > 0 {
		t.Errorf("check: %v, %v", report, err)
	}
}

// TestClockSetBack commits after the clock went back by an hour.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	before := f.create("t").Document.LastUpdatedMS()
	f.clock.Advance(-time.Hour)
	for i := range 2 {
		after, err := f.Commit(f.ctx, ident("t"), setProperty(t, "a", fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		if after.Document.LastUpdatedMS() < before {
			t.Errorf("last-updated-ms went back from %d to %d", before, after.Document.LastUpdatedMS())
		}
	}
}

// That a purge is given up is logged by the node that did it, not by one that came too late.
func TestBlockedPurgeIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var logs bytes.Buffer
	f := newFixture(t, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&logs, nil)) })
	f.create("t")
	if err := f.DropTable(f.ctx, ident("t"), DropOptions{Purge: true}); err != nil {
		t.Fatal(err)
	}
	records, err := f.store.List(f.ctx, registry.TableTask, "", "", 10)
	if err != nil || len(records) != 1 {
		t.Fatalf("tasks: %v, %v", records, err)
	}
	task, err := ledger.Decode[registry.Task](records[0])
	if err != nil {
		t.Fatal(err)
	}
	task.Attempts = purgeAttemptsMax - 1
	for i, want := range []error{nil, ledger.ErrRetry} {
		_, err := f.noteFailure(f.ctx, records[0], task, errors.New("the storage is away"))
		if !errors.Is(err, want) {
			t.Errorf("note %d: %v, want %v", i, err, want)
		}
		if got := strings.Count(logs.String(), "purge is given up"); got != 1 {
			t.Errorf("after note %d the log tells of it %d times", i, got)
		}
	}
}
