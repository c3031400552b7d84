package management

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"moorage"
	"moorage/access"
	"moorage/audit"
	"moorage/catalog/grants"
	"moorage/internal/web"
	"moorage/management/client"
)

// listGrants answers with the grants on the object, or to the grantee, named in the request.
func (s *server) listGrants(w http.ResponseWriter, r *http.Request) error {
	q := web.QueryOf(r)
	grantee, given, err := q.Text("grantee")
	if err != nil {
		return err
	}
	object, unnamed, err := objectNamed(q)
	switch {
	case err != nil:
		return err
	case given && (object.Warehouse != "" || unnamed == nil):
		return moorage.Errorf(moorage.KindBadRequest, "A request names an object or a grantee, not both")
	case given:
		find := func(ctx context.Context, page moorage.Page) ([]grants.ObjectGrants, string, error) {
			return s.access(r).GrantsTo(ctx, grantee, page)
		}
		return list(s, "grants to "+grantee, pageSizes, pagesOf(find, grantsOf), grantsPage)(w, r)
	case unnamed != nil:
		return moorage.Errorf(moorage.KindBadRequest, "Name an object or a grantee: %w", unnamed)
	}
	found, err := s.access(r).GrantsOn(r.Context(), refOf(object))
	if err != nil {
		return err
	}
	w.Header()["ETag"] = []string{tagOfValue(grantsOf(found))}
	return s.AnswerJSON(w, r, grantsPage([]client.ObjectGrants{grantsOf(found)}, nil))
}

func grantsPage(found []client.ObjectGrants, next *string) any {
	return client.GrantsPage{Grants: found, NextPage: client.NextPage{NextPageToken: next}}
}

func (s *server) changeGrants(r *http.Request, body []byte) (any, error) {
	f, err := web.ParseFields(body, "changes of grants")
	if err != nil {
		return nil, err
	}
	f.Require("changes")
	var changes []grants.Change
	length := f.Objects("changes", "change", grants.ChangesMax, func(inner *web.Fields) {
		changes = append(changes, grantChangeIn(inner))
		f.Keep(inner.Failure)
	})
	switch {
	case length > grants.ChangesMax:
		return nil, moorage.Errorf(moorage.KindTooLarge, "%d changes of grants, at most %d can be made at once", length,
			grants.ChangesMax)
	case f.Failure != nil:
		return nil, f.Failure
	case length == 0:
		return nil, moorage.Errorf(moorage.KindBadRequest, "There are no changes of grants")
	}
	unknown, err := s.access(r).ChangeGrants(r.Context(), changes)
	return client.GrantsChanged{Changes: length, Unknown: len(unknown) > 0, UnknownGrantees: unknown}, err
}

// grantChangeIn reads one change of grants.
func grantChangeIn(f *web.Fields) grants.Change {
	how := f.Text("change")
	change := grants.Change{
		Revoke: how == client.ChangeRevoke, Object: refOf(objectIn(f)), Grantee: f.Text("grantee"),
	}
	privileges := f.Texts("privileges")
	if f.Failure != nil {
		return change
	}
	var err error
	if change.Privileges, err = privilegesOf(privileges); err != nil {
		f.Keep(err)
	} else if how != client.ChangeGrant && how != client.ChangeRevoke {
		f.Keep(moorage.Errorf(moorage.KindBadRequest, "Unknown change %q: it is %s or %s", how, client.ChangeGrant,
			client.ChangeRevoke))
	}
	return change
}

// objectIn returns the member "object" of a request.
func objectIn(f *web.Fields) (object client.Object) {
	f.Require("object")
	if value := f.Get("object"); f.Failure == nil {
		if err := json.Unmarshal(value.Bytes(), &object); err != nil {
			f.Fail("member %q: %w", "object", err)
		}
	}
	return object
}

func (s *server) setOwner(r *http.Request, body []byte) (any, error) {
	f, err := web.ParseFields(body, "owner")
	if err != nil {
		return nil, err
	}
	f.Require("owner")
	owner := client.Owner{Object: objectIn(f), Owner: f.Text("owner")}
	if f.Failure != nil {
		return nil, f.Failure
	}
	match := func(present grants.ObjectGrants) bool { return matches(r, tagOfValue(grantsOf(present)), true) }
	return owner, s.access(r).SetOwner(r.Context(), refOf(owner.Object), owner.Owner, match)
}

func (s *server) setManaged(r *http.Request, body []byte) (any, error) {
	f, err := web.ParseFields(body, "request")
	if err != nil {
		return nil, err
	}
	f.Require("managed")
	managed := client.Managed{Object: objectIn(f), Managed: f.Boolean("managed")}
	if f.Failure != nil {
		return nil, f.Failure
	}
	return managed, s.access(r).SetManaged(r.Context(), refOf(managed.Object), managed.Managed)
}

func (s *server) loadAccess(w http.ResponseWriter, r *http.Request) error {
	on, err := s.access(r).IsOn(r.Context())
	if err != nil {
		return err
	}
	caller := web.CallerOf(r)
	return s.AnswerJSON(w, r, client.Access{
		On: on, Caller: caller.Name, Grantees: append([]string{caller.Name, access.Everyone}, caller.Roles...),
		LimitedTo: caller.Only, AlwaysAdministrator: s.isAlwaysAdministrator(caller),
	})
}

// isAlwaysAdministrator reports whether the server was started with caller as an administrator. The
// request must also come from the caller itself, with all of the caller's privileges.
func (s *server) isAlwaysAdministrator(caller moorage.Caller) bool {
	return !caller.IsActing() && caller.Only == nil && slices.Contains(s.config.Admins, caller.Name)
}

// enableAccess switches access control on. A server that cannot authenticate callers refuses,
// because it could then serve no caller.
func (s *server) enableAccess(r *http.Request, _ []byte) (any, error) {
	if !s.config.Authenticates {
		return nil, moorage.Errorf(moorage.KindIllegalArgument,
			"The server has no way to know who asks: start it with --keys, --issuer or --tls-client-ca first")
	}
	caller, _ := moorage.CallerOf(r.Context())
	on, err := s.access(r).IsOn(r.Context())
	if err != nil {
		return nil, err
	}
	if !on && !s.isAlwaysAdministrator(caller) {
		return nil, moorage.Errorf(moorage.KindForbidden,
			"Not allowed: only an administrator that the server was started with may switch access on. Start it with "+
				"--admin %s, or stop it and run: moorage access enable", caller.Name)
	}
	return client.Access{On: true}, s.access(r).Enable(r.Context())
}

// explain answers with an explanation of an access decision.
func (s *server) explain(w http.ResponseWriter, r *http.Request) error {
	f, err := s.ReadFields(w, r, "question")
	if err != nil {
		return err
	}
	question := questionIn(f)
	if f.Failure != nil {
		return f.Failure
	}
	answer, err := s.access(r).Explain(r.Context(), question)
	if err != nil {
		return err
	}
	return s.AnswerJSON(w, r, explanationOf(answer))
}

// checkAccess answers several access questions.
func (s *server) checkAccess(w http.ResponseWriter, r *http.Request) error {
	f, err := s.ReadFields(w, r, "questions")
	if err != nil {
		return err
	}
	f.Require("questions")
	questions := []grants.Question{}
	length := f.Objects("questions", "question", grants.QuestionsMax, func(inner *web.Fields) {
		questions = append(questions, questionIn(inner))
		f.Keep(inner.Failure)
	})
	switch {
	case length > grants.QuestionsMax:
		return moorage.Errorf(moorage.KindTooLarge, "%d questions, at most %d can be asked at once", length,
			grants.QuestionsMax)
	case f.Failure != nil:
		return f.Failure
	}
	answers, err := s.access(r).Check(r.Context(), questions)
	if err != nil {
		return err
	}
	return s.AnswerJSON(w, r, client.Checked{
		Allowed: each(answers, func(answer grants.Answer) bool { return answer.Allowed }),
	})
}

// questionIn reads one question.
func questionIn(f *web.Fields) (asked grants.Question) {
	question := client.Question{
		Operation: f.Text("operation"), Privileges: f.Texts("privileges"), Object: objectIn(f),
	}
	question.Engine = f.Text("engine")
	if value := f.Get("through"); !value.IsZero() && f.Failure == nil {
		if err := json.Unmarshal(value.Bytes(), &question.Through); err != nil {
			f.Fail("member %q: %w", "through", err)
		}
	}
	if value := f.Get("caller"); !value.IsZero() {
		inner := f.Within(value, "caller", "")
		inner.Require("name")
		question.Caller = &client.Subject{Name: inner.Text("name"), Roles: inner.Texts("roles")}
		f.Keep(inner.Failure)
	}
	if f.Failure != nil {
		return asked
	}
	asked, err := questionOf(question)
	f.Keep(err)
	return asked
}

// decisions answers with the denials of one request, which must be among the last requests of this
// node.
func (s *server) decisions(w http.ResponseWriter, r *http.Request) error {
	id, err := web.PathParam(r, "request")
	if err != nil {
		return err
	}
	denials := client.Denials{Decisions: []client.Denial{}}
	for _, line := range s.config.Denials(id) {
		denials.Decisions = append(denials.Decisions, denialOf(line))
	}
	if len(denials.Decisions) == 0 {
		return moorage.Errorf(moorage.KindNotFound,
			"Nothing was decided against request %s among the last %d denials of this node", id, audit.DenialsMax)
	}
	return s.AnswerJSON(w, r, denials)
}

func denialOf(line audit.Line) client.Denial {
	object := client.Object{Warehouse: line.Object.Warehouse, Namespace: line.Object.Namespace}
	switch line.Object.Kind {
	case "table":
		object.Table = line.Object.Name
	case "view":
		object.View = line.Object.Name
	}
	_, name, _ := strings.Cut(object.String(), " ")
	return client.Denial{
		Time: line.Time, RequestID: line.RequestID, Caller: line.Caller, Operation: line.Operation,
		Kind: line.Object.Kind, Object: name, Asked: append([]string{}, line.Asked...),
		Missing: append([]string{}, line.Missing...), Decision: line.Decision,
	}
}

// export answers with the whole access policy of the store, without secrets: the principals and
// roles with a record, and the grants on each object, including grants to names without a record.
func (s *server) export(w http.ResponseWriter, r *http.Request) error {
	var all client.Export
	var err error
	if all.Principals, err = gather(r.Context(), pagesOf(s.access(r).Principals, principalOf)); err != nil {
		return err
	}
	if all.Roles, err = gather(r.Context(), pagesOf(s.access(r).Roles, roleOf)); err != nil {
		return err
	}
	if all.Grants, err = gather(r.Context(), pagesOf(s.access(r).AllGrants, grantsOf)); err != nil {
		return err
	}
	return s.AnswerJSON(w, r, all)
}

// gather returns all pages of a list.
func gather[T any](ctx context.Context, list func(context.Context, moorage.Page) ([]T, string, error)) ([]T, error) {
	all := []T{}
	for page := (moorage.Page{Limit: pageSizes.Max}); ; {
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
