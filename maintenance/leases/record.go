package leases

import (
	"context"
	"errors"
	"slices"
	"time"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
)

// errUnchanged means that a record stays as it is.
var errUnchanged = errors.New("leases: nothing to write")

// changeTimeout bounds the attempts at one write of a record.
const changeTimeout = 10 * time.Second

// change reads the leases of a table without the ended ones, lets edit change them, and writes
// them. It retries while other writes are faster. edit may be called several times, and returns
// errUnchanged if there is nothing to write.
func (s *Leases) change(ctx context.Context, pointer registry.ID,
	edit func(lease *registry.Lease, now time.Time) error) error {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	return s.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		lease, read, now, err := s.read(ctx, pointer)
		if err != nil {
			return err
		}
		if err := edit(&lease, now); errors.Is(err, errUnchanged) {
			return nil
		} else if err != nil {
			return err
		}
		writes, err := ledger.Encode(ledger.Put(registry.LeaseKey(pointer), registry.StateNone, lease))
		if err != nil {
			return err
		}
		_, err = s.ledger.Step(ctx, registry.Batch{Conditions: []registry.Condition{read}, Writes: writes})
		if err = ledger.RetryOnConflict(err); errors.Is(err, ledger.ErrRetry) {
			return err
		}
		return ledger.StepError("leases.change", err)
	})
}

// read returns the live leases of a table, the condition that they are unchanged, and the time by
// the store's clock.
func (s *Leases) read(ctx context.Context, pointer registry.ID) (
	lease registry.Lease, read registry.Condition, now time.Time, err error) {
	key := registry.LeaseKey(pointer)
	records, err := s.ledger.Get(ctx, key)
	if err != nil {
		return lease, read, now, err
	}
	read = registry.Absent(key)
	if records[0].Exists() {
		read = ledger.Unchanged(records[0])
		if lease, err = ledger.Decode[registry.Lease](records[0]); err != nil {
			return lease, read, now, err
		}
	}
	// Read after the record: a lease that had ended by then has ended now.
	if now, err = s.ledger.Time(ctx); err != nil {
		return lease, read, now, err
	}
	lease.Holds = slices.DeleteFunc(slices.Clone(lease.Holds), func(h registry.Hold) bool { return !h.IsLive(now) })
	return lease, read, now, nil
}
