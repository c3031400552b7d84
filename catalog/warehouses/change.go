package warehouses

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"moorage"
	"moorage/catalog/commit"
	"moorage/catalog/gate"
	"moorage/catalog/vending"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

// Change is a request to change a warehouse. Settings that it does not name stay the same.
type Change struct {
	// Properties changes the properties, and Storage the options of the storage. Each non-nil value
	// is set. A nil value removes the property or option of that name.
	Properties, Storage map[string]*string
	// AllowLocations are the locations to allow. RemoveLocations are the allowed locations to
	// remove.
	AllowLocations, RemoveLocations []string
	// Delegation is the new list of delegations offered by the warehouse. Nil leaves the list
	// unchanged, and an empty list removes all delegations.
	Delegation []vending.Delegation
	// Secrets are the secrets to set, in the form of Spec.Secrets. A nil value removes the secret
	// of that name.
	Secrets map[string]map[string]string
	// Match must accept the present warehouse, whose Waiting is not set. Nil accepts any.
	Match func(present Details) bool
}

// isOfStorage reports whether c changes how the server or engines reach the files.
func (c Change) isOfStorage() bool {
	return len(c.Storage)+len(c.Secrets)+len(c.AllowLocations)+len(c.RemoveLocations) > 0 || c.Delegation != nil
}

// mustBeTried reports whether c must be tested on the storage before it is stored. A change that
// only removes delegations or locations needs no test, because it must be possible while the
// storage is unavailable.
func (c Change) mustBeTried(value registry.Warehouse) bool {
	return len(c.Storage)+len(c.Secrets)+len(c.AllowLocations) > 0 ||
		slices.ContainsFunc(c.Delegation, func(offer vending.Delegation) bool {
			return !slices.Contains(value.Delegation, string(offer))
		})
}

// Change changes a warehouse. A change of the settings for reaching its files is first tested on
// the storage, as for a new warehouse. A change that only removes delegations or locations needs no
// test. After Change returns, new requests on this node use the change at once. On other nodes,
// they use it after directory.WarehouseTrust at the latest. To change properties, the caller needs
// manage on the warehouse; for any other change it needs admin.
//
// Further errors: KindBadRequest for invalid settings, or if the storage fails the test;
// KindForbidden for a folder of this machine, as in Create; KindNoSuchWarehouse; KindTooLarge for
// properties that are too long. KindCommitFailed if a table or view lives at or below a location
// that the change removes. Also KindCommitFailed if another request changed the settings for
// reaching the files during the test. KindPreconditionFailed if Match refuses.
func (w *Warehouses) Change(ctx context.Context, name string, change Change) (Details, error) {
	const op = "warehouses.Change"
	var next *changed
	_, err := w.pipeline.Submit(ctx, commit.Intent{
		Caller: w.caller, Verb: gate.ChangeWarehouse, On: []moorage.Identifier{{Warehouse: name}}, Silent: true,
		Look: func(ctx context.Context) (commit.Scope, error) {
			err := cmp.Or(change.check(), w.mayReach(ctx, change))
			if err != nil {
				return commit.Scope{}, err
			}
			present, err := w.readMatching(ctx, name, change)
			if err == nil {
				next, err = w.prepare(ctx, present, change)
			}
			return commit.Scope{}, err
		},
		Plan: func(ctx context.Context, attempt *commit.Attempt) (*commit.Plan, error) {
			if err := w.mayReach(ctx, change); err != nil {
				return nil, err
			}
			present, err := w.readMatching(ctx, name, change)
			if err == nil {
				err = next.rebase(present)
			}
			if err == nil {
				err = w.checkRemoved(ctx, next)
			}
			if err != nil {
				return nil, err
			}
			next.value.Last = next.value.Written(present.record.State, attempt.Change)
			return w.planChange(ctx, next)
		},
	})
	w.directory.ForgetWarehouse(name) // even if the outcome is unknown
	if err != nil {
		return Details{}, moorage.Annotate(op, name, err)
	}
	if id := next.before.Secret.ID; next.reseals && next.value.Secret.ID.IsZero() && !id.IsZero() {
		_ = w.endUnneeded(ctx, registry.SecretKey(id)) // if it fails, a rotation of the secrets does it
	}
	details, err := w.detailsOf(ctx, next.kept)
	return details, moorage.Annotate(op, name, err)
}

// readMatching reads the warehouse that change is for, and asks change.Match.
func (w *Warehouses) readMatching(ctx context.Context, name string, change Change) (kept, error) {
	present, err := w.read(ctx, gate.ChangeWarehouse, name)
	if err != nil || change.Match == nil {
		return present, err
	}
	details, err := w.settingsOf(ctx, present)
	if err == nil && !change.Match(details) {
		err = moorage.Errorf(moorage.KindPreconditionFailed, "The warehouse has changed: %s", name)
	}
	return present, err
}

// mayReach returns nil if the caller may change the settings for reaching files, or if change does
// not affect these settings.
func (w *Warehouses) mayReach(ctx context.Context, change Change) error {
	if !change.isOfStorage() || w.guard == nil {
		return nil
	}
	return w.guard.Again(ctx, gate.Question{
		Caller: w.caller, Verb: gate.ChangeWarehouse, Asked: gate.ChangeWarehouse.Needs(gate.OfServer, gate.IfReached),
	})
}

// check returns an error if c is invalid for any warehouse.
func (c Change) check() error {
	err := cmp.Or(registry.CheckProperties(valuesOf(c.Properties)), registry.CheckProperties(valuesOf(c.Storage)),
		checkProperties(edited(nil, c.Properties)), vending.CheckOffers(c.Delegation),
		checkLocations(c.AllowLocations), checkLocations(c.RemoveLocations))
	if err != nil {
		return err
	}
	if !c.isOfStorage() && len(c.Properties) == 0 {
		return moorage.Errorf(moorage.KindBadRequest, "The request changes nothing of the warehouse")
	}
	return nil
}

// valuesOf returns the values in edits, with an empty value for each removed property.
func valuesOf(edits map[string]*string) map[string]string {
	values := make(map[string]string, len(edits))
	for name, value := range edits {
		values[name] = ""
		if value != nil {
			values[name] = *value
		}
	}
	return values
}

// changed is a warehouse after a change.
type changed struct {
	kept                      // value is the new value
	change Change             // the request
	before registry.Warehouse // the warehouse when the storage was tested

	reseals bool            // whether the secret changes
	secret  registry.Secret // the new secret; if it has no values, the warehouse has no secret
}

// prepare applies change to present and returns the result. It tests the storage if that is
// necessary.
func (w *Warehouses) prepare(ctx context.Context, present kept, change Change) (*changed, error) {
	next := &changed{before: present.value, change: change}
	if err := next.rebase(present); err != nil {
		return nil, err
	}
	if !change.mustBeTried(present.value) {
		return next, nil
	}
	err := cmp.Or(checkLocations(next.value.Roots()), w.checkFolders(next.value), checkOptions(next.value))
	if err != nil {
		return nil, err
	}
	place := w.directory.PlaceOf(next.value)
	if len(change.Secrets) > 0 {
		if place.Secret, err = w.seal(ctx, next); err != nil {
			return nil, err
		}
	}
	return next, w.try(ctx, next.value, place)
}

// seal seals the changed secrets, and returns the secret for the place of next.
func (w *Warehouses) seal(ctx context.Context, next *changed) (secret storage.Secret, err error) {
	next.reseals = true
	var present registry.Secret
	if id := next.before.Secret.ID; !id.IsZero() {
		if present, err = w.readSecret(ctx, id); err != nil {
			return secret, err
		}
	}
	secret, next.secret, err = w.reseal(ctx, next.before, present, next.change.Secrets)
	if err != nil {
		return secret, err
	}
	if len(next.secret.Sealed) == 0 {
		next.value.Secret = registry.SecretRef{}
		return storage.Secret{}, nil
	}
	next.value.Secret, err = refOf(secret)
	return secret, err
}

// rebase applies the change to present, a later read of the warehouse.
//
// Errors: KindCommitFailed if the settings for reaching the files have changed since the storage
// was tested.
func (n *changed) rebase(present kept) error {
	if present.record.State != registry.StateLive {
		return moorage.Errorf(moorage.KindUnavailable, "Warehouse is being dropped: %s", present.name)
	}
	value, before := present.value, n.before
	if n.change.isOfStorage() && !isReachedAs(value, before) {
		return changedMeanwhile(present.name)
	}
	secret := n.value.Secret
	n.kept = present
	if n.reseals {
		n.value.Secret = secret
	}
	n.value.Properties = edited(value.Properties, n.change.Properties)
	n.value.Storage = edited(value.Storage, n.change.Storage)
	if n.change.Delegation != nil {
		n.value.Delegation = namesOf(n.change.Delegation)
	}
	var err error
	if n.value.AllowedLocations, err = n.change.locations(value); err != nil {
		return err
	}
	return registry.CheckProperties(n.value.Properties)
}

// isReachedAs reports whether two versions of a warehouse have the same settings for reaching the
// files, so that a test of one is also a test of the other.
func isReachedAs(a, b registry.Warehouse) bool {
	return a.ID == b.ID && a.Secret.ID == b.Secret.ID && a.Secret.Version == b.Secret.Version &&
		maps.Equal(a.Storage, b.Storage) && slices.Equal(a.Delegation, b.Delegation) &&
		slices.Equal(a.AllowedLocations, b.AllowedLocations)
}

func changedMeanwhile(name string) error {
	return moorage.Errorf(moorage.KindCommitFailed, "The warehouse was changed at the same time: %s", name)
}

// edited returns values after applying edits. A non-nil edit sets a value, and a nil edit removes
// it. edited returns nil if no values are left.
func edited(values map[string]string, edits map[string]*string) map[string]string {
	next := make(map[string]string)
	maps.Copy(next, values)
	for name, value := range edits {
		delete(next, name)
		if value != nil {
			next[name] = *value
		}
	}
	if len(next) == 0 {
		return nil
	}
	return next
}

// locations returns the allowed locations of a warehouse after c. It does not add a location that
// is already allowed.
//
// Errors: KindBadRequest if a location to remove is not an allowed location.
func (c Change) locations(value registry.Warehouse) ([]string, error) {
	next := slices.Clone(value.AllowedLocations)
	at := func(location string) int {
		wanted, err := storage.Parse(location)
		return slices.IndexFunc(next, func(allowed string) bool {
			parsed, parseErr := storage.Parse(allowed)
			return err == nil && parseErr == nil && parsed == wanted
		})
	}
	for _, location := range c.RemoveLocations {
		i := at(location)
		if i < 0 {
			return nil, moorage.Errorf(moorage.KindBadRequest, "Location is not an allowed one of the warehouse: %s",
				location)
		}
		next = slices.Delete(next, i, i+1)
	}
	for _, location := range c.AllowLocations {
		if at(location) < 0 {
			next = append(next, location)
		}
	}
	return next, nil
}

// checkRemoved returns KindCommitFailed if a table or view would live outside all locations of the
// warehouse after the change next has removed some. It may miss a create that runs at the same
// time. Then loads of the new table are refused until the location is allowed again.
func (w *Warehouses) checkRemoved(ctx context.Context, next *changed) error {
	left := next.value.Roots()
	outside := func(at storage.Location) bool { return !contains(left, at) }
	for _, removed := range next.change.RemoveLocations {
		folder, err := storage.Parse(removed)
		if err != nil {
			return moorage.E("warehouses.checkRemoved", removed, moorage.KindInternal, err)
		}
		err = w.claims.Live(ctx, folder, outside, func(at storage.Location, pointer registry.Pointer) error {
			if pointer.Warehouse != next.name {
				return nil
			}
			return moorage.Errorf(moorage.KindCommitFailed, "Cannot remove the location %s: %s lives there, at %s. "+
				"Drop or move what lives there first", removed, pointer.Identifier(), at)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// planChange plans the write of the changed warehouse next.
func (w *Warehouses) planChange(ctx context.Context, next *changed) (*commit.Plan, error) {
	conditions := []registry.Condition{ledger.Unchanged(next.record)}
	writes, err := ledger.Encode(ledger.Replace(next.record, next.record.State, next.value))
	if err == nil && next.reseals {
		var required []registry.Condition
		var write []registry.Write
		required, write, err = w.planSecret(ctx, next)
		conditions, writes = append(conditions, required...), append(writes, write...)
	}
	return &commit.Plan{Conditions: conditions, Writes: writes, Items: []registry.Item{next.item()}}, err
}

// planSecret plans the record of the secret. For values that the change does not name, the present
// record counts, because they may have been sealed again since next was prepared. If the warehouse
// gets no secret, planSecret returns no conditions and no writes. A table that is dropped until the
// Apply may need the former secret, so only endUnneeded deletes it.
func (w *Warehouses) planSecret(ctx context.Context, next *changed) ([]registry.Condition, []registry.Write, error) {
	if next.value.Secret.ID.IsZero() {
		return nil, nil, nil
	}
	key := registry.SecretKey(next.value.Secret.ID)
	records, err := w.ledger.Get(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	required := registry.Absent(key)
	if records[0].Exists() {
		required = ledger.Unchanged(records[0])
		present, err := ledger.Decode[registry.Secret](records[0])
		if err != nil {
			return nil, nil, err
		}
		for name, sealed := range present.Sealed {
			if _, named := next.change.Secrets[name]; !named {
				next.secret.Sealed[name] = sealed
			}
		}
	}
	writes, err := ledger.Encode(ledger.Put(key, registry.StateNone, next.secret))
	return []registry.Condition{required}, writes, err
}
