package guard

import (
	"context"
	"strings"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog/verb"
)

// Question asks whether a caller may do something.
type Question struct {
	Caller moorage.Caller
	Verb   verb.Verb
	Object Object
	Asked  access.Privileges // See: whether it is seen
	// Through are the views by which the caller comes to the object; nil: by none.
	Through *Through
	// Missing is what is answered if the object is hidden, although its warehouse is not: the error
	// that there would be if it did not exist. Nil: that of its kind.
	Missing error
}

// Decide returns nil if the answer to q is yes, or if access is not on.
//
// Errors: KindNoSuchWarehouse if the caller does not see the warehouse. q.Missing, hidden, if he
// does not see the object. KindForbidden if he sees it and may not; KindNotAuthorized if his
// credential has ended or he is disabled. KindUnavailable if policy cannot be read.
func (g *Guard) Decide(ctx context.Context, q Question) error {
	if g == nil {
		return nil
	}
	v, err := g.current(ctx)
	if err != nil || !v.on || IsSystem(q.Caller) {
		return err
	}
	return g.decide(ctx, v, q)
}

// Again is Decide for a request that lasts long, by policy as new as the store has it now.
func (g *Guard) Again(ctx context.Context, q Question) error {
	if g == nil {
		return nil
	}
	if err := g.look(ctx); err != nil {
		return err
	}
	return g.Decide(ctx, q)
}

// decide is Decide by v.
func (g *Guard) decide(ctx context.Context, v *view, q Question) error {
	began := g.config.Now()
	who, err := g.who(v, q.Caller, began)
	if err != nil {
		return err
	}
	if g.heeds(v, who, q) {
		return g.decideThrough(ctx, v, who, q)
	}
	path := q.Object.Path
	decision := who.Decide(path, q.Asked)
	if decision.Outcome == access.Hidden {
		shown, err := g.Shown(ctx, q.Caller, path)
		if err != nil {
			return err
		}
		if shown != nil {
			path, decision = shown, who.Decide(shown, q.Asked)
		}
	}
	if decision.Outcome != access.Allow {
		q.Asked, decision = q.instead(who, path, decision)
	}
	if g.config.Decided != nil {
		g.config.Decided(ctx, Decision{
			Caller: q.Caller, Verb: q.Verb, Object: q.Object, Asked: q.Asked, Decision: decision, Epoch: v.Epoch(),
			Took: g.config.Now().Sub(began), Unheeded: q.Through.idents(),
		})
	}
	return q.Refusal(decision)
}

// instead returns what q asks for, and the decision about that. If the caller has what does in the
// place of it by the table of verbs, it returns that one and its decision.
func (q Question) instead(who *access.Who, path []access.Object, decision access.Decision) (
	access.Privileges, access.Decision) {
	row, _ := q.Verb.Row()
	other := row.InsteadOf(verb.OfObject)
	if other == access.See && len(path) == 0 {
		other = row.InsteadOf(verb.OfServer)
	}
	if q.Asked == access.See || other == access.See {
		return q.Asked, decision
	}
	if by := who.Decide(path, other); by.Outcome == access.Allow {
		return other, by
	}
	return q.Asked, decision
}

// who returns what v knows of caller. Errors: KindForbidden for a caller who showed nothing,
// KindNotAuthorized for one whose credential has ended.
func (g *Guard) who(v *view, caller moorage.Caller, now time.Time) (*access.Who, error) {
	switch principal, _ := v.Principal(caller.Name); {
	case access.GranteeOf(caller.Name) != access.IsPrincipal:
		return nil, moorage.Errorf(moorage.KindNotAuthorized, "Not authenticated")
	case principal.Disabled,
		caller.KeyID != "" && !v.KeyLives(caller.KeyID, caller.KeyGeneration, now),
		!caller.Ends.IsZero() && !now.Before(caller.Ends):
		return nil, moorage.Errorf(moorage.KindNotAuthorized, "Invalid credentials")
	}
	return v.Who(access.Caller{
		Name: caller.Name, Roles: caller.Roles, Only: caller.Only, Acting: len(caller.Via) > 0,
	}), nil
}

// Refusal returns the error that decision is answered with, nil if it allows what q asks for.
func (q Question) Refusal(decision access.Decision) error {
	switch decision.Outcome {
	case access.Allow:
		return nil
	case access.Forbid:
		return Forbidden(q.Object, decision.Missing)
	}
	last := len(q.Object.Path) - 1
	missing := q.Missing
	switch {
	case decision.HiddenAt >= last:
		missing = NoSuchWarehouse(q.Object.Ident.Warehouse)
	case missing == nil:
		missing = noSuch(q.Object)
	}
	return Hide(missing)
}

// Forbidden returns the error of a caller who sees object and lacks privileges there.
func Forbidden(object Object, lacks access.Privileges) error {
	name := object.Kind().String()
	switch object.Kind() {
	case access.Server:
		name = "the server"
	case access.Warehouse:
		name += " " + object.Ident.Warehouse
	case access.Namespace:
		name += " " + object.Ident.Namespace.String()
	default:
		name += " " + object.Ident.String()
	}
	if lacks == access.See {
		return moorage.Errorf(moorage.KindForbidden, "Not allowed: see %s", name)
	}
	return moorage.Errorf(moorage.KindForbidden, "Not allowed: %s on %s", lacks, name)
}

// Hide returns missing, which says that something does not exist, as the answer to a caller who
// must not learn that it does.
func Hide(missing error) error {
	return &moorage.Error{Kind: moorage.KindOf(missing), Message: moorage.MessageOf(missing), Hidden: true}
}

// NoSuchWarehouse returns the error that there is no warehouse called name.
func NoSuchWarehouse(name string) error {
	return moorage.Errorf(moorage.KindNoSuchWarehouse, "Warehouse does not exist: %s", name)
}

// NoSuchNamespace returns the error that there is no such namespace.
func NoSuchNamespace(ns moorage.Namespace) error {
	return moorage.Errorf(moorage.KindNoSuchNamespace, "Namespace does not exist: %s", ns)
}

// NoSuchTable and NoSuchView return the errors that there is no table or view called ident.
func NoSuchTable(ident moorage.Identifier) error {
	return moorage.Errorf(moorage.KindNoSuchTable, "Table does not exist: %s", ident)
}

// NoSuchView is NoSuchTable for a view.
func NoSuchView(ident moorage.Identifier) error {
	return moorage.Errorf(moorage.KindNoSuchView, "View does not exist: %s", ident)
}

// noSuch returns the error that object does not exist.
func noSuch(object Object) error {
	switch object.Kind() {
	case access.Table:
		return NoSuchTable(object.Ident)
	case access.View:
		return NoSuchView(object.Ident)
	case access.Namespace:
		return NoSuchNamespace(object.Ident.Namespace)
	}
	return NoSuchWarehouse(object.Ident.Warehouse)
}

// Authorize implements verb.Gate. It decides what a verb asks about the whole server. Its object is
// not known yet: of that it only refuses callers who are not let in at all.
func (g *Guard) Authorize(ctx context.Context, request verb.Request) error {
	row, _ := request.Verb.Row()
	asked, ofServer := row.Needs(verb.OfServer, verb.Always)
	if ofServer = ofServer && !row.AskedLater; ofServer {
		// Metrics are needed most while the store does not answer. The policy that this process
		// knows decides about them then.
		if err := g.look(ctx); err != nil && request.Verb != verb.LoadMetrics {
			return err
		}
	}
	v, err := g.current(ctx)
	switch {
	case err != nil || !v.on || IsSystem(request.Caller):
		return err
	case ofServer:
		return g.decide(ctx, v, Question{Caller: request.Caller, Verb: request.Verb, Asked: asked})
	}
	return g.letIn(ctx, v, request.Caller)
}

// letIn returns nil if caller is let in at all. The policy of v may be older than a request: who is
// refused by it is asked about once more, by the policy that the store has now.
func (g *Guard) letIn(ctx context.Context, v *view, caller moorage.Caller) error {
	_, err := g.who(v, caller, g.config.Now())
	if _, shared := g.Key(); err == nil || !shared || access.GranteeOf(caller.Name) != access.IsPrincipal {
		return err
	}
	if err := g.look(ctx); err != nil {
		return err
	}
	newer, lookErr := g.current(ctx)
	switch {
	case lookErr != nil:
		return lookErr
	case newer == v:
		return err
	}
	_, err = g.who(newer, caller, g.config.Now())
	return err
}

// Audit implements verb.Gate. It notes nothing.
func (g *Guard) Audit(context.Context, verb.Request, error) {}

// systemPrefix begins the names that moorage.System makes.
const systemPrefix = "system:"

// IsSystem reports whether caller is a job of the server. Nobody who asks over the network can be
// one: package identity gives nobody a name with this alias.
func IsSystem(caller moorage.Caller) bool {
	return caller.Source == "" && strings.HasPrefix(caller.Name, systemPrefix)
}
