package ledger

import (
	"context"

	"moorage"
	"moorage/registry"
)

// RaiseFormat makes binaries that do not know the layout version refuse the store. Call it before
// the first write that such a binary would ignore. The version of a store never decreases. Running
// older nodes notice it within seconds, and end. A nil result does not mean that these have ended,
// because another process may have just raised the version.
//
// Errors: ErrRetry if another process raised the version in the meantime; KindUnavailable; the
// errors of the store. After an unknown outcome, the version may have been raised.
func (l *Ledger) RaiseFormat(ctx context.Context, version int) error {
	const op = "ledger.RaiseFormat"
	records, err := l.Get(ctx, registry.FormatKey())
	if err != nil {
		return err
	}
	format, err := Decode[registry.Format](records[0])
	if err != nil || format.Version >= version {
		return err
	}
	format.Version = version
	writes, err := Encode(Put(records[0].Key, registry.StateNone, format))
	if err != nil {
		return moorage.E(op, "", moorage.KindInternal, err)
	}
	_, err = l.Step(ctx, registry.Batch{Conditions: []registry.Condition{Unchanged(records[0])}, Writes: writes})
	if err != nil {
		return RetryOnConflict(StepError(op, err))
	}
	return nil
}
