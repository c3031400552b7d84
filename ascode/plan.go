package ascode

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Do is what a step does. A step is one request to a server.
type Do int

// The steps, in the order in which they are made: first what adds, then what ends something. So
// each object exists before it is named, and the caller has its new rights before it needs them or
// loses others. Ownership is handed over late, because the caller may need it until then. A
// membership that stands in the way of another one ends before that.
const (
	CreateWarehouse Do = iota // with location, allowed locations, storage, secret, delegation, properties
	PutRole                   // a new role, or another description
	AddMembers                // together with PutRole, in the order of objects
	CreateNamespace           // with its properties; together with AddGrants, in the order of objects
	AddGrants
	ChangeWarehouse // the facts of CreateWarehouse, but the location
	SetManaged
	SetProperties
	SetLabels // of the object and of its columns
	SetPolicy // of one type of maintenance
	RemovePolicy
	Protect
	Unprotect
	DropNamespace
	DropWarehouse
	SetOwner
	RemoveGrants
	RemoveMembers
	RemoveRole
)

// Change is a difference in one fact.
type Change struct {
	Fact    Fact
	Was, Is *string // nil if the fact is not there
}

// Step is one request that changes one object. The Changes of a step that creates or removes an
// object may be empty.
type Step struct {
	Do      Do
	Object  Object
	Changes []Change // sorted by their facts
	IsNew   bool     // PutRole makes the role
}

// Stay is an object that only the server has and that cannot be removed.
type Stay struct {
	Object Object
	Why    string
}

// Plan is what brings a server to what files describe.
type Plan struct {
	// Secrets are the environment variables of the secrets that steps set, sorted.
	Secrets []string
	Steps   []Step // in their order
	// Waiting are the tables and views that files describe and the server lacks.
	Waiting []Object
	// Stays are the objects that a prune leaves on the server. Kept counts the objects and facts
	// that only the server has, if the plan does not prune.
	Stays []Stay
	Kept  int
}

// IsEmpty reports whether the server has what the files describe.
func (p Plan) IsEmpty() bool { return len(p.Steps)+len(p.Waiting) == 0 }

// Caller is the caller that asks for a plan.
type Caller struct {
	// Grantees are the names for which a grant counts: the caller, the roles in its token, and
	// everyone. Roles of the store that have one of them as a member count too.
	Grantees []string
	// Only are the roles that the caller's credential is limited to. Of the roles that the caller
	// has, only these count, and everyone. Nil if there is no limit.
	Only []string
	// IsFixed means that no change of grants or roles takes the caller's rights.
	IsFixed bool
}

// Options are the options of a plan.
type Options struct {
	Prune  bool // remove what the files do not describe
	GiveUp bool // the caller may lose its right as an administrator
	Caller Caller
}

// DescribesAccess reports whether c says anything about who may do what. Otherwise a plan leaves
// that alone, also with Options.Prune.
func (c Catalog) DescribesAccess() bool {
	for o, facts := range c.World() {
		if o.Kind == RoleKind {
			return true
		}
		for fact := range facts {
			if fact.Attribute.isAccess() {
				return true
			}
		}
	}
	return false
}

// Make returns the plan that brings a server from actual to what c describes. actual has at least
// the objects that c names, if the server has them, and with Options.Prune all objects.
//
// Errors: faults of c that only the server shows, such as a new warehouse without a location or
// roles that contain each other, and ErrLockout.
func Make(c Catalog, actual World, options Options) (Plan, error) {
	m := maker{
		wanted: c.World(), actual: actual, options: options, access: c.DescribesAccess(), warehouses: c.Warehouses,
	}
	m.grantees()
	for _, o := range m.wanted.sorted() {
		m.object(o)
	}
	m.unlisted()
	m.plan.Secrets = c.secretsOf(m.plan.Steps)
	if len(m.faults) > 0 {
		return Plan{}, errors.Join(m.faults...)
	}
	steps, err := order(m.plan.Steps, actual, options)
	if err != nil {
		return Plan{}, err
	}
	m.plan.Steps = steps
	return m.plan, nil
}

// maker makes a plan.
type maker struct {
	wanted, actual World
	options        Options
	access         bool // the files describe access
	warehouses     map[string]*Warehouse
	plan           Plan
	faults         []error
}

// grantees refuses files that name a role which a prune would remove.
func (m *maker) grantees() {
	if !m.options.Prune {
		return
	}
	for _, o := range m.wanted.sorted() {
		for fact, value := range m.wanted[o] {
			role := Object{Kind: RoleKind, Name: fact.Key}
			switch fact.Attribute {
			case Owner:
				role.Name = value
			case Grant, Member:
			default:
				continue
			}
			if m.actual[role] != nil && m.wanted[role] == nil {
				m.faults = append(m.faults, fmt.Errorf("%s names the role %s, which --prune would remove: "+
					"describe it below roles, an empty description suffices", o, role.Name))
			}
		}
	}
}

// object plans the steps for an object that the files describe.
func (m *maker) object(o Object) {
	wanted, present := m.wanted[o], m.actual[o]
	isNew := present == nil
	if isNew && o.isLeaf() {
		m.plan.Waiting = append(m.plan.Waiting, o)
		return
	}
	location := Fact{Attribute: Location}
	switch is := wanted[location]; {
	case o.Kind != WarehouseKind:
	case isNew && is == "":
		m.faults = append(m.faults, fmt.Errorf("there is no %s: give its location, so that it can be made", o))
	case !isNew && is != "" && is != present[location]:
		m.faults = append(m.faults, fmt.Errorf("the location of %s is %s, and cannot become %s: "+
			"tables name their files by it", o, present[location], is))
	}
	steps := make(map[Do]map[Fact]Change)
	add := func(do Do, change Change) {
		if steps[do] == nil {
			steps[do] = make(map[Fact]Change)
		}
		steps[do][change.Fact] = change
	}
	if isNew {
		create := map[Kind]Do{WarehouseKind: CreateWarehouse, NamespaceKind: CreateNamespace, RoleKind: PutRole}
		if do, canBe := create[o.Kind]; canBe {
			steps[do] = make(map[Fact]Change)
		}
	}
	for fact, is := range wanted {
		if fact.Attribute == Storage && isNameOfSecret(fact.Key) {
			m.faults = append(m.faults, fmt.Errorf("%s has a secret in the storage option %s: "+
				"put it into an environment variable, and name that in secret.env", o, fact.Key))
		}
		was, had := present[fact]
		isOff := is == "false" && (fact.Attribute == Protected || fact.Attribute == Managed)
		if had && was == is || !had && isOff || !isNew && fact.Attribute == Location {
			continue
		}
		change := Change{Fact: fact, Is: &is}
		if isOff {
			change.Is = nil
		}
		if had {
			change.Was = &was
		}
		add(doOf(o.Kind, isNew, change), change)
	}
	for fact, was := range present {
		if _, isWanted := wanted[fact]; isWanted || !m.prunes(o, fact) {
			continue
		}
		if !m.options.Prune {
			m.plan.Kept++
			continue
		}
		add(doOf(o.Kind, false, Change{Fact: fact, Was: &was}), Change{Fact: fact, Was: &was})
	}
	m.add(o, steps)
}

// add adds the steps for an object: one for each thing to do, and one for each policy.
func (m *maker) add(o Object, steps map[Do]map[Fact]Change) {
	for do, changes := range steps {
		var sorted []Change
		for _, fact := range slices.SortedFunc(maps.Keys(changes), Fact.Compare) {
			sorted = append(sorted, changes[fact])
		}
		if do != SetPolicy && do != RemovePolicy {
			isNew := do == PutRole && m.actual[o] == nil
			m.plan.Steps = append(m.plan.Steps, Step{do, o, sorted, isNew})
			continue
		}
		for i := range sorted {
			m.plan.Steps = append(m.plan.Steps, Step{Do: do, Object: o, Changes: sorted[i : i+1]})
		}
	}
}

// prunes reports whether a fact that only the server has can be removed from an object that the
// files describe. Engines set properties of tables too, and a storage may need its secret.
func (m *maker) prunes(o Object, fact Fact) bool {
	switch fact.Attribute {
	case Location, Secret:
		return false
	case Property:
		return !o.isLeaf()
	}
	return m.access || !fact.Attribute.isAccess()
}

// doOf returns what makes a change of an object.
func doOf(kind Kind, isNew bool, change Change) Do {
	isRemoved := change.Is == nil
	switch change.Fact.Attribute {
	case Property:
		switch {
		case kind == WarehouseKind && isNew:
			return CreateWarehouse
		case kind == WarehouseKind:
			return ChangeWarehouse
		case kind == NamespaceKind && isNew:
			return CreateNamespace
		}
		return SetProperties
	case Location, AllowedLocation, Storage, Secret, Delegation:
		if isNew {
			return CreateWarehouse
		}
		return ChangeWarehouse
	case Protected:
		if isRemoved {
			return Unprotect
		}
		return Protect
	case Owner:
		return SetOwner
	case Managed:
		return SetManaged
	case Grant:
		if isRemoved {
			return RemoveGrants
		}
		return AddGrants
	case Member:
		switch {
		case isRemoved:
			return RemoveMembers
		case isNew:
			return PutRole
		}
		return AddMembers
	case Description:
		return PutRole
	case Maintenance:
		if isRemoved {
			return RemovePolicy
		}
		return SetPolicy
	}
	return SetLabels
}

// unlisted plans what happens to the objects that only the server has.
func (m *maker) unlisted() {
	has := make(map[Object]Object) // for each container that stays, something in it that stays
	order := m.actual.sorted()
	slices.Reverse(order) // what is in a container comes before it
	for _, o := range order {
		isListed := m.wanted[o] != nil
		isLeftAlone := o.Kind == RoleKind && !m.access || o.Kind > RoleKind && len(m.warehouses) == 0
		if !isListed && isLeftAlone {
			continue
		}
		if !isListed && !m.options.Prune {
			m.plan.Kept++
			continue
		}
		if !isListed {
			why := m.whyStays(o, has)
			if why == "" {
				remove := map[Kind]Do{RoleKind: RemoveRole, NamespaceKind: DropNamespace, WarehouseKind: DropWarehouse}
				m.plan.Steps = append(m.plan.Steps, Step{Do: remove[o.Kind], Object: o})
				continue
			}
			if !o.isLeaf() {
				m.plan.Stays = append(m.plan.Stays, Stay{o, why})
			}
			m.withoutAccess(o)
		}
		if o.Kind > WarehouseKind {
			has[o.Up()] = o
		}
	}
	slices.SortFunc(m.plan.Stays, func(a, b Stay) int { return a.Object.Compare(b.Object) })
}

// isLeaf reports whether o is a table or view.
func (o Object) isLeaf() bool { return o.Kind == TableKind || o.Kind == ViewKind }

// whyStays returns why an object that the files do not describe cannot be removed; empty if it can.
// has has an object in each container that stays.
func (m *maker) whyStays(o Object, has map[Object]Object) string {
	inner, isFull := has[o]
	switch {
	case o.Kind == RoleKind:
		return ""
	case o.isLeaf():
		return "tables and views are never dropped"
	case isFull:
		return "it has the " + inner.String()
	}
	for at := o; ; at = at.Up() {
		if m.isProtected(at) {
			return at.String() + " is protected"
		}
		if at.Kind == WarehouseKind {
			return ""
		}
	}
}

// isProtected reports whether an object is protected once the plan is carried out.
func (m *maker) isProtected(o Object) bool {
	fact := Fact{Attribute: Protected}
	if is, isSaid := m.wanted[o][fact]; isSaid {
		return is == "true"
	}
	isPruned := m.options.Prune && m.wanted[o] != nil
	return m.actual[o][fact] == "true" && !isPruned
}

// withoutAccess plans to remove the grants and the owner of an object that stays although the files
// do not describe it.
func (m *maker) withoutAccess(o Object) {
	steps := make(map[Do]map[Fact]Change)
	for fact, was := range m.actual[o] {
		if !m.access || !fact.Attribute.isAccess() {
			continue
		}
		change := Change{Fact: fact, Was: &was}
		do := doOf(o.Kind, false, change)
		if steps[do] == nil {
			steps[do] = make(map[Fact]Change)
		}
		steps[do][fact] = change
	}
	m.add(o, steps)
}

// Apply changes w as a server does when step is made.
func (w World) Apply(step Step) {
	o := step.Object
	switch step.Do {
	case DropNamespace, DropWarehouse:
		delete(w, o)
		return
	case RemoveRole:
		delete(w, o)
		for _, facts := range w {
			maps.DeleteFunc(facts, func(fact Fact, value string) bool {
				isGrantee := fact.Attribute == Grant || fact.Attribute == Member
				return isGrantee && fact.Key == o.Name || fact.Attribute == Owner && value == o.Name
			})
		}
		return
	}
	facts := w.add(o)
	for _, change := range step.Changes {
		if change.Is == nil {
			delete(facts, change.Fact)
		} else {
			facts[change.Fact] = *change.Is
		}
	}
}

// clone returns a copy of w.
func (w World) clone() World {
	made := make(World, len(w))
	for o, facts := range w {
		made[o] = maps.Clone(facts)
	}
	return made
}
