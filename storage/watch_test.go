package storage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"moorage/storage"
	"moorage/storage/adls"
	"moorage/storage/file"
	"moorage/storage/gcs"
	"moorage/storage/s3"
	"moorage/testkit/storagetest"
)

// TestContract tests a watched store against the contract of all stores.
func TestContract(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T) (storage.Store, string) {
		root := "file://" + filepath.ToSlash(t.TempDir())
		store, err := file.New([]string{root})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		return storage.NewWatch(storage.WatchConfig{Ended: func(context.Context, string, string, string, time.Duration) {}}).Files("lake", store), root
	}
	storagetest.Run(t, open)
	storagetest.RunBatcher(t, open)
	storagetest.RunFolders(t, open)
	storagetest.RunLocal(t, open)
}

// TestPowers: a watched store has exactly the optional interfaces of the store that it wraps.
func TestPowers(t *testing.T) {
	t.Parallel()
	watch := storage.NewWatch(storage.WatchConfig{Ended: func(context.Context, string, string, string, time.Duration) {}})
	for _, pair := range [][2]storage.Store{
		{&file.Store{}, watch.Files("lake", &file.Store{})},
		{&s3.Store{}, watch.Signing("lake", &s3.Store{})},
		{&gcs.Store{}, watch.Cloud("lake", &gcs.Store{})},
		{&adls.Store{}, watch.Cloud("lake", &adls.Store{})},
	} {
		for _, power := range []reflect.Type{
			reflect.TypeFor[storage.Batcher](), reflect.TypeFor[storage.Folders](), reflect.TypeFor[storage.Local](),
			reflect.TypeFor[storage.Prober](), reflect.TypeFor[storage.Featured](), reflect.TypeFor[storage.Remote](),
			reflect.TypeFor[storage.Lister](), reflect.TypeFor[storage.Vender](), reflect.TypeFor[storage.Limited](),
			reflect.TypeFor[storage.Signer](),
		} {
			has, want := reflect.TypeOf(pair[1]).Implements(power), reflect.TypeOf(pair[0]).Implements(power)
			if has != want {
				t.Errorf("%T is a %s: %t; watched: %t", pair[0], power, want, has)
			}
		}
	}
	store := &file.Store{}
	if watch.Files("lake", store) != watch.Files("lake", store) {
		t.Error("two of one store do not compare equal, so files are not written together")
	}
}

// sick is a store whose calls fail as the test says.
type sick struct {
	storage.FileStore
	put, get error
	content  io.Reader
}

func (s *sick) Create(context.Context, string, []byte) error { return s.put }

func (s *sick) Open(context.Context, string) (io.ReadCloser, storage.Info, error) {
	return io.NopCloser(s.content), storage.Info{}, s.get
}

// world is a watched store with its own clock.
type world struct {
	store   *sick
	watched storage.FileStore
	watch   *storage.Watch
	now     time.Time
	log     bytes.Buffer
	ended   []string
}

func newWorld() *world {
	w := &world{store: &sick{content: strings.NewReader("all of it")}, now: time.Unix(1e9, 0)}
	w.watch = storage.NewWatch(storage.WatchConfig{
		Now: func() time.Time { return w.now }, Logger: slog.New(slog.NewTextHandler(&w.log, nil)),
		Ended: func(_ context.Context, warehouse, call, outcome string, _ time.Duration) {
			w.ended = append(w.ended, warehouse+" "+call+" "+outcome)
		},
	})
	w.watched = w.watch.Files("lake", w.store)
	return w
}

// TestSpell: writes fail for ten minutes because a disk is full. The log has one line for the
// beginning and one for the end, however many calls there are. Reads that succeed in the meantime
// make no difference.
func TestSpell(t *testing.T) {
	t.Parallel()
	w := newWorld()
	for i := range 600 {
		w.now = w.now.Add(time.Second)
		w.store.put = fmt.Errorf("the disk is full, try %d", i)
		if i%20 == 5 {
			w.store.put = nil // a small file still fits
		}
		_ = w.watched.Create(t.Context(), "file:///lake/a", nil)
		content, _, _ := w.watched.Open(t.Context(), "file:///lake/b")
		_, _ = io.ReadAll(content)
		_ = content.Close()
	}
	failures := w.watch.Failures()
	if len(failures) != 1 || failures[0].Warehouse != "lake" || failures[0].Calls != "writes" ||
		failures[0].Error != "the disk is full, try 599" || w.now.Sub(failures[0].Since) != 599*time.Second {
		t.Errorf("failures %+v", failures)
	}
	w.store.put = nil
	_ = w.watched.Create(t.Context(), "file:///lake/a", nil)
	if w.now = w.now.Add(time.Minute); w.watch.Fails("lake") {
		t.Error("it fails after a minute in which it did not")
	}
	lines := strings.Split(strings.TrimSpace(w.log.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "the storage of a warehouse fails") || !strings.Contains(lines[0], "try 0") ||
		!strings.Contains(lines[1], "works again") || !strings.Contains(lines[1], "lasted=9m59s failed=570") {
		t.Errorf("log:\n%s", w.log.String())
	}
}

// TestIdle: a storage without further calls still counts as failing.
func TestIdle(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.store.put = storage.ErrUnavailable
	_ = w.watched.Create(t.Context(), "file:///lake/a", nil)
	if w.now = w.now.Add(time.Hour); !w.watch.Fails("lake") || w.watch.Fails("other") {
		t.Errorf("failures %+v", w.watch.Failures())
	}
}

// TestOutcomes: checks the outcome for each error, and whether the error means that the storage is
// failing.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for _, row := range []struct {
		ctx   context.Context
		err   error
		took  time.Duration
		want  string
		fails bool
	}{
		{t.Context(), nil, 0, "done", false},
		{t.Context(), storage.ErrNotFound, 0, "missing", false},
		{t.Context(), storage.ErrExists, 0, "exists", false},
		{t.Context(), storage.ErrOutside, 0, "refused", false},
		{t.Context(), storage.ErrUnavailable, 0, "unavailable", true},
		{t.Context(), fmt.Errorf("%w: %w", storage.ErrUnavailable, storage.ErrSlowDown), 0, "slow-down", true},
		{t.Context(), storage.ErrNoCredentials, 0, "no-credentials", true},
		{t.Context(), errors.New("access denied"), 0, "error", true},
		{canceled, storage.ErrUnavailable, time.Second, "canceled", false},
		{canceled, context.Canceled, time.Minute, "timeout", true},
		{late, storage.ErrUnavailable, time.Millisecond, "canceled", false},
		{late, storage.ErrUnavailable, 5 * time.Second, "timeout", true},
	} {
		w := newWorld()
		w.store.put = row.err
		began := w.now
		w.watch = storage.NewWatch(storage.WatchConfig{
			Now: func() time.Time { now := began; began = began.Add(row.took); return now },
			Ended: func(_ context.Context, warehouse, call, outcome string, _ time.Duration) {
				w.ended = append(w.ended, warehouse+" "+call+" "+outcome)
			},
		})
		_ = w.watch.Files("lake", w.store).Create(row.ctx, "file:///lake/a", nil)
		if len(w.ended) != 1 || w.ended[0] != "lake put "+row.want || w.watch.Fails("lake") != row.fails {
			t.Errorf("%v after %s: got %q, fails %t; want %s, %t", row.err, row.took, w.ended, w.watch.Fails("lake"), row.want, row.fails)
		}
	}
}

// TestBrokenContent: if the content of a file breaks off, the read counts as failed.
func TestBrokenContent(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.store.content = iotest.TimeoutReader(strings.NewReader("all of it"))
	content, _, err := w.watched.Open(t.Context(), "file:///lake/a")
	if err != nil || len(w.ended) != 0 {
		t.Fatalf("%v, ended %q", err, w.ended)
	}
	if _, err := io.ReadAll(iotest.OneByteReader(content)); err == nil {
		t.Error("it does not break off")
	}
	_ = content.Close()
	if len(w.ended) != 1 || w.ended[0] != "lake get error" {
		t.Errorf("ended %q", w.ended)
	}
}

// TestManyWarehouses: the number of warehouses passed to Ended is limited. Failures are still
// reported under each warehouse's own name.
func TestManyWarehouses(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.store.put = storage.ErrUnavailable
	for i := range 100 {
		_ = w.watch.Files(fmt.Sprintf("w%d", i), w.store).Create(t.Context(), "file:///lake/a", nil)
	}
	names := make(map[string]bool)
	for _, line := range w.ended {
		names[line] = true
	}
	if len(names) != storage.WatchedMax || // lake, 29 more, and the others
		!names[storage.OtherWarehouse+" put unavailable"] || len(w.watch.Failures()) != 100 {
		t.Errorf("%d names, %d failures", len(names), len(w.watch.Failures()))
	}
}
