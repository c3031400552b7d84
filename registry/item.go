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
	// the location before the change. Each is empty if there was no location then, or if the object
	// has no metadata. A stored item lacks the previous location if the change's Before has it, and
	// the pointer still exists. DecodeChange fills it in.
	MetadataLocation         string `json:"metadata-location,omitempty"`
	PreviousMetadataLocation string `json:"previous-metadata-location,omitempty"`
	// Rule is the hash of the rule by which the server maintained a table. It is empty if the
	// change is not maintenance by the server.
	Rule string `json:"rule,omitempty"`
	// Actions are the updates of a commit, in their order, each with the names that it sets or
	// removes: "add-snapshot", "set-snapshot-ref main", "set-properties a,b". They have no values.
	// See Actions.
	Actions []string `json:"actions,omitempty"`
	// Purge means that a drop requested a purge.
	Purge bool `json:"purge,omitempty"`
	// Ended is the ID of the record in TableDropped of an object that the change ended for good.
	Ended string `json:"ended,omitempty"`
	// Summary describes the object's version after the change. It is nil if the change made no
	// version.
	Summary *Summary `json:"summary,omitempty"`
}

// Bounds of Item.Actions.
const (
	actionsMax      = 16
	actionsBytesMax = 80
)

// Actions returns texts as Item.Actions: the first 16, each cut to 80 bytes, and then "+12" if 12
// more follow.
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

// ContainerItem returns the item of a warehouse, or of a namespace in it. The identifier has no
// name.
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

// PointerItem returns the item of a table or view. before is zero for a new pointer. after is zero
// for a pointer that is dropped or ends. The item has the summary of after if that is a new one: a
// change that makes no version keeps the summary in the pointer's Last.
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

// withoutLocations returns the items of c as they are stored: without the previous locations that
// the replaced values in c.Versions have. The item of a pointer that c deletes keeps the location,
// because a node of version 0.1.0 reads it there.
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

// locationBefore returns the metadata location that c replaced in the record of a pointer. It is
// empty if c did not replace one.
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
