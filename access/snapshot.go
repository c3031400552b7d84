package access

import (
	"maps"
	"slices"
	"strings"
	"time"

	"moorage"
)

// Bounds.
const (
	// ObjectsMax is the maximum number of objects with grants. A million objects take about 110 MiB
	// on each node.
	ObjectsMax = 1_000_000
	// DepthMax is the maximum depth of nested roles.
	DepthMax = 8
	// ChildrenMax is the maximum number of children with grants in a set or a plan.
	ChildrenMax = 1_000
)

// Snapshot is the whole access policy of a store at one epoch. It never changes. It is safe for
// concurrent use.
type Snapshot struct {
	epoch uint64
	names *names
	// objects holds the grants records. below holds the grants below each container.
	objects *sharded[ID, object]
	below   *sharded[ID, below]
	count   int
	callers *callers
}

// New returns a snapshot of records, which must be all records of the store. It never fails: if
// this version would refuse to write a record, New uses the valid parts of the record.
func New(epoch uint64, records Records) *Snapshot {
	empty := &Snapshot{names: newNames(), objects: &sharded[ID, object]{}, below: &sharded[ID, below]{}}
	return empty.With(epoch, Changes{Records: records})
}

// With returns s with changes applied. The new snapshot has the given epoch, and shares all
// unchanged parts with s.
func (s *Snapshot) With(epoch uint64, changes Changes) *Snapshot {
	e := edit{
		names: s.names.edit(changes), objects: s.objects.edit(len(changes.Grants)), below: s.below.edit(0),
		sets: make(map[place]*childSet), paths: make(map[ID][]ID),
	}
	for _, id := range changes.GoneGrants {
		e.remove(id)
	}
	for _, grants := range changes.Grants {
		e.put(grants)
	}
	e.finish()
	return &Snapshot{
		epoch: epoch, count: s.count + e.added, callers: newCallers(),
		names: e.names.result(), objects: e.objects.result(), below: e.below.result(),
	}
}

// Epoch returns the number of the newest change that s includes.
func (s *Snapshot) Epoch() uint64 { return s.epoch }

// Objects returns the number of objects with a grants record.
func (s *Snapshot) Objects() int { return s.count }

// CheckRoom returns a KindTooLarge error if s has no room for grants on the given number of further
// objects; see ObjectsMax.
func (s *Snapshot) CheckRoom(more int) error {
	if s.count+more <= ObjectsMax {
		return nil
	}
	return moorage.Errorf(moorage.KindTooLarge,
		"%d objects have grants, and no more than %d may: grant on their namespaces instead", s.count, ObjectsMax)
}

// Identity returns the identity of the principal or role that now has this name. If there is none,
// it returns the identity that a new one would get. A record that refers to the name must contain
// this identity.
func (s *Snapshot) Identity(name string) string { return s.names.present(name) }

// Holder returns the name of the principal or role with an identity. It is empty if the principal
// or role was deleted. Grants to a deleted principal or role do not count.
func (s *Snapshot) Holder(identity string) string { return s.names.holder(identity) }

// Principal returns the record of a principal. found is false if there is no record.
func (s *Snapshot) Principal(name string) (p Principal, found bool) {
	p, found = s.names.principals[name]
	return p, found
}

// Keys returns the secrets of the API key called id, and the principal that has the key. keys is
// nil if there is no such key. The caller must not write to it.
func (s *Snapshot) Keys(id string) (keys []Key, owner Principal) {
	owner = s.names.principals[s.names.keys[id]]
	for _, key := range owner.Keys {
		if key.ID == id {
			keys = append(keys, key)
		}
	}
	return keys, owner
}

// KeyLives reports whether a secret of the API key called id is valid at time now. generation
// selects the secret. If the key's principal is disabled, the secret is not valid.
func (s *Snapshot) KeyLives(id string, generation uint64, now time.Time) bool {
	owner := s.names.principals[s.names.keys[id]]
	return !owner.Disabled && slices.ContainsFunc(owner.Keys, func(k Key) bool {
		return k.ID == id && k.Generation == generation && now.Before(k.Ends)
	})
}

// Role returns a role of the store. found is false if no role has that name.
func (s *Snapshot) Role(name string) (r Role, found bool) {
	r, found = s.names.roles[name]
	return r, found
}

// Roles returns the names of the store's roles, sorted.
func (s *Snapshot) Roles() []string { return slices.Sorted(maps.Keys(s.names.roles)) }

// Principals returns the names of the principals that have a record, sorted.
func (s *Snapshot) Principals() []string { return slices.Sorted(maps.Keys(s.names.principals)) }

// Grants returns the grants record of the object with id, with sorted grantees. found is false if
// there is no such record.
func (s *Snapshot) Grants(id ID) (g Grants, found bool) {
	o, found := s.objects.get(id)
	if !found {
		return Grants{}, false
	}
	g = Grants{
		ID: id, Kind: o.kind, Ancestors: slices.Clone(o.ancestors), Owner: s.names.identity(o.owner),
		Managed: o.managed,
	}
	for _, each := range o.grants {
		g.Grants = append(g.Grants, Grant{s.names.identity(each.grantee), Privileges(each.privileges)})
	}
	slices.SortFunc(g.Grants, func(a, b Grant) int { return strings.Compare(a.Grantee, b.Grantee) })
	return g, true
}
