package locktest

import (
	"context"
	"sync"
	"time"

	"moorage/locks"
)

// LeasesAround is a locks.Leases that counts every call to another Leases. It can also delay or
// refuse calls, or drop their answers. It is as safe for concurrent use as the Leases behind it.
type LeasesAround struct {
	leases locks.Leases

	mu    sync.Mutex // guards the fields below; no other lock is taken under it
	hook  Hook
	calls map[string]int
	rows  map[string]int
}

// Hook is called instead of a method of Leases. method is the name of the method, and call makes
// the call. If Hook returns an error, this error replaces the call's error. Many goroutines may
// call a Hook at once.
type Hook func(ctx context.Context, method string, call func()) error

// NewLeasesAround returns a LeasesAround without a hook.
func NewLeasesAround(leases locks.Leases) *LeasesAround {
	return &LeasesAround{leases: leases, calls: make(map[string]int), rows: make(map[string]int)}
}

// SetHook makes LeasesAround use hook for every later call. Nil removes the hook.
func (a *LeasesAround) SetHook(hook Hook) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hook = hook
}

// Calls returns the number of calls of method since the last Reset, including refused ones.
func (a *LeasesAround) Calls(method string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls[method]
}

// Rows returns the number of leases or ids passed to method since the last Reset.
func (a *LeasesAround) Rows(method string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.rows[method]
}

// Reset sets all counts to 0.
func (a *LeasesAround) Reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.calls)
	clear(a.rows)
}

func (a *LeasesAround) around(ctx context.Context, method string, rows int, call func() error) error {
	a.mu.Lock()
	a.calls[method]++
	a.rows[method] += rows
	hook := a.hook
	a.mu.Unlock()
	if hook == nil {
		return call()
	}
	var err error
	if refused := hook(ctx, method, func() { err = call() }); refused != nil {
		return refused
	}
	return err
}

// Open implements locks.Leases.
func (a *LeasesAround) Open(ctx context.Context, session locks.Session) error {
	return a.around(ctx, "Open", 0, func() error { return a.leases.Open(ctx, session) })
}

// Announce implements locks.Leases.
func (a *LeasesAround) Announce(ctx context.Context, session, address, host string) (ended int, alive bool, err error) {
	err = a.around(ctx, "Announce", 0, func() (err error) {
		ended, alive, err = a.leases.Announce(ctx, session, address, host)
		return err
	})
	return ended, alive, err
}

// Renew implements locks.Leases.
func (a *LeasesAround) Renew(ctx context.Context, session string, known []int64, orphaned time.Duration) (lost []int64,
	alive bool, err error) {
	err = a.around(ctx, "Renew", len(known), func() (err error) {
		lost, alive, err = a.leases.Renew(ctx, session, known, orphaned)
		return err
	})
	return lost, alive, err
}

// Try implements locks.Leases.
func (a *LeasesAround) Try(ctx context.Context, session string, ticket int64, leases []locks.Lease,
	silence time.Duration) (blocked int, alive bool, err error) {
	err = a.around(ctx, "Try", len(leases), func() (err error) {
		blocked, alive, err = a.leases.Try(ctx, session, ticket, leases, silence)
		return err
	})
	return blocked, alive, err
}

// Release implements locks.Leases.
func (a *LeasesAround) Release(ctx context.Context, session string, ids []int64) error {
	return a.around(ctx, "Release", len(ids), func() error { return a.leases.Release(ctx, session, ids) })
}

// Wanted implements locks.Leases.
func (a *LeasesAround) Wanted(ctx context.Context, session string, silence time.Duration) (ids []int64, err error) {
	err = a.around(ctx, "Wanted", 0, func() (err error) {
		ids, err = a.leases.Wanted(ctx, session, silence)
		return err
	})
	return ids, err
}

// Reap implements locks.Leases.
func (a *LeasesAround) Reap(ctx context.Context, ttl time.Duration) (ended int, err error) {
	err = a.around(ctx, "Reap", 0, func() (err error) {
		ended, err = a.leases.Reap(ctx, ttl)
		return err
	})
	return ended, err
}

// End implements locks.Leases.
func (a *LeasesAround) End(ctx context.Context, session string) error {
	return a.around(ctx, "End", 0, func() error { return a.leases.End(ctx, session) })
}
