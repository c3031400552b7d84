package catalog

import (
	"context"
	"slices"
	"time"

	"moorage"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/verb"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

const (
	// credentialLifeMax is how long a credential may live if its storage does not say it.
	credentialLifeMax = 12 * time.Hour
	// signatureLife is how long a signature is good.
	signatureLife = 15 * time.Minute
)

// reachableUntil returns until when engines may hold something that reaches the files of a table
// that is dropped now, in a warehouse that offers delegations; zero: they hold nothing.
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

// checkPaths returns KindBadRequest if one of properties sends the files of a new table to another
// place than locations, and the warehouse gives engines access to the table's own locations only.
// Nobody could read files elsewhere.
func checkPaths(warehouse registry.Warehouse, properties map[string]string, locations ...string) error {
	if len(warehouse.Delegation) == 0 {
		return nil
	}
	return checkPathsWithin(properties, locations)
}

func checkPathsWithin(properties map[string]string, locations []string) error {
	for name, value := range properties {
		if !verb.IsPathProperty(name) {
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

// checkPathUpdates is checkPaths of a table that exists, and that target edits by steps. The claims
// of a table only become more, so what is within them now is so when the edit happens. A table that
// the caller does not find, or may not edit, is refused behind this. A place where others live
// takes locate there in every warehouse.
func checkPathUpdates(ctx context.Context, p *planner, by directory.Asker, target commit.Target,
	steps []metadata.Step) error {
	if target.Create != nil {
		return nil
	}
	var properties map[string]string // most commits set none of these
	var locations []string
	for _, step := range steps {
		for _, update := range step.Updates {
			for name, value := range update.Properties() {
				if !verb.IsPathProperty(name) {
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
