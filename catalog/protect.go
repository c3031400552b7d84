package catalog

import (
	"context"
	"slices"

	"moorage"
	"moorage/access"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
)

// Protections has the verbs for protection, as one caller: see Catalog.Protections. A protected
// object cannot be dropped, unregistered, purged, forgotten, overwritten by a register, or replaced
// by an undrop. The same applies to all objects in it, and none of them can be renamed out of it.
// Nothing overrides that.
//
// It promises that no node drops an object after Set has returned: TestProtectAgainstDrops. By that
// time, all nodes that do not support protection have ended: TestProtectAwaitsOldNodes. Each
// refused verb has a row in TestProtected, and a row in protectRaces for TestRaces. It is safe for
// concurrent use.
type Protections struct{ catalog *Catalog }

// Protections returns the verbs for protection, as the caller of c and with the key of its request.
func (c *Catalog) Protections() Protections { return Protections{c} }

// Protection describes whether an object is protected.
type Protection struct {
	Protected bool // the object itself
	// By is the innermost container that also protects the object, or nil if there is none. If it
	// is a warehouse or namespace, its Name is empty.
	By *moorage.Identifier
}

// Load returns the protection of an object: a warehouse, a namespace, a table or a view.
//
// Errors: KindNoSuchWarehouse, KindNoSuchNamespace, KindNoSuchTable, KindNoSuchView; KindForbidden.
func (p Protections) Load(ctx context.Context, kind access.Kind, ident moorage.Identifier) (Protection, error) {
	by := p.catalog.asker(gate.LoadProtection)
	found, err := p.catalog.readProtecting(ctx, by, kind, ident)
	return found.protection(), moorage.Annotate("catalog.Load", ident.String(), err)
}

// Set protects an object, or ends its protection. Objects in it inherit the protection. The first
// protection in a store raises the version that the store requires, so nodes that do not support
// protection end. The first protection by a process waits until they have ended.
//
// Errors: the errors of Load; KindUnavailable; KindCommitUnknown. When Set returns without an
// error, the change is durable.
func (p Protections) Set(ctx context.Context, kind access.Kind, ident moorage.Identifier, protected bool) (
	Protection, error) {
	set, err := p.set(ctx, kind, ident, protected)
	return set, moorage.Annotate("catalog.Set", ident.String(), err)
}

func (p Protections) set(ctx context.Context, kind access.Kind, ident moorage.Identifier, protected bool) (
	set Protection, err error) {
	c, by := p.catalog, p.catalog.asker(gate.Protect)
	// The answer comes from the plan of the last attempt. A read after the change could fail
	// although the change has happened.
	_, err = c.submit(ctx, commit.Intent{
		Verb: gate.Protect, On: []moorage.Identifier{ident}, Silent: true,
		Look: func(ctx context.Context) (commit.Scope, error) {
			_, err := c.readProtecting(ctx, by, kind, ident)
			if err == nil && protected {
				err = c.raiseFormat(ctx, registry.FormatProtection)
			}
			return commit.Scope{}, err
		},
		Plan: commit.Plans(func(ctx context.Context, _ *commit.Attempt) (protecting, error) {
			return c.readProtecting(ctx, by, kind, ident)
		}, func(attempt *commit.Attempt, found protecting) (*commit.Plan, error) {
			set = found.protection()
			return found.plan(attempt, protected)
		}),
	})
	if err != nil {
		return Protection{}, err
	}
	set.Protected = protected
	return set, nil
}

// raiseFormat raises the version that the store requires, so that nodes end which know only lower
// versions. Such nodes would ignore the present change. It returns when they have ended. The store
// may already require the version: another process, or an earlier request without an answer, may
// have raised it a moment ago. So every process waits, until it has once waited successfully.
func (p *parts) raiseFormat(ctx context.Context, version int) error {
	if p.oldNodesEnded.Load() >= int32(version) {
		return nil
	}
	err := p.ledger.Retry(ctx, moorage.KindUnavailable, func(int) error {
		return p.ledger.RaiseFormat(ctx, version)
	})
	if err == nil {
		err = p.awaitOldNodes(ctx)
	}
	if err == nil {
		p.oldNodesEnded.Store(int32(version))
	}
	return err
}

// protecting is an object whose protection is read or set.
type protecting struct {
	path  *directory.Path  // of the object itself, or of its namespace
	found *directory.Found // set for a table or view, otherwise nil
	ident moorage.Identifier
}

// readProtecting reads an object, if the caller may use by.Verb on it.
func (p *parts) readProtecting(ctx context.Context, by directory.Asker, kind access.Kind, ident moorage.Identifier) (
	found protecting, err error) {
	found.ident = ident
	asked := by.Verb.Needs(gate.OfObject, gate.Always)
	if err := moorage.ValidateWarehouse(ident.Warehouse); err != nil {
		return found, err
	}
	if ident.Name == "" {
		if len(ident.Namespace) > 0 {
			if err := ident.Namespace.Validate(); err != nil {
				return found, err
			}
		}
		if found.path, err = p.directory.LivePath(ctx, ident.Warehouse, ident.Namespace); err != nil {
			return found, p.directory.Missing(ctx, by, ident.Warehouse, err)
		}
		return found, p.directory.MayAt(ctx, by, asked, found.path, ident)
	}
	if err := ident.Validate(); err != nil {
		return found, err
	}
	if found.found, err = p.directory.FindFor(ctx, by, asked, ofKind(kind), ident); err != nil {
		return found, err
	}
	found.path, err = p.directory.Path(ctx, ident.Warehouse, ident.Namespace)
	return found, err
}

// protection returns the protection of f. It is zero if f is zero.
func (f protecting) protection() (p Protection) {
	if f.path == nil {
		return p
	}
	path := f.path
	switch {
	case f.found != nil:
		p.Protected = f.found.Pointer.Protected
	default:
		p.Protected = path.IsProtected()
		if path.Depth() == 0 {
			return p
		}
		path = path.Up()
	}
	if depth, isProtected := path.Protection(); isProtected {
		p.By = &moorage.Identifier{Warehouse: f.ident.Warehouse, Namespace: f.ident.Namespace[:depth]}
	}
	return p
}

// plan plans the new protection of f.
func (f protecting) plan(attempt *commit.Attempt, protected bool) (*commit.Plan, error) {
	if f.protection().Protected == protected {
		return &commit.Plan{Empty: true}, nil
	}
	action := "protect"
	if !protected {
		action = "end-protection"
	}
	var put ledger.Write
	var item registry.Item
	record := f.path.Record()
	switch {
	case f.found != nil:
		before, after := f.found.Pointer, f.found.Pointer
		record = f.found.Record
		after.Protected = protected
		after.Last = after.Written(registry.StateLive, attempt.Change, before.LastIn(registry.StateLive).Summary)
		put, item = ledger.Replace(record, registry.StateLive, after), registry.PointerItem(before, after)
	case f.path.Depth() == 0:
		value := f.path.Warehouse
		value.Protected = protected
		value.Last = value.Written(registry.StateLive, attempt.Change)
		put, item = ledger.Replace(record, registry.StateLive, &value), registry.ContainerItem(f.ident, value.ID)
	default:
		value, err := ledger.Decode[registry.Namespace](record)
		if err != nil {
			return nil, err
		}
		value.Protected = protected
		value.Last = value.Written(registry.StateLive, attempt.Change)
		put, item = ledger.Replace(record, registry.StateLive, &value), registry.ContainerItem(f.ident, value.ID)
	}
	item.Actions = []string{action}
	writes, err := ledger.Encode(put)
	return &commit.Plan{
		Conditions: []registry.Condition{ledger.Unchanged(record)}, Writes: writes, Items: []registry.Item{item},
	}, err
}

// unprotected returns the conditions for a change that protection can refuse, of a table or view in
// the namespace of path. They require that the containers are unchanged, so that none of them
// becomes protected in the meantime. The change must also require an unchanged pointer.
//
// Errors: KindForbidden if the object is protected, or is a mirror.
func unprotected(path *directory.Path, pointer registry.Pointer, ident moorage.Identifier) (
	[]registry.Condition, error) {
	if pointer.Frozen != "" {
		return nil, gate.FrozenObject(ident, pointer.Frozen)
	}
	if pointer.Protected {
		return nil, gate.ProtectedObject(ident)
	}
	if depth, isProtected := path.Protection(); isProtected {
		return nil, gate.ProtectedBy(ident.String(), ident.Warehouse, ident.Namespace[:depth], false)
	}
	return path.Unchanged(), nil
}

// renamedOut returns the error for a rename out of a protected container. path is the path of the
// present name, and to is the new name.
func renamedOut(path *directory.Path, from, to moorage.Identifier) error {
	depth, isProtected := path.Protection()
	if !isProtected || depth <= len(to.Namespace) && slices.Equal(from.Namespace[:depth], to.Namespace[:depth]) {
		return nil
	}
	return gate.ProtectedBy(from.String(), from.Warehouse, from.Namespace[:depth], false)
}
