package main

import (
	"context"

	"moorage"
	"moorage/catalog"
	"moorage/management"
	"moorage/management/client"
	"moorage/secrets"
)

// keeperOf returns what a caller manages the warehouses of a catalog with. sealer has its keys;
// nil: there are none.
func keeperOf(made *catalog.Catalog, sealer secrets.Sealer, caller moorage.Caller) management.Keeper {
	keeper := management.Keeper{Of: catalog.WarehousesOf(made.As(caller))}
	if turned, ok := sealer.(turner); ok {
		keeper.Rotate = func(ctx context.Context, rotation client.SecretsRotation) (client.SecretsRotated, error) {
			return rotate(ctx, made, turned, caller, rotation)
		}
	}
	return keeper
}

// turner is a secrets.Sealer that can be told to seal with another key.
type turner interface {
	// Turn makes a key that seals from now on. It returns its name, and that of the one before.
	Turn(ctx context.Context) (now, before string, err error)
	// Present returns the name of the key that seals, as it is now.
	Present(ctx context.Context) (string, error)
}

// rotate turns the key, unless that is to be kept, and seals all secrets with it, for a caller.
func rotate(ctx context.Context, made *catalog.Catalog, keys turner, caller moorage.Caller,
	rotation client.SecretsRotation) (rotated client.SecretsRotated, err error) {
	if rotation.KeepKey {
		rotated.Key, err = keys.Present(ctx)
	} else {
		rotated.Key, rotated.Before, err = keys.Turn(ctx)
	}
	if err != nil {
		return rotated, moorage.Errorf(moorage.KindUnsupported, "The server cannot use another key: %w", err)
	}
	rotated.Sealed, err = catalog.SealingOf(made).Rewrap(ctx, caller)
	return rotated, err
}
