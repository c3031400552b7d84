package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"moorage"
	"moorage/catalog"
	"moorage/internal/cli"
	"moorage/management/client"
	"moorage/secrets"
	"moorage/secrets/keyservice"
)

// openSealer returns the source of the keys given by --secrets-key and --former-secrets-key. It
// returns nil if there are none.
func openSealer(c cli.Config) (secrets.Source, error) {
	if c.SecretsKey == "" {
		return nil, nil
	}
	present, err := openKeys(c.SecretsKey)
	if err != nil || c.FormerSecretsKey == "" {
		return present, err
	}
	former, err := openKeys(c.FormerSecretsKey)
	if err != nil {
		return nil, err
	}
	return secrets.Succeed(present, former), nil
}

// openKeys returns the source of the keys at an address: a file, or the URI of a key in a service.
// It does not call the service.
func openKeys(text string) (secrets.Source, error) {
	address, err := cli.ParseKeyAddress(text)
	if err != nil {
		return nil, err
	}
	switch scheme := schemeOfKey(address.Place); scheme {
	case "":
		return secrets.Load(address.Place)
	case keyservice.SchemeVault, keyservice.SchemePlain:
		return keyservice.NewVault(keyservice.VaultConfig{
			Address: address.Place, TokenFile: address.TokenFile, CAFile: address.CA,
		})
	case keyservice.SchemeAmazon:
		return keyservice.NewAmazon(keyservice.AmazonConfig{Address: address.Place, Endpoint: address.Endpoint})
	case keyservice.SchemeGoogle:
		return keyservice.NewGoogle(keyservice.GoogleConfig{Address: address.Place, Endpoint: address.Endpoint})
	default:
		return nil, fmt.Errorf("there is no key at %s://: a key is at %s://, %s:// or %s://, or in a file", scheme,
			keyservice.SchemeVault, keyservice.SchemeAmazon, keyservice.SchemeGoogle)
	}
}

// schemeOfKey returns the scheme of a key's address, or "" if the address is a file.
func schemeOfKey(address string) string {
	scheme, _, found := strings.Cut(address, "://")
	if !found {
		return ""
	}
	return scheme
}

// rotations returns a function that reseals all secrets for a caller. It returns nil if sealer
// cannot choose between keys.
func rotations(made *catalog.Catalog, sealer secrets.Sealer) func(
	context.Context, moorage.Caller, client.SecretsRotation) (client.SecretsRotated, error) {
	keys, ok := sealer.(secrets.Source)
	if !ok {
		return nil
	}
	return func(ctx context.Context, caller moorage.Caller, rotation client.SecretsRotation) (
		client.SecretsRotated, error) {
		return rotate(ctx, made, keys, caller, rotation)
	}
}

// rotate draws a new key, unless the present key must stay, and seals all secrets with it, on
// behalf of caller. It also replaces the key of the console's sessions, because a former key sealed
// it. So all sessions end.
func rotate(ctx context.Context, made *catalog.Catalog, keys secrets.Source, caller moorage.Caller,
	rotation client.SecretsRotation) (rotated client.SecretsRotated, err error) {
	if rotation.KeepKey {
		rotated.Key, err = keys.Present(ctx)
	} else {
		rotated.Key, rotated.Before, err = keys.Turn(ctx)
	}
	switch {
	case errors.Is(err, secrets.ErrAway):
		return rotated, moorage.Errorf(moorage.KindUnavailable, "%w", err)
	case err != nil:
		return rotated, moorage.Errorf(moorage.KindUnsupported, "The server cannot use another key: %w", err)
	}
	rotated.Sealed, err = made.As(caller).Warehouses().RewrapSecrets(ctx)
	sessions := made.As(moorage.System(whoAuthenticates)).Grants()
	return rotated, cmp.Or(err, sessions.RedrawConsoleKey(ctx, drawSessionKey(keys)))
}
