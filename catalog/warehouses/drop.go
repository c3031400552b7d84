package warehouses

import (
	"context"

	"moorage"
	"moorage/catalog/commit"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
)

// Drop removes a warehouse that has no namespaces. It deletes no files. The removal is durable when
// Drop returns. The caller needs admin.
//
// Further errors: KindNoSuchWarehouse, KindNamespaceNotEmpty.
func (w *Warehouses) Drop(ctx context.Context, name string) error {
	_, err := w.pipeline.Submit(ctx, commit.Intent{
		Caller: w.caller, Verb: gate.DropWarehouse, On: []moorage.Identifier{{Warehouse: name}}, Drains: true,
		Look: func(ctx context.Context) (commit.Scope, error) {
			if err := moorage.ValidateWarehouse(name); err != nil {
				return commit.Scope{}, err
			}
			_, err := w.directory.Path(ctx, name, nil)
			return commit.Scope{Warehouse: name}, err
		},
		Plan: func(ctx context.Context, attempt *commit.Attempt) (*commit.Plan, error) {
			ends, err := attempt.Container.EndGrants(ctx, w.ledger)
			if err != nil {
				return nil, err
			}
			if ends.Writes, err = w.endSecret(ctx, attempt.Container, ends.Writes); err != nil {
				return nil, err
			}
			return attempt.Container.PlanDrop(attempt, ends)
		},
	})
	return moorage.Annotate("warehouses.Drop", name, err)
}

// endSecret adds the deletion of an empty warehouse's secret to writes, unless dropped tables still
// need the secret.
func (w *Warehouses) endSecret(ctx context.Context, warehouse *commit.Container, writes []registry.Write) (
	[]registry.Write, error) {
	value, err := ledger.Decode[registry.Warehouse](warehouse.Record)
	if err != nil || value.Secret.ID.IsZero() || !warehouse.Empty {
		return writes, err
	}
	key := registry.SecretKey(value.Secret.ID)
	needed, err := w.isOfDropped(ctx, key)
	if err != nil || needed {
		return writes, err
	}
	return append(writes, registry.Delete(key)), nil
}
