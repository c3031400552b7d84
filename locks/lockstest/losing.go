package lockstest

import (
	"context"
	"sync"

	"moorage/locks"
)

// Losing is a Manager whose locks can be lost: what another Manager grants, until Lose is called.
// It is safe for concurrent use.
type Losing struct {
	manager locks.Manager

	mu   sync.Mutex // guards the fields below; leaf
	lost map[locks.Hold]func()
}

// NewLosing returns a Losing over manager.
func NewLosing(manager locks.Manager) *Losing {
	return &Losing{manager: manager, lost: make(map[locks.Hold]func())}
}

// Acquire implements locks.Manager.
func (l *Losing) Acquire(ctx context.Context, request locks.Request, options locks.Options) (locks.Hold, error) {
	inner, err := l.manager.Acquire(ctx, request, options)
	if err != nil {
		return nil, err
	}
	outer, lose := locks.NewHold(inner.Context(), func() {
		l.mu.Lock()
		delete(l.lost, inner)
		l.mu.Unlock()
		inner.Release()
	})
	l.mu.Lock()
	l.lost[inner] = lose
	l.mu.Unlock()
	return outer, nil
}

// Lose loses every lock that is held: the contexts of the holds end with locks.ErrLost, then others
// get the locks. It returns how many holds there were.
func (l *Losing) Lose() int {
	l.mu.Lock()
	lost := l.lost
	l.lost = make(map[locks.Hold]func())
	l.mu.Unlock()
	for inner, lose := range lost {
		lose()
		inner.Release()
	}
	return len(lost)
}
