package access

import (
	"maps"
	"slices"

	"moorage"
)

// number is a short form of the identity of a grantee. Identities get numbers in the order of first
// use. Related snapshots never use one number for two identities. Zero means no name.
type number uint32

// everyoneNumber is the number of Everyone.
const everyoneNumber number = 1

// namesPerBlock is the number of names in a block. A block is the smallest unit that is copied when
// a name is added.
const namesPerBlock = 1024

// names holds the principals and the roles, and the number of each grantee. It never changes.
type names struct {
	numbers    *sharded[name, number]
	blocks     []*[namesPerBlock]string // the name of each number
	count      int
	principals map[string]Principal
	keys       map[string]string // names of principals, by the ids of their API keys
	roles      map[string]Role
	parents    map[number][]number // the roles that have a grantee as a direct member, by its number
	// generations is Records.Generations. Numbers belong to identities, not to names.
	generations map[string]uint64
}

func newNames() *names {
	n := &names{
		numbers:    &sharded[name, number]{},
		principals: make(map[string]Principal), keys: make(map[string]string), roles: make(map[string]Role),
	}
	e := namesEdit{names: *n, numbers: n.numbers.edit(0)}
	e.number("")
	e.number(Everyone)
	return e.result()
}

// identity returns the identity with a number.
func (n *names) identity(number number) string {
	return n.blocks[number/namesPerBlock][number%namesPerBlock]
}

// name returns the name with a number.
func (n *names) name(number number) string { return moorage.NameOf(n.identity(number)) }

// present returns the present identity for a name.
func (n *names) present(name string) string { return moorage.IdentityOf(name, n.generations[name]) }

// holder returns the name of the principal or role with this identity. It is empty if the principal
// or role was deleted.
func (n *names) holder(identity string) string {
	if name := moorage.NameOf(identity); n.present(name) == identity {
		return name
	}
	return ""
}

// numberOf returns the number of the principal or role that currently has this name, or zero if
// there is none.
func (n *names) numberOf(text string) number { return n.numbered(n.present(text)) }

// numbered returns the number of an identity, or zero if it has no number.
func (n *names) numbered(identity string) number {
	found, _ := n.numbers.get(name(identity))
	return found
}

// edit returns a copy of n with the principals and roles of changes. Further names can be added to
// the copy.
func (n *names) edit(changes Changes) *namesEdit {
	e := &namesEdit{names: *n, numbers: n.numbers.edit(0)}
	if len(changes.Generations) > 0 {
		e.generations = make(map[string]uint64, len(n.generations)+len(changes.Generations))
		maps.Copy(e.generations, n.generations)
		maps.Copy(e.generations, changes.Generations)
	}
	if len(changes.Principals)+len(changes.GonePrincipals) > 0 {
		e.editPrincipals(changes)
	}
	if len(changes.Roles)+len(changes.GoneRoles) > 0 {
		e.editRoles(changes)
	}
	return e
}

// namesEdit is a names under construction.
type namesEdit struct {
	names
	numbers *shardedEdit[name, number]
	grown   bool // the list of blocks belongs to this edit
}

func (e *namesEdit) editPrincipals(changes Changes) {
	e.principals = maps.Clone(e.principals)
	for _, gone := range changes.GonePrincipals {
		delete(e.principals, gone)
	}
	for _, p := range changes.Principals {
		p.Keys = slices.Clone(p.Keys)
		e.principals[p.Name] = p
	}
	e.keys = make(map[string]string)
	for _, p := range e.principals {
		for _, key := range p.Keys {
			e.keys[key.ID] = p.Name
		}
	}
}

func (e *namesEdit) editRoles(changes Changes) {
	e.roles = maps.Clone(e.roles)
	for _, gone := range changes.GoneRoles {
		delete(e.roles, gone)
	}
	for _, r := range changes.Roles {
		r.Members = slices.Clone(r.Members)
		e.roles[r.Name] = r
	}
	e.parents = make(map[number][]number)
	for _, role := range slices.Sorted(maps.Keys(e.roles)) {
		above := e.number(e.present(role))
		for _, member := range e.roles[role].Members {
			below := e.number(member)
			e.parents[below] = append(e.parents[below], above)
		}
	}
}

// number returns the number of an identity. If the identity has no number, it gets one.
func (e *namesEdit) number(text string) number {
	if found, ok := e.numbers.get(name(text)); ok {
		return found
	}
	at := e.count % namesPerBlock
	switch {
	case at == 0:
		e.blocks = append(slices.Clip(e.blocks), new([namesPerBlock]string))
	case !e.grown:
		e.blocks = slices.Clone(e.blocks)
		last := *e.blocks[len(e.blocks)-1]
		e.blocks[len(e.blocks)-1] = &last
	}
	e.grown = true
	e.blocks[len(e.blocks)-1][at] = text
	given := number(e.count)
	e.count++
	e.numbers.set(name(text), given)
	return given
}

func (e *namesEdit) result() *names {
	done := e.names
	done.numbers = e.numbers.result()
	return &done
}

// closure returns, sorted, the numbers in start, and the numbers of all roles that contain them,
// directly or through other roles. It skips zeros in start.
func (n *names) closure(start []number) (all []number) {
	seen := make(map[number]bool, len(start))
	for _, each := range start {
		if each != 0 && !seen[each] {
			seen[each] = true
			all = append(all, each)
		}
	}
	for i := 0; i < len(all); i++ {
		for _, role := range n.parents[all[i]] {
			if !seen[role] {
				seen[role] = true
				all = append(all, role)
			}
		}
	}
	slices.Sort(all)
	return all
}
