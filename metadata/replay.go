package metadata

import (
	"strings"

	"moorage/internal/jsontext"
)

// IsReplay reports whether updates that add snapshots have already been applied to d. Each snapshot
// must exist with the manifest list from updates, and each ref must be at its snapshot or at a
// descendant. If the catalog rebased the append, the manifest list differs; then the summary must
// record the parent and the list that the client sent. d must already show the effect of all other
// updates. Only the client that drew a snapshot's id can have written the snapshot with that list.
// IsReplay returns true if updates is empty. If updates is not empty but adds no snapshot, IsReplay
// returns false.
func (d *Document) IsReplay(updates []Update) bool {
	if len(updates) == 0 {
		return true
	}
	added, removed := make(map[int64]bool, len(updates)), map[string]bool(nil)
	for _, u := range updates {
		switch op := u.op.(type) {
		case *addSnapshot:
			if !d.holds(&op.snapshot) {
				return false
			}
			added[op.snapshot.id] = true
		case setRef:
			if !added[op.ref.snapshotID] || !d.isBeyond(&op.ref) {
				return false
			}
			delete(removed, op.ref.name) // a request that replaces a table removes main and sets it again
		case removeRef:
			if removed == nil {
				removed = make(map[string]bool)
			}
			removed[op.name] = true
		}
	}
	for name := range removed {
		if d.ref(name) != nil {
			return false
		}
	}
	return len(added) > 0 && d.shows(updates)
}

// shows reports whether updates would not change d, apart from snapshots and refs. It returns false
// for unknown kinds of updates.
func (d *Document) shows(updates []Update) bool {
	base := d
	if d.canonical != nil {
		base = d.canonical
	}
	b := newBuilder(base, Env{})
	for _, u := range updates {
		switch op := u.op.(type) {
		case *addSnapshot, setRef, removeRef:
		case addSchema, addSpec, addSortOrder:
			if err := u.op.apply(b); err != nil || b.changed { // otherwise an equal one exists, whose id b records
				return false
			}
		default:
			if !b.shows(op) {
				return false
			}
		}
	}
	return true
}

// shows reports whether op would not change b.
func (b *builder) shows(op updateOp) bool {
	or := func(id, last int) int {
		if id == lastAddedID {
			return last
		}
		return id
	}
	switch op := op.(type) {
	case assignUUID:
		return strings.EqualFold(op.uuid, b.uuid)
	case upgradeFormatVersion:
		return op.version <= b.formatVersion
	case setLocation:
		return op.location == b.location
	case setCurrentSchema:
		return or(op.id, b.lastAddedSchema.id) == b.currentSchemaID
	case setDefaultSpec:
		return or(op.id, b.lastAddedSpec.id) == b.defaultSpecID
	case setDefaultSortOrder:
		return or(op.id, b.lastAddedOrder.id) == b.defaultOrderID
	case setProperties:
		for _, p := range op.updates {
			if value, ok := b.props[p.name]; !ok || value != p.value {
				return false
			}
		}
		return true
	case removeProperties:
		for _, name := range op.removals {
			if _, ok := b.props[name]; ok {
				return false
			}
		}
		return true
	}
	return false
}

// WasCreatedBy reports whether steps created d, even if other commits changed d since then. The
// first step must request a new table. The steps must assign d's uuid and add snapshots, and
// IsReplay must hold for their updates of snapshots and refs. Steps without snapshots could be
// recognised only by the uuid, which another client may have chosen too. So WasCreatedBy returns
// false for such steps.
func (d *Document) WasCreatedBy(steps []Step) bool {
	named := false
	var pointing []Update
	for _, step := range steps {
		for _, u := range step.Updates {
			switch op := u.op.(type) {
			case assignUUID:
				named = strings.EqualFold(op.uuid, d.UUID())
			case *addSnapshot, setRef:
				pointing = append(pointing, u)
			}
		}
	}
	return named && len(pointing) > 0 && d.IsReplay(pointing)
}

// holds reports whether the document has the snapshot with the same manifest list, or a rebased
// form of it.
func (d *Document) holds(s *snapshot) bool {
	all := d.arrays[snapshots]
	at, ok := d.snapshotAt.find(all, s.id)
	if !ok || s.manifestList == nil {
		return false
	}
	mine := d.snapshot(all.at(at))
	if mine.manifestList == nil {
		return false
	}
	list := jsontext.Unquote(s.manifestList)
	return jsontext.Unquote(mine.manifestList) == list || mine.summaryValue(rebasedKey) == sentAs(s.parent, list)
}

// isBeyond reports whether the document has the ref want, at want's snapshot or at a descendant.
// Apart from the snapshot, the two refs must be equal.
func (d *Document) isBeyond(want *ref) bool {
	have := d.ref(want.name)
	if have == nil {
		return false
	}
	all := d.arrays[snapshots]
	at := *have
	for range all.len() {
		if at.snapshotID == want.snapshotID {
			return at.sameAs(want)
		}
		i, ok := d.snapshotAt.find(all, at.snapshotID)
		if !ok {
			return false
		}
		parent := d.snapshot(all.at(i)).parent
		if !parent.given {
			return false
		}
		at.snapshotID = parent.value
	}
	return false
}
