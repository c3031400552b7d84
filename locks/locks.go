package locks

import (
	"context"
	"errors"
	"time"
)

// Manager grants locks. All methods are safe for concurrent use.
type Manager interface {
	// Acquire takes every lock in request, and the modes that these imply on ancestors, in one
	// sorted pass; see Plan. It returns when all of them are held. After an error, no lock is held.
	// The error is a *ConflictError (non-blocking), ErrTimeout, the context's error, or
	// ErrUnavailable. Each may be wrapped with the unavailable lock. An empty request is granted at
	// once.
	Acquire(ctx context.Context, request Request, options Options) (Hold, error)
}

// Hold is a set of held locks. It is safe for concurrent use.
type Hold interface {
	// Context is derived from the context of Acquire. It ends when the hold is released, or when
	// one of its locks is lost. Its cause is ErrLost only after a loss. A hold whose context has
	// ended must still be released.
	Context() context.Context
	// Release releases all locks, in reverse order. It may be called again.
	Release()
}

// Request lists the paths of an operation. A path may be in one list or both; the stronger mode is
// taken. The lists may be in any order and are not kept.
type Request struct {
	Reads  []Path // subtrees to read: R
	Writes []Path // subtrees to write: W
}

// Options decide how an Acquire waits. The zero value waits for at most WaitMax.
type Options struct {
	// NonBlocking makes Acquire fail with ErrConflict, instead of waiting, if a lock is
	// unavailable. Timeout is then not used.
	NonBlocking bool
	// InProcess takes the locks only among the operations of this node, without a call to a store
	// of leases. It is for operations that would rather lose a race against another node than pay
	// for a call.
	InProcess bool
	// Timeout limits the total wait of the Acquire, and adapts to the duration of earlier waits.
	// Operations of one class share a Timeout. Nil means WaitMax.
	Timeout *Timeout
}

// WaitMax is the longest wait of an Acquire without a Timeout, so that every wait has a limit.
const WaitMax = 30 * time.Second

// Limit returns how long an Acquire with these options may wait if it is not NonBlocking. Managers
// call it.
func (o Options) Limit() time.Duration {
	if o.Timeout == nil {
		return WaitMax
	}
	return o.Timeout.Duration()
}

// Errors of Acquire, and causes of the end of a Hold's context. Callers distinguish them with
// errors.Is.
var (
	ErrConflict = errors.New("locks: held by another operation")
	ErrTimeout  = errors.New("locks: timed out")
	ErrLost     = errors.New("locks: lock lost")
	// ErrUnavailable: the store of leases could not be reached or did not answer, or the manager
	// was closed. No lock is held.
	ErrUnavailable = errors.New("locks: store of leases unavailable")
)

// ConflictError is the ErrConflict of a non-blocking Acquire.
type ConflictError struct {
	// Blocked is the first unavailable lock, in the order of Plan. Its path may be an ancestor of a
	// requested path.
	Blocked Grant
}

// Error names the lock, for logs.
func (e *ConflictError) Error() string { return ErrConflict.Error() + ": " + e.Blocked.String() }

// Unwrap returns ErrConflict.
func (e *ConflictError) Unwrap() error { return ErrConflict }
