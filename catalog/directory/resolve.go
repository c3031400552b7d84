package directory

import (
	"context"

	"moorage"
	"moorage/access"
	"moorage/catalog/gate"
	"moorage/registry"
)

// Resolved is the object of a read-only verb. All of it comes from one read of the store.
type Resolved struct {
	Path  *Path  // for a verb on a warehouse or a namespace
	Found *Found // for a verb on a table or a view
	By    Asker  // for a verb on a table or a view: the asker for further checks of Found
}

// Resolve is the entry point of all read-only verbs. It finds the object that the parameter on
// identifies, and checks whether caller may use the verb v on that object. The row of v in the
// table of verbs has the object's kind and the required privileges.
//
// views lists the views through which caller reaches a table or view; nil if there are none.
//
// Errors: the errors of the gate; the errors of Path for a warehouse or namespace, and of Find for
// a table or view; the errors of gate.Guard.Decide.
func (d *Directory) Resolve(ctx context.Context, caller moorage.Caller, v gate.Verb, on moorage.Identifier,
	views *Views) (resolved Resolved, err error) {
	request := gate.Request{Caller: caller, Verb: v}
	row, _ := v.Row()
	if row.On != access.Server {
		request.On = []moorage.Identifier{on}
	}
	err = gate.Pass(ctx, d.gate, request, func() (err error) {
		by := Asker{Caller: caller, Verb: v}
		asked, _ := row.Needs(gate.OfObject, gate.Always)
		switch row.On {
		case access.Warehouse:
			resolved.Path, err = d.PathFor(ctx, by, asked, moorage.Identifier{Warehouse: on.Warehouse})
		case access.Namespace:
			resolved.Path, err = d.PathFor(ctx, by, asked, on)
		case access.Table:
			resolved.Found, resolved.By, err = d.findThrough(ctx, by, asked, Table(), on, views)
		case access.View:
			resolved.Found, resolved.By, err = d.findThrough(ctx, by, asked, View(), on, views)
		}
		return err
	})
	if err != nil {
		resolved = Resolved{}
	}
	return resolved, err
}

// Asker is a caller with the verb of its request.
type Asker struct {
	Caller moorage.Caller
	Verb   gate.Verb
	// Through has the views through which the caller reaches the object; nil if there are none.
	Through *gate.Through
}

// PathFor is like Path, but also checks that the caller has the privileges in asked on the last
// namespace, or on the warehouse.
func (d *Directory) PathFor(ctx context.Context, by Asker, asked access.Privileges, on moorage.Identifier) (
	*Path, error) {
	path, err := d.Path(ctx, on.Warehouse, on.Namespace)
	if err != nil {
		return path, d.Missing(ctx, by, on.Warehouse, err)
	}
	return path, d.MayAt(ctx, by, asked, path, on)
}

// MayAt returns nil if the caller has the privileges in asked on the last namespace of path, or on
// the warehouse. path leads to the namespace of the object that the parameter on identifies. It
// returns the errors of gate.Guard.Decide.
func (d *Directory) MayAt(ctx context.Context, by Asker, asked access.Privileges, path *Path,
	on moorage.Identifier) error {
	if d.guard == nil {
		return nil
	}
	return d.guard.Decide(ctx, d.question(by, asked, path, on))
}

// question returns the question of MayAt and RecheckAt to the guard.
func (d *Directory) question(by Asker, asked access.Privileges, path *Path, on moorage.Identifier) gate.Question {
	q := gate.Question{Caller: by.Caller, Verb: by.Verb, Object: path.object(on), Asked: asked}
	if len(on.Namespace) > 0 {
		q.Missing = gate.NoSuchNamespace(on.Namespace) // even if path ends at a parent of the namespace
	}
	return q
}

// RecheckAt calls do for a request that MayAt has admitted and that may take long. While do runs,
// RecheckAt repeats the decision with the present policy of the store (gate.Recheck).
func (d *Directory) RecheckAt(ctx context.Context, by Asker, asked access.Privileges, path *Path,
	on moorage.Identifier, do func(context.Context) error) error {
	if d.guard == nil {
		return do(ctx)
	}
	return gate.Recheck(ctx, func(ctx context.Context) error {
		return d.guard.Again(ctx, d.question(by, asked, path, on))
	}, do)
}

// FindFor is like Find, but also checks that the caller has the privileges in asked on the result.
func (d *Directory) FindFor(ctx context.Context, by Asker, asked access.Privileges, k *Kind,
	ident moorage.Identifier) (*Found, error) {
	found, err := d.Find(ctx, k, ident)
	if err != nil {
		return nil, d.Missing(ctx, by, ident.Warehouse, err)
	}
	if err := d.May(ctx, by, asked, found, ident); err != nil {
		return nil, err
	}
	return found, nil
}

// May returns nil if the caller has the privileges in asked on the table or view found. ident is
// the name that the caller used for it. It returns the errors of gate.Guard.Decide.
func (d *Directory) May(ctx context.Context, by Asker, asked access.Privileges, found *Found,
	ident moorage.Identifier) error {
	if d.guard == nil {
		return nil
	}
	return d.guard.Decide(ctx, gate.Question{
		Caller: by.Caller, Verb: by.Verb, Object: found.Object(ident), Asked: asked, Through: by.Through,
	})
}

// Missing returns the error for a caller whose lookup in a warehouse failed with err. If err
// reports a missing object and the warehouse is hidden from the caller, Missing returns the error
// for a missing warehouse. Otherwise it returns err.
func (d *Directory) Missing(ctx context.Context, by Asker, warehouse string, err error) error {
	switch moorage.KindOf(err) {
	case moorage.KindNoSuchNamespace, moorage.KindNoSuchTable, moorage.KindNoSuchView:
	default:
		return err
	}
	if d.guard == nil || moorage.IsHidden(err) {
		return err
	}
	path, pathErr := d.Path(ctx, warehouse, nil)
	if pathErr != nil {
		return pathErr
	}
	if refusal := d.MayAt(ctx, by, access.See, path, moorage.Identifier{Warehouse: warehouse}); refusal != nil {
		return refusal
	}
	return err
}

// Sees reports whether a warehouse is visible to the caller. It returns the errors of the store.
func (d *Directory) Sees(ctx context.Context, by Asker, warehouse string) (bool, error) {
	if d.guard == nil {
		return true, nil
	}
	path, err := d.Path(ctx, warehouse, nil)
	if err == nil {
		err = d.MayAt(ctx, by, access.See, path, moorage.Identifier{Warehouse: warehouse})
	}
	switch moorage.KindOf(err) {
	case moorage.KindUnavailable, moorage.KindInternal:
		return err == nil, err
	}
	return err == nil, nil
}

// Taking returns a function that decides whether the caller may take over the claim of a dropped
// table or view. It is nil if there is no guard. The caller needs drop on that table or view,
// because it cannot be restored afterwards.
//
// Errors: KindForbidden, even if the dropped table or view is hidden from the caller; the errors of
// gate.Guard.Decide.
func (d *Directory) Taking(by Asker) func(context.Context, registry.Pointer) error {
	if d.guard == nil {
		return nil
	}
	return func(ctx context.Context, dropped registry.Pointer) error {
		above, err := d.AboveOf(ctx, dropped)
		if err != nil {
			return err
		}
		asked := by.Verb.Needs(gate.OfDropped, gate.IfTakingOver)
		err = d.May(ctx, by, asked, &Found{Pointer: dropped, Above: above}, dropped.Identifier())
		if kind := moorage.KindOf(err); err != nil && (kind == moorage.KindForbidden || moorage.IsHidden(err)) {
			return moorage.Errorf(moorage.KindForbidden,
				"Not allowed: drop on the dropped table or view that was at the location")
		}
		return err
	}
}

// AboveOf returns the containers of a live pointer, or those former containers of a dropped pointer
// that still exist.
func (d *Directory) AboveOf(ctx context.Context, pointer registry.Pointer) ([]access.Object, error) {
	path, err := d.Path(ctx, pointer.Warehouse, pointer.Namespace)
	switch kind := moorage.KindOf(err); {
	case err == nil && path.ID() == pointer.NamespaceID:
		return path.Above(), nil
	case err == nil, kind == moorage.KindNoSuchWarehouse, kind == moorage.KindNoSuchNamespace:
		// Another warehouse has the name now, and its grants do not count.
		if path == nil || !pointer.WarehouseID.IsZero() && path.Warehouse.ID != pointer.WarehouseID {
			return []access.Object{{ID: access.ID(pointer.WarehouseID), Kind: access.Warehouse}}, nil
		}
		above := path.Above()
		return above[len(above)-1:], nil
	}
	return nil, err
}
