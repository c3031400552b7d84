package jobs

import (
	"time"

	"moorage/ledger"
	"moorage/registry"
)

// blockerOf returns the write of the blocker of a job that changes to state. The blocker exists
// while the job is blocked.
func blockerOf(at *job, value registry.Job, state registry.State, now time.Time) ([]registry.Write, error) {
	key := registry.DueBlockedKey(value.Pointer, value.Kind)
	isBlocked := at.record.State == registry.StateBlocked
	if isBlocked == (state == registry.StateBlocked) {
		return nil, nil
	}
	if !isBlocked {
		return ledger.Encode(ledger.Put(key, registry.StateNone,
			registry.Due{Reason: value.LastError, Since: now, By: at.quarantinedBy}))
	}
	return []registry.Write{registry.Delete(key)}, nil
}
