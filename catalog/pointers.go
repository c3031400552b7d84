package catalog

import (
	"context"

	"moorage"
	"moorage/catalog/directory"
	"moorage/registry"
)

// Pointers is what a catalog knows of pointers. It is nobody's: it asks no gate, which its callers
// have done. It is safe for concurrent use.
type Pointers struct{ service *service }

// PointersOf returns the pointers that c knows.
func PointersOf(c *Catalog) Pointers { return Pointers{c.service} }

// Find returns the id of the pointer that ident leads to, and its table-uuid. The errors are those
// of a load.
func (p Pointers) Find(ctx context.Context, ident moorage.Identifier) (registry.ID, string, error) {
	found, err := p.service.planner.directory.Find(ctx, directory.Table(), ident)
	if err != nil {
		return registry.ID{}, "", moorage.Annotate("catalog.Find", ident.String(), err)
	}
	return found.Pointer.ID, found.Pointer.TableUUID, nil
}

// Named returns the id of the pointer that ident led to when this catalog was asked for it last.
// known is false of a name that it does not remember. The pointer may have another name now, or be
// gone.
func (p Pointers) Named(ident moorage.Identifier) (id registry.ID, known bool) {
	found, known := p.service.planner.directory.Known(ident)
	if !known {
		return registry.ID{}, false
	}
	return found.Pointer.ID, true
}
