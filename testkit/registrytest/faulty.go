package registrytest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"moorage/registry"
)

// Action is the treatment of one call of a FaultyStore.
type Action uint8

// The actions. A call that fails without taking effect returns ErrUnavailable. So does a read whose
// answer is lost. An Apply whose answer is lost returns ErrUnknown.
const (
	Pass     Action = iota // the call goes through
	Fail                   // the call fails and nothing happens
	Lose                   // the call goes through and its answer is lost
	Delay                  // like Lose, but an Apply happens only when Release is called; a read fails
	Die                    // the process dies before the call: nothing happens, now or later
	DieAfter               // the process dies after the call, which goes through
)

// Names of the methods in calls of a Plan.
const (
	MethodGet     = "Get"
	MethodList    = "List"
	MethodApply   = "Apply"
	MethodChanges = "Changes"
	MethodTime    = "Time"
)

// Plan returns the action for a call. Calls are counted from 0 over all methods. A Plan is called
// for one call at a time, and not after the process has died. If a store and other dependencies
// must share one sequence of faults, their plans can share a counter.
type Plan func(call int, method string) Action

// Nth returns the plan that applies action to call k and lets all other calls pass.
func Nth(k int, action Action) Plan {
	return func(call int, _ string) Action {
		if call == k {
			return action
		}
		return Pass
	}
}

// NthApply returns the plan that applies action to the k-th Apply, counted from 0, and lets all
// other calls pass.
func NthApply(k int, action Action) Plan {
	applies := 0
	return func(_ int, method string) Action {
		if method != MethodApply {
			return Pass
		}
		applies++
		if applies-1 == k {
			return action
		}
		return Pass
	}
}

// ErrInjected is in the chain of every error that a FaultyStore injects.
var ErrInjected = errors.New("registrytest: injected fault")

// FaultyStore is a store that fails as its plan requires. Calls from several goroutines are safe,
// but the plan counts them in the order in which they happen to arrive.
type FaultyStore struct {
	store registry.Store

	// mu guards the fields below. No other lock is taken under it. mu is held while plan is called.
	mu      sync.Mutex
	plan    Plan
	calls   int
	dead    bool
	delayed []registry.Batch
	// malformed makes Apply accept malformed batches instead of panicking.
	malformed bool
}

var _ registry.Store = (*FaultyStore)(nil)

// Faulty wraps store. Its calls get the faults of plan.
func Faulty(store registry.Store, plan Plan) *FaultyStore {
	return &FaultyStore{store: store, plan: plan}
}

// TakeMalformed makes malformed batches get the faults of the plan, instead of a panic. It is for
// tests that send such batches on purpose. It returns f.
func (f *FaultyStore) TakeMalformed() *FaultyStore {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.malformed = true
	return f
}

// Calls returns the number of calls until the process died. The call at which it died counts.
func (f *FaultyStore) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// Dead reports whether the process died. A test that simulates the death of a process must also
// make its other dependencies refuse all calls from then on.
func (f *FaultyStore) Dead() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dead
}

// Delayed returns the number of Applies that wait for Release.
func (f *FaultyStore) Delayed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.delayed)
}

// Release carries out the delayed Applies in their order, and returns the store's error for each.
func (f *FaultyStore) Release(ctx context.Context) []error {
	f.mu.Lock()
	delayed := f.delayed
	f.delayed = nil
	f.mu.Unlock()
	var errs []error
	for _, batch := range delayed {
		_, err := f.store.Apply(ctx, batch)
		errs = append(errs, err)
	}
	return errs
}

// Get implements registry.Store.
func (f *FaultyStore) Get(ctx context.Context, keys ...registry.Key) ([]registry.Record, error) {
	return read(f, MethodGet, func() ([]registry.Record, error) { return f.store.Get(ctx, keys...) })
}

// List implements registry.Store.
func (f *FaultyStore) List(ctx context.Context, table registry.Table, prefix, after string,
	limit int) ([]registry.Record, error) {
	return read(f, MethodList, func() ([]registry.Record, error) {
		return f.store.List(ctx, table, prefix, after, limit)
	})
}

// ListKeys implements registry.Store.
func (f *FaultyStore) ListKeys(ctx context.Context, table registry.Table, prefix, after string,
	limit int) ([]registry.Record, error) {
	return read(f, MethodList, func() ([]registry.Record, error) {
		return f.store.ListKeys(ctx, table, prefix, after, limit)
	})
}

// Changes implements registry.Store.
func (f *FaultyStore) Changes(ctx context.Context, after registry.Position, limit int) ([]registry.PositionedChange,
	error) {
	return read(f, MethodChanges, func() ([]registry.PositionedChange, error) {
		return f.store.Changes(ctx, after, limit)
	})
}

// Time implements registry.Clock.
func (f *FaultyStore) Time(ctx context.Context) (time.Time, error) {
	times, err := read(f, MethodTime, func() ([]time.Time, error) {
		now, err := f.store.Time(ctx)
		return []time.Time{now}, err
	})
	if err != nil {
		return time.Time{}, err
	}
	return times[0], nil
}

// Apply implements registry.Store. If the answer is lost, the caller does not learn of a failed
// condition either. A malformed batch panics, except after TakeMalformed.
func (f *FaultyStore) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	call, action, err := f.next(MethodApply)
	if err != nil {
		return nil, err
	}
	switch action {
	case Pass:
		etags, err := f.store.Apply(ctx, batch)
		f.mustBeWellFormed(err)
		return etags, err
	case Lose, DieAfter:
		// The store's answer is lost.
		_, err := f.store.Apply(ctx, batch)
		f.mustBeWellFormed(err)
		return nil, fault(registry.ErrUnknown, call, MethodApply)
	case Delay:
		f.mu.Lock()
		defer f.mu.Unlock()
		f.delayed = append(f.delayed, clone(batch))
		return nil, fault(registry.ErrUnknown, call, MethodApply)
	}
	return nil, fault(registry.ErrUnavailable, call, MethodApply)
}

// Close closes the store that f wraps. This call is not counted and has no faults.
func (f *FaultyStore) Close() error { return f.store.Close() }

// mustBeWellFormed panics if the store refused a batch as malformed, unless f accepts such batches.
// Tests with injected faults expect errors, and would not notice that a batch is malformed.
func (f *FaultyStore) mustBeWellFormed(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.malformed && errors.Is(err, registry.ErrBadBatch) {
		panic(err)
	}
}

// next counts a call and returns its number and its action.
func (f *FaultyStore) next(method string) (call int, action Action, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead {
		return 0, Fail, fmt.Errorf("%w: %w: %s after the process died", registry.ErrUnavailable, ErrInjected, method)
	}
	call = f.calls
	f.calls++
	action = f.plan(call, method)
	f.dead = action == Die || action == DieAfter
	return call, action, nil
}

// read makes a call that changes nothing, unless the plan requires a fault.
func read[T any](f *FaultyStore, method string, do func() ([]T, error)) ([]T, error) {
	call, action, err := f.next(method)
	if err != nil {
		return nil, err
	}
	if action != Pass {
		return nil, fault(registry.ErrUnavailable, call, method)
	}
	return do()
}

func fault(kind error, call int, method string) error {
	return fmt.Errorf("%w: %w in call %d, %s", kind, ErrInjected, call, method)
}

// clone returns a copy of batch that shares no modifiable memory with it.
func clone(batch registry.Batch) registry.Batch {
	copied := registry.Batch{Conditions: append([]registry.Condition(nil), batch.Conditions...)}
	for _, w := range batch.Writes {
		w.Value = append([]byte(nil), w.Value...)
		copied.Writes = append(copied.Writes, w)
	}
	if batch.Change != nil {
		change := *batch.Change
		copied.Change = &change
	}
	return copied
}
