package commit

import (
	"cmp"

	"moorage/catalog/directory"
	"moorage/storage"
	"moorage/txlog"
)

// PlaceOf returns the place in the record of a transaction.
func PlaceOf(recorded txlog.Place) storage.Place {
	return storage.Place{
		Roots: recorded.Roots, Options: recorded.Options,
		Secret: directory.SecretOf(recorded.Secret, recorded.Warehouse, 0),
	}
}

// recorded returns place in the form that a transaction's record stores.
func recorded(place storage.Place) (txlog.Place, error) {
	made := txlog.Place{Roots: place.Roots, Options: place.Options}
	if place.Secret.ID == "" {
		return made, nil
	}
	err := cmp.Or(made.Secret.UnmarshalText([]byte(place.Secret.ID)),
		made.Warehouse.UnmarshalText([]byte(place.Secret.Warehouse)))
	return made, err
}
