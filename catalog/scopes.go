package catalog

import (
	"context"

	"moorage"
	"moorage/access"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
)

// Scopes gives access to the objects that can have maintenance policies, as one caller. It is safe
// for concurrent use.
type Scopes struct{ catalog *Catalog }

// Scopes returns the scopes of c, as its caller.
func (c *Catalog) Scopes() Scopes { return Scopes{c} }

// Scope is an object that can have a maintenance policy: the server, a warehouse, a namespace or a
// table.
type Scope struct {
	Name      string             // the name in registry.MaintenancePolicyKey
	Ident     moorage.Identifier // empty for the server
	Warehouse registry.ID        // zero for the server
	Pointer   registry.ID        // the ID of a table's pointer; zero for other scopes
	item      registry.Item
	// exists requires that the object still exists under its name. It is zero for the server.
	exists registry.Condition
}

// Find returns the scope called ident, if the caller has the privileges on it that v requires.
//
// Errors: the errors of a load of the scope.
func (s Scopes) Find(ctx context.Context, v gate.Verb, ident moorage.Identifier) (Scope, error) {
	var scope Scope
	err := s.catalog.ledger.Retry(ctx, moorage.KindUnavailable, func(int) (err error) {
		scope, err = s.find(ctx, v, ident)
		return err
	})
	return scope, moorage.Annotate("catalog.Find", ident.String(), err)
}

// find makes one attempt of Find. It returns ledger.ErrRetry if a table gets another name
// meanwhile.
func (s Scopes) find(ctx context.Context, v gate.Verb, ident moorage.Identifier) (Scope, error) {
	asked := v.Needs(gate.OfObject, gate.Always)
	by, names := s.catalog.asker(v), s.catalog.directory
	scope := Scope{Name: registry.ScopeServer, Ident: ident}
	if ident.Warehouse == "" {
		if len(ident.Namespace) > 0 || ident.Name != "" {
			return scope, moorage.Errorf(moorage.KindIllegalArgument, "The name has no warehouse")
		}
		return scope, s.onServer(ctx, by, v.NeedsOfServer())
	}
	if err := checkScope(ident); err != nil {
		return scope, err
	}
	if ident.Name != "" {
		found, err := names.FindFor(ctx, by, asked, directory.Table(), ident)
		if err != nil {
			return scope, err
		}
		path, entry, err := names.PathAndEntry(ctx, ident)
		switch {
		case moorage.KindOf(err) == moorage.KindNoSuchNamespace && err != nil:
			return scope, ledger.ErrRetry
		case err != nil:
			return scope, err
		case !entry.Record.Exists() || entry.Value.Pointer != found.Pointer.ID:
			return scope, ledger.ErrRetry
		}
		scope.Name, scope.Pointer = registry.TableScope(found.Pointer.ID), found.Pointer.ID
		scope.Warehouse = path.Warehouse.ID
		// The pointer's record changes with each commit, the record of its name does not.
		scope.exists = ledger.Unchanged(entry.Record)
		scope.item = registry.Item{
			Kind: registry.ItemTable, ID: scope.Pointer, Ident: ident, UUID: found.Pointer.TableUUID,
		}
		return scope, nil
	}
	path, err := names.PathFor(ctx, by, asked, ident)
	if err != nil {
		return scope, err
	}
	scope.Warehouse, scope.item = path.Warehouse.ID, registry.ContainerItem(ident, path.ID())
	scope.exists = ledger.Unchanged(path.Record())
	scope.Name = registry.WarehouseScope(path.Warehouse.ID)
	if len(ident.Namespace) > 0 {
		scope.Name = registry.NamespaceScope(path.ID())
	}
	return scope, nil
}

func checkScope(ident moorage.Identifier) error {
	err := moorage.ValidateWarehouse(ident.Warehouse)
	switch {
	case err != nil:
		return err
	case ident.Name != "":
		return ident.Validate()
	case len(ident.Namespace) > 0:
		return ident.Namespace.Validate()
	}
	return nil
}

// onServer returns nil if the caller has the privileges asked on the server.
func (s Scopes) onServer(ctx context.Context, by directory.Asker, asked access.Privileges) error {
	if !s.catalog.guarded {
		return nil
	}
	return s.catalog.guard.Decide(ctx, gate.Question{Caller: by.Caller, Verb: by.Verb, Asked: asked})
}

// Change changes records that belong to the scope called ident, in one Apply with a change record.
// plan returns the writes and conditions. The Apply also requires that the scope still exists,
// because the records of a dropped scope would stay. If a condition fails, Change calls plan again.
//
// Errors: the errors of Find and of plan; KindUnavailable; KindCommitUnknown.
func (s Scopes) Change(ctx context.Context, v gate.Verb, ident moorage.Identifier,
	plan func(ctx context.Context, scope Scope) (Beside, error)) error {
	_, err := s.catalog.submit(ctx, commit.Intent{
		Verb: v, On: []moorage.Identifier{ident}, Silent: true,
		Plan: func(ctx context.Context, _ *commit.Attempt) (*commit.Plan, error) {
			scope, err := s.find(ctx, v, ident)
			if err != nil {
				return nil, err
			}
			beside, err := plan(ctx, scope)
			if err != nil {
				return nil, err
			}
			made := &commit.Plan{Conditions: beside.Conditions, Writes: beside.Writes}
			if scope.Name != registry.ScopeServer {
				made.Items = []registry.Item{scope.item}
				made.Conditions = append(made.Conditions, scope.exists)
			}
			return made, nil
		},
	})
	return moorage.Annotate("catalog.Change", ident.String(), err)
}
