package catalog

import (
	"context"
	"slices"
	"time"

	"moorage"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

const (
	// credentialLifeMax is the assumed lifetime of a credential if its storage does not report it.
	credentialLifeMax = 12 * time.Hour
	// signatureLife is how long a signature is valid.
	signatureLife = 15 * time.Minute
)

// reachableUntil returns the time until which engines may hold credentials or signatures for the
// files of a table that is dropped now. delegations are the delegations that its warehouse offers.
// It returns zero if engines hold none.
func reachableUntil(now time.Time, delegations []string, store storage.Store) time.Time {
	switch {
	case len(delegations) == 0:
		return time.Time{}
	case !slices.Contains(delegations, string(VendedCredentials)):
		return now.Add(signatureLife)
	}
	if limited, ok := store.(storage.Limited); ok {
		return now.Add(max(limited.CredentialLife(), signatureLife))
	}
	return now.Add(credentialLifeMax)
}

// checkPaths returns KindBadRequest if a property puts the files of a new table outside locations.
// It does so only if the warehouse gives engines access to the table's own locations. Engines could
// not read files elsewhere.
func checkPaths(warehouse registry.Warehouse, properties map[string]string, locations ...string) error {
	if len(warehouse.Delegation) == 0 {
		return nil
	}
	return checkPathsWithin(properties, locations)
}

func checkPathsWithin(properties map[string]string, locations []string) error {
	for name, value := range properties {
		if !gate.IsPathProperty(name) {
			continue
		}
		place, err := storage.Parse(value)
		within := func(location string) bool {
			own, ownErr := storage.Parse(location)
			return err == nil && ownErr == nil && own.Contains(place)
		}
		if !slices.ContainsFunc(locations, within) {
			return moorage.Errorf(moorage.KindBadRequest, "The property %s names %s, which is outside the locations "+
				"of the table. The warehouse gives engines access to these only", name, value)
		}
	}
	return nil
}

// checkPathUpdates is checkPaths for an existing table, which target edits by steps. Claims of a
// table are only added, so a place within them stays within them until the edit. If the caller does
// not see the table or may not edit it, a later check refuses the request. In every warehouse, a
// place where other tables or views live requires locate there.
func checkPathUpdates(ctx context.Context, p *planner, by directory.Asker, target commit.Target,
	steps []metadata.Step) error {
	if target.Create != nil {
		return nil
	}
	var properties map[string]string // most commits set no such property
	var locations []string
	for _, step := range steps {
		for _, update := range step.Updates {
			for name, value := range update.Properties() {
				if !gate.IsPathProperty(name) {
					continue
				}
				if properties == nil {
					properties = make(map[string]string)
				}
				properties[name] = value
			}
			if location := update.Location(); location != "" {
				locations = append(locations, location)
			}
		}
	}
	if len(properties) == 0 {
		return nil
	}
	found, err := p.directory.FindFor(ctx, by, target.Asks, target.Kind, target.Ident)
	if err != nil {
		return nil
	}
	locations = append(locations, found.Pointer.Claims...)
	if len(found.Delegation) > 0 {
		if err := checkPathsWithin(properties, locations); err != nil {
			return err
		}
	}
	return mayName(ctx, p, by, target.Ident.Warehouse, found.Pointer.ID, locations, placesOf(properties))
}
