package registry

import "moorage"

// The kinds of objects that a change may affect.
const (
	ItemWarehouse = "warehouse"
	ItemNamespace = "namespace"
	ItemTable     = "table"
	ItemView      = "view"
	ItemPrincipal = "principal"
	ItemRole      = "role"
	ItemGrants    = "grants"
)

// Item is one object that a change created, changed or ended.
type Item struct {
	Kind  string             `json:"kind"`
	ID    ID                 `json:"id"`
	Ident moorage.Identifier `json:"identifier"` // after the change, or before it for an object that ended
	// Previous is the name before a rename. It is nil if the name did not change.
	Previous *moorage.Identifier `json:"previous-identifier,omitempty"`
	UUID     string              `json:"uuid,omitempty"` // of a table or view
	// MetadataLocation is the current location after the change, and PreviousMetadataLocation is
	// the location before the change. Each is empty if there was no location then, or if the object
	// has no metadata.
	MetadataLocation         string `json:"metadata-location,omitempty"`
	PreviousMetadataLocation string `json:"previous-metadata-location,omitempty"`
	// Rule is the hash of the rule by which the server maintained a table. It is empty if the
	// change is not maintenance by the server.
	Rule string `json:"rule,omitempty"`
	// Facts describe a table's version after the change. It is nil if the table has no new version.
	Facts *Facts `json:"facts,omitempty"`
}

// Facts are the facts about a version of a table from which its maintenance is planned.
type Facts struct {
	Snapshots int64  `json:"snapshots"`
	FirstMS   int64  `json:"first,omitempty"` // time of the first snapshot in the document
	Refs      int64  `json:"refs"`
	Seq       int64  `json:"seq,omitempty"`       // last sequence number
	Operation string `json:"operation,omitempty"` // of the head of branch main
	// Files, Deletes and Bytes are the totals in the summary of the head of branch main.
	// A total that the summary lacks is -1.
	Files   int64 `json:"files"`
	Deletes int64 `json:"deletes"`
	Bytes   int64 `json:"bytes"`
	// Rules is a hash of the table's own maintenance properties. It is empty if the table has no
	// such properties.
	Rules string `json:"rules,omitempty"`
}

// ContainerItem returns the item of a warehouse, or of a namespace in it. The identifier has no
// name.
func ContainerItem(ident moorage.Identifier, id ID) Item {
	if len(ident.Namespace) == 0 {
		return Item{Kind: ItemWarehouse, ID: id, Ident: ident}
	}
	return Item{Kind: ItemNamespace, ID: id, Ident: ident}
}

// PointerItem returns the item of a table or view. before is zero for a new pointer. after is zero
// for a pointer that ends.
func PointerItem(before, after Pointer) Item {
	present := after
	if after.ID.IsZero() {
		present = before
	}
	item := Item{
		Kind: ItemTable, ID: present.ID, Ident: present.Identifier(), UUID: present.TableUUID,
		MetadataLocation: after.MetadataLocation, PreviousMetadataLocation: before.MetadataLocation,
	}
	if present.View {
		item.Kind = ItemView
	}
	if was := before.Identifier(); !before.ID.IsZero() && was.String() != item.Ident.String() {
		item.Previous = &was
	}
	return item
}
