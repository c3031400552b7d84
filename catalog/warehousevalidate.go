package catalog

import (
	"context"
	"errors"
	"slices"

	"moorage"
	"moorage/catalog/commit"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

// Validation is the result of testing the storage of a warehouse.
type Validation struct {
	Trials []Trial
	// Stopped are the delegations that the warehouse no longer offers, because the storage does not
	// enforce them.
	Stopped []Delegation
	// Features are the differences of the storage: features that work in its own way, or not at
	// all.
	Features []storage.Feature
}

// Trial is one test.
type Trial struct {
	// Name is "files", or a Delegation that the warehouse offers.
	Name string
	// Failure is the reason of a failure; empty if the test succeeded.
	Failure string
}

// trialFiles is the Name of the trial that writes, reads, lists and deletes files.
const trialFiles = "files"

// Validate tests the storage of a warehouse in the way that requests use it. It writes, reads,
// lists and deletes small files, and checks that the storage enforces the delegations that the
// warehouse offers. It stops offering a delegation that the storage does not enforce, because its
// credentials would open the files of all tables. The caller needs manage on the warehouse, or
// admin.
//
// Further errors: KindNoSuchWarehouse. A failed test is not an error: see Validation.Trials.
func (w Warehouses) Validate(ctx context.Context, name string) (found Validation, err error) {
	const op = "catalog.Validate"
	p := w.catalog.planner
	_, err = w.catalog.submit(ctx, commit.Intent{
		Verb: gate.ValidateWarehouse, On: []moorage.Identifier{{Warehouse: name}}, Silent: true,
		Look: func(ctx context.Context) (commit.Scope, error) {
			kept, err := w.read(ctx, gate.ValidateWarehouse, name)
			if err == nil {
				found = validate(ctx, p, w.catalog.caller, kept.value)
			}
			return commit.Scope{}, err
		},
		Plan: func(ctx context.Context, _ *commit.Attempt) (*commit.Plan, error) {
			if len(found.Stopped) == 0 {
				return &commit.Plan{Empty: true}, nil
			}
			kept, err := w.read(ctx, gate.ValidateWarehouse, name)
			if err != nil {
				return nil, err
			}
			return planStop(kept, found.Stopped)
		},
	})
	if len(found.Stopped) > 0 {
		p.directory.ForgetWarehouse(name)
	}
	return found, moorage.Annotate(op, name, err)
}

// validate tests the storage of a warehouse.
func validate(ctx context.Context, p *planner, caller moorage.Caller, value registry.Warehouse) (found Validation) {
	note := func(name string, err error) {
		trial := Trial{Name: name}
		if err != nil {
			trial.Failure = moorage.OneLine(err.Error())
		}
		found.Trials = append(found.Trials, trial)
	}
	if err := p.checkFolders(caller, value); err != nil {
		note(trialFiles, err)
		return found
	}
	ctx, cancel := context.WithTimeout(ctx, delegationProbeMax)
	defer cancel()
	store, giveBack, err := p.directory.Borrow(ctx, p.directory.PlaceOf(value))
	if err != nil {
		note(trialFiles, err)
		return found
	}
	defer giveBack()
	note(trialFiles, tryFiles(ctx, p, store, value))
	for _, offer := range delegationsOf(value.Delegation) {
		err := probeOffer(ctx, store, offer)
		note(string(offer), err)
		if errors.Is(err, storage.ErrUnenforced) {
			found.Stopped = append(found.Stopped, offer)
		}
	}
	if featured, ok := store.(storage.Featured); ok {
		found.Features = featured.Features()
	}
	return found
}

// planStop plans that a warehouse no longer offers some delegations.
func planStop(kept keptWarehouse, stopped []Delegation) (*commit.Plan, error) {
	kept.value.Delegation = slices.DeleteFunc(slices.Clone(kept.value.Delegation), func(name string) bool {
		return slices.Contains(stopped, Delegation(name))
	})
	writes, err := ledger.Encode(ledger.Put(kept.record.Key, kept.record.State, kept.value))
	return &commit.Plan{
		Conditions: []registry.Condition{ledger.Unchanged(kept.record)}, Writes: writes,
		Items: []registry.Item{registry.ContainerItem(moorage.Identifier{Warehouse: kept.name}, kept.value.ID)},
	}, err
}
