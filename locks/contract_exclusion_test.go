package locks_test

import (
	"errors"
	"testing"

	"moorage/locks"
	"moorage/testkit/locktest"
)

// compatible repeats the matrix in the comment of package locks.
var compatible = map[locks.Mode]map[locks.Mode]bool{
	locks.RA: {locks.RA: true, locks.R: true, locks.WA: true, locks.W: false},
	locks.R:  {locks.RA: true, locks.R: true, locks.WA: false, locks.W: false},
	locks.WA: {locks.RA: true, locks.R: false, locks.WA: true, locks.W: false},
	locks.W:  {locks.RA: false, locks.R: false, locks.WA: false, locks.W: false},
}

// requestFor returns a request that takes mode on path. For an ancestor mode, child is the name of
// the path below that is locked.
func requestFor(mode locks.Mode, path locks.Path, child string) locks.Request {
	switch mode {
	case locks.RA:
		return read(path.Namespace(child))
	case locks.R:
		return read(path)
	case locks.WA:
		return write(path.Namespace(child))
	}
	return write(path)
}

// Each pair of modes on one path is granted or refused according to the matrix.
func testMatrix(t *testing.T, manager locks.Manager) {
	for _, held := range locktest.Modes() {
		for _, wanted := range locktest.Modes() {
			holder := acquire(t, manager, requestFor(held, namespace("a"), "of the holder"))
			taker, err := manager.Acquire(t.Context(), requestFor(wanted, namespace("a"), "of the taker"),
				locks.Options{NonBlocking: true})
			switch want := compatible[held][wanted]; {
			case want && err != nil:
				t.Errorf("held %s, wanted %s: got %v, want a grant", held, wanted, err)
			case !want && !errors.Is(err, locks.ErrConflict):
				t.Errorf("held %s, wanted %s: got %v, want ErrConflict", held, wanted, err)
			}
			if err == nil {
				taker.Release()
			}
			holder.Release()
		}
	}
}

// A blocking request is granted at once, or as soon as the holder releases.
func testMatrixWaits(t *testing.T, manager locks.Manager) {
	for _, held := range locktest.Modes() {
		for _, wanted := range locktest.Modes() {
			holder := acquire(t, manager, requestFor(held, namespace("a"), "of the holder"))
			taker := try(t.Context(), manager, requestFor(wanted, namespace("a"), "of the taker"), locks.Options{})
			if what := wanted.String() + " while held " + held.String(); compatible[held][wanted] {
				taker.mustHold(t, what)
			} else {
				taker.mustWait(t, what)
			}
			holder.Release()
			taker.mustHold(t, wanted.String()+" after release of "+held.String()).Release()
		}
	}
}

// Two wishes exclude each other exactly when the rule of lineage requires it.
func testLineage(t *testing.T, manager locks.Manager) {
	all := wishes()
	for _, first := range all {
		holder := acquire(t, manager, first.request())
		for _, second := range all {
			taker, err := manager.Acquire(t.Context(), second.request(), locks.Options{NonBlocking: true})
			switch {
			case err == nil:
				taker.Release()
				if first.mustExclude(second) {
					t.Fatalf("held %s: %s was granted, and must be excluded", first, second)
				}
				if first.mayExclude(second) {
					t.Fatalf("held %s: %s was granted, unlike in four modes", first, second)
				}
			case !errors.Is(err, locks.ErrConflict):
				t.Fatalf("held %s: %s: got %v, want a grant or ErrConflict", first, second, err)
			case !first.mayExclude(second):
				t.Fatalf("held %s: %s was excluded for nothing: %v", first, second, err)
			}
		}
		holder.Release()
	}
}
