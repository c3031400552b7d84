package management

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog/gate"
	"moorage/catalog/grants"
	"moorage/internal/web"
	"moorage/management/client"
)

// Access has the methods of grants.Grants, which manages access control for one caller.
type Access interface {
	Principals(ctx context.Context, page moorage.Page) ([]grants.Principal, string, error)
	LoadPrincipal(ctx context.Context, name string) (grants.Principal, error)
	PutPrincipal(ctx context.Context, name string, spec grants.PrincipalSpec) (grants.Principal, error)
	DeletePrincipal(ctx context.Context, name string) error
	CreateKey(ctx context.Context, principal string, spec grants.KeySpec) (grants.APIKey, error)
	RotateKey(ctx context.Context, principal string, spec grants.KeySpec, grace time.Duration) (grants.APIKey, error)
	WithdrawKey(ctx context.Context, principal, id string) error

	Roles(ctx context.Context, page moorage.Page) ([]grants.Role, string, error)
	LoadRole(ctx context.Context, name string) (grants.Role, error)
	PutRole(ctx context.Context, role grants.Role, match func(present *grants.Role) bool) (grants.Role, error)
	ChangeMembers(ctx context.Context, name string, add, remove []string) (grants.Role, error)
	DeleteRole(ctx context.Context, name string) error

	ChangeGrants(ctx context.Context, changes []grants.Change) (unknown []string, err error)
	GrantsOn(ctx context.Context, object grants.Object) (grants.ObjectGrants, error)
	GrantsTo(ctx context.Context, grantee string, page moorage.Page) ([]grants.ObjectGrants, string, error)
	AllGrants(ctx context.Context, page moorage.Page) ([]grants.ObjectGrants, string, error)
	SetOwner(ctx context.Context, object grants.Object, owner string,
		match func(present grants.ObjectGrants) bool) error
	SetManaged(ctx context.Context, object grants.Object, managed bool) error

	IsOn(ctx context.Context) (bool, error)
	Enable(ctx context.Context) error
	Explain(ctx context.Context, question grants.Question) (grants.Answer, error)
	Check(ctx context.Context, questions []grants.Question) ([]grants.Answer, error)
}

// access returns access control for the caller of r.
func (s *server) access(r *http.Request) Access { return s.config.Access(web.CallerOf(r)) }

// each applies convert to each element of list, and returns the results. It never returns nil.
func each[T, U any](list []T, convert func(T) U) []U {
	made := make([]U, len(list))
	for i := range list {
		made[i] = convert(list[i])
	}
	return made
}

func principalOf(p grants.Principal) client.Principal {
	return client.Principal{
		Name: p.Name, Disabled: p.Disabled, Description: p.Description, SpeaksFor: p.SpeaksFor, Created: p.Created,
		Keys: each(p.Keys, keyOf),
	}
}

func keyOf(k grants.APIKey) client.Key { return client.Key(k) }

func roleOf(r grants.Role) client.Role {
	r.Members = append([]string{}, r.Members...)
	return client.Role(r)
}

// refOf returns the catalog's reference to an object of the API.
func refOf(o client.Object) grants.Object {
	ref := grants.Object{Ident: moorage.Identifier{
		Warehouse: o.Warehouse, Namespace: o.Namespace, Name: o.Table + o.View + o.Function,
	}}
	switch {
	case o.IsServer():
		return grants.Object{Kind: access.Server}
	case o.Table != "":
		ref.Kind = access.Table
	case o.View != "":
		ref.Kind = access.View
	case o.Function != "":
		ref.Kind = access.Function
	case len(o.Namespace) > 0:
		ref.Kind = access.Namespace
	default:
		ref.Kind = access.Warehouse
	}
	return ref
}

// objectOf is the inverse of refOf.
func objectOf(ref grants.Object) client.Object {
	o := client.Object{Warehouse: ref.Ident.Warehouse, Namespace: ref.Ident.Namespace}
	switch ref.Kind {
	case access.Server:
		return client.Object{}
	case access.Table:
		o.Table = ref.Ident.Name
	case access.View:
		o.View = ref.Ident.Name
	case access.Function:
		o.Function = ref.Ident.Name
	}
	return o
}

func grantsOf(g grants.ObjectGrants) client.ObjectGrants {
	return client.ObjectGrants{
		Object: objectOf(g.Object), Owner: g.Owner, OwnerIsCreator: g.OwnerIsCreator, Managed: g.Managed,
		Grants: each(g.Grants, func(grant grants.Grant) client.Grant {
			return client.Grant{Grantee: grant.Grantee, Privileges: words(grant.Privileges), By: grant.By, At: grant.At}
		}),
	}
}

// privilegesOf parses privileges. It requires at least one.
func privilegesOf(texts []string) (access.Privileges, error) {
	privileges, err := access.Parse(texts)
	switch {
	case err != nil:
		return 0, moorage.Errorf(moorage.KindBadRequest, "%w", err)
	case privileges == 0:
		return 0, moorage.Errorf(moorage.KindBadRequest, "No privileges are named")
	}
	return privileges, nil
}

// words returns the names of privileges. It never returns nil.
func words(privileges access.Privileges) []string { return append([]string{}, privileges.Words()...) }

func questionOf(q client.Question) (asked grants.Question, err error) {
	asked.Object = refOf(q.Object)
	for _, view := range q.Through {
		ref := refOf(view)
		if ref.Kind != access.View || ref.Ident.Warehouse != asked.Object.Ident.Warehouse {
			return asked, moorage.Errorf(moorage.KindBadRequest, "%s is no view in the warehouse of the object", view)
		}
		asked.Through = append(asked.Through, ref.Ident)
	}
	if q.Engine != "" && q.Caller == nil {
		return asked, moorage.Errorf(moorage.KindBadRequest, "An engine asks in the name of a caller")
	}
	if q.Caller != nil {
		asked.Caller = moorage.Caller{Name: q.Caller.Name, Roles: q.Caller.Roles}
		if q.Engine != "" {
			asked.Caller.Via = []string{q.Engine}
		}
		if access.GranteeOf(q.Caller.Name) != access.IsPrincipal {
			return asked, moorage.Errorf(moorage.KindBadRequest,
				"%q names no principal: one is issuer:subject, as in key:etl", q.Caller.Name)
		}
	}
	if (q.Operation == "") == (len(q.Privileges) == 0) {
		return asked, moorage.Errorf(moorage.KindBadRequest, "A question has either an operation or privileges")
	}
	if q.Operation == "" {
		asked.Privileges, err = privilegesOf(q.Privileges)
		return asked, err
	}
	asked.Operation = q.Operation
	if _, ok := gate.Verb(q.Operation).Row(); !ok {
		return asked, moorage.Errorf(moorage.KindBadRequest,
			"Unknown operation %q: the audit log has their names, such as load-table", q.Operation)
	}
	return asked, nil
}

// asOf returns the owner whose privileges decided. It returns "nobody" for a view without an owner,
// and "" if the caller's own privileges decided.
func asOf(isOwner bool, owner string) string {
	if !isOwner {
		return ""
	}
	return cmp.Or(owner, "nobody")
}

func explanationOf(answer grants.Answer) client.Explanation {
	e := answer.Explanation
	why := client.Explanation{
		Decision: e.Decision.Outcome.String(), Asked: words(e.Asked), Has: words(e.Has),
		Missing: words(e.Decision.Missing), Grantors: append([]string{}, e.Grantors...),
		As: asOf(answer.AsOwner, answer.Owner), Ignored: answer.Ignored,
	}
	for _, step := range answer.Through {
		why.Through = append(why.Through, client.Passed{
			View: step.View.String(), Decision: step.Outcome.String(), Missing: words(step.Missing),
			As: asOf(step.AsOwner, step.Owner),
		})
	}
	for i, step := range e.Steps {
		made := client.Step{
			Kind: step.Object.Kind.String(), Owner: step.Owner, Owns: step.Owns, Managed: step.Managed,
			Grants: each(step.Grants, func(c access.Counted) client.Counted {
				return client.Counted{Grantee: c.Grantee, Privileges: words(c.Privileges), Via: c.Via}
			}),
		}
		if i < len(answer.Names) {
			made.Name = answer.Names[i]
		}
		why.Steps = append(why.Steps, made)
	}
	return why
}
