package gate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"moorage"
	"moorage/access"
)

// Question is a request to decide whether a caller may do something.
type Question struct {
	Caller moorage.Caller
	Verb   Verb
	Object Object
	Asked  access.Privileges // access.See if the caller only has to see the object
	// Through are the views through which the caller reaches the object. It is nil if there are no
	// views.
	Through *Through
	// Missing is the error if the warehouse is visible to the caller but the object is hidden. It
	// must equal the error for a missing object. Nil selects the error for the object's kind.
	Missing error
}

// Decide returns nil if q is allowed, or if access control is disabled.
//
// Errors: KindNoSuchWarehouse if the warehouse is hidden from the caller. Hide(q.Missing) if the
// object is hidden from the caller. KindForbidden if the caller sees the object but lacks
// privileges. KindNotAuthorized if the credential has expired or the principal is disabled.
// KindUnavailable if the policy cannot be read.
func (g *Guard) Decide(ctx context.Context, q Question) error {
	if g == nil {
		return nil
	}
	v, err := g.current(ctx)
	if err != nil || !v.enabled || IsSystem(q.Caller) {
		return err
	}
	return g.decide(ctx, v, q)
}

// Again is like Decide, but first reads the present policy of the store. It repeats the decision
// for a long request.
func (g *Guard) Again(ctx context.Context, q Question) error {
	if g == nil {
		return nil
	}
	if err := g.look(ctx); err != nil {
		return err
	}
	return g.Decide(ctx, q)
}

// decide decides q according to the policy in v.
func (g *Guard) decide(ctx context.Context, v *view, q Question) error {
	began := g.config.Now()
	who, err := g.entry(v, q.Caller, began)
	if err != nil {
		return err
	}
	if g.viewsCount(v, who, q) {
		return g.decideThrough(ctx, v, who, q)
	}
	path := q.Object.Path
	decision := who.Decide(path, q.Asked)
	if decision.Outcome == access.Hidden {
		shown, err := g.MarkOwned(ctx, q.Caller, path)
		if err != nil {
			return err
		}
		if shown != nil {
			path, decision = shown, who.Decide(shown, q.Asked)
		}
	}
	if decision.Outcome != access.Allow {
		q.Asked, decision = q.alternative(who, path, decision)
	}
	if g.config.Decided != nil {
		g.config.Decided(ctx, Decision{
			Caller: q.Caller, Verb: q.Verb, Object: q.Object, Asked: q.Asked, Decision: decision, Epoch: v.Epoch(),
			Took: g.config.Now().Sub(began), Ignored: q.Through.idents(),
		})
	}
	return q.Refusal(decision)
}

// alternative returns the privileges to check, and the decision about them. If the table of verbs
// has alternative privileges, and the caller has these, it returns the alternative and the decision
// about it. Otherwise it returns q.Asked and decision.
func (q Question) alternative(who *access.Who, path []access.Object, decision access.Decision) (
	access.Privileges, access.Decision) {
	row, _ := q.Verb.Row()
	other := row.InsteadOf(OfObject)
	if other == access.See && len(path) == 0 {
		other = row.InsteadOf(OfServer)
	}
	if q.Asked == access.See || other == access.See {
		return q.Asked, decision
	}
	if by := who.Decide(path, other); by.Outcome == access.Allow {
		return other, by
	}
	return q.Asked, decision
}

// entry returns the entry of caller in v. Its errors are the errors of check.
func (g *Guard) entry(v *view, caller moorage.Caller, now time.Time) (*access.Who, error) {
	if err := g.check(v, caller, now); err != nil {
		return nil, err
	}
	return v.Who(access.Caller{
		Name: caller.Name, Roles: caller.Roles, Only: caller.Only, Acting: len(caller.Via) > 0,
	}), nil
}

// check returns KindNotAuthorized if the caller is not authenticated or is disabled in v, or if its
// credential has expired.
func (g *Guard) check(v *view, caller moorage.Caller, now time.Time) error {
	switch principal, _ := v.Principal(caller.Name); {
	case access.GranteeOf(caller.Name) != access.IsPrincipal:
		return moorage.Errorf(moorage.KindNotAuthorized, "Not authenticated")
	case principal.Disabled,
		caller.KeyID != "" && !v.KeyLives(caller.KeyID, caller.KeyGeneration, now):
		return moorage.Errorf(moorage.KindNotAuthorized, "Invalid credentials")
	case !caller.Ends.IsZero() && !now.Before(caller.Ends):
		return moorage.Errorf(moorage.KindNotAuthorized, "The credentials expired at %s: get new ones",
			caller.Ends.UTC().Format(time.RFC3339))
	}
	return nil
}

// Refusal returns the error for decision, or nil if it allows q.
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

// Forbidden returns the error for a caller that sees object but lacks privileges on it. It names
// the command that shows why.
func Forbidden(object Object, lacks access.Privileges) error {
	asked := access.Describe
	if words := lacks.Words(); len(words) > 0 {
		asked, _ = access.Parse(words[:1])
	}
	return moorage.Errorf(moorage.KindForbidden, "%s; why: moorage explain %s on %s", forbiddenText(object, lacks),
		asked, commandName(object))
}

// commandName returns the kind and name of an object in the form of command arguments.
func commandName(object Object) string {
	if object.Kind() == access.Server {
		return "server"
	}
	levels := append([]string{object.Ident.Warehouse}, object.Ident.Namespace...)
	if object.Ident.Name != "" {
		levels = append(levels, object.Ident.Name)
	}
	return object.Kind().String() + " " + moorage.ShellWord(moorage.CommandName(levels...))
}

// forbiddenText returns the text for a caller that lacks privileges on object.
func forbiddenText(object Object, lacks access.Privileges) string {
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
		return "Not allowed: see " + name
	}
	return fmt.Sprintf("Not allowed: %s on %s", lacks, name)
}

// Hide returns missing, the error for a missing object, with the mark Hidden. It is for a caller
// that must not learn that the object exists.
func Hide(missing error) error {
	return &moorage.Error{Kind: moorage.KindOf(missing), Message: moorage.MessageOf(missing), Hidden: true}
}

// NoSuchWarehouse returns the error for a warehouse that does not exist.
func NoSuchWarehouse(name string) error {
	return moorage.Errorf(moorage.KindNoSuchWarehouse, "Warehouse does not exist: %s", name)
}

// NoSuchNamespace returns the error for a namespace that does not exist.
func NoSuchNamespace(ns moorage.Namespace) error {
	return moorage.Errorf(moorage.KindNoSuchNamespace, "Namespace does not exist: %s", ns)
}

// NoSuchTable returns the error for a table that does not exist.
func NoSuchTable(ident moorage.Identifier) error {
	return moorage.Errorf(moorage.KindNoSuchTable, "Table does not exist: %s", ident)
}

// NoSuchView returns the error for a view that does not exist.
func NoSuchView(ident moorage.Identifier) error {
	return moorage.Errorf(moorage.KindNoSuchView, "View does not exist: %s", ident)
}

// noSuch returns the error for an object that does not exist.
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

// Authorize implements Authorizer. It checks the privileges that a verb requires on the whole
// server. For a verb whose object is not known yet, it refuses only callers that have no access at
// all.
func (g *Guard) Authorize(ctx context.Context, request Request) error {
	row, _ := request.Verb.Row()
	asked, ofServer := row.Needs(OfServer, Always)
	if ofServer = ofServer && !row.AskedLater; ofServer {
		// Operators need metrics most while the store does not respond. So LoadMetrics can be
		// decided by the policy in memory.
		if err := g.look(ctx); err != nil && request.Verb != LoadMetrics {
			return err
		}
	}
	v, err := g.current(ctx)
	switch {
	case err != nil || !v.enabled || IsSystem(request.Caller):
		return err
	case ofServer:
		return g.decide(ctx, v, Question{Caller: request.Caller, Verb: request.Verb, Asked: asked})
	}
	return g.letIn(ctx, v, request.Caller)
}

// letIn returns nil if caller has any access to the server. The policy of v may be older than the
// request. If v refuses caller, letIn checks again with the present policy of the store.
func (g *Guard) letIn(ctx context.Context, v *view, caller moorage.Caller) error {
	err := g.check(v, caller, g.config.Now())
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
	return g.check(newer, caller, g.config.Now())
}

// Audit implements Authorizer. It does nothing.
func (g *Guard) Audit(context.Context, Request, error) {}

// systemPrefix is the prefix of names made by moorage.System.
const systemPrefix = "system:"

// IsSystem reports whether caller is a job of the server. A caller over the network is never a job:
// package identity assigns no name with this prefix.
func IsSystem(caller moorage.Caller) bool {
	return caller.Source == "" && IsSystemName(caller.Name)
}

// IsSystemName reports whether the principal of a change record is a job of the server.
func IsSystemName(principal string) bool { return strings.HasPrefix(principal, systemPrefix) }
