package management

import (
	"cmp"
	"context"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog/gate"
	"moorage/catalog/grants"
	"moorage/management/client"
)

// Access has the methods of grants.Grants: it manages access control for one caller.
type Access interface {
	Principals
	Roles
	Grants
	Questions
}

// Principals has the methods of grants.Grants about principals.
type Principals interface {
	Principals(ctx context.Context, page moorage.Page) ([]grants.Principal, string, error)
	LoadPrincipal(ctx context.Context, name string) (grants.Principal, error)
	PutPrincipal(ctx context.Context, name string, spec grants.PrincipalSpec) (grants.Principal, error)
	DeletePrincipal(ctx context.Context, name string) error
	CreateKey(ctx context.Context, principal string, spec grants.KeySpec) (grants.APIKey, error)
	RotateKey(ctx context.Context, principal string, spec grants.KeySpec, grace time.Duration) (grants.APIKey, error)
	WithdrawKey(ctx context.Context, principal, id string) error
}

// Roles has the methods of grants.Grants about roles.
type Roles interface {
	Roles(ctx context.Context, page moorage.Page) ([]grants.Role, string, error)
	LoadRole(ctx context.Context, name string) (grants.Role, error)
	PutRole(ctx context.Context, role grants.Role) (grants.Role, error)
	ChangeMembers(ctx context.Context, name string, add, remove []string) (grants.Role, error)
	DeleteRole(ctx context.Context, name string) error
}

// Grants has the methods of grants.Grants about grants.
type Grants interface {
	ChangeGrants(ctx context.Context, changes []grants.Change) (unknown []string, err error)
	GrantsOn(ctx context.Context, object grants.Object) (grants.ObjectGrants, error)
	GrantsTo(ctx context.Context, grantee string, page moorage.Page) ([]grants.ObjectGrants, string, error)
	AllGrants(ctx context.Context, page moorage.Page) ([]grants.ObjectGrants, string, error)
	SetOwner(ctx context.Context, object grants.Object, owner string) error
	SetManaged(ctx context.Context, object grants.Object, managed bool) error
}

// Questions has the methods of grants.Grants that answer questions.
type Questions interface {
	IsOn(ctx context.Context) (bool, error)
	Enable(ctx context.Context) error
	Explain(ctx context.Context, question grants.Question) (grants.Answer, error)
	Check(ctx context.Context, questions []grants.Question) ([]grants.Answer, error)
}

// Drawn is a new API key: the hash that is stored, and the text that its owner gets.
type Drawn struct {
	ID     string
	SHA256 [32]byte // of the secret in Text
	Text   string
}

// Administrator manages access control in the terms of the API, for one caller. The API creates one
// for each request, and commands on a stopped store create one. It is safe for concurrent use.
type Administrator struct {
	Access Access
	// Draw draws a key: a new one if id is empty, else a further secret of that key.
	Draw func(id string) (Drawn, error)
	// Now returns the time from which the default lifetime of a key counts.
	Now func() time.Time
}

// keyLifetime is the default lifetime of a key.
const keyLifetime = 90 * 24 * time.Hour

// CreateKey creates an API key of a principal.
func (a Administrator) CreateKey(ctx context.Context, principal string, spec client.KeySpec,
) (client.MadeKey, error) {
	return a.draw(principal, "", spec, func(drawn grants.KeySpec) (grants.APIKey, error) {
		return a.Access.CreateKey(ctx, principal, drawn)
	})
}

// RotateKey gives an API key a further secret.
func (a Administrator) RotateKey(ctx context.Context, principal, id string, spec client.KeySpec,
) (client.MadeKey, error) {
	if spec.GraceSeconds < 0 || spec.GraceSeconds > int64(keyLifetime/time.Second) {
		return client.MadeKey{}, moorage.Errorf(moorage.KindBadRequest,
			"Invalid grace-seconds: %d, want a number from 0 to %d", spec.GraceSeconds, keyLifetime/time.Second)
	}
	return a.draw(principal, id, spec, func(drawn grants.KeySpec) (grants.APIKey, error) {
		return a.Access.RotateKey(ctx, principal, drawn, time.Duration(spec.GraceSeconds)*time.Second)
	})
}

// draw draws a secret and stores it with store.
func (a Administrator) draw(principal, id string, spec client.KeySpec,
	store func(grants.KeySpec) (grants.APIKey, error)) (client.MadeKey, error) {
	now := a.Now()
	if spec.Ends.IsZero() {
		spec.Ends = now.Add(keyLifetime)
	}
	if !spec.Ends.After(now) {
		return client.MadeKey{}, moorage.Errorf(moorage.KindBadRequest, "The key would have ended already, at %s",
			spec.Ends.Format(time.RFC3339))
	}
	drawn, err := a.Draw(id)
	if err != nil {
		return client.MadeKey{}, err
	}
	stored, err := store(grants.KeySpec{
		ID: drawn.ID, SHA256: drawn.SHA256, Description: spec.Description, Roles: spec.Roles, Ends: spec.Ends,
	})
	if err != nil {
		return client.MadeKey{}, err
	}
	return client.MadeKey{Key: keyOf(stored), Principal: principal, Secret: drawn.Text}, nil
}

// WithdrawKey ends an API key at once.
func (a Administrator) WithdrawKey(ctx context.Context, principal, id string) error {
	return a.Access.WithdrawKey(ctx, principal, id)
}

// Principals returns a page of the principals that have a record.
func (a Administrator) Principals(ctx context.Context, page client.Page) ([]client.Principal, string, error) {
	found, next, err := a.Access.Principals(ctx, moorage.Page(page))
	return each(found, principalOf), next, err
}

// LoadPrincipal returns the record of a principal.
func (a Administrator) LoadPrincipal(ctx context.Context, name string) (client.Principal, error) {
	found, err := a.Access.LoadPrincipal(ctx, name)
	return principalOf(found), err
}

// PutPrincipal creates or changes the record of a principal.
func (a Administrator) PutPrincipal(ctx context.Context, name string, spec client.PrincipalSpec,
) (client.Principal, error) {
	put, err := a.Access.PutPrincipal(ctx, name, grants.PrincipalSpec(spec))
	return principalOf(put), err
}

// DeletePrincipal removes the record of a principal, with its keys.
func (a Administrator) DeletePrincipal(ctx context.Context, name string) error {
	return a.Access.DeletePrincipal(ctx, name)
}

// Roles returns a page of the roles.
func (a Administrator) Roles(ctx context.Context, page client.Page) ([]client.Role, string, error) {
	found, next, err := a.Access.Roles(ctx, moorage.Page(page))
	return each(found, roleOf), next, err
}

// LoadRole returns a role.
func (a Administrator) LoadRole(ctx context.Context, name string) (client.Role, error) {
	found, err := a.Access.LoadRole(ctx, name)
	return roleOf(found), err
}

// PutRole creates or replaces a role.
func (a Administrator) PutRole(ctx context.Context, role client.Role) (client.Role, error) {
	put, err := a.Access.PutRole(ctx, grants.Role(role))
	return roleOf(put), err
}

// ChangeMembers adds members to a role, and removes others.
func (a Administrator) ChangeMembers(ctx context.Context, name string, change client.MembersChange,
) (client.Role, error) {
	changed, err := a.Access.ChangeMembers(ctx, name, change.Add, change.Remove)
	return roleOf(changed), err
}

// DeleteRole removes a role.
func (a Administrator) DeleteRole(ctx context.Context, name string) error {
	return a.Access.DeleteRole(ctx, name)
}

// ChangeGrants makes all changes, or no change.
func (a Administrator) ChangeGrants(ctx context.Context, changes []client.GrantChange) (client.GrantsChanged, error) {
	if len(changes) > grants.ChangesMax {
		return client.GrantsChanged{}, moorage.Errorf(moorage.KindTooLarge,
			"%d changes of grants, at most %d can be made at once", len(changes), grants.ChangesMax)
	}
	asked := make([]grants.Change, len(changes))
	for i, change := range changes {
		privileges, err := privilegesOf(change.Privileges)
		if err != nil {
			return client.GrantsChanged{}, err
		}
		if change.Change != client.ChangeGrant && change.Change != client.ChangeRevoke {
			return client.GrantsChanged{}, moorage.Errorf(moorage.KindBadRequest, "Unknown change %q: it is %s or %s",
				change.Change, client.ChangeGrant, client.ChangeRevoke)
		}
		asked[i] = grants.Change{
			Revoke: change.Change == client.ChangeRevoke, Object: refOf(change.Object), Grantee: change.Grantee,
			Privileges: privileges,
		}
	}
	unknown, err := a.Access.ChangeGrants(ctx, asked)
	return client.GrantsChanged{Changes: len(changes), Unknown: len(unknown) > 0, UnknownGrantees: unknown}, err
}

// GrantsOn returns the grants on an object.
func (a Administrator) GrantsOn(ctx context.Context, object client.Object) (client.ObjectGrants, error) {
	found, err := a.Access.GrantsOn(ctx, refOf(object))
	return grantsOf(found), err
}

// GrantsTo returns a page of the direct grants to a grantee.
func (a Administrator) GrantsTo(ctx context.Context, grantee string, page client.Page,
) ([]client.ObjectGrants, string, error) {
	found, next, err := a.Access.GrantsTo(ctx, grantee, moorage.Page(page))
	return each(found, grantsOf), next, err
}

// SetOwner hands an object over.
func (a Administrator) SetOwner(ctx context.Context, owner client.Owner) error {
	return a.Access.SetOwner(ctx, refOf(owner.Object), owner.Owner)
}

// SetManaged sets whether a warehouse or namespace is managed: the owners of the objects in it then
// cannot grant privileges on them.
func (a Administrator) SetManaged(ctx context.Context, managed client.Managed) error {
	return a.Access.SetManaged(ctx, refOf(managed.Object), managed.Managed)
}

// Explain explains an access decision.
func (a Administrator) Explain(ctx context.Context, question client.Question) (client.Explanation, error) {
	asked, err := questionOf(question)
	if err != nil {
		return client.Explanation{}, err
	}
	answer, err := a.Access.Explain(ctx, asked)
	return explanationOf(answer), err
}

// CheckAccess answers questions, in their order.
func (a Administrator) CheckAccess(ctx context.Context, questions []client.Question) ([]bool, error) {
	if len(questions) > grants.QuestionsMax {
		return nil, moorage.Errorf(moorage.KindTooLarge, "%d questions, at most %d can be asked at once",
			len(questions), grants.QuestionsMax)
	}
	asked := make([]grants.Question, len(questions))
	for i, question := range questions {
		var err error
		if asked[i], err = questionOf(question); err != nil {
			return nil, err
		}
	}
	answers, err := a.Access.Check(ctx, asked)
	return each(answers, func(answer grants.Answer) bool { return answer.Allowed }), err
}

// Export returns the whole access policy without secrets. It has the principals and roles with a
// record, and the grants on each object, including grants to names without a record.
func (a Administrator) Export(ctx context.Context) (all client.Export, err error) {
	if all.Principals, err = gather(ctx, a.Principals); err != nil {
		return client.Export{}, err
	}
	if all.Roles, err = gather(ctx, a.Roles); err != nil {
		return client.Export{}, err
	}
	all.Grants, err = gather(ctx, func(ctx context.Context, page client.Page) ([]client.ObjectGrants, string, error) {
		found, next, err := a.Access.AllGrants(ctx, moorage.Page(page))
		return each(found, grantsOf), next, err
	})
	return all, err
}

// gather returns all pages of a list.
func gather[T any](ctx context.Context, list func(context.Context, client.Page) ([]T, string, error)) ([]T, error) {
	all := []T{}
	for page := (client.Page{Limit: pageSizes.Max}); ; {
		found, next, err := list(ctx, page)
		if err != nil {
			return nil, err
		}
		if all = append(all, found...); next == "" {
			return all, nil
		}
		page.After = next
	}
}

// LoadAccess returns whether access control is on.
func (a Administrator) LoadAccess(ctx context.Context) (client.Access, error) {
	on, err := a.Access.IsOn(ctx)
	return client.Access{On: on}, err
}

// EnableAccess switches access control on, for good.
func (a Administrator) EnableAccess(ctx context.Context) error { return a.Access.Enable(ctx) }

// each applies of to the elements of list. It never returns nil.
func each[T, U any](list []T, of func(T) U) []U {
	made := make([]U, len(list))
	for i := range list {
		made[i] = of(list[i])
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
		Object: objectOf(g.Object), Owner: g.Owner, Managed: g.Managed,
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

// words returns the words of privileges; never nil.
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

// asOf returns the owner whose privileges decided: "nobody" for a view without an owner, empty for
// the caller's own.
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
