package directory

import (
	"context"
	"fmt"

	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

// SecretOf returns the secret of a warehouse in the form used by storage.Place. secret is the
// secret's ID. The result is empty if the ID is zero.
func SecretOf(secret, warehouse registry.ID, version uint64) storage.Secret {
	if secret.IsZero() {
		return storage.Secret{}
	}
	return storage.Secret{ID: secret.String(), Warehouse: warehouse.String(), Version: version}
}

// withSecret returns place with the sealed values of its secret, if it has a secret.
func (s *storages) withSecret(ctx context.Context, place storage.Place) (storage.Place, error) {
	if place.Secret.ID == "" || place.Secret.Sealed != nil {
		return place, nil
	}
	var err error
	place.Secret, err = s.readSecret(ctx, place.Secret)
	return place, err
}

// readSecret returns secret with its present sealed values.
func readSecret(ctx context.Context, l *ledger.Ledger, secret storage.Secret) (storage.Secret, error) {
	var id registry.ID
	if err := id.UnmarshalText([]byte(secret.ID)); err != nil {
		return secret, fmt.Errorf("the id of a secret: %w", err)
	}
	records, err := l.Get(ctx, registry.SecretKey(id), registry.SecretStoreKey())
	if err != nil {
		return secret, fmt.Errorf("%w: %w", storage.ErrUnavailable, err)
	}
	sealed, err := ledger.Decode[registry.Secret](records[0])
	if err != nil {
		return secret, err
	}
	store, err := ledger.Decode[registry.SecretStore](records[1])
	if err != nil {
		return secret, err
	}
	secret.Store, secret.Sealed = store.ID.String(), make(map[string][]byte, len(sealed.Sealed))
	for name, text := range sealed.Sealed {
		if secret.Sealed[name], err = registry.ParseSealed(text); err != nil {
			return secret, fmt.Errorf("the secret %s: %w", secret.ID, err)
		}
	}
	return secret, nil
}
