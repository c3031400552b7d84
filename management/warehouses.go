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

// Warehouses has the methods of warehouses.Warehouses, which manages warehouses for one caller.
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

// warehouses returns the warehouse management of the caller of r.
func (s *server) warehouses(r *http.Request) Warehouses { return s.config.Warehouses(web.CallerOf(r)) }

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

// tagOfSettings returns the ETag of the settings of a warehouse. What waits to be purged is no part
// of it.
func tagOfSettings(w warehouses.Details) string {
	w.Waiting = warehouses.WaitingPurges{}
	return tagOfValue(warehouseOf(w))
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
	const get, post, patch, remove = http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete
	return []operation{
		{"listWarehouses", get, "/warehouses", s.listWarehouses},
		{"createWarehouse", post, "/warehouses", s.change(s.createWarehouse)},
		{"loadWarehouse", get, "/warehouses/{name}", s.loadWarehouse},
		{"changeWarehouse", patch, "/warehouses/{name}", s.changeIfMatch(s.changeWarehouse)},
		{"dropWarehouse", remove, "/warehouses/{name}", s.change(s.dropWarehouse)},
		{"validateWarehouse", post, "/warehouses/{name}/validate", s.change(s.validateWarehouse)},
		{"listTombstones", get, "/warehouses/{name}/tombstones", s.listTombstones},
		{"clearTombstone", post, "/warehouses/{name}/tombstones/clear", s.change(s.clearTombstone)},
		{"rotateSecrets", post, "/secrets/rotate", s.change(s.rotateSecrets)},
	}
}

func (s *server) listWarehouses(w http.ResponseWriter, r *http.Request) error {
	return list(s, "warehouses", pageSizes, pagesOf(s.warehouses(r).List, summaryOf),
		func(found []client.WarehouseSummary, next *string) any {
			return client.WarehousesPage{Warehouses: found, NextPage: client.NextPage{NextPageToken: next}}
		})(w, r)
}

func (s *server) loadWarehouse(w http.ResponseWriter, r *http.Request) error {
	name, err := web.PathParam(r, "name")
	if err != nil {
		return err
	}
	found, err := s.warehouses(r).Load(r.Context(), name)
	if err != nil {
		return err
	}
	shown := warehouseOf(found)
	shown.Health = s.config.Health(name, found.Location)
	w.Header()["ETag"] = []string{tagOfSettings(found)}
	return s.AnswerJSON(w, r, shown)
}

func (s *server) listTombstones(w http.ResponseWriter, r *http.Request) error {
	name, err := web.PathParam(r, "name")
	if err != nil {
		return err
	}
	find := func(ctx context.Context, page moorage.Page) ([]warehouses.Left, string, error) {
		return s.warehouses(r).Tombstones(ctx, name, page)
	}
	return list(s, "tombstones of "+name, pageSizes, pagesOf(find, tombstoneOf),
		func(found []client.Tombstone, next *string) any {
			return client.TombstonesPage{Tombstones: found, NextPage: client.NextPage{NextPageToken: next}}
		})(w, r)
}

func (s *server) clearTombstone(r *http.Request, body []byte) (any, error) {
	name, err := web.PathParam(r, "name")
	if err != nil {
		return nil, err
	}
	f, err := web.ParseFields(body, "request")
	if err != nil {
		return nil, err
	}
	f.Require("location")
	location := f.Text("location")
	if f.Failure != nil {
		return nil, f.Failure
	}
	left, err := s.warehouses(r).ClearTombstone(r.Context(), name, location)
	return tombstoneOf(left), err
}

func (s *server) createWarehouse(r *http.Request, body []byte) (any, error) {
	f, err := web.ParseFields(body, "warehouse")
	if err != nil {
		return nil, err
	}
	f.Require("name")
	f.Require("location")
	spec := warehouses.Spec{
		Name: f.Text("name"), Location: f.Text("location"), AllowedLocations: f.Texts("allowed-locations"),
		Storage: f.TextMap("storage"), Properties: f.TextMap("properties"), Delegation: offersOf(f.Texts("delegation")),
	}
	if secret := f.TextMap("secret"); secret != nil {
		spec.Secrets = map[string]map[string]string{warehouses.ServerSecret: secret}
	}
	if f.Failure != nil {
		return nil, f.Failure
	}
	made, err := s.warehouses(r).Create(r.Context(), spec)
	return warehouseOf(made), err
}

func (s *server) changeWarehouse(r *http.Request, body []byte) (any, error) {
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
	change := warehouses.Change{
		Storage: editsIn(f, "storage"), Properties: editsIn(f, "properties"),
		AllowLocations: f.Texts("allow-locations"), RemoveLocations: f.Texts("remove-locations"),
	}
	if f.Has("delegation") {
		change.Delegation = append([]vending.Delegation{}, offersOf(f.Texts("delegation"))...)
	}
	if f.Has("secret") {
		secret := f.TextMap("secret")
		if !f.Get("secret").IsZero() && len(secret) == 0 {
			f.Fail("member %q is empty: null removes the secret", "secret")
		}
		change.Secrets = map[string]map[string]string{warehouses.ServerSecret: nil}
		if len(secret) > 0 {
			change.Secrets[warehouses.ServerSecret] = secret
		}
	}
	if f.Failure != nil {
		return nil, f.Failure
	}
	if r.Header.Get("If-Match") != "" || r.Header.Get("If-None-Match") != "" {
		change.Match = func(present warehouses.Details) bool { return matches(r, tagOfSettings(present), true) }
	}
	changed, err := s.warehouses(r).Change(r.Context(), name, change)
	return warehouseOf(changed), err
}

// editsIn returns the member called name: an object whose values are strings or null. It returns
// nil if there is no such member.
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

func (s *server) dropWarehouse(r *http.Request, _ []byte) (any, error) {
	name, err := web.PathParam(r, "name")
	if err != nil {
		return nil, err
	}
	return client.Done{}, s.warehouses(r).Drop(r.Context(), name)
}

func (s *server) validateWarehouse(r *http.Request, _ []byte) (any, error) {
	name, err := web.PathParam(r, "name")
	if err != nil {
		return nil, err
	}
	found, err := s.warehouses(r).Validate(r.Context(), name)
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

func (s *server) rotateSecrets(r *http.Request, body []byte) (any, error) {
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
	return s.config.RotateSecrets(r.Context(), web.CallerOf(r), rotation)
}
