package guard

import (
	"context"

	"moorage"
	"moorage/access"
)

// Through says by which views somebody comes to an object. It belongs to one request.
type Through struct {
	Views []View // the outermost first
	// Ignored says that nobody trusted who named the views when they would have been looked for.
	// They have no objects.
	Ignored bool
}

// View is a view that somebody goes through.
type View struct {
	// Object has an empty path if there is no such view.
	Object  Object
	Definer bool // what the view names is asked for as its owner
}

// Heeded reports whether somebody comes by views that are looked at. Nil comes by none.
func (t *Through) Heeded() bool { return t != nil && !t.Ignored }

// Names returns the names of the views that are looked at; nil for none.
func (t *Through) Names() []moorage.Identifier {
	if !t.Heeded() {
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

// heeds reports whether the views that q names count. They do if they come from an engine that is
// trusted in the warehouse: any other could name any view that its user may read.
func (g *Guard) heeds(v *view, who *access.Who, q Question) bool {
	return q.Through.Heeded() && isTrusted(v.Snapshot, who, q.Caller, q.Object)
}

// Trusts reports whether the views that caller names are heeded in the warehouse of object. They
// are not if access is not on, nor those of jobs of the server: nothing depends on them then.
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

// isTrusted reports whether caller, whom snapshot knows as who, is trusted about views in the
// warehouse of object: the engine is that asks, in whosever name.
func isTrusted(snapshot *access.Snapshot, who *access.Who, caller moorage.Caller, object Object) bool {
	var only []string
	if keys, _ := snapshot.Keys(caller.KeyID); len(keys) > 0 {
		only = keys[0].Roles
	}
	return who.Believed(object.Path[len(object.Path)-1], caller.Via, only)
}

// decideThrough is decide for an object behind views that are heeded. The views and the object are
// decided on by one snapshot.
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

// refusalOf returns what the caller is answered to walk, which is changed where he made something
// that shows him more. err says that this cannot be told.
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
	// What is hidden at any step is answered as if the object did not exist.
	warehouse := q.Object.Path[len(q.Object.Path)-1:]
	sees := who.Seen(warehouse)
	if !sees {
		shown, err := g.Shown(ctx, q.Caller, warehouse)
		if err != nil {
			return nil, err
		}
		sees = shown != nil && who.Seen(shown)
	}
	switch {
	case !sees:
		return Hide(NoSuchWarehouse(q.Object.Ident.Warehouse)), nil
	case behind && len(q.Object.Path) == 1: // the warehouse itself is what he asks to see
		walk.Decision = access.Decision{Outcome: access.Allow, By: access.ByBeneath}
		return nil, nil
	case q.Missing != nil:
		return Hide(q.Missing), nil
	}
	return Hide(noSuch(q.Object)), nil
}

// forbiddenToOwner is Forbidden for what the owner of a view lacks. It does not say who that is.
func forbiddenToOwner(q Question, walk *access.Walk) error {
	view := q.Through.Views[walk.Step-1]
	for at := walk.Step - 1; !view.Definer; at-- {
		view = q.Through.Views[at-1]
	}
	return moorage.Errorf(moorage.KindForbidden, "%s, which is asked for as the owner of view %s",
		moorage.MessageOf(Forbidden(q.Object, walk.Missing)), view.Object.Ident)
}
