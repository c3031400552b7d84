package catalog

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"moorage"
	"moorage/catalog/commit"
	"moorage/catalog/gate"
	"moorage/catalog/sealing"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

// WarehouseChange is a request to change a warehouse. Settings that it does not name are unchanged.
type WarehouseChange struct {
	Properties PropertiesChange
	Storage    PropertiesChange // the options of the storage
	// Delegation is the new list of offered delegations. Nil leaves it unchanged. An empty list
	// removes all.
	Delegation []Delegation
	// Secrets are the secrets to set, as in WarehouseSpec. A nil value removes the secret of that
	// name.
	Secrets map[string]map[string]string
}

// ServerSecret is the name of the secret with which the server reaches a storage.
const ServerSecret = storage.SecretServer

// isOfStorage reports whether c changes how the server or engines reach the files.
func (c WarehouseChange) isOfStorage() bool {
	return len(c.Storage.Updates)+len(c.Storage.Removals)+len(c.Secrets) > 0 || c.Delegation != nil
}

// mustBeTried reports whether c must be tested on the storage before it is stored. Removing a
// delegation must be possible while the storage is unavailable.
func (c WarehouseChange) mustBeTried(value registry.Warehouse) bool {
	return len(c.Storage.Updates)+len(c.Storage.Removals)+len(c.Secrets) > 0 ||
		slices.ContainsFunc(c.Delegation, func(offer Delegation) bool {
			return !slices.Contains(value.Delegation, string(offer))
		})
}

// Change changes a warehouse. A change of how its files are reached is first tested on the storage,
// as for a new warehouse, unless it only removes delegations. Requests that begin after the answer
// use the change: at once on this node, within directory.HomeTrust on others. The caller needs
// manage on the warehouse for properties, and admin for anything else.
//
// Further errors: KindBadRequest for invalid settings, and if the storage fails the test;
// KindNoSuchWarehouse; KindTooLarge for properties. KindCommitFailed if another request changed how
// the files are reached in the meantime.
func (w Warehouses) Change(ctx context.Context, name string, change WarehouseChange) (WarehouseDetails, error) {
	const op = "catalog.Change"
	p := w.catalog.planner
	var next *nextWarehouse
	_, err := w.catalog.submit(ctx, commit.Intent{
		Verb: gate.ChangeWarehouse, On: []moorage.Identifier{{Warehouse: name}}, Silent: true,
		Look: func(ctx context.Context) (commit.Scope, error) {
			err := cmp.Or(change.check(), w.mayReach(ctx, change))
			if err != nil {
				return commit.Scope{}, err
			}
			kept, err := w.read(ctx, gate.ChangeWarehouse, name)
			if err == nil {
				next, err = prepareChange(ctx, p, w.catalog.caller, kept, change)
			}
			return commit.Scope{}, err
		},
		Plan: func(ctx context.Context, attempt *commit.Attempt) (*commit.Plan, error) {
			if err := w.mayReach(ctx, change); err != nil {
				return nil, err
			}
			kept, err := w.read(ctx, gate.ChangeWarehouse, name)
			if err == nil {
				err = next.rebase(kept, change)
			}
			if err != nil {
				return nil, err
			}
			return next.plan(ctx, p, change)
		},
	})
	p.directory.ForgetWarehouse(name) // also if the outcome is unknown
	if err != nil {
		return WarehouseDetails{}, moorage.Annotate(op, name, err)
	}
	details, err := detailsOf(ctx, p, next.keptWarehouse)
	return details, moorage.Annotate(op, name, err)
}

// mayReach returns nil if the caller may change how files are reached, or if change does not do
// that.
func (w Warehouses) mayReach(ctx context.Context, change WarehouseChange) error {
	if !change.isOfStorage() || !w.catalog.planner.guarded {
		return nil
	}
	return w.catalog.planner.guard.Again(ctx, gate.Question{
		Caller: w.catalog.caller, Verb: gate.ChangeWarehouse,
		Asked: gate.ChangeWarehouse.Needs(gate.OfServer, gate.IfReached),
	})
}

// check returns an error if c is invalid for any warehouse.
func (c WarehouseChange) check() error {
	err := cmp.Or(c.Properties.checkKeys(), c.Storage.checkKeys(), c.Properties.check(), c.Storage.check(),
		checkOwn(c.Properties.Updates), checkDelegation(c.Delegation))
	if err != nil {
		return err
	}
	if !c.isOfStorage() && len(c.Properties.Updates)+len(c.Properties.Removals) == 0 {
		return moorage.Errorf(moorage.KindBadRequest, "The request changes nothing of the warehouse")
	}
	return nil
}

// nextWarehouse is a warehouse after a change.
type nextWarehouse struct {
	keptWarehouse                    // value is the new value
	before        registry.Warehouse // the value when the storage was tested

	reseals bool            // whether the secret changes
	secret  registry.Secret // the new secret; without values there is none
}

// prepareChange returns kept after the change. It tests the storage if that is necessary.
func prepareChange(ctx context.Context, p *planner, by moorage.Caller, kept keptWarehouse, change WarehouseChange) (
	*nextWarehouse, error) {
	next := &nextWarehouse{before: kept.value}
	if change.isOfStorage() {
		if err := p.checkFolders(by, kept.value); err != nil {
			return nil, err
		}
	}
	if err := next.rebase(kept, change); err != nil {
		return nil, err
	}
	if !change.mustBeTried(kept.value) {
		return next, nil
	}
	if err := checkOptions(next.value); err != nil {
		return nil, err
	}
	place := p.directory.PlaceOf(next.value)
	if len(change.Secrets) > 0 {
		var err error
		if place.Secret, err = next.seal(ctx, p, by.Name, change.Secrets); err != nil {
			return nil, err
		}
	}
	return next, tryPlace(ctx, p, next.value, place)
}

// seal seals the changed secrets, and returns the secret for the place of n.
func (n *nextWarehouse) seal(ctx context.Context, p *planner, by string, values map[string]map[string]string) (
	secret storage.Secret, err error) {
	n.reseals = true
	present := registry.Secret{}
	if id := n.before.Secret.ID; !id.IsZero() {
		records, err := p.ledger.Get(ctx, registry.SecretKey(id))
		if err != nil {
			return secret, err
		}
		if records[0].Exists() {
			if present, err = ledger.Decode[registry.Secret](records[0]); err != nil {
				return secret, err
			}
		}
	}
	secret, n.secret, err = p.sealing.Reseal(ctx, by, n.before, present, values)
	if err != nil {
		return secret, err
	}
	if len(n.secret.Sealed) == 0 {
		n.value.Secret = registry.SecretRef{}
		return storage.Secret{}, nil
	}
	n.value.Secret, err = sealing.RefOf(secret)
	return secret, err
}

// rebase applies the change to a later read of the warehouse.
//
// Errors: KindCommitFailed if the settings for reaching the files have changed since the storage
// was tested.
func (n *nextWarehouse) rebase(kept keptWarehouse, change WarehouseChange) error {
	if kept.record.State != registry.StateLive {
		return moorage.Errorf(moorage.KindUnavailable, "Warehouse is being dropped: %s", kept.name)
	}
	if change.isOfStorage() && (kept.value.ID != n.before.ID || kept.value.Secret.ID != n.before.Secret.ID ||
		kept.value.Secret.Version != n.before.Secret.Version || !maps.Equal(kept.value.Storage, n.before.Storage) ||
		!slices.Equal(kept.value.Delegation, n.before.Delegation)) {
		return moorage.Errorf(moorage.KindCommitFailed, "The warehouse was changed at the same time: %s", kept.name)
	}
	secret := n.value.Secret
	n.keptWarehouse = kept
	if n.reseals {
		n.value.Secret = secret
	}
	n.value.Properties = changed(kept.value.Properties, change.Properties)
	n.value.Storage = changed(kept.value.Storage, change.Storage)
	if change.Delegation != nil {
		n.value.Delegation = namesOf(change.Delegation)
	}
	return checkProperties(n.value.Properties)
}

// changed returns values after change; nil if they are empty.
func changed(values map[string]string, change PropertiesChange) map[string]string {
	next := maps.Clone(values)
	if next == nil {
		next = make(map[string]string)
	}
	change.applyTo(next)
	if len(next) == 0 {
		return nil
	}
	return next
}

// plan plans that n is stored. change is the request.
func (n *nextWarehouse) plan(ctx context.Context, p *planner, change WarehouseChange) (*commit.Plan, error) {
	conditions := []registry.Condition{ledger.Unchanged(n.record)}
	writes, err := ledger.Encode(ledger.Put(n.record.Key, n.record.State, n.value))
	if err == nil && n.reseals {
		var required []registry.Condition
		var write []registry.Write
		required, write, err = n.planSecret(ctx, p, change)
		conditions, writes = append(conditions, required...), append(writes, write...)
	}
	return &commit.Plan{
		Conditions: conditions, Writes: writes,
		Items: []registry.Item{registry.ContainerItem(moorage.Identifier{Warehouse: n.name}, n.value.ID)},
	}, err
}

// planSecret plans the record of the secret. Values that change does not name keep their present
// content: they may have been sealed again since n was prepared. A warehouse that has no secret and
// gets none needs no conditions and writes.
func (n *nextWarehouse) planSecret(ctx context.Context, p *planner, change WarehouseChange) (
	[]registry.Condition, []registry.Write, error) {
	id := cmp.Or(n.value.Secret.ID, n.before.Secret.ID)
	if id.IsZero() {
		return nil, nil, nil
	}
	key := registry.SecretKey(id)
	records, err := p.ledger.Get(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	if records[0].Exists() {
		present, err := ledger.Decode[registry.Secret](records[0])
		if err != nil {
			return nil, nil, err
		}
		for name, sealed := range present.Sealed {
			if _, named := change.Secrets[name]; !named {
				n.secret.Sealed[name] = sealed
			}
		}
	}
	if !n.value.Secret.ID.IsZero() {
		writes, err := ledger.Encode(ledger.Put(key, registry.StateNone, n.secret))
		return []registry.Condition{ledger.AsRead(records[0], key)}, writes, err
	}
	if !records[0].Exists() {
		return nil, nil, nil // the warehouse's reference is removed; the secret is gone already
	}
	unchanged := []registry.Condition{ledger.Unchanged(records[0])}
	needed, err := sealing.IsOfDropped(ctx, p.ledger, key)
	if err != nil || needed {
		return unchanged, nil, err
	}
	return unchanged, []registry.Write{registry.Delete(key)}, nil
}
