package commit

import (
	"context"
	"errors"

	"moorage"
	"moorage/catalog/gate"
	"moorage/locks"
)

// lock takes the subtrees of scope at levels, the levels of a row. It fails with KindUnavailable
// and holds nothing if it does not get the locks in time.
func (p *Pipeline) lock(ctx context.Context, row gate.Row, levels []locks.Level, scope Scope) (locks.Hold, error) {
	options := locks.Options{Timeout: p.lockTimes.Structural, InProcess: row.InProcess}
	if row.Patient {
		options.Timeout = p.lockTimes.NamespaceDrop
	}
	hold, err := p.locks.Acquire(ctx, request(levels, scope), options)
	switch {
	case err == nil:
		return hold, nil
	case errors.Is(err, locks.ErrTimeout), errors.Is(err, locks.ErrConflict):
		return nil, moorage.E("commit.lock", string(row.Verb), moorage.KindUnavailable,
			moorage.Errorf(moorage.KindUnavailable,
				"Other operations hold the locks that this one needs; nothing was changed"))
	}
	return nil, moorage.E("commit.lock", string(row.Verb), moorage.KindUnavailable, err)
}
