package catalog

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"moorage"
	"moorage/catalog/directory"
	"moorage/ledger"
	"moorage/registry"
	"moorage/storage"
)

// CreateNamespace makes a namespace, and those of its parents that do not exist, in one Apply. It
// returns the properties as LoadNamespace does. It is durable when it returns.
//
// Errors: KindBadRequest for a name that is not valid; KindNoSuchWarehouse; KindAlreadyExists;
// KindTooLarge for properties longer than PropertiesBytesMax; KindUnavailable, also while a parent
// is being dropped; KindCommitUnknown. Source: REST specification, createNamespace.
func (c *Catalog) CreateNamespace(ctx context.Context, warehouse string, ns moorage.Namespace,
	properties map[string]string) (map[string]string, error) {
	const op = "catalog.CreateNamespace"
	var answered map[string]string
	err := cmp.Or(ns.Validate(), checkProperties(properties))
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		err = c.ledger.Retry(ctx, moorage.KindUnavailable, func(int) (err error) {
			answered, err = c.tryCreateNamespace(ctx, warehouse, ns, properties)
			return err
		})
	}
	if err != nil {
		return nil, moorage.Annotate(op, ns.String(), err)
	}
	return answered, nil
}

func (c *Catalog) tryCreateNamespace(ctx context.Context, warehouse string, ns moorage.Namespace,
	properties map[string]string) (map[string]string, error) {
	ch, err := c.directory.Path(ctx, warehouse, ns)
	if err == nil {
		return nil, moorage.Errorf(moorage.KindAlreadyExists, "Namespace already exists: %s", ns)
	}
	if moorage.KindOf(err) != moorage.KindNoSuchNamespace {
		return nil, err
	}
	existing := ns[:ch.Depth()]
	highest := ns[:len(existing)+1]
	hold, err := c.lock(ctx, OpCreateNamespace, lockScope{warehouse: warehouse, namespace: highest})
	if err != nil {
		return nil, err
	}
	defer hold.Release()
	ctx, cancel := moorage.Detached(hold.Context(), requestTimeout)
	defer cancel()
	if ch, err = c.directory.LivePath(ctx, warehouse, existing); err != nil {
		if moorage.KindOf(err) == moorage.KindNoSuchNamespace {
			return nil, ledger.ErrRetry // a parent that was there is gone
		}
		return nil, err
	}
	return c.insertNamespaces(ctx, ch, moorage.Identifier{Warehouse: warehouse, Namespace: ns}, properties)
}

// insertNamespaces writes the records of all namespaces on the path of ident that ch does not have.
// It returns the properties to answer for the last one.
func (c *Catalog) insertNamespaces(ctx context.Context, ch *directory.Path, ident moorage.Identifier,
	properties map[string]string) (map[string]string, error) {
	change, err := c.ledger.NewChange(ctx, string(OpCreateNamespace), ident)
	if err != nil {
		return nil, err
	}
	parent := ch.Record()
	conditions := []registry.Condition{registry.ETagIs(parent.Key, parent.ETag)}
	var puts []ledger.Write
	parentID := ch.ID()
	missing := ident.Namespace[ch.Depth():]
	for i, name := range missing {
		value := registry.Namespace{Properties: map[string]string{}, Since: c.now()}
		if i == len(missing)-1 {
			maps.Copy(value.Properties, properties)
		}
		if value.ID, err = c.ledger.NewID(); err != nil {
			return nil, err
		}
		key := registry.NamespaceKey(ch.Warehouse.ID, parentID, name)
		conditions = append(conditions, registry.Absent(key))
		puts = append(puts, ledger.Put(key, registry.StateLive, value))
		parentID = value.ID
	}
	writes, err := ledger.Encode(puts...)
	if err != nil {
		return nil, err
	}
	answered := answeredProperties(ch.Warehouse, ident.Namespace, properties)
	_, err = c.apply(ctx, change, registry.Batch{Conditions: conditions, Writes: writes}, Outcome{Properties: answered})
	return answered, ledger.RetryOnConflict(err)
}

// LoadNamespace returns the stored properties of a namespace. If `location` is not among them it
// adds the folder in which a table or view gets its default location.
//
// Errors: KindNoSuchWarehouse, KindNoSuchNamespace.
func (c *Catalog) LoadNamespace(ctx context.Context, warehouse string, ns moorage.Namespace) (
	map[string]string, error) {
	ch, err := c.resolveNamespace(ctx, warehouse, ns)
	if err != nil {
		return nil, moorage.Annotate("catalog.LoadNamespace", ns.String(), err)
	}
	value, err := ledger.Decode[registry.Namespace](ch.Record())
	if err != nil {
		return nil, moorage.Annotate("catalog.LoadNamespace", ns.String(), err)
	}
	return answeredProperties(ch.Warehouse, ns, value.Properties), nil
}

// answeredProperties returns the stored properties of a namespace, with a `location` if they have
// none. Trino makes tables below `location`, and cannot make any without it.
func answeredProperties(warehouse registry.Warehouse, ns moorage.Namespace,
	stored map[string]string) map[string]string {
	answered := map[string]string{"location": folderOf(warehouse, ns)}
	maps.Copy(answered, stored)
	return answered
}

// folderOf returns the folder for the tables and views of a namespace, which has its levels as
// folders. It returns the location of the warehouse if that path would be longer than
// defaultFolderBytesMax.
func folderOf(warehouse registry.Warehouse, ns moorage.Namespace) string {
	folder := warehouse.Location
	for _, level := range ns {
		folder = storage.Join(folder, storage.Escape(level))
	}
	if len(folder) > defaultFolderBytesMax {
		return warehouse.Location
	}
	return folder
}

// resolveNamespace is directory.Path for a name that must be valid and not empty.
func (c *Catalog) resolveNamespace(ctx context.Context, warehouse string, ns moorage.Namespace) (
	*directory.Path, error) {
	if err := ns.Validate(); err != nil {
		return nil, err
	}
	return c.directory.Path(ctx, warehouse, ns)
}

// ListNamespaces returns the namespaces directly below parent as full paths, ordered by name. An
// empty parent stands for the warehouse. next is the After of the next page, empty if this is the
// last.
//
// Errors: KindNoSuchWarehouse, KindNoSuchNamespace.
func (c *Catalog) ListNamespaces(ctx context.Context, warehouse string, parent moorage.Namespace, page Page) (
	children []moorage.Namespace, next string, err error) {
	const op = "catalog.ListNamespaces"
	if len(parent) > 0 {
		if err := parent.Validate(); err != nil {
			return nil, "", moorage.Annotate(op, parent.String(), err)
		}
	}
	ch, err := c.directory.Path(ctx, warehouse, parent)
	if err != nil {
		return nil, "", moorage.Annotate(op, parent.String(), err)
	}
	prefix := registry.NamespacePrefix(ch.Warehouse.ID, ch.ID())
	names, next, err := c.listNames(ctx, registry.TableNamespace, prefix, page,
		func(registry.Record) bool { return true })
	if err != nil {
		return nil, "", moorage.Annotate(op, parent.String(), err)
	}
	children = make([]moorage.Namespace, len(names))
	for i, name := range names {
		children[i] = parent.Child(name)
	}
	return children, next, nil
}

// ListTables returns the names of the tables in a namespace, ordered. Views are not tables. next is
// the After of the next page, empty if this is the last.
//
// Errors: KindNoSuchWarehouse, KindNoSuchNamespace.
func (c *Catalog) ListTables(ctx context.Context, warehouse string, ns moorage.Namespace, page Page) (
	names []string, next string, err error) {
	names, next, err = c.listEntries(ctx, aTable, warehouse, ns, page)
	return names, next, moorage.Annotate("catalog.ListTables", ns.String(), err)
}

// listEntries lists the names of kind k in a namespace.
func (c *Catalog) listEntries(ctx context.Context, k *kind, warehouse string, ns moorage.Namespace, page Page) (
	names []string, next string, err error) {
	ch, err := c.resolveNamespace(ctx, warehouse, ns)
	if err != nil {
		return nil, "", err
	}
	return c.listNames(ctx, registry.TableEntry, registry.EntryPrefix(ch.ID()), page,
		func(record registry.Record) bool { return record.State == k.State })
}

// listNames lists the rest of each ID of table that begins with prefix. It passes over the records
// that keep does not want.
func (c *Catalog) listNames(ctx context.Context, table registry.Table, prefix string, page Page,
	keep func(registry.Record) bool) (names []string, next string, err error) {
	names = []string{}
	after := ""
	if page.After != "" {
		after = prefix + page.After
	}
	records := ledger.ScanPage
	if page.Limit > 0 {
		records = min(records, page.Limit+1) // one more shows whether there is a next page
	}
	err = c.ledger.ScanKeys(ctx, table, prefix, after, records, func(record registry.Record) (bool, error) {
		if !keep(record) {
			return true, nil
		}
		if page.Limit > 0 && len(names) == page.Limit {
			next = names[len(names)-1]
			return false, nil
		}
		names = append(names, strings.TrimPrefix(record.Key.ID, prefix))
		return true, nil
	})
	return names, next, err
}

// DropNamespace removes an empty namespace: it has no table, no view and no namespace. It is
// durable when it returns.
//
// Errors: KindNoSuchWarehouse, KindNoSuchNamespace, KindNamespaceNotEmpty, KindUnavailable,
// KindCommitUnknown. Source: REST specification, dropNamespace.
func (c *Catalog) DropNamespace(ctx context.Context, warehouse string, ns moorage.Namespace) error {
	const op = "catalog.DropNamespace"
	if _, err := c.resolveNamespace(ctx, warehouse, ns); err != nil {
		return moorage.Annotate(op, ns.String(), err)
	}
	hold, err := c.lock(ctx, OpDropNamespace, lockScope{warehouse: warehouse, namespace: ns})
	if err != nil {
		return moorage.Annotate(op, ns.String(), err)
	}
	defer hold.Release()
	return moorage.Annotate(op, ns.String(), c.dropContainer(hold.Context(), OpDropNamespace, warehouse, ns))
}

// UpdateNamespaceProperties removes and sets properties in one step. It is durable when it returns.
//
// Errors: KindNoSuchWarehouse; KindNoSuchNamespace; KindUnprocessable if the request removes and
// sets the same key; KindUnavailable, also while the namespace is being dropped; KindCommitUnknown.
// KindTooLarge if the change is longer than PropertiesBytesMax, or if it leaves more than that
// without making the properties shorter. Source: REST specification, updateProperties.
func (c *Catalog) UpdateNamespaceProperties(ctx context.Context, warehouse string, ns moorage.Namespace,
	asked PropertiesChange) (PropertiesResult, error) {
	const op = "catalog.UpdateNamespaceProperties"
	for _, key := range asked.Removals {
		if _, both := asked.Updates[key]; both {
			return PropertiesResult{}, moorage.Annotate(op, ns.String(), moorage.Errorf(moorage.KindUnprocessable,
				"Invalid namespace properties update: cannot simultaneously set and remove keys: [%s]", key))
		}
	}
	if err := cmp.Or(ns.Validate(), asked.check()); err != nil {
		return PropertiesResult{}, moorage.Annotate(op, ns.String(), err)
	}
	ctx, cancel := moorage.Detached(ctx, requestTimeout)
	defer cancel()
	var result PropertiesResult
	err := c.ledger.Retry(ctx, moorage.KindUnavailable, func(int) (err error) {
		result, err = c.tryUpdateProperties(ctx, warehouse, ns, asked)
		return err
	})
	return result, moorage.Annotate(op, ns.String(), err)
}

func (c *Catalog) tryUpdateProperties(ctx context.Context, warehouse string, ns moorage.Namespace,
	asked PropertiesChange) (PropertiesResult, error) {
	ch, err := c.directory.LivePath(ctx, warehouse, ns)
	if err != nil {
		return PropertiesResult{}, err
	}
	record := ch.Record()
	value, err := ledger.Decode[registry.Namespace](record)
	if err != nil {
		return PropertiesResult{}, err
	}
	if value.Properties == nil {
		value.Properties = map[string]string{}
	}
	before := propertiesBytes(value.Properties)
	result := asked.applyTo(value.Properties)
	if len(result.Updated) == 0 && len(result.Removed) == 0 {
		return result, nil
	}
	// Properties that an older version let become too long may become shorter.
	if propertiesBytes(value.Properties) >= before {
		if err := checkProperties(value.Properties); err != nil {
			return PropertiesResult{}, err
		}
	}
	ident := moorage.Identifier{Warehouse: warehouse, Namespace: ns}
	change, err := c.ledger.NewChange(ctx, string(OpUpdateProperties), ident)
	if err != nil {
		return PropertiesResult{}, err
	}
	writes, err := ledger.Encode(ledger.Put(record.Key, registry.StateLive, value))
	if err != nil {
		return PropertiesResult{}, err
	}
	_, err = c.apply(ctx, change, registry.Batch{
		Conditions: []registry.Condition{ledger.Unchanged(record)},
		Writes:     writes,
	}, Outcome{Changed: &result})
	return result, ledger.RetryOnConflict(err)
}

// PropertiesBytesMax bounds the properties of a namespace or a warehouse: the bytes of all names
// and values together. It also bounds one change of them. Engines keep far less there. Reading such
// a record, or the outcome of such a change, stays cheap.
const PropertiesBytesMax = 1 << 20

func propertiesBytes(properties map[string]string) (bytes int) {
	for name, value := range properties {
		bytes += len(name) + len(value)
	}
	return bytes
}

// checkProperties returns KindTooLarge if properties are longer than PropertiesBytesMax.
func checkProperties(properties map[string]string) error {
	return checkPropertiesBytes(propertiesBytes(properties))
}

func checkPropertiesBytes(bytes int) error {
	if bytes <= PropertiesBytesMax {
		return nil
	}
	return moorage.Errorf(moorage.KindTooLarge,
		"The names and values of the properties have %d bytes together, at most %d are allowed",
		bytes, PropertiesBytesMax)
}

// check returns KindTooLarge if p names more than PropertiesBytesMax.
func (p PropertiesChange) check() error {
	bytes := propertiesBytes(p.Updates)
	for _, name := range p.Removals {
		bytes += len(name)
	}
	return checkPropertiesBytes(bytes)
}

// applyTo changes properties and returns what it did.
func (p PropertiesChange) applyTo(properties map[string]string) PropertiesResult {
	result := PropertiesResult{Updated: []string{}, Removed: []string{}, Missing: []string{}}
	removals := slices.Clone(p.Removals)
	slices.Sort(removals)
	for _, key := range slices.Compact(removals) {
		if _, ok := properties[key]; ok {
			delete(properties, key)
			result.Removed = append(result.Removed, key)
		} else {
			result.Missing = append(result.Missing, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.Updates)) {
		properties[key] = p.Updates[key]
		result.Updated = append(result.Updated, key)
	}
	return result
}
