package commit

import (
	"context"
	"slices"

	"moorage"
	"moorage/ledger"
	"moorage/registry"
)

// A mutation may be asked for under a lease: it is to happen only as long as its caller holds that.
// The lease is read before each Apply, and the Apply requires that the record is as it was read.
// A job that takes the table over writes that record. So a holder that slept past its time cannot
// change the table, whatever it was about to do when it fell asleep.

// leaseReader reads leases.
type leaseReader struct{ ledger *ledger.Ledger }

// heed refuses w if it is asked for under a lease that its caller does not hold now.
func (r leaseReader) heed(ctx context.Context, w *work) error {
	_, err := r.read(ctx, w)
	return err
}

// read returns the record of the lease that w is asked for under; the zero Record if w is
// asked for under none.
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
		return registry.Record{}, leaseLost(w, "somebody else took it")
	}
	return records[0], nil
}

// fence adds to mutation the condition that the lease of w stays as it is.
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
