package warehouses

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog/claims"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/catalog/vending"
	"moorage/ledger"
	"moorage/registry"
	"moorage/secrets"
	"moorage/storage"
)

// Config holds the parts and settings of a Warehouses. A field may be nil only if its comment
// describes that case.
type Config struct {
	Ledger    *ledger.Ledger
	Pipeline  *commit.Pipeline
	Directory *directory.Directory
	Claims    *claims.Claims
	// Guard authorizes callers. If it is nil, every caller may do everything.
	Guard *gate.Guard
	// Sealer seals the secrets of warehouses. If it is nil, warehouses cannot have secrets.
	Sealer secrets.Sealer
	// LocalFolder checks a folder of this machine for a warehouse that a caller over the network
	// creates, changes or validates. It gets an absolute path. It returns why the warehouse may not
	// use the folder, or nil. If LocalFolder is nil, every folder is allowed.
	LocalFolder func(path string) error
	Now         func() time.Time
}

// Warehouses has the verbs on warehouses, as one caller: see As. It is safe for concurrent use.
//
// Errors of all verbs: KindForbidden and the errors for hidden objects; KindUnavailable;
// KindCommitUnknown for verbs that make changes. Errors and answers contain no part of a secret.
type Warehouses struct {
	*parts
	caller moorage.Caller
}

// parts holds the parts shared by all Warehouses from one call of New.
type parts struct {
	ledger      *ledger.Ledger
	pipeline    *commit.Pipeline
	directory   *directory.Directory
	claims      *claims.Claims
	guard       *gate.Guard
	sealer      secrets.Sealer
	localFolder func(path string) error
	now         func() time.Time
}

// New returns the verbs over the parts of config. They have no caller yet: see As.
func New(config Config) *Warehouses {
	return &Warehouses{parts: &parts{
		ledger: config.Ledger, pipeline: config.Pipeline, directory: config.Directory, claims: config.Claims,
		guard: config.Guard, sealer: config.Sealer, localFolder: config.LocalFolder, now: config.Now,
	}}
}

// As returns the verbs, as caller.
func (w *Warehouses) As(caller moorage.Caller) *Warehouses { return &Warehouses{w.parts, caller} }

// Warehouse is a catalog with its own storage location.
type Warehouse struct {
	Name             string
	Location         string
	AllowedLocations []string // further locations below which its tables may live
	Properties       map[string]string
	Delegation       []vending.Delegation
}

// Of returns the warehouse called name. value is the value of its record.
func Of(name string, value registry.Warehouse) Warehouse {
	w := Warehouse{
		Name: name, Location: value.Location, AllowedLocations: value.AllowedLocations,
		Properties: maps.Clone(value.Properties),
	}
	for _, offer := range value.Delegation {
		w.Delegation = append(w.Delegation, vending.Delegation(offer))
	}
	return w
}

// Details describes a warehouse, without its secrets.
type Details struct {
	Warehouse
	ID      registry.ID
	Storage map[string]string // the options of its storage, in the form of storage.Place.Options
	Secret  *SecretDetails    // nil if the server uses the credentials of its process
	Creator string            // empty if unknown
	Waiting WaitingPurges
}

// WaitingPurges describes the dropped tables of a warehouse whose purges have not begun. Until
// then, these tables can be restored.
type WaitingPurges struct {
	Tables int
	Bytes  int64 // the total size of their files, as far as known
}

// SecretDetails describes a secret.
type SecretDetails struct {
	// Kind is the kind of the secret: see storage.SecretKind.
	Kind string
	By   string // the caller that last set the secret
	At   time.Time
}

// List returns a page of the warehouses that are visible to the caller, ordered by name. To get the
// next page, pass next as page.After. next is empty on the last page.
func (w *Warehouses) List(ctx context.Context, page moorage.Page) (found []Warehouse, next string, err error) {
	const op = "warehouses.List"
	if _, err := w.directory.Resolve(ctx, w.caller, gate.ListWarehouses, moorage.Identifier{}, nil); err != nil {
		return nil, "", moorage.Annotate(op, "", err)
	}
	who, err := w.guard.ForLists(ctx, w.caller)
	if err != nil {
		return nil, "", moorage.Annotate(op, "", err)
	}
	made, err := w.guard.MadeIn(ctx, w.caller)
	if err != nil {
		return nil, "", moorage.Annotate(op, "", err)
	}
	err = w.ledger.Scan(ctx, registry.TableWarehouse, "", page.After, func(record registry.Record) (bool, error) {
		value, err := ledger.Decode[registry.Warehouse](record)
		at := access.Object{ID: access.ID(value.ID), Kind: access.Warehouse, Creator: value.Creator}
		at.OwnsInside = made[at.ID]
		if err != nil || who != nil && !who.Seen([]access.Object{at}) {
			return true, err
		}
		if page.Limit > 0 && len(found) == page.Limit {
			next = found[page.Limit-1].Name
			return false, nil
		}
		found = append(found, Of(record.Key.ID, value))
		return true, nil
	})
	return found, next, moorage.Annotate(op, "", err)
}

// Load returns the details of the warehouse called name. The caller needs manage on it, or admin.
//
// Further errors: KindNoSuchWarehouse.
func (w *Warehouses) Load(ctx context.Context, name string) (Details, error) {
	const op = "warehouses.Load"
	kept, err := w.read(ctx, gate.ShowWarehouse, name)
	if err != nil {
		return Details{}, moorage.Annotate(op, name, err)
	}
	details, err := w.detailsOf(ctx, kept)
	return details, moorage.Annotate(op, name, err)
}

// ProbeStorage probes the storage of every warehouse, several concurrently. As soon as it knows
// that a storage cannot be reached, it calls unreachable. It never makes two calls of unreachable
// at the same time. It checks no privileges. The error comes from the store or from ctx.
func (w *Warehouses) ProbeStorage(ctx context.Context, unreachable func(warehouse, location string, err error)) error {
	return moorage.Annotate("warehouses.ProbeStorage", "", w.directory.ProbeAll(ctx, unreachable))
}

// kept is the record of a warehouse from one read.
type kept struct {
	name   string
	record registry.Record
	value  registry.Warehouse
}

// item returns the item for the warehouse in a change record.
func (k kept) item() registry.Item {
	return registry.ContainerItem(moorage.Identifier{Warehouse: k.name}, k.value.ID)
}

// read reads the record of the warehouse called name for a caller of v. The caller needs manage on
// the warehouse, or admin. read does not open the storage, because the request may be the one that
// repairs the storage's settings.
func (w *Warehouses) read(ctx context.Context, v gate.Verb, name string) (kept, error) {
	if err := moorage.ValidateWarehouse(name); err != nil {
		return kept{}, err
	}
	records, err := w.ledger.Get(ctx, registry.WarehouseKey(name))
	if err != nil {
		return kept{}, err
	}
	if !records[0].Exists() {
		return kept{}, gate.NoSuchWarehouse(name)
	}
	value, err := ledger.Decode[registry.Warehouse](records[0])
	if err == nil {
		err = w.mayManage(ctx, v, name, value)
	}
	return kept{name, records[0], value}, err
}

// mayManage returns nil if the caller has manage on the warehouse called name, or admin.
func (w *Warehouses) mayManage(ctx context.Context, v gate.Verb, name string, value registry.Warehouse) error {
	if w.guard == nil {
		return nil
	}
	who, policy, err := w.guard.Who(ctx, w.caller)
	switch {
	case moorage.KindOf(err) == moorage.KindUnsupported: // access control is disabled
		return nil
	case err != nil, who == nil: // nil: a job of the server
		return err
	}
	q := gate.Question{
		Caller: w.caller, Verb: v, Asked: v.Needs(gate.OfObject, gate.Always),
		Object: gate.Object{Ident: moorage.Identifier{Warehouse: name}, Path: []access.Object{{
			ID: access.ID(value.ID), Kind: access.Warehouse, Creator: value.Creator,
		}}},
	}
	return w.guard.MayManage(ctx, who, policy, q)
}

// detailsOf returns the details of a warehouse.
func (w *Warehouses) detailsOf(ctx context.Context, k kept) (Details, error) {
	details, err := w.settingsOf(ctx, k)
	if err != nil {
		return details, err
	}
	prefix := registry.WaitingPrefix()
	err = w.ledger.Scan(ctx, registry.TableDue, prefix, "", func(record registry.Record) (bool, error) {
		due, err := ledger.Decode[registry.Due](record)
		if err == nil && due.Warehouse == k.value.ID {
			details.Waiting.Tables++
			details.Waiting.Bytes += due.Bytes
		}
		return true, nil // moorage doctor --deep reports unreadable records
	})
	return details, err
}

// settingsOf returns the details of a warehouse without Waiting.
func (w *Warehouses) settingsOf(ctx context.Context, k kept) (Details, error) {
	details := Details{
		Warehouse: Of(k.name, k.value), ID: k.value.ID, Storage: maps.Clone(k.value.Storage),
		Creator: moorage.NameOf(k.value.Creator),
	}
	id := k.value.Secret.ID
	if id.IsZero() {
		return details, nil
	}
	secret, err := w.readSecret(ctx, id)
	if err != nil || len(secret.Sealed) == 0 { // another request is changing the secret
		return details, err
	}
	details.Secret = secretDetails(secret)
	return details, nil
}

func secretDetails(secret registry.Secret) *SecretDetails {
	return &SecretDetails{
		Kind: cmp.Or(secret.Kinds[ServerSecret], storage.KindUnknown), By: secret.By, At: secret.At,
	}
}

// contains reports whether place lies within one of locations.
func contains(locations []string, place storage.Location) bool {
	return slices.ContainsFunc(locations, func(location string) bool {
		parsed, err := storage.Parse(location)
		return err == nil && parsed.Contains(place)
	})
}
