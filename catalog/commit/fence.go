package commit

import (
	"context"
	"slices"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
)

// A mutation may require that its caller holds a lease. The lease's record is read before each
// Apply, and the Apply requires that the record is unchanged. A job that takes over the lease
// writes that record. So a former holder that was paused until its lease expired cannot change the
// table.

// leaseReader reads leases.
type leaseReader struct{ ledger *ledger.Ledger }

// check returns an error if w requires a lease that its caller does not hold now.
func (r leaseReader) check(ctx context.Context, w *work) error {
	_, err := r.read(ctx, w)
	return err
}

// read returns the record of the lease that w requires, or the zero Record if w requires no lease.
func (r leaseReader) read(ctx context.Context, w *work) (registry.Record, error) {
	if w.Lease == nil {
		return registry.Record{}, nil
	}
	records, err := r.ledger.Get(ctx, registry.LeaseKey(w.Lease.Pointer))
	if err != nil {
		return registry.Record{}, err
	}
	if !records[0].Exists() {
		return registry.Record{}, leaseLost(w, "there is none on the table")
	}
	lease, err := ledger.Decode[registry.Lease](records[0])
	if err != nil {
		return registry.Record{}, err
	}
	now, err := r.ledger.Time(ctx)
	if err != nil {
		return registry.Record{}, err
	}
	switch hold, live := lease.Hold(w.Lease.Token, now); {
	case !live:
		return registry.Record{}, leaseLost(w, "it has ended")
	case hold.Caller != w.Caller.Name:
		return registry.Record{}, leaseLost(w, "another holder took it")
	}
	return records[0], nil
}

// fence adds to mutation the condition that the record of w's lease is unchanged.
func (r leaseReader) fence(ctx context.Context, w *work, mutation *ledger.Mutation) error {
	record, err := r.read(ctx, w)
	if err != nil || !record.Exists() {
		return err
	}
	table := registry.PointerKey(w.Lease.Pointer)
	if !slices.ContainsFunc(mutation.Conditions, func(c registry.Condition) bool { return c.Key == table }) {
		return leaseLost(w, "it is on another table")
	}
	mutation.Conditions = append(slices.Clip(mutation.Conditions), ledger.Unchanged(record))
	return nil
}

func leaseLost(w *work, why string) error {
	return moorage.Errorf(moorage.KindCommitFailed,
		"Lease lost: %s: %s. Nothing was changed; take a new lease and begin again", w.Lease, why)
}
