package main

import (
	"context"
	"errors"

	"moorage"
	"moorage/catalog"
	"moorage/management"
	"moorage/management/client"
	"moorage/secrets"
)

// keeperOf returns a caller's management of a catalog's warehouses. sealer has the keys for
// secrets; nil if there are none. seen has the observed health of storages; nil if no server runs.
func keeperOf(made *catalog.Catalog, sealer secrets.Sealer, seen *storageHealth, caller moorage.Caller,
) management.Keeper {
	keeper := management.Keeper{Of: catalog.WarehousesOf(made.As(caller))}
	if seen != nil {
		keeper.Health = seen.of
	}
	if turned, ok := sealer.(secrets.Source); ok {
		keeper.Rotate = func(ctx context.Context, rotation client.SecretsRotation) (client.SecretsRotated, error) {
			return rotate(ctx, made, turned, caller, rotation)
		}
	}
	return keeper
}

// rotate rotates the key, unless it must stay, and seals all secrets with it, for a caller.
func rotate(ctx context.Context, made *catalog.Catalog, keys secrets.Source, caller moorage.Caller,
	rotation client.SecretsRotation) (rotated client.SecretsRotated, err error) {
	if rotation.KeepKey {
		rotated.Key, err = keys.Present(ctx)
	} else {
		rotated.Key, rotated.Before, err = keys.Turn(ctx)
	}
	switch {
	case errors.Is(err, secrets.ErrAway):
		return rotated, moorage.E("moorage.rotate", "", moorage.KindUnavailable, err)
	case err != nil:
		return rotated, moorage.Errorf(moorage.KindUnsupported, "The server cannot use another key: %w", err)
	}
	rotated.Sealed, err = catalog.SealingOf(made).Rewrap(ctx, caller)
	return rotated, err
}
