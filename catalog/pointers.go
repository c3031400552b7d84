package catalog

import (
	"moorage"
	"moorage/registry"
)

// Pointers is what a catalog knows of pointers without reading anything. It is nobody's: it shows
// no name to a caller, and decides nothing. It is safe for concurrent use.
type Pointers struct{ service *service }

// PointersOf returns the pointers that c knows.
func PointersOf(c *Catalog) Pointers { return Pointers{c.service} }

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
