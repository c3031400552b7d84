package ledger_test

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"moorage/ledger"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/testkit/registrytest"
)

const (
	work = "purge/a1"
	life = 30 * time.Second
)

var (
	ann = registry.ID{1}
	ben = registry.ID{2}
)

func done(context.Context) error { return nil }

// wantAssigned fails the test unless assigner is refused the work.
func wantAssigned(t *testing.T, assigner *ledger.Assigner) {
	t.Helper()
	err := assigner.Assign(t.Context(), work, life, func(context.Context) error {
		t.Error("the work was begun twice")
		return nil
	})
	if !errors.Is(err, ledger.ErrAssigned) {
		t.Errorf("assignment: %v, want ErrAssigned", err)
	}
}

// wantFree fails the test unless assigner gets the work.
func wantFree(t *testing.T, assigner *ledger.Assigner) {
	t.Helper()
	if err := assigner.Assign(t.Context(), work, life, done); err != nil {
		t.Errorf("assignment: %v, want none", err)
	}
}

func TestAssignIsRenewedAndReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(rand.Reader)
		first, second := ledger.NewAssigner(store, ann), ledger.NewAssigner(store, ben)
		want := errors.New("as the work ended")
		err := first.Assign(t.Context(), work, life, func(ctx context.Context) error {
			for range 100 {
				time.Sleep(life / 10)
				wantAssigned(t, second)
				wantAssigned(t, first)
			}
			if ctx.Err() != nil {
				t.Errorf("the context has ended: %v", context.Cause(ctx))
			}
			if err := second.Assign(ctx, "purge/b2", life, done); err != nil {
				t.Errorf("other work: %v", err)
			}
			return want
		})
		if !errors.Is(err, want) {
			t.Errorf("assignment: %v, want %v", err, want)
		}
		if records, err := store.Get(t.Context(), registry.AssignmentKey(work)); err != nil || records[0].Exists() {
			t.Errorf("the assignment was not released: %v, %v", records, err)
		}
		wantFree(t, second)
	})
}

// stalling is a store. From some moment on, calls of some methods hang until their context ends.
type stalling struct {
	registry.Store
	stalled chan struct{} // closed when calls begin to hang
}

func (s *stalling) stall(ctx context.Context) error {
	select {
	case <-s.stalled:
		<-ctx.Done()
		return ctx.Err()
	default:
		return nil
	}
}

func (s *stalling) Time(ctx context.Context) (time.Time, error) {
	if err := s.stall(ctx); err != nil {
		return time.Time{}, err
	}
	return s.Store.Time(ctx)
}

func (s *stalling) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	if err := s.stall(ctx); err != nil {
		return nil, err
	}
	return s.Store.Apply(ctx, batch)
}

// An owner that cannot reach the store stops before another owner can get its assignment.
func TestAssignIsLostBeforeItIsTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(rand.Reader)
		cut := &stalling{store, make(chan struct{})}
		first, second := ledger.NewAssigner(cut, ann), ledger.NewAssigner(store, ben)
		var lost, taken time.Time
		err := first.Assign(t.Context(), work, life, func(ctx context.Context) error {
			time.Sleep(5 * life)
			close(cut.stalled)
			began := time.Now()
			var other sync.WaitGroup
			defer other.Wait()
			other.Go(func() {
				for taken.IsZero() {
					err := second.Assign(t.Context(), work, life, func(context.Context) error {
						taken = time.Now()
						return nil
					})
					if err != nil && !errors.Is(err, ledger.ErrAssigned) {
						t.Error(err)
						return
					}
					time.Sleep(time.Millisecond)
				}
			})
			<-ctx.Done()
			lost = time.Now()
			if !errors.Is(context.Cause(ctx), ledger.ErrAssignmentLost) || lost.Sub(began) > life {
				t.Errorf("the context ended after %s with %v, want ErrAssignmentLost within %s", lost.Sub(began), context.Cause(ctx), life)
			}
			return context.Cause(ctx)
		})
		if !errors.Is(err, ledger.ErrAssignmentLost) {
			t.Errorf("assignment: %v, want ErrAssignmentLost", err)
		}
		if taken.Before(lost) || taken.Sub(lost) > life {
			t.Errorf("taken %s after it was lost", taken.Sub(lost))
		}
	})
}

// An owner that has lost its assignment to another owner notices that at the next renewal. It
// leaves the new assignment alone.
func TestAssignThatAnotherTookIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(rand.Reader)
		key := registry.AssignmentKey(work)
		var theirs registry.ETag
		err := ledger.NewAssigner(store, ann).Assign(t.Context(), work, life, func(ctx context.Context) error {
			theirs = putAssignment(t, store, registry.Assignment{Owner: ben, Until: time.Now().Add(life)})
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if !errors.Is(err, ledger.ErrAssignmentLost) {
			t.Errorf("assignment: %v, want ErrAssignmentLost", err)
		}
		if records, err := store.Get(t.Context(), key); err != nil || records[0].ETag != theirs {
			t.Errorf("the other's assignment was changed: %v, %v", records, err)
		}
	})
}

func putAssignment(t *testing.T, store registry.Store, assignment registry.Assignment) registry.ETag {
	t.Helper()
	value, err := registry.Encode(assignment)
	if err != nil {
		t.Fatal(err)
	}
	return putValue(t, store, value)
}

func putValue(t *testing.T, store registry.Store, value []byte) registry.ETag {
	t.Helper()
	etags, err := store.Apply(t.Context(), registry.Batch{Writes: []registry.Write{registry.Put(registry.AssignmentKey(work), registry.StateNone, value)}})
	if err != nil {
		t.Fatal(err)
	}
	return etags[0]
}

// Only the store's clock determines when the assignment of a dead owner ends. The clock of this
// process is a year off, and is not used.
func TestAssignEndsByTheStoresClock(t *testing.T) {
	t.Parallel()
	now := time.Now().AddDate(1, 0, 0)
	store := memory.NewWithClock(rand.Reader, func() time.Time { return now })
	assigner := ledger.NewAssigner(store, ben)
	putAssignment(t, store, registry.Assignment{Owner: ann, Until: now.Add(life)})
	wantAssigned(t, assigner)
	now = now.Add(life - time.Nanosecond)
	wantAssigned(t, assigner)
	now = now.Add(time.Nanosecond)
	wantFree(t, assigner)
	for name, assignment := range map[string]registry.Assignment{
		"written when the clock was ahead": {Owner: ann, Until: now.AddDate(1, 0, 0)},
		"of this process, answer lost":     {Owner: ben, Until: now.Add(life)},
	} {
		t.Run(name, func(t *testing.T) {
			putAssignment(t, store, assignment)
			wantFree(t, assigner)
		})
	}
	t.Run("damaged", func(t *testing.T) {
		putValue(t, store, []byte("{"))
		wantFree(t, assigner)
	})
}

// Whatever call of the store fails or loses its answer, no two owners do the work at the same time,
// and a later assignment succeeds.
func TestAssignSurvivesFaults(t *testing.T) {
	t.Parallel()
	for name, action := range map[string]registrytest.Action{"fail": registrytest.Fail, "lose": registrytest.Lose} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for k := 0; ; k++ {
					raw := memory.New(rand.Reader)
					faulty := registrytest.Faulty(raw, registrytest.Nth(k, action))
					first, second := ledger.NewAssigner(faulty, ann), ledger.NewAssigner(raw, ben)
					began := false
					err := first.Assign(t.Context(), work, life, func(ctx context.Context) error {
						began = true
						time.Sleep(3*life + life/2)
						wantAssigned(t, second)
						return context.Cause(ctx)
					})
					if began != (err == nil) {
						t.Errorf("call %d: the work was begun: %t, and assignment returned %v", k, began, err)
					}
					if faulty.Calls() <= k {
						return // the fault did not occur
					}
					if err := first.Assign(t.Context(), work, life, done); err != nil {
						t.Errorf("call %d: the next assignment: %v", k, err)
					}
					wantFree(t, second)
				}
			})
		})
	}
}

// An unreadable assignment does not prevent other owners from doing the work. Its owner finds out
// that it has lost the assignment.
func TestAssignThatCannotBeReadIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(rand.Reader)
		err := ledger.NewAssigner(store, ann).Assign(t.Context(), work, life, func(ctx context.Context) error {
			unreadable := registry.Put(registry.AssignmentKey(work), registry.StateNone, []byte(`{"owner":1}`))
			if _, err := store.Apply(ctx, registry.Batch{Writes: []registry.Write{unreadable}}); err != nil {
				t.Fatal(err)
			}
			wantFree(t, ledger.NewAssigner(store, ben))
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if !errors.Is(err, ledger.ErrAssignmentLost) {
			t.Errorf("the owner of the damaged assignment: %v, want that it is lost", err)
		}
	})
}
