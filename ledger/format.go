package ledger

import (
	"context"

	"moorage"
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
