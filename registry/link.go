package registry

import (
	"cmp"
	"encoding/json"
	"slices"

	"moorage"
)

// VersionOf returns the effect of c on the record at a key. ok is false if c did not write the
// record.
func (c Change) VersionOf(key Key) (v Version, ok bool) {
	at := slices.IndexFunc(c.Versions, func(v Version) bool { return v.Key == key })
	if at < 0 {
		return Version{}, false
	}
	return c.Versions[at], true
}

// ItemOf returns the item of c for the table or view with this ID. ok is false if c has no such
// item.
func (c Change) ItemOf(pointer ID) (item Item, ok bool) {
	at := slices.IndexFunc(c.Items, func(item Item) bool {
		return item.ID == pointer && (item.Kind == ItemTable || item.Kind == ItemView)
	})
	if at < 0 {
		return Item{}, false
	}
	return c.Items[at], true
}

// PointerAfter returns a pointer with the name and the metadata location of a table or view after
// the change of item. After a drop, these are the last ones.
func (item Item) PointerAfter() Pointer {
	return Pointer{
		ID: item.ID, Warehouse: item.Ident.Warehouse, Namespace: item.Ident.Namespace, Name: item.Ident.Name,
		MetadataLocation: cmp.Or(item.MetadataLocation, item.PreviousMetadataLocation),
	}
}

// PointerBefore returns the name, the metadata location and the Last of a pointer before the change
// of v. The parameter after is the pointer after the change, with at least its name and location.
// ok is false if there was no pointer, or if its value is unknown.
//
// The state of the result is Before.State, so LastIn returns the previous change, if it is known.
func (v Version) PointerBefore(after Pointer) (before Pointer, ok bool) {
	if v.Before == nil || v.Before.Cut {
		return before, false
	}
	var set struct { // not the parameter after: decoding would reuse the memory of its slices
		Namespace        moorage.Namespace `json:"namespace"`
		Name             string            `json:"name"`
		MetadataLocation string            `json:"metadata-location"`
		Last             Last              `json:"last"`
	}
	if len(v.Before.Set) > 0 {
		if err := json.Unmarshal(v.Before.Set, &set); err != nil {
			return before, false
		}
	}
	before = Pointer{
		ID: after.ID, Warehouse: after.Warehouse, Namespace: set.Namespace, Name: cmp.Or(set.Name, after.Name),
		MetadataLocation: cmp.Or(set.MetadataLocation, after.MetadataLocation), Last: set.Last,
	}
	if set.Namespace == nil {
		before.Namespace = after.Namespace
	}
	return before, true
}

// SummaryBefore returns the summary of the version that the change c replaced in the table or view
// of item. It is nil if unknown.
func (c Change) SummaryBefore(item Item) *Summary {
	version, _ := c.VersionOf(PointerKey(item.ID))
	before, ok := version.PointerBefore(item.PointerAfter())
	if !ok {
		return nil
	}
	return before.LastIn(version.Before.State).Summary
}
