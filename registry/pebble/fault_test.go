package pebble

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"moorage/registry"
	"moorage/testkit/scale"
)

// faultApplies and faultValueBytes are large enough to make the engine rotate its log and flush
// several times.
const (
	faultApplies    = 24
	faultValueBytes = 3 << 10
	faultRecords    = 3
)

// faultBatch returns the batch of step n: a record and its change.
func faultBatch(n int) registry.Batch {
	batch := testPut(fmt.Sprint(n%faultRecords), fmt.Sprintf("%0*d", faultValueBytes, n))
	batch.Change = testChange(n)
	return batch
}

// faultRun is the result of a run over a file system with faults.
type faultRun struct {
	opened  bool
	applied int   // acknowledged steps
	unknown int   // steps with ErrUnknown: 0 or 1
	err     error // the first error
}

// runWithFaults makes the steps until one fails, and then checks the promises of a failed store.
func runWithFaults(t *testing.T, fs vfs.FS) (run faultRun) {
	t.Helper()
	s, err := open(testDir, Options{FS: fs}, smallTables)
	if err != nil {
		return faultRun{err: err}
	}
	defer func() {
		// Errors on closing a failed store do not matter, but Close must return.
		if err := s.Close(); err != nil && run.err == nil && s.Healthy(t.Context()) == nil {
			run.err = err
		}
	}()
	run.opened = true
	for n := range faultApplies {
		if _, run.err = s.Apply(t.Context(), faultBatch(n)); run.err != nil {
			break
		}
		run.applied++
	}
	if run.err == nil {
		return run
	}
	switch {
	case errors.Is(run.err, registry.ErrUnknown):
		run.unknown = 1
	case !errors.Is(run.err, registry.ErrFailed):
		t.Errorf("step %d failed with %v, want ErrUnknown or ErrFailed", run.applied, run.err)
	}
	if err := s.Healthy(t.Context()); !errors.Is(err, registry.ErrFailed) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Healthy answers %v, want ErrFailed and ENOSPC", err)
	}
	if _, err := s.Apply(t.Context(), testPut("later", "1")); !errors.Is(err, registry.ErrFailed) || errors.Is(err, registry.ErrUnknown) {
		t.Errorf("a later Apply: %v, want ErrFailed", err)
	}
	checkSteps(t, s, run.applied, run.unknown)
	return run
}

// checkSteps fails the test unless the store has the state after applied steps, or after up to more
// further steps.
func checkSteps(t *testing.T, s registry.Store, applied, more int) {
	t.Helper()
	before := countSteps(t, s)
	var values [faultRecords]string
	for id := range values {
		values[id] = value(t, s, fmt.Sprint(id))
	}
	// A step with an unknown outcome may become visible at any moment, even between two reads.
	after := countSteps(t, s)
	if before < applied || after > applied+more {
		t.Fatalf("the store has %d, then %d changes after %d steps and %d unknown ones", before, after, applied, more)
	}
	for id, got := range values {
		if got != valueAfter(id, before) && got != valueAfter(id, after) {
			t.Fatalf("record %d is of %d bytes, …%s, after %d to %d steps", id, len(got), got[max(0, len(got)-3):], before, after)
		}
	}
}

// valueAfter returns the value of record id after a number of steps.
func valueAfter(id, steps int) string {
	for n := steps - 1; n >= 0; n-- {
		if n%faultRecords == id {
			return string(faultBatch(n).Writes[0].Value)
		}
	}
	return ""
}

// countSteps returns the number of steps in Changes. It fails the test unless they are the first
// steps, in order.
func countSteps(t *testing.T, s registry.Store) int {
	t.Helper()
	changes, err := s.Changes(t.Context(), 0, registry.ListLimitMax)
	if err != nil {
		t.Fatal(err)
	}
	for n, c := range changes {
		if c.Change.ID != testChange(n).ID {
			t.Fatalf("change %d is %s, want that of step %d", n, c.Change.ID, n)
		}
	}
	return len(changes)
}

// TestFullDisk simulates a full disk at each change of the file system in turn: for this change
// only, and from this change on.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"once", "from then on"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			survived := false
			first, stride := scale.Steps(t)
			for k := int64(first); !survived; k += int64(stride) {
				var calls atomic.Int64
				inner := vfs.NewMem()
				run := runWithFaults(t, hooked(inner, func(op errorfs.Op) error {
					if call := calls.Add(1) - 1; call == k || (call > k && name != "once") {
						return &vfsError{op, syscall.ENOSPC}
					}
					return nil
				}))
				survived = calls.Load() <= k
				if survived && run.err != nil {
					t.Fatalf("without a fault: %v", run.err)
				}
				s := openStore(t, inner, smallTables)
				checkSteps(t, s, run.applied, run.unknown)
				closeStore(t, s)
				if t.Failed() {
					t.Fatalf("with the disk full at change %d", k)
				}
			}
		})
	}
}

// vfsError is an injected error that names the call.
type vfsError struct {
	op  errorfs.Op
	err error
}

func (e *vfsError) Error() string {
	return fmt.Sprintf("call %d of %s: %v", e.op.Kind, e.op.Path, e.err)
}
func (e *vfsError) Unwrap() error { return e.err }
