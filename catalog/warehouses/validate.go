package warehouses

import (
	"context"
	"errors"
	"slices"
	"time"

	"moorage"
	"moorage/catalog/commit"
	"moorage/catalog/documents"
	"moorage/catalog/gate"
	"moorage/catalog/vending"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

// tryMax bounds the duration of one storage test. A test writes a few files at each location, and
// sends some thirty small requests for each delegation.
const tryMax = 30 * time.Second

// Validation is the result of testing the storage of a warehouse.
type Validation struct {
	Trials []Trial
	// Stopped lists the delegations that Validate removed from the warehouse's offers, because the
	// storage does not enforce them.
	Stopped []vending.Delegation
	// Features lists the features that work differently in this storage, or do not work there at
	// all.
	Features []storage.Feature
}

// Trial is one part of the test of a storage.
type Trial struct {
	// Name is "files", or a delegation that the warehouse offers.
	Name string
	// Failure is the reason why the trial failed. It is empty if the trial succeeded.
	Failure string
}

// trialFiles is the Name of the trial that writes, reads, lists and deletes files.
const trialFiles = "files"

// Validate tests that requests can use the storage of a warehouse. It writes, reads, lists and
// deletes small files, and checks that the storage enforces the delegations that the warehouse
// offers. If the storage does not enforce a delegation, the delegation's credentials would give
// access to the files of all tables. So Validate removes that delegation from the warehouse's
// offers. The caller needs manage on the warehouse, or admin.
//
// Further errors: KindNoSuchWarehouse. KindCommitFailed if delegations must be removed, but another
// request changed the settings for reaching the files during the test. A failed test is not an
// error: see Validation.Trials.
func (w *Warehouses) Validate(ctx context.Context, name string) (found Validation, err error) {
	const op = "warehouses.Validate"
	var tested registry.Warehouse
	_, err = w.pipeline.Submit(ctx, commit.Intent{
		Caller: w.caller, Verb: gate.ValidateWarehouse, On: []moorage.Identifier{{Warehouse: name}}, Silent: true,
		Look: func(ctx context.Context) (commit.Scope, error) {
			present, err := w.read(ctx, gate.ValidateWarehouse, name)
			if err == nil {
				tested, found = present.value, w.validate(ctx, present.value)
			}
			return commit.Scope{}, err
		},
		Plan: func(ctx context.Context, attempt *commit.Attempt) (*commit.Plan, error) {
			if len(found.Stopped) == 0 {
				return &commit.Plan{Empty: true}, nil
			}
			present, err := w.read(ctx, gate.ValidateWarehouse, name)
			if err == nil && !isReachedAs(present.value, tested) {
				err = changedMeanwhile(name)
			}
			if err != nil {
				return nil, err
			}
			return planStop(attempt, present, found.Stopped)
		},
	})
	if len(found.Stopped) > 0 {
		w.directory.ForgetWarehouse(name)
	}
	return found, moorage.Annotate(op, name, err)
}

// validate tests the storage of a warehouse.
func (w *Warehouses) validate(ctx context.Context, value registry.Warehouse) (found Validation) {
	note := func(name string, err error) {
		trial := Trial{Name: name}
		if err != nil {
			trial.Failure = moorage.OneLine(err.Error())
		}
		found.Trials = append(found.Trials, trial)
	}
	if err := w.checkFolders(value); err != nil {
		note(trialFiles, err)
		return found
	}
	ctx, cancel := context.WithTimeout(ctx, tryMax)
	defer cancel()
	store, giveBack, err := w.directory.Borrow(ctx, w.directory.PlaceOf(value))
	if err != nil {
		note(trialFiles, err)
		return found
	}
	defer giveBack()
	note(trialFiles, w.tryFiles(ctx, store, value))
	for _, name := range value.Delegation {
		offer := vending.Delegation(name)
		err := offer.Probe(ctx, store)
		note(name, err)
		if errors.Is(err, storage.ErrUnenforced) {
			found.Stopped = append(found.Stopped, offer)
		}
	}
	if featured, ok := store.(storage.Featured); ok {
		found.Features = featured.Features()
	}
	return found
}

// planStop plans the removal of the delegations in stopped from a warehouse's offers.
func planStop(attempt *commit.Attempt, present kept, stopped []vending.Delegation) (*commit.Plan, error) {
	present.value.Delegation = slices.DeleteFunc(slices.Clone(present.value.Delegation), func(name string) bool {
		return slices.Contains(stopped, vending.Delegation(name))
	})
	present.value.Last = present.value.Written(present.record.State, attempt.Change)
	writes, err := ledger.Encode(ledger.Replace(present.record, present.record.State, present.value))
	return &commit.Plan{
		Conditions: []registry.Condition{ledger.Unchanged(present.record)}, Writes: writes,
		Items: []registry.Item{present.item()},
	}, err
}

// try returns the error if a warehouse cannot be reached at place, or if its storage does not
// enforce the delegations of value. It keeps no storage open.
//
// Errors: KindUnavailable if the storage does not answer, and otherwise KindBadRequest.
func (w *Warehouses) try(ctx context.Context, value registry.Warehouse, place storage.Place) error {
	const op = "warehouses.try"
	ctx, cancel := context.WithTimeout(ctx, tryMax)
	defer cancel()
	store, giveBack, err := w.directory.Borrow(ctx, place)
	if err == nil {
		defer giveBack()
		if _, remote := store.(storage.Prober); remote { // other storages are tested when they are opened
			err = w.tryFiles(ctx, store, value)
		}
	}
	switch {
	case errors.Is(err, storage.ErrUnavailable), err != nil && ctx.Err() != nil:
		return moorage.E(op, "", moorage.KindUnavailable, err)
	case err != nil:
		return moorage.E(op, "", moorage.KindBadRequest,
			moorage.Errorf(moorage.KindBadRequest, "Cannot use the location of the warehouse: %s", err))
	}
	for _, offer := range value.Delegation {
		err := vending.Delegation(offer).Probe(ctx, store)
		switch {
		case errors.Is(err, storage.ErrUnavailable), err != nil && ctx.Err() != nil:
			return moorage.E(op, "", moorage.KindUnavailable, err)
		case err != nil: // the delegation's credentials could open the files of all tables
			return moorage.Errorf(moorage.KindBadRequest,
				"The storage of the warehouse cannot offer %s, leave it out: %w", offer, err)
		}
	}
	return nil
}

// tryFiles writes, reads, lists and deletes a small file below each location of a warehouse.
func (w *Warehouses) tryFiles(ctx context.Context, store storage.Store, value registry.Warehouse) error {
	if prober, ok := store.(storage.Prober); ok {
		if err := prober.Probe(ctx); err != nil {
			return err
		}
	}
	for _, root := range value.Roots() {
		id, err := w.ledger.NewID()
		if err == nil {
			err = documents.TryOut(ctx, store, root, id.String())
		}
		if err != nil {
			return err
		}
	}
	return nil
}
