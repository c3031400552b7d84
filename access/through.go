package access

import "strings"

// Passed is a view that a caller goes through on the way to an object.
type Passed struct {
	// Path begins with the view; empty: there is no such view.
	Path []Object
	// Definer says that what the view names is asked for as its owner.
	Definer bool
}

// Walk is the answer to a question about an object that a caller comes to through views.
type Walk struct {
	// Decision is about the view at Step. If Step is the number of views, it is about the object.
	Decision
	Step int
	// AsOwner says that the rights of the owner of a view decided there, instead of the caller's
	// own. Owner is his name, empty if nobody owns that view.
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

// DecideThrough decides as Decide does about an object that the caller comes to through views, the
// outermost first. Each view takes Read. Behind a definer view it is the rights of its owner that
// count, and no longer the caller's own, until another definer view comes. An owner has what was
// granted to him in the store: nobody knows which roles an issuer would give him now. What stands
// on the server does not count.
//
// Hidden at a view means that the caller must get the answer that he would get if the object did
// not exist; HiddenAt is about the path of that view. See is asked as the caller in any case.
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

// ExplainThrough explains DecideThrough for the same arguments: one Asked a step, up to the one
// that refused. Like Explain it hides nothing.
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

// asker is whose rights count at a step of a walk.
type asker struct {
	*Who
	isOwner bool
	owner   string
}

// behind returns whose rights count behind view.
func (a asker) behind(s *Snapshot, view Passed) asker {
	if !view.Definer || len(view.Path) == 0 {
		return a
	}
	record, _ := s.objects.get(view.Path[0].ID)
	owner := a.ownerOf(&record, &view.Path[0])
	return asker{s.ofOwner(owner), true, owner}
}

// decideAs decides what as asks for in the name of w. What is denied to an owner is hidden from the
// caller if he does not see it himself, unless the owner may describe it: that shows it to those
// who go through the view.
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

// keyAlias begins the names of principals that exist by their record alone.
const keyAlias = "key:"

// ofOwner returns what the owner of a view has: a principal or a role. One that is nobody, disabled
// or gone has nothing.
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

// newRole returns what everybody has who has a role.
func newRole(s *Snapshot, role string) *Who {
	who := &Who{snapshot: s, caller: Caller{Acting: true}, direct: []number{everyoneNumber, s.names.named(role)}}
	who.numbers = s.names.closure(who.direct)
	who.index()
	return who
}

// Believed reports whether what a request says about views is believed in a warehouse: whether each
// of engines, who ask in the caller's name, has Delegate there. If nobody asks in his name, it is
// the caller who must have it. only are the roles that the key of the engines is narrowed to, nil
// for no such limit.
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
