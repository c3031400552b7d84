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

// namespacesMax bounds how many namespaces one page reads to decide what the caller may see.
const namespacesMax = 64

// viewer decides which events a caller sees, by one version of the access policy. It belongs to one
// page.
type viewer struct {
	*Feed
	who   *access.Who // nil: the caller sees everything
	scope Filter
	// whole is whether the caller has describe on the scope. Events before since may be of another
	// object that had the name of the scope. since is zero if the scope is the server.
	whole bool
	since time.Time

	paths map[string]*directory.Path // by warehouse and namespace, as far as they exist
	// pointers has nil for a pointer that is gone or cannot be read.
	pointers map[registry.ID]*registry.Pointer
}

// viewer returns the viewer of a caller, who asks for the events of a scope.
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
	if v.may(nil, describes()) {
		v.whole = true
		return nil
	}
	if scope.Warehouse == "" || scope.Name != "" { // an object is judged by its events: its name may be another's now
		return nil
	}
	path, err := v.path(ctx, scope.Warehouse, scope.Namespace)
	if err != nil || path == nil || path.Depth() < len(scope.Namespace) {
		return err
	}
	v.whole, v.since = v.may(path.Above(), describes()), path.Since().Add(timeSlack)
	return nil
}

// describes returns the privilege that a caller needs on what an event names. It is the privilege
// to load a table.
func describes() access.Privileges { return gate.LoadTable.Needs(gate.OfObject, gate.Always) }

// audits returns the privilege that events of principals and roles need.
func audits() access.Privileges { return gate.LoadDecisions.Needs(gate.OfServer, gate.Always) }

func (v *viewer) may(path []access.Object, asked access.Privileges) bool {
	return v.who.Decide(path, asked).Outcome == access.Allow
}

// inScope reports whether the caller sees an event because it names only objects in a scope on
// which the caller has describe. Events of grants need more than that. The time of an event and the
// time since when the scope exists may be by the clocks of two nodes.
func (v *viewer) inScope(e Event) bool {
	return v.whole && e.Kind != registry.ItemGrants && !e.Time.Before(v.since) && v.scope.has(e.Ident) &&
		(e.Previous == nil || v.scope.has(*e.Previous))
}

// prepare reads the pointers of the events that must be judged one by one. A pointer that cannot be
// read counts as gone.
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

// isFull reports whether showing the events would read more namespaces than one page may.
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

// namesOf returns the names that an event has.
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

// sees reports whether the caller sees an event.
func (v *viewer) sees(ctx context.Context, e Event) (bool, error) {
	switch e.Kind {
	case "": // the record cannot be read
		return v.may(nil, describes()), nil
	case registry.ItemPrincipal, registry.ItemRole:
		return v.may(nil, audits()), nil
	case registry.ItemGrants:
		path, err := v.pathOf(ctx, e)
		return err == nil && v.who.DecideGrant(path, 0).Outcome == access.Allow, err
	}
	if v.inScope(e) {
		return true, nil
	}
	path, err := v.pathOf(ctx, e)
	if err != nil || !v.may(path, describes()) {
		return false, err
	}
	for _, ident := range namesOf(e) {
		above, err := v.above(ctx, e, ident)
		if err != nil || !v.may(above, describes()) {
			return false, err
		}
	}
	return true, nil
}

// pathOf returns the object of an event as it is now, with the containers that it is in. If the
// object is gone, it returns the nearest container that is left. If a container cannot be read,
// only the warehouse counts.
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

// above returns the container of a name that an event has, or the nearest one above it that is
// left. A container that may be younger than the event does not count, because another one had its
// name before. An object that is in the container now is the proof that it is the right one.
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

// isIn reports whether the table or view of an event is in the namespace with an id now.
func (v *viewer) isIn(e Event, namespace registry.ID) bool {
	pointer := v.pointers[e.ObjectID]
	return pointer != nil && pointer.NamespaceID == namespace
}

// path returns the path to a namespace as far as it exists, nil if there is no such warehouse. What
// cannot be read counts as gone.
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
