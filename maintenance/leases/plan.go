package leases

import (
	"context"
	"slices"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
)

// Planned is a change of a table's leases, for an Apply of the caller.
type Planned struct {
	Condition registry.Condition
	Write     registry.Write
}

// PlanTake plans a lease that another change of the caller's Apply must accompany.
//
// Errors: the errors of Take. PlanTake does not wait.
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

// PlanEnd plans the end of a job's lease. It returns nil if the lease has ended.
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
