package catalog

import (
	"context"
	"errors"

	"moorage"
	"moorage/catalog/documents"
	"moorage/registry"
	"moorage/storage"
)

// tryPlace returns the error if a warehouse cannot be reached at place, or if it cannot offer the
// delegations of value. It keeps no storage open.
func tryPlace(ctx context.Context, p *planner, value registry.Warehouse, place storage.Place) error {
	const op = "catalog.tryPlace"
	ctx, cancel := context.WithTimeout(ctx, delegationProbeMax)
	defer cancel()
	store, giveBack, err := p.directory.Borrow(ctx, place)
	if err == nil {
		defer giveBack()
		if _, remote := store.(storage.Prober); remote { // opening another storage tests it already
			err = tryFiles(ctx, p, store, value)
		}
	}
	switch {
	case errors.Is(err, storage.ErrUnavailable), err != nil && ctx.Err() != nil:
		return moorage.E(op, "", moorage.KindUnavailable, err)
	case err != nil:
		return moorage.E(op, "", moorage.KindBadRequest,
			moorage.Errorf(moorage.KindBadRequest, "Cannot use the location of the warehouse: %s", err))
	}
	return probeDelegation(ctx, store, delegationsOf(value.Delegation))
}

// tryFiles writes, reads, lists and deletes a small file below each location of a warehouse.
func tryFiles(ctx context.Context, p *planner, store storage.Store, value registry.Warehouse) error {
	if prober, ok := store.(storage.Prober); ok {
		if err := prober.Probe(ctx); err != nil {
			return err
		}
	}
	for _, root := range append([]string{value.Location}, value.AllowedLocations...) {
		id, err := p.ledger.NewID()
		if err == nil {
			err = documents.TryOut(ctx, store, root, id.String())
		}
		if err != nil {
			return err
		}
	}
	return nil
}
