package registry

import (
	"slices"
	"strconv"

	"moorage"
)

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
	// the location before it. Either is empty if there was no location at that time, or if the
	// object has no metadata. In storage, the previous location is left out if the change's Before
	// has it and the pointer still exists. DecodeChange fills it in.
	MetadataLocation         string `json:"metadata-location,omitempty"`
	PreviousMetadataLocation string `json:"previous-metadata-location,omitempty"`
	// Rule is the hash of the rule that the server followed in the maintenance of a table. It is
	// empty for other changes.
	Rule string `json:"rule,omitempty"`
	// Actions are the updates of a commit, in their order, each with the names that it sets or
	// removes: "add-snapshot", "set-snapshot-ref main", "set-properties a,b". Values are left out.
	// See the function Actions.
	Actions []string `json:"actions,omitempty"`
	// Purge is true if a drop requested a purge.
	Purge bool `json:"purge,omitempty"`
	// If the change ended the object for good, Ended is the ID of its record in TableDropped.
	Ended string `json:"ended,omitempty"`
	// Summary describes the object's version after the change. It is nil if the change made no new
	// version.
	Summary *Summary `json:"summary,omitempty"`
}

// Bounds of Item.Actions.
const (
	actionsMax      = 16
	actionsBytesMax = 80
)

// Actions returns texts in the form of Item.Actions: the first 16, each cut to 80 bytes, and then,
// for example, "+12" if there are 12 more.
func Actions(texts []string) []string {
	var actions []string
	for _, text := range texts[:min(len(texts), actionsMax)] {
		actions = append(actions, moorage.Cut(text, actionsBytesMax))
	}
	if more := len(texts) - actionsMax; more > 0 {
		actions = append(actions, "+"+strconv.Itoa(more))
	}
	return actions
}

// ContainerItem returns the item of a warehouse, or of a namespace in it. The Name in ident is
// empty.
func ContainerItem(ident moorage.Identifier, id ID) Item {
	if len(ident.Namespace) == 0 {
		return Item{Kind: ItemWarehouse, ID: id, Ident: ident}
	}
	return Item{Kind: ItemNamespace, ID: id, Ident: ident}
}

// Kind returns ItemTable or ItemView.
func (p Pointer) Kind() string {
	if p.View {
		return ItemView
	}
	return ItemTable
}

// PointerItem returns the item of a table or view. The parameter before is zero for a new pointer,
// and after is zero for a pointer that is dropped or ends. The item has a summary only if the
// change made a new version. Other changes leave the pointer's old summary in place.
func PointerItem(before, after Pointer) Item {
	present := after
	if after.ID.IsZero() {
		present = before
	}
	item := Item{
		Kind: present.Kind(), ID: present.ID, Ident: present.Identifier(), UUID: present.TableUUID,
		MetadataLocation: after.MetadataLocation, PreviousMetadataLocation: before.MetadataLocation,
	}
	if after.Last.Summary != before.Last.Summary {
		item.Summary = after.Last.Summary
	}
	if was := before.Identifier(); !before.ID.IsZero() && was.String() != item.Ident.String() {
		item.Previous = &was
	}
	return item
}

// withoutLocations returns the items of c in stored form. It leaves out a previous location that is
// also in c.Versions. The item of a pointer that c deletes keeps the location, because a node of
// version 0.1.0 reads it there.
func (c Change) withoutLocations() []Item {
	items := c.Items
	for i, item := range items {
		if item.PreviousMetadataLocation == "" || item.PreviousMetadataLocation != c.locationBefore(item.ID) ||
			c.deletes(PointerKey(item.ID)) {
			continue
		}
		if &items[0] == &c.Items[0] {
			items = slices.Clone(items)
		}
		items[i].PreviousMetadataLocation = ""
	}
	return items
}

// deletes reports whether c deletes the record of a key.
func (c Change) deletes(key Key) bool {
	return slices.ContainsFunc(c.Versions, func(v Version) bool { return v.Key == key && v.New.IsZero() })
}

// locationBefore returns the metadata location that c replaced in the record of a pointer. It
// returns "" if c replaced none.
func (c Change) locationBefore(pointer ID) string {
	key := PointerKey(pointer)
	for _, v := range c.Versions {
		if v.Key != key || v.Before == nil || len(v.Before.Set) == 0 {
			continue
		}
		return textMember(v.Before.Set, "metadata-location")
	}
	return ""
}

// DecodeChange reads the value of a change record.
func DecodeChange(record Record) (Change, error) {
	change, err := Decode[Change](record)
	for i, item := range change.Items {
		if item.PreviousMetadataLocation == "" && (item.Kind == ItemTable || item.Kind == ItemView) {
			change.Items[i].PreviousMetadataLocation = change.locationBefore(item.ID)
		}
	}
	return change, err
}
