package gate

import (
	"context"

	"moorage"
	"moorage/access"
)

// Through holds the views through which a caller reaches an object. It belongs to one request.
type Through struct {
	Views []View // the outermost first
	// Ignored means that the sender was not trusted when the views would have been resolved. The
	// views then have no objects.
	Ignored bool
}

// View is a view through which a caller reaches an object.
type View struct {
	// Object has an empty path if there is no such view.
	Object  Object
	Definer bool // the view's owner is checked for the objects behind it
}

// Counts reports whether there are views and they count. It is false for nil.
func (t *Through) Counts() bool { return t != nil && !t.Ignored }

// Names returns the names of the views that count; nil if there are none.
func (t *Through) Names() []moorage.Identifier {
	if !t.Counts() {
		return nil
	}
	return t.idents()
}

// idents returns the names of the views; nil for nil.
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

// viewsCount reports whether the views in q count. They count if they come from an engine that is
// trusted in the warehouse. Any other engine could name any view that its user may read.
func (g *Guard) viewsCount(v *view, who *access.Who, q Question) bool {
	return q.Through.Counts() && isTrusted(v.Snapshot, who, q.Caller, q.Object)
}

// Trusts reports whether the views that caller names count in the warehouse of object. They do not
// count if access control is off or caller is a job of the server: then no decision depends on
// them.
//
// Errors: those of Decide about the caller.
func (g *Guard) Trusts(ctx context.Context, caller moorage.Caller, object Object) (bool, error) {
	v, err := g.current(ctx)
	if err != nil || !v.on || IsSystem(caller) {
		return false, err
	}
	who, err := g.who(v, caller, g.config.Now())
	return err == nil && isTrusted(v.Snapshot, who, caller, object), err
}

// isTrusted reports whether caller, whose entry in snapshot is who, is trusted to name views in the
// warehouse of object. The engine that sends the request must be trusted, whichever user it acts
// for.
func isTrusted(snapshot *access.Snapshot, who *access.Who, caller moorage.Caller, object Object) bool {
	var only []string
	if keys, _ := snapshot.Keys(caller.KeyID); len(keys) > 0 {
		only = keys[0].Roles
	}
	return who.Believed(object.Path[len(object.Path)-1], caller.Via, only)
}

// decideThrough is decide for an object behind views that count. One snapshot decides about the
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

// refusalOf returns the caller's error for walk. It changes walk if the caller sees more because
// they created something. err means that this cannot be determined.
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
	// If any step is hidden, the answer is the one for an object that does not exist.
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
	case behind && len(q.Object.Path) == 1: // the caller wants to see the warehouse itself
		walk.Decision = access.Decision{Outcome: access.Allow, By: access.ByInside}
		return nil, nil
	case q.Missing != nil:
		return Hide(q.Missing), nil
	}
	return Hide(noSuch(q.Object)), nil
}

// forbiddenToOwner is Forbidden for privileges that the owner of a view lacks. The error does not
// name the owner.
func forbiddenToOwner(q Question, walk *access.Walk) error {
	view := q.Through.Views[walk.Step-1]
	for at := walk.Step - 1; !view.Definer; at-- {
		view = q.Through.Views[at-1]
	}
	return moorage.Errorf(moorage.KindForbidden, "%s, for the owner of view %s",
		moorage.MessageOf(Forbidden(q.Object, walk.Missing)), view.Object.Ident)
}
