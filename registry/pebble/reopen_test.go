package pebble

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"moorage/registry"
	"moorage/testkit/scale"
)

// TestOpensAgain simulates a full disk at each change of the file system in turn, until the store
// has failed. When there is room again, the store continues by itself, with everything that was
// acknowledged.
func TestOpensAgain(t *testing.T) {
	t.Parallel()
	const (
		room = iota
		full
		roomAgain
	)
	survived := false
	first, stride := scale.Steps(t)
	for k := int64(first); !survived; k += int64(stride) {
		var calls atomic.Int64
		var disk atomic.Int32
		inner := vfs.NewMem()
		s, err := openWatched(testDir, Options{FS: hooked(inner, func(op errorfs.Op) error {
			if disk.Load() == full || disk.Load() == room && calls.Add(1)-1 == k && disk.CompareAndSwap(room, full) {
				return &vfsError{op, syscall.ENOSPC}
			}
			return nil
		})}, smallTables, time.Millisecond)
		if err != nil { // Open returns the error, and does not retry
			continue
		}
		// The disk may become full in the background, at a flush. So the steps go on until one of
		// them has met the full disk, or until there can be no full disk any more.
		run := faultRun{}
		for run.err == nil && (run.applied < faultApplies || !disk.CompareAndSwap(room, roomAgain)) {
			if _, run.err = s.Apply(t.Context(), faultBatch(run.applied)); run.err == nil {
				run.applied++
			}
		}
		if errors.Is(run.err, registry.ErrUnknown) {
			run.unknown = 1
		}
		if err := s.Healthy(t.Context()); run.err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("healthy: %v, want that the disk is full", err)
		}
		checkSteps(t, s, run.applied, run.unknown) // reads continue
		survived = disk.Swap(roomAgain) != full
		var applied error
		for first := true; first || errors.Is(applied, registry.ErrFailed) || errors.Is(applied, registry.ErrUnavailable); first = false {
			_, applied = s.Apply(t.Context(), faultBatch(run.applied)) // the batch that failed or has an unknown outcome
		}
		if _, happened := registry.FailedCondition(applied); applied != nil && !(happened && run.unknown == 1) {
			t.Errorf("an Apply when there is room: %v", applied)
		}
		if err := s.Healthy(t.Context()); err != nil {
			t.Errorf("healthy when there is room: %v", err)
		}
		checkSteps(t, s, run.applied+1, 0)
		closeStore(t, s)
		reopened := openStore(t, inner, smallTables)
		checkSteps(t, reopened, run.applied+1, 0)
		closeStore(t, reopened)
		if t.Failed() {
			t.Fatalf("with the disk full at change %d", k)
		}
	}
}

// TestStaysFailed: after an error that indicates a broken disk, only an operator can know whether
// the disk is sound again.
func TestStaysFailed(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	looks := make(chan struct{}, 1000)
	files := looked{hooked(vfs.NewMem(), func(op errorfs.Op) error {
		if isLogSync(op) && broken.Load() {
			return &vfsError{op, syscall.EIO}
		}
		return nil
	}), looks}
	s, err := openWatched(testDir, Options{FS: files}, asItIs, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, s)
	broken.Store(true)
	if _, err := s.Apply(t.Context(), testPut("a", "1")); !errors.Is(err, registry.ErrUnknown) {
		t.Errorf("an Apply whose sync fails: %v", err)
	}
	broken.Store(false)
	for range 10 + len(looks) {
		<-looks
	}
	if err := s.Healthy(t.Context()); !errors.Is(err, registry.ErrFailed) || !errors.Is(err, syscall.EIO) {
		t.Errorf("healthy: %v, want that the store stays failed", err)
	}
}

// looked is a file system that signals each measurement of its disk.
type looked struct {
	vfs.FS
	looks chan<- struct{}
}

// GetDiskUsage implements vfs.FS.
func (l looked) GetDiskUsage(string) (vfs.DiskUsage, error) {
	select {
	case l.looks <- struct{}{}:
	default:
	}
	return vfs.DiskUsage{}, vfs.ErrUnsupported
}

// sized is a file system with a given number of free bytes.
type sized struct {
	vfs.FS
	free atomic.Int64
}

// GetDiskUsage implements vfs.FS.
func (s *sized) GetDiskUsage(string) (vfs.DiskUsage, error) {
	free := uint64(s.free.Load())
	return vfs.DiskUsage{AvailBytes: free, TotalBytes: 1 << 30, UsedBytes: 1<<30 - free}, nil
}

// TestHealthyNeedsRoom: a store on a full disk is not healthy, even if nothing has failed yet.
func TestHealthyNeedsRoom(t *testing.T) {
	t.Parallel()
	files := &sized{FS: vfs.NewMem()}
	files.free.Store(spareBytesMin)
	s, err := openWatched(testDir, Options{FS: files}, asItIs, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, s)
	for _, row := range []struct {
		free    int64
		healthy bool
	}{{spareBytesMin, true}, {spareBytesMin - 1, false}, {0, false}, {1 << 29, true}} {
		files.free.Store(row.free)
		for s.freeBytes.Load() != row.free {
			runtime.Gosched()
		}
		err := s.Healthy(t.Context())
		if (err == nil) != row.healthy || err != nil && !(errors.Is(err, registry.ErrUnavailable) && errors.Is(err, syscall.ENOSPC)) {
			t.Errorf("with %d bytes left: %v", row.free, err)
		}
		if _, err := s.Apply(t.Context(), testPut("a", fmt.Sprint(row.free))); err != nil {
			t.Errorf("an Apply with %d bytes left: %v", row.free, err)
		}
	}
}
