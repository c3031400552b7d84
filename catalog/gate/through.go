package gate

import (
	"context"

	"moorage"
	"moorage/access"
)

// Through holds the views through which the caller of one request reaches an object.
type Through struct {
	Views []View // outermost first
	// Ignored is true if the guard did not trust the sender. Then the views were not resolved, and
	// have no objects.
	Ignored bool
}

// View is a view through which a caller reaches an object.
type View struct {
	// Object has an empty path if the view does not exist.
	Object  Object
	Definer bool // for the objects behind it, the privileges of its owner count
}

// Counts reports whether t has views that influence the decision. It returns false if t is nil.
func (t *Through) Counts() bool { return t != nil && !t.Ignored }

// Names returns the names of the views, or nil if t does not count.
func (t *Through) Names() []moorage.Identifier {
	if !t.Counts() {
		return nil
	}
	return t.idents()
}

// idents returns the names of the views, whether they count or not. It returns nil if t is nil.
func (t *Through) idents() []moorage.Identifier {
	if t == nil {
		return nil
	}
	names := make([]moorage.Identifier, len(t.Views))
	for i, view := range t.Views {
		names[i] = view.Object.Ident
	}
	return names
}

func (t *Through) passed() []access.Passed {
	views := make([]access.Passed, len(t.Views))
	for i, view := range t.Views {
		views[i] = access.Passed{Path: view.Object.Path, Definer: view.Definer}
	}
	return views
}

// viewsCount reports whether the views in q influence the decision. They do if they come from an
// engine that is trusted in the warehouse. An engine that is not trusted could name any view that
// its user may read.
func (g *Guard) viewsCount(v *view, who *access.Who, q Question) bool {
	return q.Through.Counts() && isTrusted(v.Snapshot, who, q.Caller, q.Object)
}

// Trusts reports whether views named by caller count in the warehouse of object. If access control
// is disabled or caller is a job of the server, no decision depends on views, and they do not
// count.
//
// Errors: the errors of Decide about the caller.
func (g *Guard) Trusts(ctx context.Context, caller moorage.Caller, object Object) (bool, error) {
	v, err := g.current(ctx)
	if err != nil || !v.enabled || IsSystem(caller) {
		return false, err
	}
	who, err := g.entry(v, caller, g.config.Now())
	return err == nil && isTrusted(v.Snapshot, who, caller, object), err
}

// isTrusted reports whether caller is trusted to name views in the warehouse of object. who is the
// caller's entry in snapshot. The engine that sends the request must be trusted, whatever user it
// acts for.
func isTrusted(snapshot *access.Snapshot, who *access.Who, caller moorage.Caller, object Object) bool {
	var only []string
	if keys, _ := snapshot.Keys(caller.KeyID); len(keys) > 0 {
		only = keys[0].Roles
	}
	return who.Believed(object.Path[len(object.Path)-1], caller.Via, only)
}

// decideThrough is like decide, for an object behind views that count. It uses one snapshot for the
// views and the object.
func (g *Guard) decideThrough(ctx context.Context, v *view, who *access.Who, q Question) error {
	began := g.config.Now()
	views := q.Through.passed()
	walk := who.DecideThrough(views, q.Object.Path, q.Asked)
	refusal, err := g.refusalOf(ctx, who, q, &walk)
	if err != nil {
		return err
	}
	if g.config.Decided != nil {
		g.config.Decided(ctx, Decision{
			Caller: q.Caller, Verb: q.Verb, Object: q.Object, Asked: q.Asked, Decision: walk.Decision, Epoch: v.Epoch(),
			Took: g.config.Now().Sub(began), Through: q.Through.idents(), Walk: walk,
		})
	}
	return refusal
}

// refusalOf returns the error for the caller according to walk, or nil. If the caller sees more
// because it created objects on the path, refusalOf changes walk. If it cannot determine that, it
// returns err.
func (g *Guard) refusalOf(ctx context.Context, who *access.Who, q Question, walk *access.Walk) (refusal, err error) {
	behind := walk.Step == len(q.Through.Views)
	switch {
	case walk.Outcome == access.Allow:
		return nil, nil
	case walk.Outcome == access.Forbid && !behind:
		return Forbidden(q.Through.Views[walk.Step].Object, walk.Missing), nil
	case walk.Outcome == access.Forbid && walk.AsOwner:
		return forbiddenToOwner(q, walk), nil
	case walk.Outcome == access.Forbid:
		return q.Refusal(walk.Decision), nil
	}
	// If a view or the object is hidden from the caller, the answer is the same as for a missing
	// object.
	warehouse := q.Object.Path[len(q.Object.Path)-1:]
	sees := who.Seen(warehouse)
	if !sees {
		shown, err := g.MarkOwned(ctx, q.Caller, warehouse)
		if err != nil {
			return nil, err
		}
		sees = shown != nil && who.Seen(shown)
	}
	switch {
	case !sees:
		return Hide(NoSuchWarehouse(q.Object.Ident.Warehouse)), nil
	case behind && len(q.Object.Path) == 1: // the object is the warehouse itself
		walk.Decision = access.Decision{Outcome: access.Allow, By: access.ByInside}
		return nil, nil
	case q.Missing != nil:
		return Hide(q.Missing), nil
	}
	return Hide(noSuch(q.Object)), nil
}

// forbiddenToOwner returns the error if the owner of a view lacks privileges. The error does not
// name the owner.
func forbiddenToOwner(q Question, walk *access.Walk) error {
	view := q.Through.Views[walk.Step-1]
	for at := walk.Step - 1; !view.Definer; at-- {
		view = q.Through.Views[at-1]
	}
	return moorage.Errorf(moorage.KindForbidden, "%s, for the owner of view %s",
		forbiddenText(q.Object, walk.Missing), view.Object.Ident)
}
