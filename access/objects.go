package access

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"moorage"
)

// object is the content of a grants record in the form that decisions use.
type object struct {
	grants []granted // by grantee
	// All objects of one container share the slice ancestors.
	ancestors []ID
	owner     number // zero if the object still belongs to its creator
	kind      Kind
	managed   bool
}

// granted is one grant. 16 bits suffice for all privileges.
type granted struct {
	grantee    number
	privileges uint16 // as granted
	implied    uint16 // including implied privileges
}

const _ = uint16(everyPrivilege)

// grantees returns the numbers of all grantees and of the owner of the object, sorted.
func (o object) grantees() []number {
	all := make([]number, 0, len(o.grants)+1)
	for _, each := range o.grants {
		all = append(all, each.grantee)
	}
	if o.owner != 0 {
		if at, found := slices.BinarySearch(all, o.owner); !found {
			all = slices.Insert(all, at, o.owner)
		}
	}
	return all
}

// below holds the grants below one container.
type below struct {
	path     []ID // the container and its ancestors
	grantees map[number]*childSet
}

// childSet holds the children of one container that matter for one grantee: the grantee has a grant
// on them or below them, or is the owner there.
type childSet struct {
	grants   int     // number of grants and ownerships on and below the children
	children []child // sorted by id; nil once there were more than ChildrenMax
}

type child struct {
	id     ID
	kind   Kind
	grants int
}

func compareIDs(a, b ID) int { return bytes.Compare(a[:], b[:]) }

func (s *childSet) find(id ID) (int, bool) {
	return slices.BinarySearchFunc(s.children, id, func(c child, id ID) int { return compareIDs(c.id, id) })
}

// add adds delta, which may be negative, to the count for a child.
func (s *childSet) add(id ID, kind Kind, delta int) {
	cut := s.cut()
	s.grants += delta
	if cut {
		return
	}
	at, found := s.find(id)
	switch {
	case !found:
		s.children = slices.Insert(s.children, at, child{id, kind, delta})
	case s.children[at].grants+delta == 0:
		s.children = slices.Delete(s.children, at, at+1)
	default:
		s.children[at].grants += delta
	}
	if len(s.children) > ChildrenMax {
		s.children = nil
	}
}

// cut reports whether the set has dropped its list of children because there were too many.
func (s *childSet) cut() bool { return s.children == nil && s.grants > 0 }

// place is a pair of a container and a grantee.
type place struct {
	container ID
	grantee   number
}

// edit builds the grants records of the next snapshot.
type edit struct {
	names   *namesEdit
	objects *shardedEdit[ID, object]
	below   *shardedEdit[ID, below]
	sets    map[place]*childSet // the sets that this edit changed
	paths   map[ID][]ID         // the container and its ancestors, for each container with a change
	added   int
}

func (e *edit) remove(id ID) {
	old, found := e.objects.get(id)
	if !found {
		return
	}
	e.count(id, old, old.grantees(), -1)
	e.objects.remove(id)
	e.added--
}

func (e *edit) put(record Grants) {
	next := e.object(record)
	old, found := e.objects.get(record.ID)
	if !found {
		e.added++
	}
	before, after := old.grantees(), next.grantees()
	if found && old.kind == next.kind && slices.Equal(old.ancestors, next.ancestors) {
		before, after = difference(before, after), difference(after, before)
	}
	e.count(record.ID, old, before, -1)
	e.count(record.ID, next, after, +1)
	e.objects.set(record.ID, next)
}

// difference returns the elements that are in all but not in others. Both must be sorted.
func difference(all, others []number) []number {
	return slices.DeleteFunc(slices.Clone(all), func(n number) bool {
		_, found := slices.BinarySearch(others, n)
		return found
	})
}

// object returns the content of record in the form that decisions use. It leaves out privileges
// that cannot be granted on the record's kind.
func (e *edit) object(record Grants) object {
	o := object{
		ancestors: e.shared(record.Ancestors), kind: record.Kind,
		managed: record.Managed && (record.Kind == Warehouse || record.Kind == Namespace),
	}
	if record.Owner != "" && record.Kind != Server {
		o.owner = e.names.number(record.Owner)
	}
	o.grants = make([]granted, 0, len(record.Grants))
	for _, grant := range record.Grants {
		privileges := grant.Privileges & Grantable(record.Kind)
		if privileges == 0 || GranteeOf(moorage.NameOf(grant.Grantee)) == Nobody {
			continue
		}
		grantee := e.names.number(grant.Grantee)
		at, found := slices.BinarySearchFunc(o.grants, grantee, func(g granted, n number) int {
			return cmp.Compare(g.grantee, n)
		})
		if !found {
			o.grants = slices.Insert(o.grants, at, granted{grantee: grantee})
		}
		o.grants[at].privileges |= uint16(privileges)
		o.grants[at].implied |= uint16(privileges.Implied())
	}
	return o
}

// shared returns ancestors, or an equal slice that another object of the same container already
// uses. That saves memory.
func (e *edit) shared(ancestors []ID) []ID {
	if len(ancestors) == 0 {
		return nil
	}
	known, found := e.paths[ancestors[0]]
	if !found {
		if container, ok := e.below.get(ancestors[0]); ok {
			known = container.path
		}
	}
	if !slices.Equal(known, ancestors) {
		known = slices.Clone(ancestors)
	}
	e.paths[ancestors[0]] = known
	return known
}

// count adds delta to the counts of each of grantees, in every container above an object.
func (e *edit) count(id ID, o object, grantees []number, delta int) {
	if len(grantees) == 0 {
		return
	}
	for i := range o.ancestors {
		e.paths[o.ancestors[i]] = o.ancestors[i:]
	}
	o.above(id, func(container, child ID, kind Kind) {
		for _, grantee := range grantees {
			e.set(place{container, grantee}).add(child, kind, delta)
		}
	})
}

// above calls do for each container above the object. child is the container's child on the path
// down to the object.
func (o object) above(id ID, do func(container, child ID, kind Kind)) {
	if o.kind == Server {
		return
	}
	child, kind := id, o.kind
	for i, container := range o.ancestors {
		do(container, child, kind)
		child, kind = container, Namespace
		if i == len(o.ancestors)-1 {
			kind = Warehouse
		}
	}
	do(ServerID, child, kind)
}

// set returns the set of children at a place. The edit e may change the set.
func (e *edit) set(at place) *childSet {
	if set, found := e.sets[at]; found {
		return set
	}
	set := new(childSet)
	if container, found := e.below.get(at.container); found {
		if old, found := container.grantees[at.grantee]; found {
			*set = childSet{old.grants, slices.Clone(old.children)}
		}
	}
	e.sets[at] = set
	return set
}

// finish puts the changed sets into their containers.
func (e *edit) finish() {
	e.recount()
	changed := make(map[ID]below)
	for at, set := range e.sets {
		container, found := changed[at.container]
		if !found {
			old, _ := e.below.get(at.container)
			container = below{e.paths[at.container], maps.Clone(old.grantees)}
			if container.grantees == nil {
				container.grantees = make(map[number]*childSet)
			}
			changed[at.container] = container
		}
		if set.grants > 0 {
			set.children = slices.Clip(set.children)
			container.grantees[at.grantee] = set
		} else {
			delete(container.grantees, at.grantee)
		}
	}
	for id, container := range changed {
		if len(container.grantees) > 0 {
			e.below.set(id, container)
		} else {
			e.below.remove(id)
		}
	}
}

// recount rebuilds the sets that were cut and now have few enough grants. It visits all objects,
// which takes about 50 ms for a million. It is needed at most once in a thousand revokes.
func (e *edit) recount() {
	again := make(map[place]*childSet)
	for at, set := range e.sets {
		if set.cut() && set.grants <= ChildrenMax {
			again[at] = new(childSet)
		}
	}
	if len(again) == 0 {
		return
	}
	for _, shard := range e.objects.shards {
		for id, o := range shard {
			o.above(id, func(container, child ID, kind Kind) {
				for _, grantee := range o.grantees() {
					if set, found := again[place{container, grantee}]; found {
						set.add(child, kind, +1)
					}
				}
			})
		}
	}
	maps.Copy(e.sets, again)
}
