package pebble

import (
	"fmt"
	"sync"

	"moorage/registry"
)

// failure holds the reason of the store's failure, if it has failed. It is safe for concurrent use.
type failure struct {
	happened chan struct{} // closed when there is a reason

	// mu guards the fields below. No lock is taken under it.
	mu     sync.Mutex
	reason error
	opened bool // Open has returned, so the reason can no longer be in its error
}

func (f *failure) init() { f.happened = make(chan struct{}) }

// set records the reason unless an earlier reason is recorded. It reports whether the caller must
// log the reason.
func (f *failure) set(reason error) (toLog bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reason != nil {
		return false
	}
	f.reason = reason
	close(f.happened)
	return f.opened
}

// open marks the store as open: from now on, set requires its caller to log the reason. It returns
// the reason if the store has already failed.
func (f *failure) open() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened = true
	return f.reason
}

// get returns an ErrFailed with the reason, or nil if the store has not failed.
func (f *failure) get() error {
	select {
	case <-f.happened:
		return fmt.Errorf("%w: %w", registry.ErrFailed, f.cause())
	default:
		return nil
	}
}

// unknown returns an ErrUnknown with the reason, for an Apply in progress when the store failed.
func (f *failure) unknown() error {
	return fmt.Errorf("%w: %w", registry.ErrUnknown, f.cause())
}

// cause returns the reason, or nil if there is none.
func (f *failure) cause() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reason
}
