package directory

import (
	"context"

	"moorage"
	"moorage/access"
	"moorage/catalog/guard"
	"moorage/catalog/verb"
	"moorage/registry"
)

// Resolved is what a verb that reads is about, as of one read.
type Resolved struct {
	Path  *Path  // of a verb on a warehouse or a namespace
	Found *Found // of a verb on a table or a view
	By    Asker  // of a verb on a table or a view: for further questions about Found
}

// Resolve is the one door of reads: it finds the object called on, and asks whether caller may use
// v on it. The row of v says of what kind it is, and what v asks for.
//
// views are those by which caller comes to a table or view; nil: by none.
//
// Errors: those of the gate; those of Path for a warehouse or namespace, and of Find for a table or
// view; those of guard.Guard.Decide.
func (d *Directory) Resolve(ctx context.Context, caller moorage.Caller, v verb.Verb, on moorage.Identifier,
	views *Views) (resolved Resolved, err error) {
	request := verb.Request{Caller: caller, Verb: v}
	row, _ := v.Row()
	if row.On != verb.OnServer {
		request.On = []moorage.Identifier{on}
	}
	err = verb.Pass(ctx, d.gate, request, func() (err error) {
		by := Asker{Caller: caller, Verb: v}
		asked, _ := row.Needs(verb.OfObject, verb.Always)
		switch row.On {
		case verb.OnWarehouse:
			resolved.Path, err = d.PathFor(ctx, by, asked, moorage.Identifier{Warehouse: on.Warehouse})
		case verb.OnNamespace:
			resolved.Path, err = d.PathFor(ctx, by, asked, on)
		case verb.OnTable:
			resolved.Found, resolved.By, err = findThrough(ctx, d, by, asked, Table(), on, views)
		case verb.OnView:
			resolved.Found, resolved.By, err = findThrough(ctx, d, by, asked, View(), on, views)
		}
		return err
	})
	if err != nil {
		resolved = Resolved{}
	}
	return resolved, err
}

// Asker is who asks for something, and for what.
type Asker struct {
	Caller moorage.Caller
	Verb   verb.Verb
	// Through are the views by which he comes to what he asks for; nil: by none.
	Through *guard.Through
}

// PathFor is Path for somebody who asks for privileges on the last namespace of it, or on the
// warehouse.
func (d *Directory) PathFor(ctx context.Context, by Asker, asked access.Privileges, on moorage.Identifier) (
	*Path, error) {
	path, err := d.Path(ctx, on.Warehouse, on.Namespace)
	if err != nil {
		return path, d.Missing(ctx, by, on.Warehouse, err)
	}
	return path, d.MayAt(ctx, by, asked, path, on)
}

// MayAt returns nil if somebody has the privileges on the end of path, which leads to the namespace
// of on. Errors are those of guard.Guard.Decide.
func (d *Directory) MayAt(ctx context.Context, by Asker, asked access.Privileges, path *Path,
	on moorage.Identifier) error {
	if d.guard == nil {
		return nil
	}
	return d.guard.Decide(ctx, d.question(by, asked, path, on))
}

// question asks whether somebody has privileges on the end of path, which leads to the namespace of
// on.
func (d *Directory) question(by Asker, asked access.Privileges, path *Path, on moorage.Identifier) guard.Question {
	q := guard.Question{Caller: by.Caller, Verb: by.Verb, Object: path.object(on), Asked: asked}
	if len(on.Namespace) > 0 {
		q.Missing = guard.NoSuchNamespace(on.Namespace) // also if only what is above it exists
	}
	return q
}

// StandAt calls do for a request that MayAt has let in and that may last long: while that lasts it
// is decided again, by policy as the store has it then (verb.Stand).
func (d *Directory) StandAt(ctx context.Context, by Asker, asked access.Privileges, path *Path,
	on moorage.Identifier, do func(context.Context) error) error {
	if d.guard == nil {
		return do(ctx)
	}
	return verb.Stand(ctx, func(ctx context.Context) error {
		return d.guard.Again(ctx, d.question(by, asked, path, on))
	}, do)
}

// FindFor is Find for somebody who asks for privileges on what it finds.
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

// May returns nil if somebody has the privileges on found, which he asked for as ident. Errors are
// those of guard.Guard.Decide.
func (d *Directory) May(ctx context.Context, by Asker, asked access.Privileges, found *Found,
	ident moorage.Identifier) error {
	if d.guard == nil {
		return nil
	}
	return d.guard.Decide(ctx, guard.Question{
		Caller: by.Caller, Verb: by.Verb, Object: found.Object(ident), Asked: asked, Through: by.Through,
	})
}

// Missing returns err, for which something in a warehouse does not exist, as somebody may hear it:
// if he does not see the warehouse, that the warehouse does not exist. It returns other errors as
// they are.
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

// Sees reports whether somebody sees a warehouse. The errors are those of the store.
func Sees(ctx context.Context, d *Directory, by Asker, warehouse string) (bool, error) {
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

// Taking returns what decides whether somebody may take over the claim of a dropped table or view;
// nil: nothing is decided. It takes drop on that: what lived there cannot come back then.
//
// Errors: KindForbidden, also for who does not see it; those of guard.Guard.Decide.
func (d *Directory) Taking(by Asker) func(context.Context, registry.Pointer) error {
	if d.guard == nil {
		return nil
	}
	return func(ctx context.Context, dropped registry.Pointer) error {
		above, err := d.AboveOf(ctx, dropped)
		if err != nil {
			return err
		}
		asked := by.Verb.Needs(verb.OfDropped, verb.IfTakingOver)
		err = d.May(ctx, by, asked, &Found{Pointer: dropped, Above: above}, dropped.Identifier())
		if kind := moorage.KindOf(err); err != nil && (kind == moorage.KindForbidden || moorage.IsHidden(err)) {
			return moorage.Errorf(moorage.KindForbidden,
				"Not allowed: drop on the dropped table or view that lived at the location")
		}
		return err
	}
}

// AboveOf returns what a pointer is in, or was when it was dropped, as far as that still exists.
func (d *Directory) AboveOf(ctx context.Context, pointer registry.Pointer) ([]access.Object, error) {
	path, err := d.Path(ctx, pointer.Warehouse, pointer.Namespace)
	switch kind := moorage.KindOf(err); {
	case err == nil && path.ID() == pointer.NamespaceID:
		return path.Above(), nil
	case err == nil, kind == moorage.KindNoSuchWarehouse, kind == moorage.KindNoSuchNamespace:
		// Another one has the name now, whose grants do not count.
		if path == nil || !pointer.WarehouseID.IsZero() && path.Warehouse.ID != pointer.WarehouseID {
			return []access.Object{{ID: access.ID(pointer.WarehouseID), Kind: access.Warehouse}}, nil
		}
		above := path.Above()
		return above[len(above)-1:], nil
	}
	return nil, err
}
