package vending

import (
	"slices"
	"time"

	"moorage"
	"moorage/catalog/gate"
	"moorage/storage"
)

const (
	// credentialLifeMax is the assumed lifetime of a credential if its storage does not report it.
	credentialLifeMax = 12 * time.Hour
	// signatureLife is how long a signature is valid.
	signatureLife = 15 * time.Minute
)

// ReachableUntil returns the time until which engines may hold credentials or signatures for the
// files of a table that is dropped now. offers are the delegations that its warehouse offers. It
// returns zero if engines hold no credentials and no signatures. It does not know about delegations
// that the warehouse offered before; the reference tells operators to wait.
func ReachableUntil(now time.Time, offers []string, store storage.Store) time.Time {
	switch {
	case len(offers) == 0:
		return time.Time{}
	case !slices.Contains(offers, string(VendedCredentials)):
		return now.Add(signatureLife)
	}
	if limited, ok := store.(storage.Limited); ok {
		return now.Add(max(limited.CredentialLife(), signatureLife))
	}
	return now.Add(credentialLifeMax)
}

// CheckPaths returns KindBadRequest if a property puts files of a table outside the table's
// locations. It checks this only if the warehouse offers delegations. Delegations give engines
// access only to the table's locations, so engines could not read files elsewhere.
func CheckPaths(offers []string, properties map[string]string, locations ...string) error {
	if len(offers) == 0 {
		return nil
	}
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
