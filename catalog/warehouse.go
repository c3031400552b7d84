package catalog

import (
	"cmp"
	"context"
	"errors"
	"maps"

	"moorage"
	"moorage/catalog/directory"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

// CreateWarehouse makes a warehouse. The server's storage must understand its location and the
// further allowed locations. It is durable when it returns.
//
// Errors: KindBadRequest for a name, location or property that is not valid, and for a location
// that cannot be opened; KindTooLarge for properties longer than PropertiesBytesMax;
// KindAlreadyExists; KindUnavailable; KindCommitUnknown.
func (c *Catalog) CreateWarehouse(ctx context.Context, spec WarehouseSpec) (Warehouse, error) {
	const op = "catalog.CreateWarehouse"
	err := cmp.Or(moorage.ValidateName("warehouse name", spec.Name),
		checkProperties(spec.Properties), checkOwn(spec.Properties))
	if err != nil {
		return Warehouse{}, moorage.Annotate(op, spec.Name, err)
	}
	value := registry.Warehouse{
		Location:         storage.Trim(spec.Location),
		AllowedLocations: spec.AllowedLocations,
		Storage:          spec.Storage,
		Properties:       spec.Properties,
		Since:            c.now(),
	}
	for _, location := range append([]string{spec.Location}, spec.AllowedLocations...) {
		if _, err := storage.Normalise(location); err != nil {
			return Warehouse{}, moorage.E(op, spec.Name, moorage.KindBadRequest,
				moorage.Errorf(moorage.KindBadRequest, "Invalid location of a warehouse: %s", location))
		}
	}
	err = c.directory.Probe(ctx, value)
	switch {
	case errors.Is(err, storage.ErrUnavailable):
		return Warehouse{}, moorage.E(op, spec.Name, moorage.KindUnavailable, err)
	case err != nil:
		return Warehouse{}, moorage.E(op, spec.Name, moorage.KindBadRequest,
			moorage.Errorf(moorage.KindBadRequest, "Cannot open the location of the warehouse: %s", err))
	}
	hold, err := c.lock(ctx, OpCreateWarehouse, lockScope{warehouse: spec.Name})
	if err != nil {
		return Warehouse{}, moorage.Annotate(op, spec.Name, err)
	}
	defer hold.Release()
	ctx, cancel := moorage.Detached(hold.Context(), requestTimeout)
	defer cancel()
	err = c.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		return c.insertWarehouse(ctx, spec.Name, value)
	})
	if err != nil {
		return Warehouse{}, moorage.Annotate(op, spec.Name, err)
	}
	return newWarehouse(spec.Name, value), nil
}

// OwnProperties returns the names of the properties that only the server itself sends to clients.
// No warehouse may have them.
func OwnProperties() []string { return []string{"prefix", "namespace-separator"} }

// checkOwn returns KindBadRequest if properties have one of OwnProperties.
func checkOwn(properties map[string]string) error {
	for _, name := range OwnProperties() {
		if _, ok := properties[name]; ok {
			return moorage.Errorf(moorage.KindBadRequest,
				"The property %s of a warehouse is the server's own: leave it out", name)
		}
	}
	return nil
}

func (c *Catalog) insertWarehouse(ctx context.Context, name string, value registry.Warehouse) error {
	change, err := c.ledger.NewChange(ctx, string(OpCreateWarehouse), moorage.Identifier{Warehouse: name})
	if err != nil {
		return err
	}
	if value.ID, err = c.ledger.NewID(); err != nil {
		return err
	}
	key := registry.WarehouseKey(name)
	writes, err := ledger.Encode(ledger.Put(key, registry.StateLive, value))
	if err != nil {
		return err
	}
	_, err = c.ledger.Apply(ctx, ledger.Mutation{
		Change: change, Conditions: []registry.Condition{registry.Absent(key)}, Writes: writes,
	})
	if _, failed := registry.FailedCondition(err); failed {
		return moorage.Errorf(moorage.KindAlreadyExists, "Warehouse already exists: %s", name)
	}
	return err
}

func newWarehouse(name string, value registry.Warehouse) Warehouse {
	return Warehouse{
		Name:             name,
		Location:         value.Location,
		AllowedLocations: value.AllowedLocations,
		Properties:       maps.Clone(value.Properties),
	}
}

// LoadWarehouse returns the warehouse called name, or KindNoSuchWarehouse.
func (c *Catalog) LoadWarehouse(ctx context.Context, name string) (Warehouse, error) {
	const op = "catalog.LoadWarehouse"
	if name == "" {
		return Warehouse{}, moorage.Errorf(moorage.KindNoSuchWarehouse, "Warehouse does not exist: %s", name)
	}
	if err := moorage.ValidateName("warehouse name", name); err != nil {
		return Warehouse{}, moorage.Annotate(op, name, err)
	}
	ch, err := c.directory.Path(ctx, name, nil)
	if err != nil {
		return Warehouse{}, moorage.Annotate(op, name, err)
	}
	return newWarehouse(name, ch.Warehouse), nil
}

// ClientConfig returns what an engine needs to reach the files of the warehouse called name, as
// Table.Config has it. Callers must not change it.
//
// Errors: KindNoSuchWarehouse.
func (c *Catalog) ClientConfig(ctx context.Context, name string) (map[string]string, error) {
	ch, err := c.directory.Path(ctx, name, nil)
	if err != nil {
		return nil, moorage.Annotate("catalog.ClientConfig", name, err)
	}
	return clientConfig(ch.Storage), nil
}

// Warehouses returns all warehouses, ordered by name.
func (c *Catalog) Warehouses(ctx context.Context) ([]Warehouse, error) {
	const op = "catalog.Warehouses"
	var found []Warehouse
	err := c.ledger.Scan(ctx, registry.TableWarehouse, "", "", func(record registry.Record) (bool, error) {
		value, err := ledger.Decode[registry.Warehouse](record)
		if err == nil {
			found = append(found, newWarehouse(record.Key.ID, value))
		}
		return true, err
	})
	return found, moorage.Annotate(op, "", err)
}

// ProbeStorage probes the storage of every warehouse, several at once. It calls unreachable for
// each one that it cannot reach, as soon as it knows, one call at a time. The error is that of the
// store, or of ctx.
func (c *Catalog) ProbeStorage(ctx context.Context, unreachable func(warehouse, location string, err error)) error {
	return moorage.Annotate("catalog.ProbeStorage", "", c.directory.ProbeAll(ctx, unreachable))
}

// DropWarehouse removes a warehouse that has no namespaces. It deletes no files. It is durable when
// it returns.
//
// Errors: KindNoSuchWarehouse, KindNamespaceNotEmpty, KindUnavailable, KindCommitUnknown.
func (c *Catalog) DropWarehouse(ctx context.Context, name string) error {
	const op = "catalog.DropWarehouse"
	if _, err := c.LoadWarehouse(ctx, name); err != nil {
		return moorage.Annotate(op, name, err)
	}
	hold, err := c.lock(ctx, OpDropWarehouse, lockScope{warehouse: name})
	if err != nil {
		return moorage.Annotate(op, name, err)
	}
	defer hold.Release()
	return moorage.Annotate(op, name, c.dropContainer(hold.Context(), OpDropWarehouse, name, nil))
}

// dropContainer removes an empty namespace or, without levels, an empty warehouse. It marks it as
// dropping, looks for children, and then deletes it or makes it live again. An operation that makes
// a child requires the version that was live when it looked. So no child can appear after the first
// step.
func (c *Catalog) dropContainer(ctx context.Context, operation Operation, name string, ns moorage.Namespace) error {
	ctx, cancel := moorage.Detached(ctx, requestTimeout)
	defer cancel()
	return c.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		ch, err := c.directory.LivePath(ctx, name, ns)
		if err != nil {
			return err
		}
		ident := moorage.Identifier{Warehouse: name, Namespace: ns}
		if ch, err = c.markDropping(ctx, operation, ident, ch); err != nil {
			return err
		}
		err = c.deleteIfEmpty(ctx, operation, ident, ch)
		if err != nil && moorage.KindOf(err) != moorage.KindCommitUnknown {
			c.putBackDetached(ctx, ident, ch)
		}
		return err
	})
}

// putBackAttempts is how often a failed drop tries to make live again what it marked.
const putBackAttempts = 5

// putBackDetached is directory.PutBack for a failed drop, whose time may have run out. If it fails
// too the state stays dropping. Once that is stale, the next operation that meets it puts it back.
func (c *Catalog) putBackDetached(ctx context.Context, ident moorage.Identifier, ch *directory.Path) {
	ctx, cancel := moorage.Detached(ctx, settleTimeout)
	defer cancel()
	for attempt := 0; ; attempt++ {
		err := c.directory.PutBack(ctx, ident.Warehouse, ident.Namespace, ch)
		if err == nil {
			return
		}
		if attempt+1 == putBackAttempts || c.ledger.Pause(ctx, attempt+3) != nil {
			c.log.WarnContext(ctx, "could not put back what was to be dropped", "ident", ident, "error", err)
			return
		}
	}
}

// deleteIfEmpty looks for children of ch, which is in state dropping. It deletes ch if there are
// none.
func (c *Catalog) deleteIfEmpty(ctx context.Context, operation Operation, ident moorage.Identifier,
	ch *directory.Path) error {
	empty, err := c.isEmpty(ctx, ch)
	if err != nil {
		return err
	}
	if !empty {
		return notEmpty(ident.Warehouse, ident.Namespace)
	}
	return c.deleteContainer(ctx, operation, ident, ch)
}

func notEmpty(name string, ns moorage.Namespace) error {
	if len(ns) == 0 {
		return moorage.Errorf(moorage.KindNamespaceNotEmpty, "Warehouse %s is not empty", name)
	}
	return moorage.Errorf(moorage.KindNamespaceNotEmpty, "Namespace %s is not empty", ns)
}

// markDropping puts the last record of ch in state dropping. It returns ch as it is then.
func (c *Catalog) markDropping(ctx context.Context, operation Operation, ident moorage.Identifier, ch *directory.Path) (
	*directory.Path, error) {
	change, err := c.ledger.NewChange(ctx, string(operation)+"-begin", ident)
	if err != nil {
		return nil, err
	}
	marked, err := c.directory.SetState(ctx, change, ch, registry.StateDropping)
	if err != nil || marked != nil {
		return marked, ledger.RetryOnConflict(err)
	}
	if marked, err = c.directory.Path(ctx, ident.Warehouse, ident.Namespace); err != nil {
		return nil, err
	}
	if marked.Record().State != registry.StateDropping {
		return nil, ledger.ErrRetry // another operation took this drop for dead and put it back
	}
	return marked, nil
}

func (c *Catalog) deleteContainer(ctx context.Context, operation Operation, ident moorage.Identifier,
	ch *directory.Path) error {
	change, err := c.ledger.NewChange(ctx, string(operation), ident)
	if err != nil {
		return err
	}
	record := ch.Record()
	_, err = c.apply(ctx, change, registry.Batch{
		Conditions: []registry.Condition{ledger.Unchanged(record)},
		Writes:     []registry.Write{registry.Delete(record.Key)},
	}, Outcome{})
	return ledger.RetryOnConflict(err)
}

// isEmpty reports whether there is neither a namespace nor an entry directly below ch.
func (c *Catalog) isEmpty(ctx context.Context, ch *directory.Path) (bool, error) {
	below := registry.NamespacePrefix(ch.Warehouse.ID, ch.ID())
	children, err := c.ledger.ListKeys(ctx, registry.TableNamespace, below, "", 1)
	if err != nil || len(children) > 0 {
		return false, ledger.StoreError("catalog.isEmpty", err)
	}
	entries, err := c.ledger.ListKeys(ctx, registry.TableEntry, registry.EntryPrefix(ch.ID()), "", 1)
	return len(entries) == 0, ledger.StoreError("catalog.isEmpty", err)
}
