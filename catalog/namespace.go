package catalog

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"moorage"
	"moorage/access"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
)

// CreateNamespace creates a namespace, and its missing parents, in one Apply. It returns the
// properties that LoadNamespace would return. When it returns without an error, the change is
// durable.
//
// Errors: KindBadRequest for an invalid name, and for a location that no table of the warehouse
// could have; KindNoSuchWarehouse; KindAlreadyExists; KindTooLarge for properties longer than
// registry.PropertiesBytesMax; KindUnavailable, also while a parent is being dropped;
// KindCommitUnknown. Source: REST specification, createNamespace.
func (c *Catalog) CreateNamespace(ctx context.Context, warehouse string, ns moorage.Namespace,
	properties map[string]string) (map[string]string, error) {
	ident := moorage.Identifier{Warehouse: warehouse, Namespace: ns}
	var existing moorage.Namespace
	by := c.asker(gate.CreateNamespace)
	look := func(ctx context.Context) error {
		path, err := c.directory.Path(ctx, warehouse, ns)
		if err != nil && moorage.KindOf(err) != moorage.KindNoSuchNamespace {
			return err
		}
		if err := c.mayMakeNamespace(ctx, by, path, ident, properties); err != nil {
			return err
		}
		if err == nil {
			return moorage.Errorf(moorage.KindAlreadyExists, "Namespace already exists: %s", ns)
		}
		existing = ns[:path.Depth()]
		return nil
	}
	outcome, err := c.submit(ctx, commit.Intent{
		Verb: gate.CreateNamespace, On: []moorage.Identifier{ident},
		Look: func(ctx context.Context) (commit.Scope, error) {
			if err := cmp.Or(ns.Validate(), registry.CheckProperties(properties)); err != nil {
				return commit.Scope{}, err
			}
			err := look(ctx)
			return commit.Scope{Warehouse: warehouse, Namespace: ns[:min(len(existing)+1, len(ns))]}, err
		},
		Plan: commit.Plans(func(ctx context.Context, attempt *commit.Attempt) (newNamespace, error) {
			if attempt.Number > 0 { // another request may have created or dropped parents
				if err := look(ctx); err != nil {
					return newNamespace{}, err
				}
			}
			return c.readNewNamespace(ctx, by, ident, existing, properties)
		}, planNamespace),
	})
	return outcome.Properties, moorage.Annotate("catalog.CreateNamespace", ns.String(), err)
}

// mayMakeNamespace returns nil if the caller may create the namespace of ident. path is the
// existing part of its path. What counts is the caller's privileges on the lowest namespace that is
// visible to them. A hidden namespace is treated as if it did not exist.
func (p *parts) mayMakeNamespace(ctx context.Context, by directory.Asker, path *directory.Path,
	ident moorage.Identifier, properties map[string]string) error {
	met := gate.Always
	if _, located := properties[PropLocation]; located {
		met = gate.IfLocated
	}
	asked := by.Verb.Needs(gate.OfContainer, met)
	if path.Depth() == len(ident.Namespace) {
		path = path.Up()
	}
	for {
		err := p.directory.MayAt(ctx, by, asked, path, ident)
		if moorage.KindOf(err) != moorage.KindNoSuchNamespace || !moorage.IsHidden(err) {
			return err
		}
		path = path.Up()
	}
}

// newNamespace holds a namespace that will be created, and its missing parents.
type newNamespace struct {
	ident      moorage.Identifier
	parent     parent        // the lowest existing parent
	missing    []string      // the names of the new namespaces below parent
	ids        []registry.ID // one for each new namespace
	properties map[string]string
	parents    []map[string]string // the properties of the other new namespaces; nil if they have none
	creator    string
	folder     string            // where its tables live if properties have no location
	makers     gate.MakerRecords // they let creator see the path to the namespaces
}

// readNewNamespace reads the lowest existing parent.
func (p *parts) readNewNamespace(ctx context.Context, by directory.Asker, ident moorage.Identifier,
	existing moorage.Namespace, properties map[string]string) (newNamespace, error) {
	path, err := p.directory.LivePath(ctx, ident.Warehouse, existing)
	if moorage.KindOf(err) == moorage.KindNoSuchNamespace {
		return newNamespace{}, ledger.ErrRetry // a parent that existed was dropped
	}
	if err != nil {
		return newNamespace{}, err
	}
	if err := p.mayMakeNamespace(ctx, by, path, ident, properties); err != nil {
		return newNamespace{}, err
	}
	if err := p.checkNamespaceLocation(path, properties); err != nil {
		return newNamespace{}, err
	}
	creator, err := p.guard.Creator(ctx, by.Caller)
	if err != nil {
		return newNamespace{}, err
	}
	made := newNamespace{
		ident: ident, parent: parentAt(path), missing: ident.Namespace[path.Depth():], properties: properties,
		creator: creator, folder: folderOf(path, ident.Namespace),
	}
	for range made.missing {
		id, err := p.ledger.NewID()
		if err != nil {
			return newNamespace{}, err
		}
		made.ids = append(made.ids, id)
	}
	above := path.Above()
	for _, id := range made.ids[:max(0, len(made.ids)-1)] {
		above = append(above, access.Object{ID: access.ID(id), Kind: access.Namespace})
	}
	made.makers, err = p.guard.MakerRecords(ctx, made.creator, above)
	return made, err
}

// planNamespace plans the records of n and its missing parents.
func planNamespace(attempt *commit.Attempt, n newNamespace) (*commit.Plan, error) {
	parentID := n.parent.id
	conditions := []registry.Condition{n.parent.unchanged()}
	var puts []ledger.Write
	var items []registry.Item
	existing := len(n.ident.Namespace) - len(n.missing)
	for i, name := range n.missing {
		value := registry.Namespace{
			ID: n.ids[i], Properties: map[string]string{}, Since: attempt.Now, Creator: n.creator,
		}
		if i == len(n.missing)-1 {
			maps.Copy(value.Properties, n.properties)
		} else if len(n.parents) > 0 {
			maps.Copy(value.Properties, n.parents[i])
		}
		value.Last = value.Written(registry.StateLive, attempt.Change)
		key := registry.NamespaceKey(n.parent.warehouse.ID, parentID, name)
		conditions = append(conditions, registry.Absent(key))
		puts = append(puts, ledger.Put(key, registry.StateLive, value))
		made := moorage.Identifier{Warehouse: n.ident.Warehouse, Namespace: n.ident.Namespace[:existing+i+1]}
		items = append(items, registry.ContainerItem(made, value.ID))
		parentID = value.ID
	}
	writes, err := ledger.Encode(puts...)
	return &commit.Plan{
		Conditions: append(conditions, n.makers.Conditions...),
		Writes:     append(writes, n.makers.Writes...), Items: items,
		Answer: commit.Outcome{Properties: answeredProperties(n.folder, n.properties)},
	}, err
}

// LoadNamespace returns the stored properties of a namespace. If they do not include `location`, it
// adds the folder below which tables and views get their default locations.
//
// Errors: KindNoSuchWarehouse, KindNoSuchNamespace.
func (c *Catalog) LoadNamespace(ctx context.Context, warehouse string, ns moorage.Namespace) (
	map[string]string, error) {
	const op = "catalog.LoadNamespace"
	if err := ns.Validate(); err != nil {
		return nil, moorage.Annotate(op, ns.String(), err)
	}
	resolved, err := c.resolve(ctx, gate.LoadNamespace, moorage.Identifier{Warehouse: warehouse, Namespace: ns})
	if err != nil {
		return nil, moorage.Annotate(op, ns.String(), err)
	}
	value, err := ledger.Decode[registry.Namespace](resolved.Path.Record())
	if err != nil {
		return nil, moorage.Annotate(op, ns.String(), err)
	}
	on := moorage.Identifier{Warehouse: warehouse, Namespace: ns}
	asked := gate.LoadNamespace.Needs(gate.OfObject, gate.ForProperties)
	switch err := c.directory.MayAt(ctx, c.asker(gate.LoadNamespace), asked, resolved.Path, on); {
	case moorage.KindOf(err) == moorage.KindForbidden && err != nil: // the caller may not see the properties
		return map[string]string{}, nil
	case err != nil:
		return nil, moorage.Annotate(op, ns.String(), err)
	}
	return answeredProperties(folderOf(resolved.Path, ns), value.Properties), nil
}

// answeredProperties returns the stored properties of a namespace, with a `location` if they have
// none. Trino creates tables below `location`, and cannot create a table without it.
func answeredProperties(folder string, stored map[string]string) map[string]string {
	answered := map[string]string{PropLocation: folder}
	maps.Copy(answered, stored)
	return answered
}

// ListNamespaces returns the namespaces directly below parent as full paths, ordered by name. An
// empty parent means the warehouse. To get the next page, pass next as page.After. next is empty on
// the last page.
//
// Errors: KindNoSuchWarehouse, KindNoSuchNamespace.
func (c *Catalog) ListNamespaces(ctx context.Context, warehouse string, parent moorage.Namespace, page moorage.Page) (
	children []moorage.Namespace, next string, err error) {
	const op = "catalog.ListNamespaces"
	if len(parent) > 0 {
		if err := parent.Validate(); err != nil {
			return nil, "", moorage.Annotate(op, parent.String(), err)
		}
	}
	on := moorage.Identifier{Warehouse: warehouse, Namespace: parent}
	resolved, err := c.resolve(ctx, gate.ListNamespaces, on)
	if err != nil {
		return nil, "", moorage.Annotate(op, parent.String(), err)
	}
	prefix := registry.NamespacePrefix(resolved.Path.Warehouse.ID, resolved.Path.ID())
	names, next, err := c.listRechecked(ctx, c.asker(gate.ListNamespaces), resolved.Path, on,
		listing{table: registry.TableNamespace, prefix: prefix, kind: access.Namespace}, page)
	if err != nil {
		return nil, "", moorage.Annotate(op, parent.String(), err)
	}
	children = make([]moorage.Namespace, len(names))
	for i, name := range names {
		children[i] = parent.Child(name)
	}
	return children, next, nil
}

// ListTables returns the names of the tables in a namespace, sorted. Views are not included. To get
// the next page, pass next as page.After. next is empty on the last page.
//
// Errors: KindNoSuchWarehouse, KindNoSuchNamespace.
func (c *Catalog) ListTables(ctx context.Context, warehouse string, ns moorage.Namespace, page moorage.Page) (
	names []string, next string, err error) {
	names, next, err = c.listEntries(ctx, tableKind, warehouse, ns, page)
	return names, next, moorage.Annotate("catalog.ListTables", ns.String(), err)
}

// listEntries lists the names of kind k in a namespace.
func (c *Catalog) listEntries(ctx context.Context, k *kind, warehouse string, ns moorage.Namespace, page moorage.Page) (
	names []string, next string, err error) {
	if err := ns.Validate(); err != nil {
		return nil, "", err
	}
	on := moorage.Identifier{Warehouse: warehouse, Namespace: ns}
	resolved, err := c.resolve(ctx, k.list, on)
	if err != nil {
		return nil, "", err
	}
	list := listing{
		table: registry.TableEntry, prefix: registry.EntryPrefix(resolved.Path.ID()),
		kind: access.Table, state: k.State,
	}
	if k == viewKind {
		list.kind = access.View
	}
	return c.listRechecked(ctx, c.asker(k.list), resolved.Path, on, list, page)
}

// listNames lists the IDs in table that begin with prefix, with the prefix removed. It omits
// records for which keep returns false.
func (p *parts) listNames(ctx context.Context, table registry.Table, prefix string, page moorage.Page,
	keep func(registry.Record) bool) (names []string, next string, err error) {
	names = []string{}
	after := ""
	if page.After != "" {
		after = prefix + page.After
	}
	records := ledger.ScanPage
	if page.Limit > 0 {
		records = min(page.Limit+1, registry.ListLimitMax) // one more, to see whether there is a next page
	}
	err = p.ledger.ScanKeys(ctx, table, prefix, after, records, func(record registry.Record) (bool, error) {
		if !keep(record) {
			return true, nil
		}
		if page.Limit > 0 && len(names) == page.Limit {
			next = names[len(names)-1]
			return false, nil
		}
		names = append(names, record.Key.ID[len(prefix):])
		return true, nil
	})
	return names, next, err
}

// DropNamespace removes a namespace that contains no tables, views or namespaces. When it returns
// without an error, the change is durable.
//
// Errors: KindNoSuchWarehouse, KindNoSuchNamespace, KindNamespaceNotEmpty, KindUnavailable,
// KindCommitUnknown. Source: REST specification, dropNamespace.
func (c *Catalog) DropNamespace(ctx context.Context, warehouse string, ns moorage.Namespace) error {
	_, err := c.submit(ctx, commit.Intent{
		Verb: gate.DropNamespace, On: []moorage.Identifier{{Warehouse: warehouse, Namespace: ns}}, Drains: true,
		Look: func(ctx context.Context) (commit.Scope, error) {
			if err := ns.Validate(); err != nil {
				return commit.Scope{}, err
			}
			on := moorage.Identifier{Warehouse: warehouse, Namespace: ns}
			asked := gate.DropNamespace.Needs(gate.OfObject, gate.Always)
			_, err := c.directory.PathFor(ctx, c.asker(gate.DropNamespace), asked, on)
			return commit.Scope{Warehouse: warehouse, Namespace: ns}, err
		},
		Plan: commit.Plans(func(ctx context.Context, attempt *commit.Attempt) (ledger.Policy, error) {
			return attempt.Container.EndGrants(ctx, c.ledger)
		}, func(attempt *commit.Attempt, ends ledger.Policy) (*commit.Plan, error) {
			return attempt.Container.PlanDrop(attempt, ends)
		}),
	})
	return moorage.Annotate("catalog.DropNamespace", ns.String(), err)
}

// UpdateNamespaceProperties removes and sets properties in one step. When it returns without an
// error, the change is durable. A change of PropLocation does not move existing tables.
//
// Errors: KindBadRequest for a location that no table of the warehouse could have;
// KindNoSuchWarehouse; KindNoSuchNamespace; KindUnprocessable if the request removes and sets the
// same key; KindUnavailable, also while the namespace is being dropped; KindCommitUnknown.
// KindTooLarge if the names and values in the change are longer than registry.PropertiesBytesMax.
// It is also KindTooLarge if the resulting properties exceed this limit, unless the change makes
// them shorter. Source: REST specification, updateProperties.
func (c *Catalog) UpdateNamespaceProperties(ctx context.Context, warehouse string, ns moorage.Namespace,
	asked PropertiesChange) (PropertiesResult, error) {
	by, on := c.asker(gate.UpdateProperties), moorage.Identifier{Warehouse: warehouse, Namespace: ns}
	met := gate.Always
	if _, moved := asked.Updates[PropLocation]; moved || slices.Contains(asked.Removals, PropLocation) {
		met = gate.IfLocated
	}
	takes := gate.UpdateProperties.Needs(gate.OfObject, met)
	outcome, err := c.submit(ctx, commit.Intent{
		Verb: gate.UpdateProperties, On: []moorage.Identifier{{Warehouse: warehouse, Namespace: ns}},
		Look: func(ctx context.Context) (commit.Scope, error) {
			err := cmp.Or(asked.checkKeys(), ns.Validate(), asked.check())
			if err == nil && c.guarded {
				_, err = c.directory.PathFor(ctx, by, takes, on)
			}
			return commit.Scope{}, err
		},
		Plan: commit.Plans(func(ctx context.Context, _ *commit.Attempt) (registry.Record, error) {
			path, err := c.directory.LivePath(ctx, warehouse, ns)
			if err != nil {
				return registry.Record{}, c.directory.Missing(ctx, by, warehouse, err)
			}
			if err := c.directory.MayAt(ctx, by, takes, path, on); err != nil {
				return registry.Record{}, err
			}
			return path.Record(), c.checkNamespaceLocation(path, asked.Updates)
		}, asked.plan),
	})
	if err != nil || outcome.Changed == nil {
		return PropertiesResult{}, moorage.Annotate("catalog.UpdateNamespaceProperties", ns.String(), err)
	}
	return PropertiesResult(*outcome.Changed), nil
}

// checkKeys returns KindUnprocessable if p removes and sets the same key.
func (p PropertiesChange) checkKeys() error {
	for _, key := range p.Removals {
		if _, both := p.Updates[key]; both {
			return moorage.Errorf(moorage.KindUnprocessable,
				"Invalid namespace properties update: cannot simultaneously set and remove keys: [%s]", key)
		}
	}
	return nil
}

// plan plans the change p of the namespace in record.
func (p PropertiesChange) plan(attempt *commit.Attempt, record registry.Record) (*commit.Plan, error) {
	value, err := ledger.Decode[registry.Namespace](record)
	if err != nil {
		return nil, err
	}
	if value.Properties == nil {
		value.Properties = map[string]string{}
	}
	result := registry.ChangedProperties(p.applyTo(value.Properties))
	answer := commit.Outcome{Changed: &result}
	if len(result.Updated) == 0 && len(result.Removed) == 0 {
		return &commit.Plan{Empty: true, Answer: answer}, nil
	}
	if err := registry.CheckProperties(value.Properties); err != nil {
		return nil, err
	}
	value.Last = value.Written(registry.StateLive, attempt.Change)
	writes, err := ledger.Encode(ledger.Replace(record, registry.StateLive, value))
	return &commit.Plan{
		Conditions: []registry.Condition{ledger.Unchanged(record)}, Writes: writes, Answer: answer,
		Items: []registry.Item{registry.ContainerItem(attempt.On, value.ID)},
	}, err
}

// check returns KindTooLarge if the names and values in p are longer than
// registry.PropertiesBytesMax.
func (p PropertiesChange) check() error {
	named := maps.Clone(p.Updates)
	if named == nil {
		named = make(map[string]string, len(p.Removals))
	}
	for _, name := range p.Removals {
		named[name] = ""
	}
	return registry.CheckProperties(named)
}

// applyTo applies p to properties, which it changes in place, and returns the effect.
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
