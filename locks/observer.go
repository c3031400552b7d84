package locks

import "time"

// Observer receives reports on the use of locks, for metrics. Managers call its methods without
// holding any internal lock, possibly from many goroutines at once. The methods must return
// quickly.
type Observer interface {
	// LockConflicted reports a lock that was not available at once, whether or not the Acquire then
	// waited for it.
	LockConflicted(level Level)
	// LockWaited reports the end of a wait for one lock. err is nil, ErrTimeout, or the context's
	// error.
	LockWaited(level Level, waited time.Duration, err error)
	// LockHeld reports the release of a lock in mode R or W. Ancestor modes are not reported,
	// because they follow from those.
	LockHeld(level Level, held time.Duration)
	// LockLost reports a lock in mode R or W that was lost while it was held. Its LockHeld follows.
	LockLost(level Level)
	// SessionLost reports that the node lost its session in the store of leases, and with it all
	// locks.
	SessionLost()
}

// noObserver is the Observer of a manager that was configured without one.
type noObserver struct{}

func (noObserver) LockConflicted(Level)                   {}
func (noObserver) LockWaited(Level, time.Duration, error) {}
func (noObserver) LockHeld(Level, time.Duration)          {}
func (noObserver) LockLost(Level)                         {}
func (noObserver) SessionLost()                           {}

// reportHeld reports how long the locks of plan were held.
func reportHeld(observer Observer, plan []Grant, held time.Duration) {
	for _, grant := range plan {
		if grant.Mode.coversSubtree() {
			observer.LockHeld(grant.Path.Level(), held)
		}
	}
}
