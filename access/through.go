package access

import "strings"

// Passed is a view through which a caller reaches an object.
type Passed struct {
	// Path begins with the view. It is empty if there is no such view.
	Path []Object
	// Definer is true for a view with definer's rights. In that case, for the objects in the view's
	// query, the privileges of the view's owner count instead of the caller's.
	Definer bool
}

// Walk is a decision about an object that a caller reaches through views.
type Walk struct {
	// Decision is the decision about the view with the index Step. If Step is the number of views,
	// Decision is the decision about the object.
	Decision
	Step int
	// AsOwner is true if at Step the privileges of a view's owner counted instead of the caller's.
	// Owner is the name of that owner. It is empty if the view has no owner.
	AsOwner bool
	Owner   string
}

// Asked explains one step of a walk.
type Asked struct {
	AsOwner bool   // as in Walk
	Owner   string // as in Walk
	Missing bool   // there is no such view, and so no explanation
	Explanation
}

// DecideThrough decides like Decide, but about an object that the caller reaches through views.
// views has the outermost view first. Each view requires Read. Behind a definer view, the
// privileges of its owner count instead of the caller's, until the next definer view. For an owner,
// only grants in the store count, because it is unknown which roles the owner's issuer would now
// include in a token. Grants on the server do not count for an owner.
//
// If the outcome at a view is Hidden, the caller must get the answer for an object that does not
// exist. HiddenAt is then an index in the path of that view. If asked is See, the caller's own
// privileges decide about the object.
func (w *Who) DecideThrough(views []Passed, path []Object, asked Privileges) Walk {
	as := asker{Who: w}
	for step, view := range views {
		if decision := w.decideAs(as, view.Path, Read); decision.Outcome != Allow {
			return Walk{decision, step, as.isOwner, as.owner}
		}
		as = as.throughView(w.snapshot, view)
	}
	if asked == See {
		as = asker{Who: w}
	}
	return Walk{w.decideAs(as, path, asked), len(views), as.isOwner, as.owner}
}

// ExplainThrough explains the decision of DecideThrough for the same arguments. It returns one
// Asked for each step, up to the step that refused. Like Explain, it does not hide objects.
func (w *Who) ExplainThrough(views []Passed, path []Object, asked Privileges) (walk Walk, steps []Asked) {
	walk = w.DecideThrough(views, path, asked)
	as := asker{Who: w}
	for _, view := range views[:min(walk.Step+1, len(views))] {
		step := Asked{AsOwner: as.isOwner, Owner: as.owner, Missing: len(view.Path) == 0}
		if !step.Missing {
			step.Explanation = as.Explain(view.Path, Read)
		}
		steps = append(steps, step)
		as = as.throughView(w.snapshot, view)
	}
	if asked == See {
		as = asker{Who: w}
	}
	if walk.Step == len(views) {
		steps = append(steps, Asked{AsOwner: as.isOwner, Owner: as.owner, Explanation: as.Explain(path, asked)})
	}
	return walk, steps
}

// asker is the caller or owner whose privileges count at a step of a walk.
type asker struct {
	*Who
	isOwner bool
	owner   string
}

// throughView returns the asker whose privileges count for the objects behind view.
func (a asker) throughView(s *Snapshot, view Passed) asker {
	if !view.Definer || len(view.Path) == 0 {
		return a
	}
	record, _ := s.objects.get(view.Path[0].ID)
	owner := a.ownerOf(&record, &view.Path[0])
	return asker{s.ofOwner(owner), true, owner}
}

// decideAs decides about a request of the caller w, for which only the privileges of an asker
// count. If that asker is an owner and lacks a privilege, the outcome is Hidden, unless w itself
// sees the object. If the owner may describe the object, the outcome is Forbid, because the view
// then shows the object to its callers.
func (w *Who) decideAs(as asker, path []Object, asked Privileges) Decision {
	if len(path) == 0 {
		return Decision{Missing: asked}
	}
	decision := as.Decide(path, asked)
	if !as.isOwner || decision.Outcome == Allow {
		return decision
	}
	decision = Decision{Outcome: Forbid, Missing: asked &^ as.Has(path)}
	if as.Decide(path, Describe).Outcome == Allow {
		return decision
	}
	if sight := w.Decide(path, See); sight.Outcome != Allow {
		decision.Outcome, decision.HiddenAt = Hidden, sight.HiddenAt
	}
	return decision
}

// keyAlias is the prefix of principals that exist only if they have a record.
const keyAlias = "key:"

// ofOwner returns the owner of a view as a caller. The owner is a principal or a role. If it is
// disabled, deleted or has no valid name, it has no privileges.
func (s *Snapshot) ofOwner(owner string) *Who {
	_, isRecorded := s.names.principals[owner]
	_, isRole := s.names.roles[owner]
	switch GranteeOf(owner) {
	case IsPrincipal:
		if isRecorded || !strings.HasPrefix(owner, keyAlias) {
			return s.Who(Caller{Name: owner, Acting: true})
		}
	case IsRole:
		if isRole || owner == Everyone {
			return newRole(s, owner)
		}
	case IsTokenRole:
		return newRole(s, owner)
	}
	return &Who{snapshot: s, disabled: true}
}

// newRole returns a caller that has the privileges of every member of a role.
func newRole(s *Snapshot, role string) *Who {
	who := &Who{snapshot: s, caller: Caller{Acting: true}, direct: []number{everyoneNumber, s.names.numberOf(role)}}
	who.numbers = s.names.closure(who.direct)
	who.index()
	return who
}

// Believed reports whether the catalog trusts a request's report of views in a warehouse. If
// engines act in the caller's name, each of them needs Delegate on the warehouse. Otherwise the
// caller itself needs it. limits lists the roles to which the engines' key is limited, or is nil if
// there is no limit.
func (w *Who) Believed(warehouse Object, engines, limits []string) bool {
	path := []Object{warehouse}
	if len(engines) == 0 {
		return w.Decide(path, Delegate).Outcome == Allow
	}
	for _, engine := range engines {
		who := w.snapshot.Who(Caller{Name: engine, Only: limits})
		if GranteeOf(engine) != IsPrincipal || who.Decide(path, Delegate).Outcome != Allow {
			return false
		}
	}
	return true
}
