package management

import (
	"context"
	"net/http"

	"moorage"
	"moorage/catalog/vending"
	"moorage/catalog/warehouses"
	"moorage/internal/jsontext"
	"moorage/internal/web"
	"moorage/management/client"
)

// Warehouses has the methods of warehouses.Warehouses: it manages warehouses for one caller.
type Warehouses interface {
	List(ctx context.Context, page moorage.Page) ([]warehouses.Warehouse, string, error)
	Load(ctx context.Context, name string) (warehouses.Details, error)
	Create(ctx context.Context, spec warehouses.Spec) (warehouses.Details, error)
	Change(ctx context.Context, name string, change warehouses.Change) (warehouses.Details, error)
	Drop(ctx context.Context, name string) error
	Validate(ctx context.Context, name string) (warehouses.Validation, error)
	Tombstones(ctx context.Context, name string, page moorage.Page) ([]warehouses.Left, string, error)
	ClearTombstone(ctx context.Context, name, location string) (warehouses.Left, error)
}

// Keeper manages warehouses in the terms of the API, for one caller. The API creates one for each
// request, and commands on a stopped store create one. It is safe for concurrent use.
type Keeper struct {
	Of Warehouses
	// Rotate reseals all secrets for the same caller.
	Rotate func(ctx context.Context, rotation client.SecretsRotation) (client.SecretsRotated, error)
	// Health returns this node's view of the storage of a warehouse. Nil if the node has no such
	// view.
	Health func(warehouse, location string) *client.StorageHealth
}

// Warehouses returns a page of the warehouses that the caller sees.
func (k Keeper) Warehouses(ctx context.Context, page client.Page) ([]client.WarehouseSummary, string, error) {
	found, next, err := k.Of.List(ctx, moorage.Page(page))
	return each(found, summaryOf), next, err
}

// LoadWarehouse returns everything about a warehouse.
func (k Keeper) LoadWarehouse(ctx context.Context, name string) (client.Warehouse, error) {
	found, err := k.Of.Load(ctx, name)
	shown := warehouseOf(found)
	if err == nil && k.Health != nil {
		shown.Health = k.Health(name, found.Location)
	}
	return shown, err
}

// CreateWarehouse creates a warehouse.
func (k Keeper) CreateWarehouse(ctx context.Context, spec client.WarehouseSpec) (client.Warehouse, error) {
	asked := warehouses.Spec{
		Name: spec.Name, Location: spec.Location, AllowedLocations: spec.AllowedLocations, Storage: spec.Storage,
		Properties: spec.Properties, Delegation: offersOf(spec.Delegation),
	}
	if spec.Secret != nil {
		asked.Secrets = map[string]map[string]string{warehouses.ServerSecret: spec.Secret}
	}
	made, err := k.Of.Create(ctx, asked)
	return warehouseOf(made), err
}

// ChangeWarehouse changes a warehouse.
func (k Keeper) ChangeWarehouse(ctx context.Context, name string, change client.WarehouseChange) (
	client.Warehouse, error) {
	asked := warehouses.Change{
		Storage: change.Storage, Properties: change.Properties,
		AllowLocations: change.AllowLocations, RemoveLocations: change.RemoveLocations,
	}
	if change.Delegation != nil {
		asked.Delegation = append([]vending.Delegation{}, offersOf(*change.Delegation)...)
	}
	if change.Secret != nil {
		asked.Secrets = map[string]map[string]string{warehouses.ServerSecret: nil}
		if len(*change.Secret) > 0 {
			asked.Secrets[warehouses.ServerSecret] = *change.Secret
		}
	}
	changed, err := k.Of.Change(ctx, name, asked)
	return warehouseOf(changed), err
}

// DropWarehouse removes an empty warehouse.
func (k Keeper) DropWarehouse(ctx context.Context, name string) error { return k.Of.Drop(ctx, name) }

// ValidateWarehouse tests the storage of a warehouse.
func (k Keeper) ValidateWarehouse(ctx context.Context, name string) (client.WarehouseValidation, error) {
	found, err := k.Of.Validate(ctx, name)
	validation := client.WarehouseValidation{
		Passed: true, Trials: []client.WarehouseTrial{}, Stopped: namesOf(found.Stopped),
		Features: []client.StorageFeature{},
	}
	for _, feature := range found.Features {
		validation.Features = append(validation.Features, client.StorageFeature(feature))
	}
	for _, trial := range found.Trials {
		validation.Passed = validation.Passed && trial.Failure == ""
		validation.Trials = append(validation.Trials, client.WarehouseTrial{
			Name: trial.Name, Passed: trial.Failure == "", Failure: trial.Failure,
		})
	}
	return validation, err
}

// Tombstones returns a page of a warehouse's tombstones, which dropped tables and views leave.
func (k Keeper) Tombstones(ctx context.Context, name string, page client.Page) ([]client.Tombstone, string, error) {
	found, next, err := k.Of.Tombstones(ctx, name, moorage.Page(page))
	return each(found, tombstoneOf), next, err
}

// ClearTombstone removes a tombstone.
func (k Keeper) ClearTombstone(ctx context.Context, name string, asked client.TombstoneClear) (
	client.Tombstone, error) {
	left, err := k.Of.ClearTombstone(ctx, name, asked.Location)
	return tombstoneOf(left), err
}

func tombstoneOf(left warehouses.Left) client.Tombstone {
	shown := client.Tombstone{
		Location: left.Location, Table: left.Table.String(), TableUUID: left.TableUUID, Ended: left.Ended.UTC(),
		How: left.How, Lasting: left.Lasting,
	}
	if !left.ReachableUntil.IsZero() {
		until := left.ReachableUntil.UTC()
		shown.ReachableUntil = &until
	}
	return shown
}

// RotateSecrets reseals all secrets.
func (k Keeper) RotateSecrets(ctx context.Context, rotation client.SecretsRotation) (client.SecretsRotated, error) {
	return k.Rotate(ctx, rotation)
}

func summaryOf(w warehouses.Warehouse) client.WarehouseSummary {
	return client.WarehouseSummary{Name: w.Name, Location: w.Location, Delegation: namesOf(w.Delegation)}
}

func warehouseOf(w warehouses.Details) client.Warehouse {
	found := client.Warehouse{
		WarehouseSummary: summaryOf(w.Warehouse), ID: w.ID.String(), Creator: w.Creator,
		AllowedLocations: append([]string{}, w.AllowedLocations...),
		Storage:          orEmpty(w.Storage), Properties: orEmpty(w.Properties),
		WaitingPurges: client.WaitingPurges(w.Waiting),
	}
	if w.Secret != nil {
		found.Secret = &client.WarehouseSecret{Kind: w.Secret.Kind, Set: w.Secret.At, By: w.Secret.By}
	}
	return found
}

func orEmpty(values map[string]string) map[string]string {
	if values == nil {
		return map[string]string{}
	}
	return values
}

func offersOf(names []string) (offers []vending.Delegation) {
	for _, name := range names {
		offers = append(offers, vending.Delegation(name))
	}
	return offers
}

func namesOf(offers []vending.Delegation) []string {
	return each(offers, func(offer vending.Delegation) string { return string(offer) })
}

// warehouseOperations returns the operations that manage warehouses and their secrets.
func (s *server) warehouseOperations() []operation {
	w := warehoused{s}
	const get, post, patch, remove = http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete
	return []operation{
		{"listWarehouses", get, "/warehouses", w.list},
		{"createWarehouse", post, "/warehouses", s.change(w.create)},
		{"loadWarehouse", get, "/warehouses/{name}", w.load},
		{"changeWarehouse", patch, "/warehouses/{name}", s.change(w.change)},
		{"dropWarehouse", remove, "/warehouses/{name}", s.change(w.drop)},
		{"validateWarehouse", post, "/warehouses/{name}/validate", s.change(w.validate)},
		{"listTombstones", get, "/warehouses/{name}/tombstones", w.tombstones},
		{"clearTombstone", post, "/warehouses/{name}/tombstones/clear", s.change(w.clearTombstone)},
		{"rotateSecrets", post, "/secrets/rotate", s.change(w.rotateSecrets)},
	}
}

// warehoused answers requests about warehouses.
type warehoused struct{ server *server }

// keeper returns the Keeper of the caller of r.
func (w warehoused) keeper(r *http.Request) Keeper {
	return w.server.config.Warehouses(web.CallerOf(r))
}

func (w warehoused) list(out http.ResponseWriter, r *http.Request) error {
	return list(w.server, "warehouses", pageSizes, w.keeper(r).Warehouses,
		func(found []client.WarehouseSummary, next *string) any {
			return client.WarehousesPage{Warehouses: found, NextPageToken: next}
		})(out, r)
}

func (w warehoused) load(out http.ResponseWriter, r *http.Request) error {
	name, err := web.PathParam(r, "name")
	if err != nil {
		return err
	}
	found, err := w.keeper(r).LoadWarehouse(r.Context(), name)
	if err != nil {
		return err
	}
	return w.server.AnswerJSON(out, r, found)
}

func (w warehoused) tombstones(out http.ResponseWriter, r *http.Request) error {
	name, err := web.PathParam(r, "name")
	if err != nil {
		return err
	}
	find := func(ctx context.Context, page client.Page) ([]client.Tombstone, string, error) {
		return w.keeper(r).Tombstones(ctx, name, page)
	}
	return list(w.server, "tombstones of "+name, pageSizes, find, func(found []client.Tombstone, next *string) any {
		return client.TombstonesPage{Tombstones: found, NextPageToken: next}
	})(out, r)
}

func (w warehoused) clearTombstone(r *http.Request, body []byte) (any, error) {
	name, err := web.PathParam(r, "name")
	if err != nil {
		return nil, err
	}
	f, err := web.ParseFields(body, "request")
	if err != nil {
		return nil, err
	}
	f.Require("location")
	asked := client.TombstoneClear{Location: f.Text("location")}
	if f.Failure != nil {
		return nil, f.Failure
	}
	return w.keeper(r).ClearTombstone(r.Context(), name, asked)
}

func (w warehoused) create(r *http.Request, body []byte) (any, error) {
	f, err := web.ParseFields(body, "warehouse")
	if err != nil {
		return nil, err
	}
	f.Require("name")
	f.Require("location")
	spec := client.WarehouseSpec{
		Name: f.Text("name"), Location: f.Text("location"), AllowedLocations: f.Texts("allowed-locations"),
		Storage: f.TextMap("storage"), Properties: f.TextMap("properties"), Delegation: f.Texts("delegation"),
		Secret: f.TextMap("secret"),
	}
	if f.Failure != nil {
		return nil, f.Failure
	}
	return w.keeper(r).CreateWarehouse(r.Context(), spec)
}

func (w warehoused) change(r *http.Request, body []byte) (any, error) {
	name, err := web.PathParam(r, "name")
	if err != nil {
		return nil, err
	}
	f, err := web.ParseFields(body, "change of a warehouse")
	if err != nil {
		return nil, err
	}
	for _, fixed := range []string{"name", "location"} {
		if f.Has(fixed) {
			f.Fail("member %q of a warehouse cannot be changed", fixed)
		}
	}
	if f.Has("allowed-locations") {
		f.Fail("member %q is changed by %q and %q", "allowed-locations", "allow-locations", "remove-locations")
	}
	change := client.WarehouseChange{
		Storage: editsIn(f, "storage"), Properties: editsIn(f, "properties"),
		AllowLocations: f.Texts("allow-locations"), RemoveLocations: f.Texts("remove-locations"),
	}
	if f.Has("delegation") {
		offers := f.Texts("delegation")
		change.Delegation = &offers
	}
	if f.Has("secret") {
		secret := f.TextMap("secret")
		if !f.Get("secret").IsZero() && len(secret) == 0 {
			f.Fail("member %q is empty: null takes the secret away", "secret")
		}
		change.Secret = &secret
	}
	if f.Failure != nil {
		return nil, f.Failure
	}
	return w.keeper(r).ChangeWarehouse(r.Context(), name, change)
}

// editsIn returns an object whose values are strings or null. Nil if there is no such member.
func editsIn(f *web.Fields, name string) map[string]*string {
	value := f.Typed(name, jsontext.Object)
	if value.IsZero() {
		return nil
	}
	edits := make(map[string]*string)
	for key, each := range value.Members() {
		switch {
		case each.IsNull():
			edits[string(key)] = nil
		case each.Type() == jsontext.String:
			text := each.Text()
			edits[string(key)] = &text
		default:
			f.Fail("member %q must be an object with strings and null as values", name)
			return nil
		}
	}
	return edits
}

func (w warehoused) drop(r *http.Request, _ []byte) (any, error) {
	name, err := web.PathParam(r, "name")
	if err != nil {
		return nil, err
	}
	return client.Done{}, w.keeper(r).DropWarehouse(r.Context(), name)
}

func (w warehoused) validate(r *http.Request, _ []byte) (any, error) {
	name, err := web.PathParam(r, "name")
	if err != nil {
		return nil, err
	}
	return w.keeper(r).ValidateWarehouse(r.Context(), name)
}

func (w warehoused) rotateSecrets(r *http.Request, body []byte) (any, error) {
	var rotation client.SecretsRotation
	if len(body) > 0 {
		f, err := web.ParseFields(body, "request")
		if err != nil {
			return nil, err
		}
		if rotation.KeepKey = f.Boolean("keep-key"); f.Failure != nil {
			return nil, f.Failure
		}
	}
	keeper := w.keeper(r)
	if keeper.Rotate == nil {
		return nil, moorage.Errorf(moorage.KindUnsupported,
			"This server has no keys for secrets: start it with --secrets-key")
	}
	return keeper.RotateSecrets(r.Context(), rotation)
}
