package catalog

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"moorage"
	"moorage/access"
	"moorage/catalog/commit"
	"moorage/catalog/gate"
	"moorage/catalog/sealing"
	"moorage/ledger"
	"moorage/metadata"
	"moorage/registry"
	"moorage/storage"
)

// CreateWarehouse creates a warehouse. The server's storage must support its location and the
// further allowed locations. It is durable when it returns.
//
// Errors: KindBadRequest for an invalid name, location or property, and for a location that cannot
// be opened; KindTooLarge for properties longer than PropertiesBytesMax; KindAlreadyExists;
// KindUnavailable; KindCommitUnknown. KindForbidden for a folder of this machine that
// Config.LocalFolder refuses, unless the caller is a job of the server.
func (c *Catalog) CreateWarehouse(ctx context.Context, spec WarehouseSpec) (Warehouse, error) {
	value := registry.Warehouse{
		Location:         storage.Trim(spec.Location),
		AllowedLocations: spec.AllowedLocations,
		Storage:          spec.Storage,
		Properties:       spec.Properties,
		Delegation:       namesOf(spec.Delegation),
		Since:            c.planner.now(),
	}
	place := c.planner.directory.PlaceOf(value)
	var secret registry.Secret
	_, err := c.submit(ctx, commit.Intent{
		Verb: gate.CreateWarehouse, On: []moorage.Identifier{{Warehouse: spec.Name}},
		Look: func(ctx context.Context) (commit.Scope, error) {
			scope := commit.Scope{Warehouse: spec.Name}
			var err error
			if value.Creator, err = c.planner.guard.Creator(ctx, c.caller); err != nil {
				return scope, err
			}
			if len(spec.Secrets) > 0 {
				if value.ID, err = c.planner.ledger.NewID(); err != nil {
					return scope, err
				}
				place.Secret, secret, err = c.planner.sealing.Reseal(ctx, c.caller.Name, value, registry.Secret{},
					spec.Secrets)
				if err == nil {
					value.Secret, err = sealing.RefOf(place.Secret)
				}
				if err != nil {
					return scope, err
				}
			}
			return scope, c.planner.checkWarehouse(ctx, c.caller, spec, value, place)
		},
		Plan: commit.Plans(func(ctx context.Context, _ *commit.Attempt) (newWarehouse, error) {
			made, err := c.planner.readNewWarehouse(ctx, spec.Name, value)
			made.secret = secret
			return made, err
		}, planWarehouse),
	})
	if err != nil {
		return Warehouse{}, moorage.Annotate("catalog.CreateWarehouse", spec.Name, err)
	}
	return warehouseOf(spec.Name, value), nil
}

// checkWarehouse returns the error if a warehouse with spec cannot exist, else nil. value is its
// record, and place the place of its files.
func (p *planner) checkWarehouse(ctx context.Context, caller moorage.Caller, spec WarehouseSpec,
	value registry.Warehouse, place storage.Place) error {
	const op = "catalog.checkWarehouse"
	err := cmp.Or(moorage.ValidateName("warehouse name", spec.Name),
		checkProperties(spec.Properties), checkOwn(spec.Properties), checkDelegation(spec.Delegation))
	if err != nil {
		return err
	}
	for _, location := range append([]string{spec.Location}, spec.AllowedLocations...) {
		if _, err := storage.Normalise(location); err != nil {
			return moorage.Errorf(moorage.KindBadRequest, "Invalid location of a warehouse: %s", location)
		}
	}
	if err := cmp.Or(p.checkFolders(caller, value), checkOptions(value)); err != nil {
		return err
	}
	err = p.directory.Probe(ctx, place)
	switch {
	case errors.Is(err, storage.ErrUnavailable):
		return moorage.E(op, spec.Name, moorage.KindUnavailable, err)
	case err != nil:
		return moorage.E(op, spec.Name, moorage.KindBadRequest,
			moorage.Errorf(moorage.KindBadRequest, "Cannot open the location of the warehouse: %s", err))
	}
	return tryPlace(ctx, p, value, place)
}

// checkFolders returns the error if caller must not let the server use the warehouse's folders on
// this machine. A caller that opens the store itself can access the machine's files anyway.
func (p *planner) checkFolders(caller moorage.Caller, value registry.Warehouse) error {
	if p.localFolder == nil || gate.IsSystem(caller) {
		return nil
	}
	for _, location := range append([]string{value.Location}, value.AllowedLocations...) {
		parsed, err := storage.Parse(location)
		if err != nil || parsed.Scheme != storage.SchemeFile {
			continue // not on this machine
		}
		if err := p.localFolder(parsed.Path); err != nil {
			return moorage.Errorf(moorage.KindForbidden, "Not allowed: the location %s of a warehouse: %s",
				location, err)
		}
	}
	return nil
}

// checkOptions returns KindBadRequest for storage options of a warehouse that has only folders,
// which have no options. Other storages refuse unknown options themselves.
func checkOptions(value registry.Warehouse) error {
	for _, location := range append([]string{value.Location}, value.AllowedLocations...) {
		parsed, err := storage.Parse(location)
		if err == nil && parsed.Scheme != storage.SchemeFile {
			return nil
		}
	}
	if len(value.Storage) == 0 {
		return nil
	}
	return moorage.Errorf(moorage.KindBadRequest,
		"Unknown storage option %q: a warehouse in folders of the server has none. Remove it",
		moorage.Cut(slices.Min(slices.Collect(maps.Keys(value.Storage))), valueShownMax))
}

// ownProperties returns the names of the properties that only the server itself sends to clients.
// Warehouses cannot set them.
func ownProperties() []string { return []string{"prefix", "namespace-separator"} }

// checkOwn returns KindBadRequest if properties include one of ownProperties, or an invalid value
// of a property that the catalog uses.
func checkOwn(properties map[string]string) error {
	for _, name := range ownProperties() {
		if _, ok := properties[name]; ok {
			return moorage.Errorf(moorage.KindBadRequest,
				"The property %s of a warehouse is the server's own: leave it out", name)
		}
	}
	if said, set := properties[metadata.PropPurgeDelay]; set {
		if _, err := metadata.ParsePurgeDelay(said); err != nil {
			return err
		}
	}
	if value, set := properties[metadata.PropAppendRebase]; set && value != metadata.AppendRebaseOff {
		return moorage.Errorf(moorage.KindBadRequest,
			"Invalid %s: %s. A warehouse can only say off; tables and requests consent to a rebase themselves",
			metadata.PropAppendRebase, moorage.Cut(value, valueShownMax))
	}
	for name := range properties {
		if strings.EqualFold(name, headerProperty+RebaseHeader) {
			return moorage.Errorf(moorage.KindBadRequest,
				"The property %s of a warehouse would make every client consent to a rebase: "+
					"set it at the clients that only append", moorage.Cut(name, valueShownMax))
		}
	}
	return nil
}

const (
	// RebaseHeader is the header with which a request consents to a rebase of its append, or
	// refuses it.
	RebaseHeader = "X-Moorage-Append-Rebase"
	// headerProperty is the prefix of the properties that make clients send a header.
	headerProperty = "header."
	// valueShownMax is how many bytes of an invalid property its error repeats.
	valueShownMax = 100
)

// newWarehouse is a warehouse that will be created, and the present record of its name.
type newWarehouse struct {
	name     string
	value    registry.Warehouse
	secret   registry.Secret // if value refers to one
	occupant registry.Record
}

func (p *planner) readNewWarehouse(ctx context.Context, name string, value registry.Warehouse) (newWarehouse, error) {
	records, err := p.ledger.Get(ctx, registry.WarehouseKey(name))
	if err != nil {
		return newWarehouse{}, err
	}
	if value.ID.IsZero() {
		value.ID, err = p.ledger.NewID()
	}
	return newWarehouse{name: name, value: value, occupant: records[0]}, err
}

func planWarehouse(_ *commit.Attempt, w newWarehouse) (*commit.Plan, error) {
	if w.occupant.Exists() {
		return nil, moorage.Errorf(moorage.KindAlreadyExists, "Warehouse already exists: %s", w.name)
	}
	key := registry.WarehouseKey(w.name)
	puts, conditions := []ledger.Write{ledger.Put(key, registry.StateLive, w.value)}, []registry.Condition{
		registry.Absent(key),
	}
	if id := w.value.Secret.ID; !id.IsZero() {
		puts = append(puts, ledger.Put(registry.SecretKey(id), registry.StateNone, w.secret))
		conditions = append(conditions, registry.Absent(registry.SecretKey(id)))
	}
	writes, err := ledger.Encode(puts...)
	return &commit.Plan{
		Conditions: conditions, Writes: writes,
		Items: []registry.Item{registry.ContainerItem(moorage.Identifier{Warehouse: w.name}, w.value.ID)},
	}, err
}

func warehouseOf(name string, value registry.Warehouse) Warehouse {
	return Warehouse{
		Name:             name,
		Location:         value.Location,
		AllowedLocations: value.AllowedLocations,
		Properties:       maps.Clone(value.Properties),
		Delegation:       delegationsOf(value.Delegation),
		Secrets:          value.Secret.Names,
	}
}

// LoadWarehouse returns the warehouse called name, or KindNoSuchWarehouse.
func (c *Catalog) LoadWarehouse(ctx context.Context, name string) (Warehouse, error) {
	const op = "catalog.LoadWarehouse"
	if err := moorage.ValidateWarehouse(name); err != nil {
		return Warehouse{}, moorage.Annotate(op, name, err)
	}
	resolved, err := c.resolve(ctx, gate.LoadWarehouse, moorage.Identifier{Warehouse: name})
	if err != nil {
		return Warehouse{}, moorage.Annotate(op, name, err)
	}
	return warehouseOf(name, resolved.Path.Warehouse), nil
}

// ClientConfig returns the configuration that an engine needs to reach the files of the warehouse
// called name, like Table.Config. Callers must not change it.
//
// Errors: KindNoSuchWarehouse.
func (c *Catalog) ClientConfig(ctx context.Context, name string) (map[string]string, error) {
	resolved, err := c.resolve(ctx, gate.LoadWarehouse, moorage.Identifier{Warehouse: name})
	if err != nil {
		return nil, moorage.Annotate("catalog.ClientConfig", name, err)
	}
	return clientConfig(resolved.Path.Storage), nil
}

// Warehouses returns all warehouses that the caller sees, ordered by name.
func (c *Catalog) Warehouses(ctx context.Context) ([]Warehouse, error) {
	const op = "catalog.Warehouses"
	var found []Warehouse
	if _, err := c.resolve(ctx, gate.ListWarehouses, moorage.Identifier{}); err != nil {
		return nil, moorage.Annotate(op, "", err)
	}
	who, err := c.planner.guard.ForLists(ctx, c.caller)
	if err != nil {
		return nil, moorage.Annotate(op, "", err)
	}
	made, err := c.planner.guard.MadeIn(ctx, c.caller)
	if err != nil {
		return nil, moorage.Annotate(op, "", err)
	}
	err = c.planner.ledger.Scan(ctx, registry.TableWarehouse, "", "", func(record registry.Record) (bool, error) {
		value, err := ledger.Decode[registry.Warehouse](record)
		at := access.Object{ID: access.ID(value.ID), Kind: access.Warehouse, Creator: value.Creator}
		at.OwnsInside = made[at.ID]
		if err == nil && (who == nil || who.Seen([]access.Object{at})) {
			found = append(found, warehouseOf(record.Key.ID, value))
		}
		return true, err
	})
	return found, moorage.Annotate(op, "", err)
}

// ProbeStorage probes the storage of every warehouse, several at once. It calls unreachable for
// each one that it cannot reach, as soon as that is known, one call at a time. The error is that of
// the store, or of ctx.
func (c *Catalog) ProbeStorage(ctx context.Context, unreachable func(warehouse, location string, err error)) error {
	return moorage.Annotate("catalog.ProbeStorage", "", c.planner.directory.ProbeAll(ctx, unreachable))
}

// DropWarehouse removes a warehouse that has no namespaces. It deletes no files. It is durable when
// it returns.
//
// Errors: KindNoSuchWarehouse, KindNamespaceNotEmpty, KindUnavailable, KindCommitUnknown.
func (c *Catalog) DropWarehouse(ctx context.Context, name string) error {
	_, err := c.submit(ctx, commit.Intent{
		Verb: gate.DropWarehouse, On: []moorage.Identifier{{Warehouse: name}}, Drains: true,
		Look: func(ctx context.Context) (commit.Scope, error) {
			if err := moorage.ValidateWarehouse(name); err != nil {
				return commit.Scope{}, err
			}
			_, err := c.planner.directory.Path(ctx, name, nil)
			return commit.Scope{Warehouse: name}, err
		},
		Plan: commit.Plans(c.planner.readContainerEnd, planContainerDrop),
	})
	return moorage.Annotate("catalog.DropWarehouse", name, err)
}

// readContainerEnd plans the end of the grants on the dropped namespace or warehouse, and of the
// warehouse's secret. A secret that dropped tables need stays for them.
func (p *planner) readContainerEnd(ctx context.Context, attempt *commit.Attempt) (ledger.Policy, error) {
	container := attempt.Container
	marked, err := registry.DecodePart[struct {
		Granted bool               `json:"granted"`
		Secret  registry.SecretRef `json:"secret"`
	}](container.Record)
	if err != nil || !container.Empty {
		return ledger.Policy{}, err
	}
	ends, err := p.ledger.EndGrants(ctx, marked.Granted, container.ID)
	if id := marked.Secret.ID; err == nil && !id.IsZero() {
		var needed bool
		if needed, err = sealing.IsOfDropped(ctx, p.ledger, registry.SecretKey(id)); !needed {
			ends.Writes = append(ends.Writes, registry.Delete(registry.SecretKey(id)))
		}
	}
	return ends, err
}

// planContainerDrop plans the end of an empty namespace or warehouse. policy ends its grants.
func planContainerDrop(attempt *commit.Attempt, policy ledger.Policy) (*commit.Plan, error) {
	container := attempt.Container
	if !container.Empty {
		return nil, notEmpty(container.Ident)
	}
	return &commit.Plan{
		Conditions: append(policy.Conditions, ledger.Unchanged(container.Record)),
		Writes: append(policy.Writes, registry.Delete(container.Record.Key),
			registry.Delete(registry.MaintenancePolicyKey(scopeOfContainer(container)))),
		Items: []registry.Item{registry.ContainerItem(container.Ident, container.ID)},
		Told:  toldOfContainer(container),
	}, nil
}

// toldOfContainer returns the log line about the drop of a container.
func toldOfContainer(container *commit.Container) commit.Told {
	kind, owner := "namespace", ""
	if len(container.Ident.Namespace) == 0 {
		kind = "warehouse"
	}
	if value, err := registry.DecodePart[struct {
		Creator string `json:"creator"`
	}](container.Record); err == nil {
		owner = moorage.NameOf(value.Creator)
	}
	return commit.Told{Message: "dropped for good: it was empty", Attrs: []slog.Attr{
		slog.String("kind", kind), slog.String("ident", container.Ident.String()),
		slog.String("warehouse", container.Ident.Warehouse), slog.String("owner", owner),
	}}
}

// scopeOfContainer returns the scope of a container's maintenance policies. They end with the
// container.
func scopeOfContainer(container *commit.Container) string {
	if len(container.Ident.Namespace) == 0 {
		return registry.WarehouseScope(container.ID)
	}
	return registry.NamespaceScope(container.ID)
}

func notEmpty(ident moorage.Identifier) error {
	if len(ident.Namespace) == 0 {
		return moorage.Errorf(moorage.KindNamespaceNotEmpty, "Warehouse %s is not empty", ident.Warehouse)
	}
	return moorage.Errorf(moorage.KindNamespaceNotEmpty, "Namespace %s is not empty", ident.Namespace)
}
