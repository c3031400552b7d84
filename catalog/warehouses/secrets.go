package warehouses

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"moorage"
	"moorage/catalog/directory"
	"moorage/ledger"
	"moorage/registry"
	"moorage/secrets"
	"moorage/storage"
)

// ServerSecret is the name of the secret that the server uses to reach a storage.
const ServerSecret = storage.SecretServer

// SecretOwner returns the secrets.Owner for which the value called name of a secret is sealed. So a
// value that is copied to another record, warehouse or name does not open there.
func SecretOwner(secret storage.Secret, name string) secrets.Owner {
	return secrets.Owner{Store: secret.Store, Secret: secret.ID + "." + name, Warehouse: secret.Warehouse}
}

// reseal applies values to the secret of a warehouse and returns the result. present is the present
// secret. If the warehouse has none, the result is a new secret. A nil value removes the value of
// that name. Values that are not named stay sealed unchanged, so they need not open. The result has
// no values if all were removed.
//
// Errors: KindBadRequest for values that no warehouse can have or that are too long, or if the
// server has no key to seal with. KindUnavailable if the keys cannot be reached. Other errors come
// from the store.
func (w *Warehouses) reseal(ctx context.Context, warehouse registry.Warehouse, present registry.Secret,
	values map[string]map[string]string) (secret storage.Secret, record registry.Secret, err error) {
	const op = "warehouses.reseal"
	id := warehouse.Secret.ID
	if id.IsZero() {
		if id, err = w.ledger.NewID(); err != nil {
			return secret, record, err
		}
	}
	secret = directory.SecretOf(id, warehouse.ID, warehouse.Secret.Version+1)
	record = present
	record.Warehouse, record.By, record.At = warehouse.ID, w.caller.Name, w.now()
	record.Sealed, record.Kinds = maps.Clone(present.Sealed), maps.Clone(present.Kinds)
	if record.Sealed == nil {
		record.Sealed = make(map[string]string)
	}
	if record.Kinds == nil {
		record.Kinds = make(map[string]string)
	}
	for name, value := range values {
		if name != ServerSecret || value != nil && len(value) == 0 {
			return secret, record, moorage.Errorf(moorage.KindBadRequest, "No warehouse has a secret called %q", name)
		}
		if value == nil {
			delete(record.Sealed, name)
			delete(record.Kinds, name)
			continue
		}
		if err := w.sealValue(ctx, &secret, record, name, value); err != nil {
			return secret, record, moorage.Annotate(op, "", err)
		}
	}
	if len(record.Sealed) == 0 {
		return secret, record, nil
	}
	store, err := w.storeID(ctx)
	if err != nil {
		return secret, record, err
	}
	secret.Store = store.String()
	secret.Sealed = make(map[string][]byte, len(record.Sealed))
	for name, text := range record.Sealed {
		if secret.Sealed[name], err = registry.ParseSealed(text); err != nil {
			return secret, record, moorage.E(op, "", moorage.KindInternal, err)
		}
	}
	return secret, record, nil
}

// sealValue seals one value of a secret into its record.
func (w *Warehouses) sealValue(ctx context.Context, secret *storage.Secret, record registry.Secret, name string,
	value map[string]string) error {
	const op = "warehouses.sealValue"
	if w.sealer == nil {
		return moorage.Errorf(moorage.KindBadRequest,
			"There is no key to seal a secret with: start the server with --secrets-key")
	}
	store, err := w.storeID(ctx)
	if err != nil {
		return err
	}
	secret.Store = store.String()
	plain, err := json.Marshal(value)
	if err != nil {
		return moorage.E(op, "", moorage.KindInternal, err)
	}
	sealed, err := w.sealer.Seal(plain, SecretOwner(*secret, name))
	if err != nil {
		return sealError(op, "", err)
	}
	record.Sealed[name], record.Kinds[name] = registry.SealedText(sealed), storage.SecretKind(value)
	return nil
}

// sealError translates an error of a sealer into a moorage error.
func sealError(op, secret string, err error) error {
	switch {
	case errors.Is(err, secrets.ErrAway):
		return moorage.E(op, secret, moorage.KindUnavailable, err)
	case errors.Is(err, secrets.ErrTooLong):
		return moorage.Errorf(moorage.KindBadRequest, "Cannot seal the secret of the warehouse: %w", err)
	case errors.Is(err, secrets.ErrOpen), errors.Is(err, secrets.ErrNoKey):
		err = fmt.Errorf("a secret does not open with the keys of --secrets-key: %w", err)
	}
	return moorage.E(op, secret, moorage.KindInternal, err)
}

// storeID returns the id of the store, which is part of every sealed value. It creates the id if
// the store has had no secret before.
func (w *Warehouses) storeID(ctx context.Context) (id registry.ID, err error) {
	err = w.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		key := registry.SecretStoreKey()
		records, err := w.ledger.Get(ctx, key)
		if err != nil {
			return err
		}
		if records[0].Exists() {
			store, err := ledger.Decode[registry.SecretStore](records[0])
			id = store.ID
			return err
		}
		if id, err = w.ledger.NewID(); err != nil {
			return err
		}
		writes, err := ledger.Encode(ledger.Put(key, registry.StateNone, registry.SecretStore{ID: id}))
		if err != nil {
			return err
		}
		_, err = w.ledger.Step(ctx, registry.Batch{
			Conditions: []registry.Condition{registry.Absent(key)}, Writes: writes,
		})
		if err != nil {
			return ledger.RetryOnConflict(ledger.StepError("warehouses.storeID", err))
		}
		return nil
	})
	return id, err
}

// refOf returns the reference to secret for the record of its warehouse.
func refOf(secret storage.Secret) (registry.SecretRef, error) {
	ref := registry.SecretRef{Version: secret.Version, Names: slices.Sorted(maps.Keys(secret.Sealed))}
	return ref, ref.ID.UnmarshalText([]byte(secret.ID))
}

// RewrapSecrets seals every secret of the store with the present key. It returns the number of
// secrets that were sealed with another key before. It removes the secrets of deleted warehouses if
// no dropped table needs them. It can be repeated after an error, and can run on several nodes at
// once. If a secret does not open, or is too long for the present key, RewrapSecrets continues with
// the other secrets.
//
// Errors: KindBadRequest if the server has no key, or for a secret that is too long. KindInternal
// for a secret that does not open. KindUnavailable if the keys cannot be reached. Other errors come
// from the store.
func (w *Warehouses) RewrapSecrets(ctx context.Context) (rewrapped int, err error) {
	const op = "warehouses.RewrapSecrets"
	if w.sealer == nil {
		return 0, moorage.Errorf(moorage.KindBadRequest, "There is no key to seal secrets with: pass --secrets-key")
	}
	store := registry.ID{}
	var refused error // the error of the first secret that could not be sealed again
	err = w.ledger.Scan(ctx, registry.TableSecret, "", "", func(record registry.Record) (bool, error) {
		if record.Key == registry.SecretStoreKey() {
			return true, nil
		}
		if store.IsZero() {
			if store, err = w.storeID(ctx); err != nil {
				return false, err
			}
		}
		changed, err := w.rewrap(ctx, store, record.Key)
		if changed {
			rewrapped++
		}
		if errors.Is(err, secrets.ErrTooLong) || errors.Is(err, secrets.ErrOpen) || errors.Is(err, secrets.ErrNoKey) {
			refused, err = cmp.Or(refused, err), nil
		}
		return true, err
	})
	return rewrapped, moorage.Annotate(op, "", cmp.Or(err, refused))
}

// rewrap seals the values of the secret at key with the present key. It reports whether any value
// was sealed with another key.
func (w *Warehouses) rewrap(ctx context.Context, store registry.ID, key registry.Key) (
	changed bool, err error) {
	err = w.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		changed = false
		records, err := w.ledger.Get(ctx, key)
		if err != nil || !records[0].Exists() {
			return err
		}
		value, err := ledger.Decode[registry.Secret](records[0])
		if err != nil {
			return err
		}
		needed, err := w.isNeeded(ctx, key)
		if err != nil {
			return err
		}
		write := registry.Delete(key)
		if needed {
			about := storage.Secret{ID: key.ID, Store: store.String(), Warehouse: value.Warehouse.String()}
			if changed, err = w.rewrapValues(about, value); err != nil || !changed {
				return err
			}
			writes, err := ledger.Encode(ledger.Put(key, registry.StateNone, value))
			if err != nil {
				return err
			}
			write = writes[0]
		}
		return w.apply(ctx, "rewrap-secret", records[0], write)
	})
	return changed, err
}

// endUnneeded deletes the secret at key, unless a warehouse or a dropped table needs it. A table
// can get a secret by its drop only while its warehouse has that secret. So once no warehouse has
// it, no further table can need it.
func (w *Warehouses) endUnneeded(ctx context.Context, key registry.Key) error {
	return w.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		records, err := w.ledger.Get(ctx, key)
		if err != nil || !records[0].Exists() {
			return err
		}
		needed, err := w.isNeeded(ctx, key)
		if err != nil || needed {
			return err
		}
		return w.apply(ctx, "end-secret", records[0], registry.Delete(key))
	})
}

// apply writes the record of a secret, and requires that it is unchanged.
func (w *Warehouses) apply(ctx context.Context, operation string, record registry.Record,
	write registry.Write) error {
	change, err := w.ledger.NewChange(ctx, w.caller, operation, moorage.Identifier{})
	if err != nil {
		return err
	}
	_, err = w.ledger.Apply(ctx, ledger.Mutation{
		Change: change, Conditions: []registry.Condition{ledger.Unchanged(record)}, Writes: []registry.Write{write},
	})
	return ledger.RetryOnConflict(err)
}

// rewrapValues seals the values of a secret with the present key, in place. changed is true if any
// value was sealed with another key.
func (w *Warehouses) rewrapValues(about storage.Secret, value registry.Secret) (changed bool, err error) {
	for name, text := range value.Sealed {
		sealed, err := registry.ParseSealed(text)
		if err != nil {
			return false, moorage.E("warehouses.rewrapValues", about.ID, moorage.KindInternal, err)
		}
		again, other, err := w.sealer.Rewrap(sealed, SecretOwner(about, name))
		if err != nil {
			return false, sealError("warehouses.rewrapValues", about.ID, err)
		}
		value.Sealed[name] = registry.SealedText(again)
		changed = changed || other
	}
	return changed, nil
}

// isNeeded reports whether a warehouse or a dropped table needs the secret at key.
func (w *Warehouses) isNeeded(ctx context.Context, key registry.Key) (needed bool, err error) {
	err = w.ledger.Scan(ctx, registry.TableWarehouse, "", "", func(record registry.Record) (bool, error) {
		value, err := ledger.Decode[registry.Warehouse](record)
		needed = needed || err == nil && registry.SecretKey(value.Secret.ID) == key
		return !needed, err
	})
	if err != nil || needed {
		return needed, err
	}
	return w.isOfDropped(ctx, key)
}

// isOfDropped reports whether a dropped table needs the secret at key.
func (w *Warehouses) isOfDropped(ctx context.Context, key registry.Key) (needed bool, err error) {
	err = w.ledger.Scan(ctx, registry.TablePointer, "", "", func(record registry.Record) (bool, error) {
		if !record.State.IsDropped() {
			return true, nil
		}
		pointer, err := ledger.Decode[registry.Pointer](record)
		needed = err != nil || registry.SecretKey(pointer.Secret) == key // an unreadable pointer may need it
		return !needed, nil
	})
	return needed, err
}

// readSecret returns the value of a secret's record, or zero if the record does not exist.
func (w *Warehouses) readSecret(ctx context.Context, id registry.ID) (registry.Secret, error) {
	records, err := w.ledger.Get(ctx, registry.SecretKey(id))
	if err != nil || !records[0].Exists() {
		return registry.Secret{}, err
	}
	return ledger.Decode[registry.Secret](records[0])
}
