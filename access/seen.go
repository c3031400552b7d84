package access

import (
	"maps"
	"slices"
)

// Plan is a way to list the children of a container for a caller.
type Plan uint8

// The plans.
const (
	// ListNone lists nothing: the caller does not see the container.
	ListNone Plan = iota
	// ListAll lists every child, without checking each.
	ListAll
	// ListSeen reads all children, and keeps the ones for which SeenIn returns true.
	ListSeen
	// ListChildren reads the children with the returned ids, and keeps the children that still
	// exist.
	ListChildren
)

// PlanList plans how to list the children of a container that are of one kind. The path begins with
// the container. The empty path means the list of warehouses. There are few warehouses, so the plan
// for them is never ListChildren. PlanList returns ids only with ListChildren: at most ChildrenMax,
// sorted, in a slice that the caller of PlanList may keep. The ids do not contain objects without
// grants, even if w created them. So if w created an object in the container, the container must
// have OwnsInside, and the plan is ListSeen.
func (w *Who) PlanList(path []Object, kind Kind) (plan Plan, ids []ID) {
	path = withoutServer(path)
	if !w.Seen(path) {
		return ListNone, nil
	}
	if w.Has(path)&shows != 0 {
		return ListAll, nil
	}
	if len(path) == 0 || path[0].OwnsInside {
		return ListSeen, nil
	}
	record, _ := w.snapshot.objects.get(path[0].ID)
	if w.hasGrant(record.grants) {
		return ListSeen, nil
	}
	granted, _ := w.snapshot.below.get(path[0].ID)
	children := make(map[ID]bool)
	for _, each := range w.granted {
		set, found := granted.grantees[each]
		if !found {
			continue
		}
		if set.cut() {
			return ListSeen, nil
		}
		for _, child := range set.children {
			if child.kind == kind {
				children[child.id] = true
			}
		}
		if len(children) > ChildrenMax {
			return ListSeen, nil
		}
	}
	return ListChildren, slices.SortedFunc(maps.Keys(children), compareIDs)
}

// SeenIn reports whether the caller sees child, if PlanList returned ListSeen or ListChildren for
// the container of child. It has the same result as Seen, but checks only child: with these plans,
// no object above child makes child visible.
func (w *Who) SeenIn(child Object) bool {
	if w.disabled {
		return false
	}
	record, _ := w.snapshot.objects.get(child.ID)
	return w.isOwner(&record, &child) || w.hasGrant(record.grants) || child.OwnsInside || w.hasGrantInside(child.ID)
}

// hasGrant reports whether one of grants counts for the caller.
func (w *Who) hasGrant(grants []granted) bool {
	return slices.ContainsFunc(grants, func(g granted) bool { return w.is(g.grantee) })
}
