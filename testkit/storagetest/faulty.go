package storagetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"moorage/storage"
)

// Action is the treatment of one call of a FaultyStore. Actions that also exist in package
// registrytest have the same values there.
type Action uint8

// The actions. A read whose answer is lost fails.
const (
	Pass     Action = iota // the call goes through
	Fail                   // the call fails and nothing happens
	Lose                   // the call goes through and its answer is lost: the caller gets an error
	_                      // registrytest.Delay: files are not written late
	Die                    // the process dies before the call: nothing happens, now or later
	DieAfter               // the process dies after the call, which goes through
)

// Names of the methods in calls of a Plan.
const (
	MethodCreate            = "Create"
	MethodOpen              = "Open"
	MethodReadRange         = "ReadRange"
	MethodStat              = "Stat"
	MethodDelete            = "Delete"
	MethodMakeFolder        = "MakeFolder"
	MethodRemoveEmptyFolder = "RemoveEmptyFolder"
	MethodList              = "List"
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

// ErrInjected is in the chain of every error that a FaultyStore injects.
var ErrInjected = errors.New("storagetest: injected fault")

// FaultyStore is a store that fails as its plan requires. Calls from several goroutines are safe,
// but the plan counts them in the order in which they happen to arrive.
type FaultyStore struct {
	store storage.Store

	// mu guards the fields below. No other lock is taken under it. mu is held while plan is called.
	mu    sync.Mutex
	plan  Plan
	calls int
	dead  bool
}

var (
	_ storage.Store   = (*FaultyStore)(nil)
	_ storage.Batcher = (*FaultyStore)(nil)
	_ storage.Folders = (*FaultyStore)(nil)
	_ storage.Local   = (*FaultyStore)(nil)
)

// Faulty wraps store. Its calls get the faults of plan. If store has no folders, the methods of
// storage.Folders do nothing, but are counted.
func Faulty(store storage.Store, plan Plan) *FaultyStore {
	return &FaultyStore{store: store, plan: plan}
}

// Calls returns the number of calls until the process died. The call at which it died counts.
func (f *FaultyStore) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// Dead reports whether the process died.
func (f *FaultyStore) Dead() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dead
}

// Create implements storage.Store.
func (f *FaultyStore) Create(ctx context.Context, location string, body []byte) error {
	return f.do(MethodCreate, func() error { return f.store.Create(ctx, location, body) })
}

// CreateAll implements storage.Batcher. It calls Create for each file in turn, so that each file
// can get its own fault.
func (f *FaultyStore) CreateAll(ctx context.Context, files []storage.File) []error {
	failures := make([]error, len(files))
	for i, file := range files {
		failures[i] = f.Create(ctx, file.Location, file.Body)
	}
	return failures
}

// Open implements storage.Store. Reads of its result are not counted and have no faults.
func (f *FaultyStore) Open(ctx context.Context, location string) (io.ReadCloser, storage.Info, error) {
	var body io.ReadCloser
	var info storage.Info
	err := f.do(MethodOpen, func() (err error) {
		body, info, err = f.store.Open(ctx, location)
		return err
	})
	if err != nil && body != nil {
		return nil, storage.Info{}, errors.Join(err, body.Close())
	}
	return body, info, err
}

// ReadRange implements storage.Store.
func (f *FaultyStore) ReadRange(ctx context.Context, location string, offset, length int64) (part []byte, err error) {
	err = f.do(MethodReadRange, func() (err error) {
		part, err = f.store.ReadRange(ctx, location, offset, length)
		return err
	})
	if err != nil {
		return nil, err
	}
	return part, nil
}

// Stat implements storage.Store.
func (f *FaultyStore) Stat(ctx context.Context, location string) (storage.Info, error) {
	var info storage.Info
	err := f.do(MethodStat, func() (err error) {
		info, err = f.store.Stat(ctx, location)
		return err
	})
	return info, err
}

// Delete implements storage.Store.
func (f *FaultyStore) Delete(ctx context.Context, locations ...string) error {
	return f.do(MethodDelete, func() error { return f.store.Delete(ctx, locations...) })
}

// MakeFolder implements storage.Folders.
func (f *FaultyStore) MakeFolder(ctx context.Context, location string) error {
	return f.do(MethodMakeFolder, func() error {
		if folders, ok := f.store.(storage.Folders); ok {
			return folders.MakeFolder(ctx, location)
		}
		return nil
	})
}

// RemoveEmptyFolder implements storage.Folders.
func (f *FaultyStore) RemoveEmptyFolder(ctx context.Context, location string, age time.Duration) (bool, error) {
	var removed bool
	err := f.do(MethodRemoveEmptyFolder, func() (err error) {
		if folders, ok := f.store.(storage.Folders); ok {
			removed, err = folders.RemoveEmptyFolder(ctx, location, age)
		}
		return err
	})
	return removed && err == nil, err
}

// List implements storage.Lister.
func (f *FaultyStore) List(ctx context.Context, folder, after string, limit int) (page storage.Page, err error) {
	err = f.do(MethodList, func() (err error) {
		lister, ok := f.store.(storage.Lister)
		if !ok {
			return errors.ErrUnsupported
		}
		page, err = lister.List(ctx, folder, after, limit)
		return err
	})
	return page, err
}

// MayBeGone implements storage.Local with the store's answer. This call is not counted.
func (f *FaultyStore) MayBeGone(location string) bool {
	local, ok := f.store.(storage.Local)
	return ok && local.MayBeGone(location)
}

// do counts a call and makes it, if the plan allows it.
func (f *FaultyStore) do(method string, call func() error) error {
	number, action, err := f.next(method)
	if err != nil {
		return err
	}
	switch action {
	case Pass:
		return call()
	case Lose, DieAfter:
		// The store's answer is lost.
		_ = call()
	}
	return fmt.Errorf("%w in call %d, %s", ErrInjected, number, method)
}

// next counts a call and returns its number and its action.
func (f *FaultyStore) next(method string) (call int, action Action, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead {
		return 0, Fail, fmt.Errorf("%w: %s after the process died", ErrInjected, method)
	}
	call = f.calls
	f.calls++
	action = f.plan(call, method)
	f.dead = action == Die || action == DieAfter
	return call, action, nil
}
