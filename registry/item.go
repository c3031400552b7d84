package registry

import "moorage"

// The kinds of the objects that a change may be about.
const (
	ItemWarehouse = "warehouse"
	ItemNamespace = "namespace"
	ItemTable     = "table"
	ItemView      = "view"
	ItemPrincipal = "principal"
	ItemRole      = "role"
	ItemGrants    = "grants"
)

// Item is one object that a change made, changed or ended.
type Item struct {
	Kind  string             `json:"kind"`
	ID    ID                 `json:"id"`
	Ident moorage.Identifier `json:"identifier"` // after the change; of an object that ended, before it
	// Previous is what a rename found it called; nil if the name stayed.
	Previous *moorage.Identifier `json:"previous-identifier,omitempty"`
	UUID     string              `json:"uuid,omitempty"` // of a table or view
	// MetadataLocation is the current one after the change, and PreviousMetadataLocation that
	// before. Each is empty if there was none then, and for what has no metadata.
	MetadataLocation         string `json:"metadata-location,omitempty"`
	PreviousMetadataLocation string `json:"previous-metadata-location,omitempty"`
	// Rule is the hash of the rule by which the server took care of a table; empty otherwise.
	Rule string `json:"rule,omitempty"`
	// Facts are what is known of a table's version after the change; nil if it has no new version,
	// or if an older version of the server wrote the change.
	Facts *Facts `json:"facts,omitempty"`
}

// Facts are what the care of a table is planned by.
type Facts struct {
	Snapshots int64  `json:"snapshots"`
	FirstMS   int64  `json:"first,omitempty"` // time of the first snapshot in the document
	Refs      int64  `json:"refs"`
	Seq       int64  `json:"seq,omitempty"`       // last sequence number
	Operation string `json:"operation,omitempty"` // of main's head
	// Files, Deletes and Bytes are the totals that the summary of main's head has; -1 for one that
	// it does not have.
	Files   int64 `json:"files"`
	Deletes int64 `json:"deletes"`
	Bytes   int64 `json:"bytes"`
	// Rules is a hash of what the table itself says about its care; empty if it says nothing.
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

// PointerItem returns the item of a table or view. before is zero for one that is made, after for
// one that ends.
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
