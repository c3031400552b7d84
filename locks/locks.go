package locks

import (
	"context"
	"errors"
	"time"
)

// Manager grants locks. All methods are safe for concurrent use.
type Manager interface {
	// Acquire takes everything that request names, and the ancestor modes that this implies, in one
	// sorted pass: see Plan. It returns when all of it is held. On an error nothing is held. The
	// error is a *ConflictError (non-blocking), ErrTimeout, the context's error, or ErrUnavailable.
	// Each may be wrapped with the lock that could not be had. An empty request is granted at once.
	Acquire(ctx context.Context, request Request, options Options) (Hold, error)
}

// Hold is a set of locks that is held. It is safe for concurrent use.
type Hold interface {
	// Context is derived from the context of Acquire. It ends when the hold is
	// released or when one of its locks is lost; the cause is then ErrLost. A hold whose
	// context has ended must still be released.
	Context() context.Context
	// Release gives everything back, in reverse order. It may be called again.
	Release()
}

// Request names what an operation works on. A path may be in one list or both; the
// stronger mode is taken. The lists may be in any order and are not kept.
type Request struct {
	Reads  []Path // subtrees to be read: R
	Writes []Path // subtrees to be written: W
}

// Options says how an Acquire waits. The zero value waits for at most WaitMax.
type Options struct {
	// NonBlocking never waits: what cannot be had at once is ErrConflict. Timeout is then not used.
	NonBlocking bool
	// InProcess takes the locks among the operations of this node only, without a call to a store
	// of leases. It is for operations that would rather lose a race against another node than pay
	// for a call.
	InProcess bool
	// Timeout bounds the time that the whole Acquire may wait, and learns from how it went.
	// Operations of one class share one. Nil: WaitMax.
	Timeout *Timeout
}

// WaitMax bounds an Acquire that was given no Timeout, so that no wait is without a bound.
const WaitMax = 30 * time.Second

// Limit returns how long an Acquire with these options may wait if it may wait at all, for
// managers.
func (o Options) Limit() time.Duration {
	if o.Timeout == nil {
		return WaitMax
	}
	return o.Timeout.Duration()
}

// Errors that Acquire returns and a Hold's context ends with. Callers distinguish them with
// errors.Is.
var (
	ErrConflict = errors.New("locks: held by another operation")
	ErrTimeout  = errors.New("locks: timed out")
	ErrLost     = errors.New("locks: lock lost")
	// ErrUnavailable: the store of leases could not be asked or did not answer, or the manager was
	// closed. Nothing is held.
	ErrUnavailable = errors.New("locks: store of leases unavailable")
)

// ConflictError is the ErrConflict of a non-blocking Acquire.
type ConflictError struct {
	// Blocked is the first lock, in the order of Plan, that could not be had. Its path may be an
	// ancestor of what was requested.
	Blocked Grant
}

// Error names the lock, for logs.
func (e *ConflictError) Error() string { return ErrConflict.Error() + ": " + e.Blocked.String() }

// Unwrap returns ErrConflict.
func (e *ConflictError) Unwrap() error { return ErrConflict }
