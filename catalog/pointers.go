package catalog

import (
	"context"

	"moorage"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/registry"
)

// Pointers gives access to the pointers of a catalog. It is safe for concurrent use.
type Pointers struct{ directory *directory.Directory }

// Pointers returns the pointers of c.
func (c *Catalog) Pointers() Pointers { return Pointers{c.directory} }

// FindForLease returns the id and table-uuid of the pointer called ident, if caller may take a
// lease on it. It returns the errors of a load.
func (p Pointers) FindForLease(ctx context.Context, caller moorage.Caller, ident moorage.Identifier) (
	registry.ID, string, error) {
	asked := gate.TakeLease.Needs(gate.OfObject, gate.Always)
	by := directory.Asker{Caller: caller, Verb: gate.TakeLease}
	found, err := p.directory.FindFor(ctx, by, asked, directory.Table(), ident)
	if err != nil {
		return registry.ID{}, "", moorage.Annotate("catalog.FindForLease", ident.String(), err)
	}
	return found.Pointer.ID, found.Pointer.TableUUID, nil
}

// Named returns the cached ID of the pointer called ident. It checks no privileges. known is false
// if the name is not cached. A cached pointer may have been renamed or removed in the meantime.
func (p Pointers) Named(ident moorage.Identifier) (id registry.ID, known bool) {
	found, known := p.directory.Known(ident)
	if !known {
		return registry.ID{}, false
	}
	return found.Pointer.ID, true
}
