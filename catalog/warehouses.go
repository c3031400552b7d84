package catalog

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

// Warehouses has the verbs with which one caller manages warehouses. It is safe for concurrent use.
//
// Errors of all verbs: KindForbidden and the errors for hidden objects; KindUnavailable; verbs that
// change something also KindCommitUnknown. Errors and answers contain no part of a secret.
type Warehouses struct{ catalog *Catalog }

// WarehousesOf returns the verbs for managing warehouses, for the caller of c.
func WarehousesOf(c *Catalog) Warehouses { return Warehouses{c} }

// WarehouseDetails describes a warehouse, without its secrets.
type WarehouseDetails struct {
	Warehouse
	ID      registry.ID
	Storage map[string]string // the options of its storage, as in storage.Place.Options
	Secret  *SecretDetails    // nil if the server uses the credentials of its process
	Creator string            // empty if unknown
	Waiting WaitingPurges
}

// WaitingPurges are the dropped tables of a warehouse that can come back until their purges begin.
type WaitingPurges struct {
	Tables int
	Bytes  int64 // of their files, as far as the tables have it
}

// waitingIn returns the waiting purges of the warehouse with this id.
func waitingIn(ctx context.Context, p *planner, warehouse registry.ID) (waiting WaitingPurges, err error) {
	prefix := registry.WaitingPrefix()
	err = p.ledger.Scan(ctx, registry.TableDue, prefix, "", func(record registry.Record) (bool, error) {
		due, err := ledger.Decode[registry.Due](record)
		if err == nil && due.Warehouse == warehouse {
			waiting.Tables, waiting.Bytes = waiting.Tables+1, waiting.Bytes+due.Bytes
		}
		return true, nil // moorage check reports unreadable ones
	})
	return waiting, err
}

// SecretDetails describes a secret.
type SecretDetails struct {
	// Kind is the kind of the secret: see storage.SecretKind.
	Kind string
	By   string // the caller that set it last
	At   time.Time
}

// List returns the warehouses that the caller sees, ordered by name. next is the After of the next
// page, empty if this is the last page.
func (w Warehouses) List(ctx context.Context, page moorage.Page) (found []Warehouse, next string, err error) {
	all, err := w.catalog.Warehouses(ctx)
	if err != nil {
		return nil, "", err
	}
	if begin := slices.IndexFunc(all, func(each Warehouse) bool { return each.Name > page.After }); begin >= 0 {
		found = all[begin:]
	}
	if page.Limit > 0 && len(found) > page.Limit {
		found = found[:page.Limit]
		next = found[len(found)-1].Name
	}
	return found, next, nil
}

// Load returns the details of the warehouse called name. The caller needs manage on it, or admin.
//
// Further errors: KindNoSuchWarehouse.
func (w Warehouses) Load(ctx context.Context, name string) (WarehouseDetails, error) {
	const op = "catalog.Load"
	kept, err := w.read(ctx, gate.ShowWarehouse, name)
	if err != nil {
		return WarehouseDetails{}, moorage.Annotate(op, name, err)
	}
	details, err := detailsOf(ctx, w.catalog.planner, kept)
	return details, moorage.Annotate(op, name, err)
}

// Create creates a warehouse: see Catalog.CreateWarehouse. The caller needs admin.
func (w Warehouses) Create(ctx context.Context, spec WarehouseSpec) (WarehouseDetails, error) {
	if _, err := w.catalog.CreateWarehouse(ctx, spec); err != nil {
		return WarehouseDetails{}, err
	}
	kept, err := readWarehouse(ctx, w.catalog.planner, spec.Name)
	if err != nil {
		return WarehouseDetails{}, moorage.Annotate("catalog.Create", spec.Name, err)
	}
	details, err := detailsOf(ctx, w.catalog.planner, kept)
	return details, moorage.Annotate("catalog.Create", spec.Name, err)
}

// Drop removes a warehouse that has no namespaces: see Catalog.DropWarehouse. The caller needs
// admin.
func (w Warehouses) Drop(ctx context.Context, name string) error {
	return w.catalog.DropWarehouse(ctx, name)
}

// keptWarehouse is the record of a warehouse as of one read.
type keptWarehouse struct {
	name   string
	record registry.Record
	value  registry.Warehouse
}

// readWarehouse reads the record of the warehouse called name. It does not open the storage, whose
// settings the request may be about to repair.
func readWarehouse(ctx context.Context, p *planner, name string) (keptWarehouse, error) {
	if err := moorage.ValidateWarehouse(name); err != nil {
		return keptWarehouse{}, err
	}
	records, err := p.ledger.Get(ctx, registry.WarehouseKey(name))
	if err != nil {
		return keptWarehouse{}, err
	}
	if !records[0].Exists() {
		return keptWarehouse{}, gate.NoSuchWarehouse(name)
	}
	value, err := ledger.Decode[registry.Warehouse](records[0])
	return keptWarehouse{name, records[0], value}, err
}

// read is readWarehouse for a caller of v, which requires manage on the warehouse, or admin.
func (w Warehouses) read(ctx context.Context, v gate.Verb, name string) (keptWarehouse, error) {
	kept, err := readWarehouse(ctx, w.catalog.planner, name)
	if err != nil || !w.catalog.planner.guarded {
		return kept, err
	}
	guard, caller := w.catalog.planner.guard, w.catalog.caller
	who, policy, err := guard.Who(ctx, caller)
	switch {
	case moorage.KindOf(err) == moorage.KindUnsupported: // access control is off
		return kept, nil
	case err != nil:
		return keptWarehouse{}, err
	}
	object := gate.Object{Ident: moorage.Identifier{Warehouse: name}, Path: []access.Object{{
		ID: access.ID(kept.value.ID), Kind: access.Warehouse, Creator: kept.value.Creator,
	}}}
	asked := v.Needs(gate.OfObject, gate.Always)
	q := gate.Question{Caller: caller, Verb: v, Object: object, Asked: asked}
	err = guard.DecideBy(ctx, who, policy, q, func(who *access.Who, path []access.Object) access.Decision {
		return who.DecideGrant(path, 0)
	})
	if err != nil {
		return keptWarehouse{}, err
	}
	return kept, nil
}

// detailsOf returns the details of a warehouse.
func detailsOf(ctx context.Context, p *planner, kept keptWarehouse) (WarehouseDetails, error) {
	details := WarehouseDetails{
		Warehouse: warehouseOf(kept.name, kept.value), ID: kept.value.ID, Storage: maps.Clone(kept.value.Storage),
		Creator: moorage.NameOf(kept.value.Creator),
	}
	var err error
	if details.Waiting, err = waitingIn(ctx, p, kept.value.ID); err != nil {
		return details, err
	}
	id := kept.value.Secret.ID
	if id.IsZero() {
		return details, nil
	}
	records, err := p.ledger.Get(ctx, registry.SecretKey(id))
	if err != nil || !records[0].Exists() { // it is being replaced or dropped
		return details, err
	}
	secret, err := ledger.Decode[registry.Secret](records[0])
	if err != nil {
		return details, err
	}
	details.Secret = &SecretDetails{
		Kind: cmp.Or(secret.Kinds[storage.SecretServer], storage.KindUnknown), By: secret.By, At: secret.At,
	}
	return details, nil
}
