package access

import (
	"maps"
	"slices"
	"strings"
)

// Explanation holds the reasons for a decision.
type Explanation struct {
	Decision Decision
	Asked    Privileges
	Has      Privileges // privileges of the caller, including implied ones
	Steps    []Step     // the object first, the server last
	// Grantors lists the principals and roles that could grant the missing privileges, sorted:
	// owners, grantees with Manage and all missing privileges, and grantees with Admin. It is nil
	// if no privilege is missing.
	Grantors []string
}

// Step is the contribution of one object of the path to a decision.
type Step struct {
	Object  Object
	Owner   string // empty if it has no owner
	Owns    bool   // the caller is the owner, or is in the role that is the owner
	Managed bool
	Grants  []Counted // the grants that count for the caller, sorted by grantee
}

// Counted is a grant that counts for the caller.
type Counted struct {
	Grantee    string
	Privileges Privileges // as granted
	Via        []string   // the roles from the caller to the grantee; nil for the caller itself
}

// Explain explains the decision of Decide for the same arguments. It is slower than Decide, and
// does not hide objects. Show the explanation only to callers that may see all of it.
func (w *Who) Explain(path []Object, asked Privileges) Explanation {
	path = withoutServer(path)
	e := Explanation{Decision: w.Decide(path, asked), Asked: asked, Has: w.Has(path)}
	for at := range len(path) + 1 {
		e.Steps = append(e.Steps, w.explainStep(path, at))
	}
	if missing := asked &^ e.Has; missing != 0 {
		e.Grantors = w.snapshot.grantors(path, missing)
	}
	return e
}

// explainStep explains the step for path[at]. If at is the length of path, it explains the step for
// the server.
func (w *Who) explainStep(path []Object, at int) Step {
	step := Step{Object: Object{ID: ServerID, Kind: Server}}
	if at < len(path) {
		step.Object = path[at]
	}
	record, _ := w.snapshot.objects.get(step.Object.ID)
	step.Owner, step.Managed = w.ownerOf(&record, &step.Object), record.managed
	if w.disabled {
		return step
	}
	step.Owns = w.isOwner(&record, &step.Object)
	for _, each := range record.grants {
		if !w.is(each.grantee) || w.caller.Acting && step.Object.Kind == Server {
			continue
		}
		step.Grants = append(step.Grants, Counted{
			Grantee:    w.snapshot.names.name(each.grantee),
			Privileges: Privileges(each.privileges), Via: w.via(each.grantee),
		})
	}
	slices.SortFunc(step.Grants, func(a, b Counted) int { return strings.Compare(a.Grantee, b.Grantee) })
	return step
}

// via returns the shortest chain of memberships from the caller to the grantee, a role. The caller
// is a direct member of the first role in the chain, and the last role is the grantee. If the
// grantee is the caller, the chain is nil.
func (w *Who) via(grantee number) (roles []string) {
	names := w.snapshot.names
	from := make(map[number]number) // for each role, the member through which the search reached it
	reached := slices.Clone(w.direct)
	for i := 0; i < len(reached) && reached[i] != grantee; i++ {
		for _, role := range names.parents[reached[i]] {
			if _, found := from[role]; !found && !slices.Contains(w.direct, role) {
				from[role] = reached[i]
				reached = append(reached, role)
			}
		}
	}
	for at := grantee; ; {
		if name := names.name(at); GranteeOf(name) != IsPrincipal {
			roles = append(roles, name)
		}
		member, found := from[at]
		if !found {
			break
		}
		at = member
	}
	slices.Reverse(roles)
	return roles
}

// grantors returns the principals and roles that could grant missing on the object that path begins
// with, sorted.
func (s *Snapshot) grantors(path []Object, missing Privileges) []string {
	server, _ := s.objects.get(ServerID)
	had := make(map[number]Privileges)
	owners := make(map[string]bool)
	nobody := &Who{snapshot: s}
	unmanaged := nobody.unmanaged(path)
	for at := range path {
		record, _ := s.objects.get(path[at].ID)
		owner := nobody.ownerOf(&record, &path[at])
		if owner != "" && at >= unmanaged && OfOwner(path[at].Kind).Has(missing) {
			owners[owner] = true
		}
		for _, each := range record.grants {
			had[each.grantee] |= Privileges(each.implied)
		}
	}
	for _, each := range server.grants {
		had[each.grantee] |= Privileges(each.implied)
	}
	for grantee, privileges := range had {
		if privileges.Has(Manage|missing) || privileges.Has(Admin) {
			owners[s.names.holder(s.names.identity(grantee))] = true
		}
	}
	delete(owners, "") // deleted owners have no name
	return slices.Sorted(maps.Keys(owners))
}
