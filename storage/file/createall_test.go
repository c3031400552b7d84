package file

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"

	"moorage/internal/worker"
	"moorage/storage"
)

// filesIn returns n files for a CreateAll in the root.
func filesIn(n int) []storage.File {
	files := make([]storage.File, n)
	for i := range files {
		files[i] = storage.File{Location: storage.Join(diskRoot, fmt.Sprintf("%d.json", i)), Body: []byte("body")}
	}
	return files
}

// TestCreateAllTakesStepsTogether checks the order of the calls. No file is synced before all files
// are written, and no file gets its name before all files are synced. No folder is synced before
// all files have their names. This applies to each group of files that go through the steps
// together.
func TestCreateAllTakesStepsTogether(t *testing.T) {
	t.Parallel()
	w := &witness{t: t, disk: newDisk(t), owed: map[string]string{}}
	w.open()
	var steps []string
	w.disk.before = func(_ int, op string) error {
		if op == "write" || op == "fsync" || op == "linkat" {
			steps = append(steps, op)
		}
		return nil
	}
	if err := errors.Join(w.store.CreateAll(t.Context(), filesIn(batchMax+2))...); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, n := range []int{batchMax, 2} {
		for _, op := range []string{"write", "fsync", "linkat", "fsync"} {
			want = append(want, slices.Repeat([]string{op}, n)...)
		}
	}
	if !slices.Equal(steps, want) {
		t.Errorf("took the steps %q", steps)
	}
}

// TestCreateAllEndsWithItsContext ends the context before each call in turn. After that, no file is
// written or synced except the current one, and no file gets its name. Each file exists if and only
// if its result reports that.
func TestCreateAllEndsWithItsContext(t *testing.T) {
	t.Parallel()
	const many = batchMax + 2
	for k, stride := 0, 1; ; k += stride {
		if k == 100 {
			stride = 17 // the remaining calls are the same for the other files
		}
		w := &witness{t: t, disk: newDisk(t), owed: map[string]string{}}
		w.open()
		ctx, cancel := context.WithCancel(t.Context())
		start, named, after := w.disk.calls, 0, make(map[string]int)
		w.disk.before = func(call int, op string) error {
			if call > start+k {
				after[op]++
			} else if op == "linkat" {
				named++
			}
			if call == start+k {
				cancel()
			}
			return nil
		}
		files := filesIn(many)
		failures := w.store.CreateAll(ctx, files)
		calls := w.disk.calls - start
		cancel()
		if k >= calls {
			return
		}
		// Files that already have their names still become durable.
		if after["linkat"] > 0 || after["write"] > 1 || after["fsync"] > named {
			t.Errorf("ended before call %d, and then: %v", k, after)
		}
		for i, err := range failures {
			_, statErr := w.store.Stat(t.Context(), files[i].Location)
			if (err == nil) != (statErr == nil) || err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("ended before call %d: file %d: %v, and Stat answers %v", k, i, err, statErr)
			}
		}
		w.wantTidy(fmt.Sprintf("ended before call %d", k), true)
	}
}

// If a file occurs twice in a request and cannot be made, neither result states that it exists.
func TestCreateAllTwinsFail(t *testing.T) {
	t.Parallel()
	w := &witness{t: t, disk: newDisk(t), owed: map[string]string{}}
	w.open()
	w.disk.before = func(_ int, op string) error {
		if op == "write" {
			return syscall.ENOSPC
		}
		return nil
	}
	one := filesIn(1)[0]
	for i, err := range w.store.CreateAll(t.Context(), []storage.File{one, one, one}) {
		if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, storage.ErrExists) {
			t.Errorf("answer %d: %v", i, err)
		}
	}
}

// If a goroutine of CreateAll panics, only its file fails. The other files are made, and no caller
// waits for ever for something that the goroutine held.
func TestCreateAllPanics(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"fstatat", "openat", "write", "fsync", "linkat", "unlinkat"} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			w := &witness{t: t, disk: newDisk(t), owed: map[string]string{}}
			w.open()
			first := filesIn(4)[3]
			if err := w.store.Create(t.Context(), first.Location, first.Body); err != nil { // the folder is known to be durable
				t.Fatal(err)
			}
			panicked := false
			w.disk.before = func(_ int, got string) error {
				if got == op && !panicked {
					panicked = true
					panic("out of range")
				}
				return nil
			}
			files := filesIn(3)
			failures := w.store.CreateAll(t.Context(), files)
			if p, ok := errors.AsType[*worker.PanicError](failures[0]); !ok || p.Value != "out of range" || len(p.Stack) == 0 {
				t.Errorf("the file whose goroutine panicked: %v", failures[0])
			}
			if err := errors.Join(failures[1:]...); err != nil {
				t.Errorf("the others: %v", err)
			}
			for i, err := range w.store.CreateAll(t.Context(), files) {
				if i > 0 && !errors.Is(err, storage.ErrExists) || i == 0 && err != nil && !errors.Is(err, storage.ErrExists) {
					t.Errorf("file %d, a second time: %v", i, err)
				}
			}
		})
	}
}
