package ledger

import (
	"context"
	"time"

	"moorage"
	"moorage/internal/worker"
	"moorage/registry"
)

// RaiseFormat makes the store one that versions which do not know format version refuse, and
// reports whether it was not one before. It comes before the first record that such a version would
// take for something else. A format never goes down.
//
// On a store that other nodes use, older ones notice within seconds and end.
//
// Errors: ErrRetry, if another process raised it meanwhile; those of the store. After
// KindCommitUnknown it may be raised.
func (l *Ledger) RaiseFormat(ctx context.Context, version int) (raised bool, err error) {
	found, err := l.Get(ctx, registry.FormatKey())
	if err != nil {
		return false, err
	}
	format, err := Decode[registry.Format](found[0])
	if err != nil {
		return false, moorage.E("ledger.RaiseFormat", "", moorage.KindInternal, err)
	}
	if format.Version >= version {
		return false, nil
	}
	format.Version = version
	writes, err := Encode(Put(found[0].Key, registry.StateNone, format))
	if err != nil {
		return false, err
	}
	_, err = l.Step(ctx, registry.Batch{Conditions: []registry.Condition{Unchanged(found[0])}, Writes: writes})
	if err != nil {
		return false, RetryOnConflict(StepError("ledger.RaiseFormat", err))
	}
	return true, nil
}

// formatPause is how long a node waits between raising the format of a store that others use and
// writing what older nodes would not heed. They look at the format each two or three seconds, and
// serve nobody from then on.
const formatPause = 5 * time.Second

// RaiseFormatForAll is RaiseFormat for what an operator switches on. While nodes of older versions
// are known to run it refuses that. On a store that others use it waits until older nodes that it
// does not know of have noticed.
//
// Errors: those of RefuseBehind and RaiseFormat; KindUnavailable if ctx ends meanwhile.
func (l *Ledger) RaiseFormatForAll(ctx context.Context, version int, alone bool) error {
	if err := l.RefuseBehind(ctx, version); err != nil {
		return err
	}
	if raised, err := l.RaiseFormat(ctx, version); err != nil || !raised || alone {
		return err
	}
	if !worker.Sleep(ctx, formatPause) {
		return moorage.E("ledger.RaiseFormatForAll", "", moorage.KindUnavailable, ctx.Err())
	}
	return nil
}
