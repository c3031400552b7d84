package access

import "strings"

// Passed is a view that a caller goes through on the way to an object.
type Passed struct {
	// Path begins with the view. It is empty if there is no such view.
	Path []Object
	// Definer reports that the view's owner, not the caller, needs the privileges on the objects
	// that the view names.
	Definer bool
}

// Walk is the answer to a question about an object that a caller reaches through views.
type Walk struct {
	// Decision is about the view at Step. If Step is the number of views, it is about the object.
	Decision
	Step int
	// AsOwner reports that the privileges of a view's owner decided at Step, instead of the
	// caller's own. Owner is the name of that owner, empty if the view has no owner.
	AsOwner bool
	Owner   string
}

// Asked is one step of a walk, explained.
type Asked struct {
	AsOwner bool   // as in Walk
	Owner   string // as in Walk
	Missing bool   // there is no such view; the explanation is empty
	Explanation
}

// DecideThrough decides as Decide does about an object that the caller reaches through views, the
// outermost first. Each view takes Read. Behind a definer view the privileges of its owner count
// instead of the caller's own, until the next definer view. An owner has only the privileges that
// were granted in the store, because the roles that an issuer would give it now are unknown. Grants
// on the server do not count for an owner.
//
// Hidden at a view means that the caller must get the answer for an object that does not exist.
// HiddenAt is then an index in the path of that view. See is always decided for the caller.
func (w *Who) DecideThrough(views []Passed, path []Object, asked Privileges) Walk {
	as := asker{Who: w}
	for step, view := range views {
		if decision := w.decideAs(as, view.Path, Read); decision.Outcome != Allow {
			return Walk{decision, step, as.isOwner, as.owner}
		}
		as = as.behind(w.snapshot, view)
	}
	if asked == See {
		as = asker{Who: w}
	}
	return Walk{w.decideAs(as, path, asked), len(views), as.isOwner, as.owner}
}

// ExplainThrough explains DecideThrough for the same arguments. It returns one Asked for each step,
// up to the step that refused. Like Explain it hides nothing.
func (w *Who) ExplainThrough(views []Passed, path []Object, asked Privileges) (walk Walk, steps []Asked) {
	walk = w.DecideThrough(views, path, asked)
	as := asker{Who: w}
	for _, view := range views[:min(walk.Step+1, len(views))] {
		step := Asked{AsOwner: as.isOwner, Owner: as.owner, Missing: len(view.Path) == 0}
		if !step.Missing {
			step.Explanation = as.Explain(view.Path, Read)
		}
		steps = append(steps, step)
		as = as.behind(w.snapshot, view)
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

// behind returns the asker whose privileges count behind view.
func (a asker) behind(s *Snapshot, view Passed) asker {
	if !view.Definer || len(view.Path) == 0 {
		return a
	}
	record, _ := s.objects.get(view.Path[0].ID)
	owner := a.ownerOf(&record, &view.Path[0])
	return asker{s.ofOwner(owner), true, owner}
}

// decideAs decides as's request on behalf of w. A denial to an owner is Hidden from a caller that
// does not see the object. It is Forbid if the owner may describe the object, because the view then
// shows it to its callers.
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

// keyAlias begins the names of principals that exist only as a record.
const keyAlias = "key:"

// ofOwner returns the owner of a view, which is a principal or a role. An owner that is disabled,
// deleted or has no valid name has no privileges.
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

// newRole returns a caller with the privileges that every member of a role has.
func newRole(s *Snapshot, role string) *Who {
	who := &Who{snapshot: s, caller: Caller{Acting: true}, direct: []number{everyoneNumber, s.names.named(role)}}
	who.numbers = s.names.closure(who.direct)
	who.index()
	return who
}

// Believed reports whether the catalog believes what a request contains about views in a warehouse.
// Each of engines, which act in the caller's name, needs Delegate there. Without engines the caller
// needs it. only are the roles that the key of the engines is narrowed to, nil for no such limit.
func (w *Who) Believed(warehouse Object, engines, only []string) bool {
	path := []Object{warehouse}
	if len(engines) == 0 {
		return w.Decide(path, Delegate).Outcome == Allow
	}
	for _, engine := range engines {
		who := w.snapshot.Who(Caller{Name: engine, Only: only})
		if GranteeOf(engine) != IsPrincipal || who.Decide(path, Delegate).Outcome != Allow {
			return false
		}
	}
	return true
}
