package access_test

import (
	"slices"
	"testing"

	"moorage"
	"moorage/access"
	"moorage/testkit/scale"
)

// asking is the caller or owner whose rights count at a step, in the reference.
type asking struct {
	access.Caller
	isOwner, isGone bool
}

// through is the reference's decision about an object behind views.
func (r reference) through(c access.Caller, views []access.Passed, path []access.Object, asked access.Privileges,
	all [][]access.Object) (outcome access.Outcome, missing access.Privileges, step int, as asking) {
	as = asking{Caller: c}
	for i, view := range views {
		if outcome, missing = r.step(c, as, view.Path, access.Read, all); outcome != access.Allow {
			return outcome, missing, i, as
		}
		if view.Definer {
			as = r.ownerOf(view.Path[0])
		}
	}
	if asked == access.See {
		as = asking{Caller: c}
	}
	outcome, missing = r.step(c, as, path, asked, all)
	return outcome, missing, len(views), as
}

// step decides about one object for c, with the rights of as.
func (r reference) step(c access.Caller, as asking, path []access.Object, asked access.Privileges,
	all [][]access.Object) (access.Outcome, access.Privileges) {
	may := func(who asking, asked access.Privileges) (access.Outcome, access.Privileges) {
		if who.isGone || len(path) == 0 || !r.counts(who.Caller, access.Everyone) {
			return access.Hidden, asked
		}
		outcome, missing, _ := r.decide(who.Caller, path, asked, all)
		return outcome, missing
	}
	outcome, missing := may(as, asked)
	if !as.isOwner || outcome == access.Allow || len(path) == 0 {
		return outcome, missing
	}
	described, _ := may(as, access.Describe)
	seen, _ := may(asking{Caller: c}, access.See)
	if described == access.Allow || seen == access.Allow {
		return access.Forbid, missing
	}
	return access.Hidden, missing
}

// ownerOf returns the owner of a view.
func (r reference) ownerOf(view access.Object) asking {
	owner := view.Creator
	if given := r.record(view.ID).Owner; given != "" {
		owner = given
	}
	if owner != r.present(moorage.NameOf(owner)) {
		return asking{isOwner: true, isGone: true}
	}
	owner = moorage.NameOf(owner)
	recorded := slices.ContainsFunc(r.Principals, func(p access.Principal) bool { return p.Name == owner }) ||
		slices.ContainsFunc(r.Roles, func(role access.Role) bool { return role.Name == owner })
	needsRecord := append(ownRoles(), "key:etl", "")
	return asking{access.Caller{Name: owner, Acting: true}, true, slices.Contains(needsRecord, owner) && !recorded}
}

// randomViews returns views for c to go through. Some do not exist.
func (w *randomWorld) randomViews(c access.Caller) (views []access.Passed) {
	var paths [][]access.Object
	for _, path := range w.paths {
		if path[0].Kind == access.View {
			paths = append(paths, path)
		}
	}
	for range w.random.IntN(4) {
		view := access.Passed{Definer: w.random.IntN(3) > 0}
		if len(paths) > 0 && w.random.IntN(8) > 0 {
			view.Path = w.seenBy(c, one(w.random, paths))
		}
		views = append(views, view)
	}
	return views
}

// In random worlds, decisions about objects behind views agree with the reference.
func TestThroughModel(t *testing.T) {
	t.Parallel()
	random := newRandom(t)
	allowed, asOwner, worlds := 0, 0, *worldsFlag/scale.Factor
	for n := range worlds {
		w := newRandomWorld(random)
		followed := access.New(0, access.Records{})
		for epoch := range uint64(1 + random.IntN(4)) {
			followed = followed.With(epoch+1, w.randomChange())
		}
		for range 6 {
			caller := w.randomCaller()
			views, path := w.randomViews(caller), w.seenBy(caller, one(random, w.paths))
			asked := one(random, []access.Privileges{access.See, access.Describe, access.Read})
			outcome, missing, step, as := w.through(caller, views, path, asked, w.paths)
			who := followed.Who(caller)
			got := who.DecideThrough(views, path, asked)
			if got.Outcome != outcome || got.Missing != missing || got.Step != step || got.AsOwner != as.isOwner ||
				as.isOwner && got.Owner != as.Name {
				t.Fatalf("world %d: caller %+v through %+v to %+v asks for %q: got %+v, want %s without %q at %d as %+v; records %+v",
					n, caller, views, path, asked, got, outcome, missing, step, as, w.Records)
			}
			walk, steps := who.ExplainThrough(views, path, asked)
			if walk != got || len(steps) != step+1 || steps[step].Owner != got.Owner {
				t.Fatalf("world %d: %+v is explained by %+v", n, got, steps)
			}
			if outcome == access.Allow && len(views) > 0 {
				allowed++
				if as.isOwner {
					asOwner++
				}
			}
		}
	}
	if allowed < worlds/100 || asOwner < worlds/400 {
		t.Errorf("%d were let through, %d with the rights of an owner: the worlds show too little", allowed, asOwner)
	}
}

// In each case, ann wants to read the table t through views. bob and the role readers own views,
// and the warehouse is not managed.
func TestDecideThrough(t *testing.T) {
	t.Parallel()
	const ann, bob, carl = "corp:ann", "corp:bob", "corp:carl"
	lake := access.Object{ID: id(1), Kind: access.Warehouse}
	space := access.Object{ID: id(2), Kind: access.Namespace}
	object := func(n byte, kind access.Kind, creator string) []access.Object {
		return []access.Object{{ID: id(n), Kind: kind, Creator: creator}, space, lake}
	}
	table := object(3, access.Table, "")
	invoker, definer := object(4, access.View, bob), object(5, access.View, bob)
	second, orphan := object(6, access.View, carl), object(7, access.View, "")
	ofKey := object(8, access.View, "key:etl")
	grant := func(path []access.Object, grantee string, privileges access.Privileges) access.Grants {
		return access.Grants{ID: path[0].ID, Kind: path[0].Kind, Ancestors: []access.ID{space.ID, lake.ID},
			Grants: []access.Grant{{Grantee: grantee, Privileges: privileges}}}
	}
	owned := func(path []access.Object, owner string, more access.Grants) access.Grants {
		more.ID, more.Kind, more.Ancestors, more.Owner = path[0].ID, path[0].Kind, []access.ID{space.ID, lake.ID}, owner
		return more
	}
	asIs := func(path []access.Object) access.Passed { return access.Passed{Path: path} }
	asOwner := func(path []access.Object) access.Passed { return access.Passed{Path: path, Definer: true} }
	both := func(path []access.Object, a, b string) access.Grants {
		g := grant(path, a, access.Read)
		g.Grants = append(g.Grants, access.Grant{Grantee: b, Privileges: access.Read})
		return g
	}
	for name, tt := range map[string]struct {
		views   []access.Passed
		records access.Records
		want    access.Outcome
		step    int
		as      string // the owner whose rights decided, if any
	}{
		"no view, no grant": {want: access.Hidden},
		"a view of an invoker, who may read": {
			views: []access.Passed{asIs(invoker)}, want: access.Allow, step: 1,
			records: access.Records{Grants: []access.Grants{grant(invoker, ann, access.Read), grant(table, ann, access.Read)}},
		},
		"a view of an invoker, who may not": {
			views: []access.Passed{asIs(invoker)}, want: access.Hidden, step: 1,
			records: access.Records{Grants: []access.Grants{grant(invoker, ann, access.Read), grant(table, bob, access.Read)}},
		},
		"a definer view whose owner may read": {
			views: []access.Passed{asOwner(definer)}, want: access.Allow, step: 1, as: bob,
			records: access.Records{Grants: []access.Grants{grant(definer, ann, access.Read), grant(table, bob, access.Read)}},
		},
		"a definer view whose owner may not, and is asked by one who may": {
			views: []access.Passed{asOwner(definer)}, want: access.Forbid, step: 1, as: bob,
			records: access.Records{Grants: []access.Grants{grant(definer, ann, access.Read), grant(table, ann, access.Read)}},
		},
		"a definer view whose owner may only describe": {
			views: []access.Passed{asOwner(definer)}, want: access.Forbid, step: 1, as: bob,
			records: access.Records{Grants: []access.Grants{grant(definer, ann, access.Read), grant(table, bob, access.Describe)}},
		},
		"a definer view that the caller may only describe": {
			views: []access.Passed{asOwner(definer)}, want: access.Forbid,
			records: access.Records{Grants: []access.Grants{grant(definer, ann, access.Describe), grant(table, bob, access.Read)}},
		},
		"a definer view that the caller does not see": {
			views: []access.Passed{asOwner(definer)}, want: access.Hidden,
			records: access.Records{Grants: []access.Grants{grant(table, bob, access.Read)}},
		},
		"a view that is not there": {views: []access.Passed{{Definer: true}}, want: access.Hidden},
		"an owner who is disabled": {
			views: []access.Passed{asOwner(definer)}, want: access.Hidden, step: 1, as: bob,
			records: access.Records{
				Principals: []access.Principal{{Name: bob, Disabled: true}},
				Grants:     []access.Grants{grant(definer, ann, access.Read), grant(table, bob, access.Read)},
			},
		},
		"an owner whose API keys are gone": {
			views: []access.Passed{asOwner(ofKey)}, want: access.Hidden, step: 1, as: "key:etl",
			records: access.Records{Grants: []access.Grants{grant(ofKey, ann, access.Read), grant(table, "key:etl", access.Read)}},
		},
		"an owner with API keys": {
			views: []access.Passed{asOwner(ofKey)}, want: access.Allow, step: 1, as: "key:etl",
			records: access.Records{
				Principals: []access.Principal{{Name: "key:etl"}},
				Grants:     []access.Grants{grant(ofKey, ann, access.Read), grant(table, "key:etl", access.Read)},
			},
		},
		"an owner who was deleted, and another one has the name": {
			views: []access.Passed{asOwner(ofKey)}, want: access.Hidden, step: 1,
			records: access.Records{
				Principals: []access.Principal{{Name: "key:etl"}}, Generations: map[string]uint64{"key:etl": 1},
				Grants: []access.Grants{grant(ofKey, ann, access.Read), grant(table, "1#key:etl", access.Read)},
			},
		},
		"a view that nobody owns": {
			views: []access.Passed{asOwner(orphan)}, want: access.Hidden, step: 1,
			records: access.Records{Grants: []access.Grants{grant(orphan, ann, access.Read), grant(table, bob, access.Read)}},
		},
		"a view that was handed over": {
			views: []access.Passed{asOwner(definer)}, want: access.Allow, step: 1, as: carl,
			records: access.Records{Grants: []access.Grants{
				owned(definer, carl, grant(definer, ann, access.Read)), grant(table, carl, access.Read)}},
		},
		"a view that was handed over to a role": {
			views: []access.Passed{asOwner(definer)}, want: access.Allow, step: 1, as: "readers",
			records: access.Records{
				Roles: []access.Role{{Name: "readers"}},
				Grants: []access.Grants{
					owned(definer, "readers", grant(definer, ann, access.Read)), grant(table, "readers", access.Read)},
			},
		},
		"a role that is gone": {
			views: []access.Passed{asOwner(definer)}, want: access.Hidden, step: 1, as: "readers",
			records: access.Records{Grants: []access.Grants{
				owned(definer, "readers", grant(definer, ann, access.Read)), grant(table, "readers", access.Read)}},
		},
		"an invoker's view behind a definer's is its owner's": {
			views: []access.Passed{asOwner(definer), asIs(invoker)}, want: access.Allow, step: 2, as: bob,
			records: access.Records{Grants: []access.Grants{grant(definer, ann, access.Read), grant(table, bob, access.Read)}},
		},
		"a definer view of carl behind one of bob": {
			views: []access.Passed{asOwner(definer), asOwner(second)}, want: access.Allow, step: 2, as: carl,
			records: access.Records{Grants: []access.Grants{
				grant(definer, ann, access.Read), grant(second, bob, access.Read), grant(table, carl, access.Read)}},
		},
		"a definer view of carl that bob may not go through": {
			views: []access.Passed{asOwner(definer), asOwner(second)}, want: access.Hidden, step: 1, as: bob,
			records: access.Records{Grants: []access.Grants{grant(definer, ann, access.Read), both(table, bob, carl)}},
		},
		"a definer view of carl that ann alone may go through": {
			views: []access.Passed{asOwner(definer), asOwner(second)}, want: access.Forbid, step: 1, as: bob,
			records: access.Records{Grants: []access.Grants{
				grant(definer, ann, access.Read), grant(second, ann, access.Read), grant(table, carl, access.Read)}},
		},
		"what stands on the server is not an owner's": {
			views: []access.Passed{asOwner(definer)}, want: access.Hidden, step: 1, as: bob,
			records: access.Records{Grants: []access.Grants{
				grant(definer, ann, access.Read),
				{Grants: []access.Grant{{Grantee: bob, Privileges: access.Describe | access.Admin}}},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := access.New(1, tt.records).Who(access.Caller{Name: ann}).DecideThrough(tt.views, table, access.Read)
			if got.Outcome != tt.want || got.Step != tt.step || got.Owner != tt.as {
				t.Errorf("got %+v, want %s at %d as %q", got, tt.want, tt.step, tt.as)
			}
		})
	}
}

// What counts is the engine's privilege, not that of the user in whose name it acts.
func TestBelieved(t *testing.T) {
	t.Parallel()
	const ann, trino = "corp:ann", "key:trino"
	lake := access.Object{ID: id(1), Kind: access.Warehouse}
	snapshot := access.New(1, access.Records{
		Principals: []access.Principal{{Name: trino}},
		Roles:      []access.Role{{Name: "engines", Members: []string{"key:flink"}}, {Name: "readers", Members: []string{trino}}},
		Grants: []access.Grants{{ID: lake.ID, Kind: access.Warehouse, Grants: []access.Grant{
			{Grantee: trino, Privileges: access.Delegate}, {Grantee: "engines", Privileges: access.Delegate},
		}}},
	})
	for name, tt := range map[string]struct {
		caller        string
		engines, only []string
		want          bool
	}{
		"a user":                               {caller: ann},
		"an engine":                            {caller: trino, want: true},
		"an engine by a role":                  {caller: "key:flink", want: true},
		"a user by an engine":                  {caller: ann, engines: []string{trino}, want: true},
		"a user by another engine":             {caller: ann, engines: []string{"key:spark"}},
		"an engine in whose name another asks": {caller: trino, engines: []string{"key:spark"}},
		"two engines, one of them not":         {caller: ann, engines: []string{trino, "key:spark"}},
		"an engine with a narrowed key":        {caller: ann, engines: []string{trino}, only: []string{"readers"}},
		"a role is no engine":                  {caller: ann, engines: []string{"engines"}},
	} {
		if got := snapshot.Who(access.Caller{Name: tt.caller}).Believed(lake, tt.engines, tt.only); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
