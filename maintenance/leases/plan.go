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

// Planned is a change of a table's leases that the caller includes in its own Apply.
type Planned struct {
	Condition registry.Condition
	Write     registry.Write
}

// PlanTake plans a lease that the caller's Apply grants together with another change.
//
// Errors: as for Take. PlanTake does not wait.
func (s *Leases) PlanTake(ctx context.Context, caller moorage.Caller, request Request) (Granted, Planned, error) {
	const op = "leases.PlanTake"
	if err := request.check(); err != nil {
		return Granted{}, Planned{}, err
	}
	lease, read, now, err := s.read(ctx, request.Pointer)
	if err != nil {
		return Granted{}, Planned{}, moorage.Annotate(op, "", err)
	}
	for _, hold := range lease.Holds {
		if collide(hold.Scope, request.Scope) {
			held := &HeldError{hold}
			return Granted{}, Planned{}, &moorage.Error{
				Kind: moorage.KindAlreadyExists, Message: held.Error(), Err: held,
			}
		}
	}
	if len(lease.Holds) >= HoldsMax {
		return Granted{}, Planned{}, moorage.Errorf(moorage.KindUnavailable,
			"The table has %d leases, and can have no more", HoldsMax)
	}
	granted := s.grant(&lease, caller, request, now)
	writes, err := ledger.Encode(ledger.Put(registry.LeaseKey(request.Pointer), registry.StateNone, lease))
	if err != nil {
		return Granted{}, Planned{}, err
	}
	return granted, Planned{read, writes[0]}, nil
}

// PlanEnd plans the end of a job's lease. It returns nil if the lease has already ended.
func (s *Leases) PlanEnd(ctx context.Context, id ID, job registry.ID) (*Planned, error) {
	lease, read, now, err := s.read(ctx, id.Pointer)
	if err != nil {
		return nil, moorage.Annotate("leases.PlanEnd", id.String(), err)
	}
	hold, live := lease.Hold(id.Token, now)
	if !live || hold.Job != job {
		return nil, nil
	}
	lease.Holds = slices.DeleteFunc(lease.Holds, func(h registry.Hold) bool { return h.Token == id.Token })
	writes, err := ledger.Encode(ledger.Put(registry.LeaseKey(id.Pointer), registry.StateNone, lease))
	if err != nil {
		return nil, err
	}
	return &Planned{read, writes[0]}, nil
}

// errUnchanged means that a record needs no write.
var errUnchanged = errors.New("leases: nothing to write")

// changeTimeout bounds the attempts at one write of a record.
const changeTimeout = 10 * time.Second

// change reads the leases of a table, drops ended ones, lets edit change the rest, and writes them.
// It retries if another write was faster, so edit may be called several times. edit returns
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
	// The time is read after the record. So a lease that had ended when the record was read counts
	// as ended.
	if now, err = s.ledger.Time(ctx); err != nil {
		return lease, read, now, err
	}
	lease.Holds = slices.DeleteFunc(slices.Clone(lease.Holds), func(h registry.Hold) bool { return !h.IsLive(now) })
	return lease, read, now, nil
}
