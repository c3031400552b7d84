package history

import (
	"context"
	"slices"
	"strings"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
)

// namespacesMax is the maximum number of namespaces that are read to decide what one page may show.
const namespacesMax = 64

// viewer decides which events a caller sees, by one version of the access policy. It belongs to one
// page.
type viewer struct {
	*Feed
	who   *access.Who // nil if the caller sees everything
	scope Filter
	// whole is true if the caller has describe on the scope. Events before since may belong to an
	// earlier object with the name of the scope. since is zero if the scope is the server.
	whole bool
	since time.Time

	paths map[string]*directory.Path // the existing part of each path, by warehouse and namespace
	// A pointer that is gone or cannot be read has a nil value in pointers.
	pointers map[registry.ID]*registry.Pointer
}

// viewer returns the viewer for a caller and the scope of the request.
func (f *Feed) viewer(ctx context.Context, caller moorage.Caller, scope Filter) (*viewer, error) {
	v := &viewer{
		Feed: f, scope: scope, paths: make(map[string]*directory.Path),
		pointers: make(map[registry.ID]*registry.Pointer),
	}
	if f.config.Guard == nil {
		return v, nil
	}
	who, _, err := f.config.Guard.Who(ctx, caller)
	switch {
	case moorage.KindOf(err) == moorage.KindUnsupported: // access control is off
		return v, nil
	case err != nil, who == nil: // nil: a job of the server
		return v, err
	}
	v.who = who
	return v, v.readScope(ctx)
}

// readScope decides whether the caller has describe on the scope.
func (v *viewer) readScope(ctx context.Context) error {
	scope := v.scope
	if v.allows(nil, describes()) {
		v.whole = true
		return nil
	}
	if scope.Warehouse == "" || scope.Name != "" { // another object may have the name now
		return nil
	}
	path, err := v.path(ctx, scope.Warehouse, scope.Namespace)
	if err != nil || path == nil || path.Depth() < len(scope.Namespace) {
		return err
	}
	v.whole, v.since = v.allows(path.Above(), describes()), path.Since().Add(timeSlack)
	return nil
}

// describes returns the privilege that a caller needs on the objects named in an event: the
// privilege to load a table.
func describes() access.Privileges { return gate.LoadTable.Needs(gate.OfObject, gate.Always) }

// audits returns the privilege that a caller needs for events of principals and roles.
func audits() access.Privileges { return gate.LoadDecisions.Needs(gate.OfServer, gate.Always) }

func (v *viewer) allows(path []access.Object, asked access.Privileges) bool {
	return v.who.Decide(path, asked).Outcome == access.Allow
}

// inScope reports whether an event is visible because all objects named in it are in the scope, and
// the caller has describe on the scope. Events of grants need more than that. The time of the event
// and v.since may come from the clocks of two nodes, so it allows for a difference.
func (v *viewer) inScope(e Event) bool {
	return v.whole && e.Kind != registry.ItemGrants && !e.Time.Before(v.since) && v.scope.has(e.Ident) &&
		(e.Previous == nil || v.scope.has(*e.Previous))
}

// prepare reads the pointers for the events that must be judged one by one. An unreadable pointer
// is treated as gone.
func (v *viewer) prepare(ctx context.Context, selected [][]Event) error {
	if v.who == nil {
		return nil
	}
	var ids []registry.ID
	var keys []registry.Key
	for _, events := range selected {
		for _, e := range events {
			if _, known := v.pointers[e.ObjectID]; known || v.inScope(e) || e.Ident.Name == "" || e.ObjectID.IsZero() {
				continue
			}
			v.pointers[e.ObjectID] = nil
			ids, keys = append(ids, e.ObjectID), append(keys, registry.PointerKey(e.ObjectID))
		}
	}
	if len(keys) == 0 {
		return nil
	}
	records, err := v.config.Ledger.Get(ctx, keys...)
	for i, record := range records {
		if pointer, unread := registry.Decode[registry.Pointer](record); unread == nil {
			v.pointers[ids[i]] = &pointer
		}
	}
	return err
}

// isFull reports whether showing the events would exceed the number of namespaces that one page may
// read.
func (v *viewer) isFull(events []Event) bool {
	if v.who == nil {
		return false
	}
	more := make(map[string]bool)
	for _, e := range events {
		for _, ident := range namesOf(e) {
			if key := pathKey(ident.Warehouse, ident.Namespace); v.paths[key] == nil && !v.inScope(e) {
				more[key] = true
			}
		}
	}
	return len(more) > 0 && len(v.paths)+len(more) > namespacesMax
}

// namesOf returns the names in an event.
func namesOf(e Event) []moorage.Identifier {
	names := []moorage.Identifier{e.Ident}
	if e.Previous != nil {
		names = append(names, *e.Previous)
	}
	return names
}

// show returns the events that the caller may see.
func (v *viewer) show(ctx context.Context, events []Event) (shown []Event, err error) {
	for _, e := range events {
		sees := v.who == nil
		if !sees {
			if sees, err = v.sees(ctx, e); err != nil {
				return nil, err
			}
		}
		if sees {
			shown = append(shown, e)
		}
	}
	return shown, nil
}

// sees reports whether an event is visible to the caller.
func (v *viewer) sees(ctx context.Context, e Event) (bool, error) {
	switch e.Kind {
	case "": // the record cannot be read
		return v.allows(nil, describes()), nil
	case registry.ItemPrincipal, registry.ItemRole:
		return v.allows(nil, audits()), nil
	case registry.ItemGrants:
		path, err := v.pathOf(ctx, e)
		return err == nil && v.who.DecideGrant(path, 0).Outcome == access.Allow, err
	}
	if v.inScope(e) {
		return true, nil
	}
	path, err := v.pathOf(ctx, e)
	if err != nil || !v.allows(path, describes()) {
		return false, err
	}
	for _, ident := range namesOf(e) {
		above, err := v.above(ctx, e, ident)
		if err != nil || !v.allows(above, describes()) {
			return false, err
		}
	}
	return true, nil
}

// pathOf returns the object of an event in its present state, with its containers. If the object is
// gone, pathOf returns the path of the nearest container that still exists. If a container cannot
// be read, only the warehouse counts.
func (v *viewer) pathOf(ctx context.Context, e Event) ([]access.Object, error) {
	pointer := v.pointers[e.ObjectID]
	if pointer == nil || e.Ident.Name == "" {
		return v.above(ctx, e, e.Ident)
	}
	above, err := v.config.Directory.AboveOf(ctx, *pointer)
	if ledger.IsUndecoded(err) {
		var path *directory.Path
		path, err = v.path(ctx, pointer.Warehouse, nil)
		if err != nil || path == nil || !pointer.WarehouseID.IsZero() && path.ID() != pointer.WarehouseID {
			return nil, err
		}
		above = path.Above()
	}
	return append([]access.Object{directory.ObjectOf(*pointer)}, above...), err
}

// above returns the container of a name in an event, or the nearest parent that still exists. A
// container that may be younger than the event does not count, because an earlier container may
// have had the same name. It does count if the object of the event is in it now.
func (v *viewer) above(ctx context.Context, e Event, ident moorage.Identifier) ([]access.Object, error) {
	if ident.Warehouse == "" {
		return nil, nil
	}
	path, err := v.path(ctx, ident.Warehouse, ident.Namespace)
	if err != nil || path == nil {
		return nil, err
	}
	if path.Depth() == len(ident.Namespace) && (path.ID() == e.ObjectID || v.isIn(e, path.ID())) {
		return path.Above(), nil
	}
	return path.AboveAt(e.Time.Add(-timeSlack)), nil
}

// isIn reports whether the table or view of an event is now in the given namespace.
func (v *viewer) isIn(e Event, namespace registry.ID) bool {
	pointer := v.pointers[e.ObjectID]
	return pointer != nil && pointer.NamespaceID == namespace
}

// path returns the existing part of the path to a namespace, or nil if there is no such warehouse.
// Unreadable objects are treated as gone.
func (v *viewer) path(ctx context.Context, warehouse string, namespace moorage.Namespace) (*directory.Path, error) {
	key := pathKey(warehouse, namespace)
	if path, known := v.paths[key]; known {
		return path, nil
	}
	path, err := v.config.Directory.Path(ctx, warehouse, namespace)
	switch kind := moorage.KindOf(err); {
	case err == nil, kind == moorage.KindNoSuchNamespace:
		err = nil
	case ledger.IsUndecoded(err) && len(namespace) > 0:
		path, err = v.path(ctx, warehouse, namespace[:len(namespace)-1])
	case ledger.IsUndecoded(err), kind == moorage.KindNoSuchWarehouse:
		path, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	v.paths[key] = path
	return path, nil
}

// pathKey joins the names with bytes that no name can contain.
func pathKey(warehouse string, namespace moorage.Namespace) string {
	return strings.Join(slices.Concat([]string{warehouse}, namespace), "\x00")
}
