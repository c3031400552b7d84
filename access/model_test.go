package access_test

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"moorage"
	"moorage/access"
	"moorage/testkit/scale"
)

var (
	seedFlag   = flag.Uint64("seed", 0, "seed of the random worlds; 0: a new one each time")
	worldsFlag = flag.Int("worlds", 20_000, "how many random worlds are compared with the reference")
)

func newRandom(t *testing.T) *rand.Rand {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// Principals, roles and token roles of the random worlds.
func people() []string     { return []string{"corp:ann", "corp:bob", "key:etl"} }
func ownRoles() []string   { return []string{"readers", "writers", "staff"} }
func tokenRoles() []string { return []string{"corp/analysts", "corp/ops"} }

func grantees() []string {
	return slices.Concat(people(), ownRoles(), tokenRoles(), []string{access.Everyone})
}

// randomWorld is a tree of objects, with the records about it.
type randomWorld struct {
	random *rand.Rand
	reference
	paths [][]access.Object // the paths of all objects
}

func one[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

func newRandomWorld(random *rand.Rand) *randomWorld {
	w := &randomWorld{random: random, reference: reference{access.Records{Generations: make(map[string]uint64)}}}
	next := byte(0)
	add := func(kind access.Kind, above []access.Object) []access.Object {
		next++
		object := access.Object{ID: id(next), Kind: kind, Creator: w.identity(append(people(), "", "", ""))}
		path := append([]access.Object{object}, above...)
		w.paths = append(w.paths, path)
		return path
	}
	for range 1 + random.IntN(2) {
		containers := [][]access.Object{add(access.Warehouse, nil)}
		for range random.IntN(4) {
			containers = append(containers, add(access.Namespace, one(random, containers)))
		}
		for range random.IntN(4) {
			if within := one(random, containers); len(within) > 1 {
				add(one(random, []access.Kind{access.Table, access.View, access.Function}), within)
			}
		}
	}
	return w
}

// identity returns an identity for one of names: mostly that of the present holder, and otherwise
// that of a former or future holder.
func (w *randomWorld) identity(names []string) string {
	name := one(w.random, names)
	if generation := w.random.Uint64N(3); w.random.IntN(5) == 0 && (access.GranteeOf(name) == access.IsPrincipal ||
		access.GranteeOf(name) == access.IsRole && name != access.Everyone) {
		return moorage.IdentityOf(name, generation)
	}
	return w.present(name)
}

// end deletes the principal or role with this name, and records that in c.
func (w *randomWorld) end(name string, c *access.Changes) {
	w.Generations[name]++
	c.Generations = map[string]uint64{name: w.Generations[name]}
}

// randomChange changes the records of w, and returns the change.
func (w *randomWorld) randomChange() (c access.Changes) {
	r := w.random
	for range r.IntN(4) {
		record := w.randomGrants()
		keep := slices.DeleteFunc(slices.Clone(w.Grants), func(g access.Grants) bool { return g.ID == record.ID })
		if r.IntN(4) == 0 {
			c.GoneGrants = append(c.GoneGrants, record.ID)
			c.Grants = slices.DeleteFunc(c.Grants, func(g access.Grants) bool { return g.ID == record.ID })
			w.Grants = keep
			continue
		}
		c.Grants = append(c.Grants, record)
		w.Grants = append(keep, record)
	}
	if r.IntN(3) == 0 {
		name := one(r, people())
		w.Principals = slices.DeleteFunc(slices.Clone(w.Principals),
			func(p access.Principal) bool { return p.Name == name })
		if r.IntN(4) == 0 {
			c.GonePrincipals = []string{name}
			w.end(name, &c)
			return c
		}
		c.Principals = []access.Principal{{Name: name, Disabled: r.IntN(3) == 0}}
		w.Principals = append(w.Principals, c.Principals...)
	}
	if r.IntN(2) == 0 {
		at := r.IntN(len(ownRoles()))
		role := access.Role{Name: ownRoles()[at]}
		w.Roles = slices.DeleteFunc(slices.Clone(w.Roles), func(r access.Role) bool { return r.Name == role.Name })
		if r.IntN(4) == 0 {
			c.GoneRoles = []string{role.Name}
			w.end(role.Name, &c)
			return c
		}
		for range r.IntN(3) { // a role has only earlier roles as members, so there is no cycle
			role.Members = append(role.Members, w.identity(slices.Concat(people(), tokenRoles(), ownRoles()[:at])))
		}
		c.Roles = []access.Role{role}
		w.Roles = append(w.Roles, role)
	}
	return c
}

// randomGrants returns a random valid grants record.
func (w *randomWorld) randomGrants() access.Grants {
	r := w.random
	var record access.Grants
	if path := one(r, append(w.paths, nil)); path != nil {
		record.ID, record.Kind = path[0].ID, path[0].Kind
		for _, above := range path[1:] {
			record.Ancestors = append(record.Ancestors, above.ID)
		}
		if r.IntN(5) == 0 {
			record.Owner = w.identity(grantees())
		}
	}
	record.Managed = r.IntN(3) == 0 && (record.Kind == access.Warehouse || record.Kind == access.Namespace)
	all := grantees()
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, grantee := range all[:r.IntN(3)] {
		may := access.Grantable(record.Kind).Each()
		first, second := one(r, may), one(r, may) // often two different grantees
		if privileges := first | second; privileges != 0 {
			identity := w.identity([]string{grantee})
			if r.IntN(10) == 0 && access.GranteeOf(grantee) == access.IsPrincipal {
				identity = moorage.AnyIdentityOf(grantee)
			}
			record.Grants = append(record.Grants, access.Grant{Grantee: identity, Privileges: privileges})
		}
	}
	return record
}

func (w *randomWorld) randomCaller() access.Caller {
	r := w.random
	c := access.Caller{Name: one(r, people()), Acting: r.IntN(5) == 0}
	if r.IntN(2) == 0 {
		c.Roles = []string{one(r, tokenRoles())}
	}
	if r.IntN(5) == 0 {
		c.Only = []string{one(r, slices.Concat(ownRoles(), tokenRoles()))}
	}
	return c
}

// seenBy returns path with OwnsInside set, which no snapshot knows: objects below that c made.
func (w *randomWorld) seenBy(c access.Caller, path []access.Object) []access.Object {
	path = slices.Clone(path)
	for i := range path {
		for _, other := range w.paths {
			if at := len(other) - len(path) + i; at > 0 && other[at].ID == path[i].ID && w.owns(c, other[0]) {
				path[i].OwnsInside = true
			}
		}
	}
	return path
}

// In random worlds, decisions, visibility, lists and explanations agree with the reference. That
// holds for a snapshot made from all records, and for one updated with every change.
func TestModel(t *testing.T) {
	t.Parallel()
	random := newRandom(t)
	for n := range *worldsFlag / scale.Factor {
		w := newRandomWorld(random)
		followed := access.New(0, access.Records{})
		for epoch := range uint64(1 + random.IntN(4)) {
			followed = followed.With(epoch+1, w.randomChange())
		}
		fresh := access.New(followed.Epoch(), w.Records)
		if fresh.Objects() != followed.Objects() || fresh.Objects() != len(w.Grants) {
			t.Fatalf("world %d: %d objects, %d after the changes, %d records", n, fresh.Objects(), followed.Objects(), len(w.Grants))
		}
		for range 6 {
			caller := w.randomCaller()
			path := w.seenBy(caller, one(random, append(w.paths, nil)))
			for _, s := range []*access.Snapshot{fresh, followed} {
				w.compare(t, s.Who(caller), caller, path)
			}
			if t.Failed() {
				t.Fatalf("world %d: caller %+v, path %+v, records %+v", n, caller, path, w.Records)
			}
		}
	}
}

// compare compares every answer about one caller and one object.
func (w *randomWorld) compare(t *testing.T, who *access.Who, caller access.Caller, path []access.Object) {
	t.Helper()
	kind := access.Server
	if len(path) > 0 {
		kind = path[0].Kind
	}
	if got, want := who.Has(path), w.has(caller, path); got != want {
		t.Errorf("he has %q, want %q", got, want)
	}
	asked := one(w.random, access.Every())
	if w.random.IntN(2) == 0 {
		asked |= one(w.random, access.Grantable(kind).Each())
	}
	disabled := !w.counts(caller, access.Everyone)
	for _, asked := range []access.Privileges{access.See, asked} {
		got := who.Decide(path, asked)
		outcome, missing, hiddenAt := w.decide(caller, path, asked, w.paths)
		if disabled { // a disabled caller sees nothing, not even the server
			outcome, hiddenAt = access.Hidden, max(len(path)-1, 0)
		}
		if got.Outcome != outcome || got.Missing != missing || got.HiddenAt != hiddenAt {
			t.Errorf("asked for %q: got %+v, want %s without %q, hidden at %d", asked, got, outcome, missing, hiddenAt)
		}
		w.compareReason(t, caller, path, got)
		if explained := who.Explain(path, asked); explained.Decision != got || explained.Has != who.Has(path) {
			t.Errorf("%+v is explained by %+v", got, explained)
		}
	}
	admin := w.has(caller, nil)&access.Admin != 0 && !disabled
	if got, want := who.DecideGrant(path, asked).Outcome == access.Allow,
		admin || who.Decide(path, asked|access.Manage).Outcome == access.Allow; got != want {
		t.Errorf("may grant %q: %v, want %v", asked, got, want)
	}
	if got, want := who.DecideTransfer(path).Outcome == access.Allow, admin || w.mayTransfer(caller, path); got != want {
		t.Errorf("may hand over: %v, want %v", got, want)
	}
	w.compareLists(t, who, caller, path)
}

// compareReason compares the reason for an allowed decision with the records.
func (w *randomWorld) compareReason(t *testing.T, caller access.Caller, path []access.Object, got access.Decision) {
	t.Helper()
	var object access.Object
	if got.At < len(path) {
		object = path[got.At]
	}
	switch got.By {
	case access.ByOwner:
		if !w.owns(caller, object) {
			t.Errorf("%+v by an owner who is none", got)
		}
	case access.ByGrant:
		if !slices.ContainsFunc(w.record(object.ID).Grants, func(g access.Grant) bool {
			return moorage.NameOf(g.Grantee) == got.Grantee && w.counts(caller, g.Grantee)
		}) {
			t.Errorf("%+v by a grant that does not count", got)
		}
	}
}

func (w *randomWorld) mayTransfer(caller access.Caller, path []access.Object) (may bool) {
	for at := range path {
		if w.owns(caller, path[at]) {
			may = true
		}
		if w.record(path[at].ID).Managed && !w.owns(caller, path[at]) {
			may = false
		}
	}
	return may
}

// compareLists lists the children of a container in two ways: by the plan, and by checking each
// child.
func (w *randomWorld) compareLists(t *testing.T, who *access.Who, caller access.Caller, path []access.Object) {
	t.Helper()
	for _, kind := range kinds()[1:] {
		plan, ids := who.PlanList(path, kind)
		if plan == access.ListNone != !who.Seen(path) {
			t.Errorf("plan %d, and seen %v", plan, who.Seen(path))
		}
		for _, child := range w.paths {
			if child[0].Kind != kind || len(child) != len(path)+1 || len(path) > 0 && child[1].ID != path[0].ID {
				continue
			}
			seen := w.canSee(caller, child, w.paths) && w.counts(caller, access.Everyone)
			listed := plan == access.ListAll
			switch plan {
			case access.ListChildren:
				listed = slices.Contains(ids, child[0].ID)
				if made := w.owns(caller, child[0]) && w.record(child[0].ID).Owner == ""; made {
					continue // objects that the caller made may be left out
				}
				if w.seenBy(caller, child)[0].OwnsInside {
					continue
				}
			case access.ListSeen:
				listed = who.SeenIn(w.seenBy(caller, child)[0])
			}
			if listed != seen {
				t.Errorf("plan %d of %s: %v is listed %v, seen %v", plan, kind, child[0], listed, seen)
			}
		}
	}
}
