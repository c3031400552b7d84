package ascode

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"moorage/access"
)

// ErrLockout is the error of a plan that would take the caller's right as an administrator.
var ErrLockout = errors.New("the plan would take your own right as an administrator of the server: " +
	"grant admin on the server to you or one of your roles in the files, or add --give-up-admin")

// order returns steps in an order in which a server takes each of them. No step takes away the
// caller's right as an administrator. With Options.GiveUp, such steps are last, with the steps that
// wait for them.
//
// Errors: ErrLockout, and a fault of roles that would contain each other.
func order(steps []Step, actual World, options Options) ([]Step, error) {
	s := sequence{world: make(World), caller: options.Caller}
	for o, facts := range actual {
		if o.Kind <= RoleKind {
			s.world[o] = maps.Clone(facts)
		}
	}
	for _, step := range steps {
		s.left = append(s.left, step.split()...)
	}
	slices.SortStableFunc(s.left, compareSteps)
	s.isKept = s.caller.administers(s.world)
	most := s.world.clone()
	for _, step := range s.left {
		if step.Do == AddMembers {
			most.Apply(step)
		}
	}
	s.fits = !isTooLong(most.longestChain())
	s.takeAll()
	if s.isKept && len(s.left) > 0 {
		s.isKept = false
		if s.takeAll(); len(s.left) == 0 && !options.GiveUp {
			return nil, ErrLockout
		}
	}
	if len(s.left) > 0 {
		step := s.left[0]
		return nil, fmt.Errorf("%s: %s", step, faultOf(s.after(step).longestChain()))
	}
	return merged(s.taken), nil
}

// compareSteps orders steps. A container is made, and its grants, before what is in it; and removed
// after that.
func compareSteps(a, b Step) int {
	rank := func(do Do) Do {
		switch do {
		case AddMembers:
			return PutRole
		case AddGrants:
			return CreateNamespace
		}
		return do
	}
	if rank(a.Do) != rank(b.Do) {
		return int(rank(a.Do)) - int(rank(b.Do))
	}
	if a.Do == DropNamespace {
		a, b = b, a
	}
	return cmp.Or(a.Object.Compare(b.Object), int(a.Do)-int(b.Do))
}

// split takes a step apart, so that each membership of a role in a role begins or ends by itself.
func (s Step) split() []Step {
	do := s.Do
	switch do {
	case PutRole:
		do = AddMembers
	case AddMembers, RemoveMembers:
	default:
		return []Step{s}
	}
	var whole, parts []Step
	isRole := func(change Change) bool { return change.Fact.Attribute == Member && isRole(change.Fact.Key) }
	rest := slices.DeleteFunc(slices.Clone(s.Changes), isRole)
	if len(rest) > 0 || s.Do == PutRole {
		whole = []Step{{Do: s.Do, Object: s.Object, Changes: rest, IsNew: s.IsNew}}
	}
	for _, change := range s.Changes {
		if isRole(change) {
			parts = append(parts, Step{Do: do, Object: s.Object, Changes: []Change{change}})
		}
	}
	return append(whole, parts...)
}

// merged undoes what split did, for steps that follow each other.
func merged(steps []Step) (merged []Step) {
	for _, step := range steps {
		if len(merged) > 0 {
			last := &merged[len(merged)-1]
			isNew := last.IsNew && step.Do == AddMembers
			isMore := last.Do == step.Do && (step.Do == AddMembers || step.Do == RemoveMembers)
			if last.Object == step.Object && (isNew || isMore) {
				last.Changes = slices.Concat(last.Changes, step.Changes)
				slices.SortFunc(last.Changes, func(a, b Change) int { return a.Fact.Compare(b.Fact) })
				continue
			}
		}
		merged = append(merged, step)
	}
	return merged
}

// sequence puts steps into an order.
type sequence struct {
	world  World // the server and its roles, after the steps that were taken
	caller Caller
	isKept bool   // no step may take the caller's right
	fits   bool   // no membership stands in the way of another one
	left   []Step // in their order
	taken  []Step
}

// takeAll takes the steps that are left, as far as they can be made. What cannot be made yet is
// tried again after each step that changes rights.
func (s *sequence) takeAll() {
	for i := 0; i < len(s.left); {
		step, taken := s.left[i], len(s.taken)
		isTaken := s.take(step)
		switch {
		case len(s.taken) > taken && step.Object.Kind <= RoleKind:
			i = 0
		case !isTaken:
			i++
		}
	}
}

// take takes a step that is left, and before it the ends of memberships that stand in its way. It
// reports whether the step can be made.
func (s *sequence) take(step Step) bool {
	if step.Object.Kind <= RoleKind {
		for step.Do == AddMembers && !s.fits {
			chain := s.after(step).longestChain()
			if !isTooLong(chain) {
				break
			}
			if !s.shorten(chain) {
				return false
			}
		}
		if s.isKept && step.MayLockOut() && !s.caller.administers(s.after(step)) {
			return false
		}
		s.world.Apply(step)
	}
	s.taken = append(s.taken, step)
	switch at := slices.IndexFunc(s.left, step.is); {
	case at == 0: // the usual case; it moves no other steps
		s.left = s.left[1:]
	case at > 0:
		s.left = slices.Delete(s.left, at, at+1)
	}
	return true
}

// is reports whether s and other are the same part of a plan.
func (s Step) is(other Step) bool {
	return s.Do == other.Do && s.Object == other.Object &&
		slices.EqualFunc(s.Changes, other.Changes, func(a, b Change) bool { return a.Fact == b.Fact })
}

// after returns the world after a step.
func (s *sequence) after(step Step) World {
	after := s.world.clone()
	after.Apply(step)
	return after
}

// shorten takes a step that ends a membership of chain. A role that will be removed loses a member
// before.
func (s *sequence) shorten(chain []string) bool {
	for i, member := range chain[1:] {
		role := Object{Kind: RoleKind, Name: chain[i]}
		was := ""
		end := Step{Do: RemoveMembers, Object: role, Changes: []Change{
			{Fact: Fact{Attribute: Member, Key: member}, Was: &was},
		}}
		isPlanned := slices.ContainsFunc(s.left, func(each Step) bool {
			return each.is(end) || each.Do == RemoveRole && each.Object == role
		})
		if isPlanned && s.take(end) {
			return true
		}
	}
	return false
}

// longestChain returns the longest chain of roles in w. Each is a member of the one before. If
// roles contain themselves, it returns a chain that ends with its first role.
func (w World) longestChain() (longest []string) {
	members := make(map[string][]string)
	for o, facts := range w {
		for fact := range facts {
			if o.Kind == RoleKind && fact.Attribute == Member && isRole(fact.Key) {
				members[o.Name] = append(members[o.Name], fact.Key)
			}
		}
	}
	below := make(map[string][]string) // the longest chain that begins with a role
	var open, cycle []string
	var visit func(role string) []string
	visit = func(role string) []string {
		if at := slices.Index(open, role); at >= 0 {
			cycle = append(slices.Clone(open[at:]), role)
		}
		if known, isVisited := below[role]; isVisited || cycle != nil {
			return known
		}
		open = append(open, role)
		var inner []string
		slices.Sort(members[role])
		for _, member := range members[role] {
			if chain := visit(member); len(chain) > len(inner) {
				inner = chain
			}
		}
		open = open[:len(open)-1]
		below[role] = append([]string{role}, inner...)
		return below[role]
	}
	for _, role := range slices.Sorted(maps.Keys(members)) {
		if chain := visit(role); len(chain) > len(longest) {
			longest = chain
		}
	}
	if cycle != nil {
		return cycle
	}
	return longest
}

// isTooLong reports whether a server refuses a chain of roles.
func isTooLong(chain []string) bool { return isCycle(chain) || len(chain) > access.DepthMax }

func isCycle(chain []string) bool { return len(chain) > 1 && chain[0] == chain[len(chain)-1] }

// faultOf returns what is wrong with a chain that is too long.
func faultOf(chain []string) string {
	if isCycle(chain) {
		return "a role cannot contain itself: " + strings.Join(chain, " has the member ")
	}
	return fmt.Sprintf("%d roles contain each other, at most %d can: %s", len(chain), access.DepthMax,
		strings.Join(chain, " has the member "))
}

// isRole reports whether a member or grantee is a role of the store.
func isRole(name string) bool { return access.GranteeOf(name) == access.IsRole }

// MayLockOut reports whether s takes grants on the server, members or roles. Other steps take no
// right as an administrator.
func (s Step) MayLockOut() bool {
	return s.Do == RemoveGrants && s.Object.Kind == ServerKind || s.Do == RemoveMembers || s.Do == RemoveRole
}

// LocksOut reports whether step takes the caller's right as an administrator. w has the grants on
// the server, and all roles.
func (c Caller) LocksOut(w World, step Step) bool {
	after := w.clone()
	after.Apply(step)
	return c.administers(w) && !c.administers(after)
}

// administers reports whether the caller has the privilege admin on the server by a grant that
// steps can take.
func (c Caller) administers(w World) bool {
	if c.IsFixed {
		return false
	}
	counts := w.withRoles(c.Grantees)
	if c.Only != nil {
		counts = w.withRoles(slices.DeleteFunc(counts, func(name string) bool {
			return name != access.Everyone && !slices.Contains(c.Only, name)
		}))
	}
	return slices.ContainsFunc(counts, func(name string) bool {
		_, has := w[Object{}][Fact{Grant, name, "admin"}]
		return has
	})
}

// withRoles returns names, and the roles that have one of them as a member, directly or not.
func (w World) withRoles(names []string) []string {
	reached := slices.Clone(names)
	for i := 0; i < len(reached); i++ {
		for o, facts := range w {
			_, isMember := facts[Fact{Attribute: Member, Key: reached[i]}]
			if o.Kind == RoleKind && isMember && !slices.Contains(reached, o.Name) {
				reached = append(reached, o.Name)
			}
		}
	}
	return reached
}
