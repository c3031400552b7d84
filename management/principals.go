package management

import (
	"net/http"
	"time"

	"moorage"
	"moorage/audit"
	"moorage/internal/web"
	"moorage/management/client"
)

// accessOperations returns the operations that manage access control.
func (s *server) accessOperations() []operation {
	const get, put, post, patch, del = http.MethodGet, http.MethodPut, http.MethodPost, http.MethodPatch,
		http.MethodDelete
	return []operation{
		{"listPrincipals", get, "/principals", s.listPrincipals},
		{"loadPrincipal", get, "/principals/{principal}", s.loadPrincipal},
		{"putPrincipal", put, "/principals/{principal}", s.change(s.putPrincipal)},
		{"deletePrincipal", del, "/principals/{principal}", s.change(s.deletePrincipal)},
		{"createKey", post, "/principals/{principal}/keys", s.change(s.createKey)},
		{"rotateKey", post, "/principals/{principal}/keys/{key}/rotate", s.change(s.rotateKey)},
		{"withdrawKey", del, "/principals/{principal}/keys/{key}", s.change(s.withdrawKey)},
		{"listRoles", get, "/roles", s.listRoles},
		{"loadRole", get, "/roles/{role}", s.loadRole},
		{"putRole", put, "/roles/{role}", s.change(s.putRole)},
		{"deleteRole", del, "/roles/{role}", s.change(s.deleteRole)},
		{"changeMembers", patch, "/roles/{role}/members", s.change(s.changeMembers)},
		{"listGrants", get, "/grants", s.listGrants},
		{"changeGrants", post, "/grants", s.change(s.changeGrants)},
		{"setOwner", put, "/owner", s.change(s.setOwner)},
		{"setManaged", put, "/managed", s.change(s.setManaged)},
		{"loadAccess", get, "/access", s.loadAccess},
		{"enableAccess", post, "/access/enable", s.change(s.enableAccess)},
		{"explainAccess", post, "/access/explain", s.explain},
		{"checkAccess", post, "/access/check", s.checkAccess},
		{"exportAccess", get, "/access/export", s.export},
		{"loadDecisions", get, "/access/decisions/{request}", s.decisions},
	}
}

// administrator returns the Administrator of the caller of r.
func (s *server) administrator(r *http.Request) Administrator {
	return Administrator{Access: s.config.Access(web.CallerOf(r)), Draw: s.config.DrawKey, Now: s.config.Now}
}

func (s *server) listPrincipals(w http.ResponseWriter, r *http.Request) error {
	return list(s, "principals", pageSizes, s.administrator(r).Principals,
		func(found []client.Principal, next *string) any {
			return client.PrincipalsPage{Principals: found, NextPageToken: next}
		})(w, r)
}

func (s *server) loadPrincipal(w http.ResponseWriter, r *http.Request) error {
	name, err := web.PathParam(r, "principal")
	if err != nil {
		return err
	}
	found, err := s.administrator(r).LoadPrincipal(r.Context(), name)
	if err != nil {
		return err
	}
	return s.AnswerJSON(w, r, found)
}

func (s *server) putPrincipal(r *http.Request, body []byte) (any, error) {
	name, err := web.PathParam(r, "principal")
	if err != nil {
		return nil, err
	}
	f, err := web.ParseFields(body, "principal")
	if err != nil {
		return nil, err
	}
	spec := client.PrincipalSpec{
		Disabled: f.Boolean("disabled"), Description: f.Text("description"), SpeaksFor: f.Text("speaks-for"),
	}
	if f.Failure != nil {
		return nil, f.Failure
	}
	return s.administrator(r).PutPrincipal(r.Context(), name, spec)
}

func (s *server) deletePrincipal(r *http.Request, _ []byte) (any, error) {
	name, err := web.PathParam(r, "principal")
	if err != nil {
		return nil, err
	}
	return client.Done{}, s.administrator(r).DeletePrincipal(r.Context(), name)
}

func (s *server) createKey(r *http.Request, body []byte) (any, error) {
	principal, err := web.PathParam(r, "principal")
	if err != nil {
		return nil, err
	}
	spec, err := keySpecOf(body)
	if err != nil {
		return nil, err
	}
	made, err := s.administrator(r).CreateKey(r.Context(), principal, spec)
	return made, s.noteKey(r, audit.KeyMade, principal, made.ID, err)
}

func (s *server) rotateKey(r *http.Request, body []byte) (any, error) {
	principal, id, err := keyOfPath(r)
	if err != nil {
		return nil, err
	}
	spec, err := keySpecOf(body)
	if err != nil {
		return nil, err
	}
	made, err := s.administrator(r).RotateKey(r.Context(), principal, id, spec)
	return made, s.noteKey(r, audit.KeyMade, principal, id, err)
}

func (s *server) withdrawKey(r *http.Request, _ []byte) (any, error) {
	principal, id, err := keyOfPath(r)
	if err != nil {
		return nil, err
	}
	err = s.administrator(r).WithdrawKey(r.Context(), principal, id)
	return client.Done{}, s.noteKey(r, audit.KeyWithdrawn, principal, id, err)
}

// noteKey notes the change of a key in the audit log if err is nil. It returns err.
func (s *server) noteKey(r *http.Request, event audit.Event, principal, id string, err error) error {
	if err == nil {
		caller := web.CallerOf(r)
		s.config.Note(audit.Line{
			Event: event, RequestID: moorage.RequestID(r.Context()), Caller: caller.Name, Via: caller.Via,
			Source: string(caller.Source), Address: caller.Address, Principal: principal, Key: id,
		})
	}
	return err
}

// keyOfPath returns the principal and the id of the key in the path of r.
func keyOfPath(r *http.Request) (principal, id string, err error) {
	if principal, err = web.PathParam(r, "principal"); err == nil {
		id, err = web.PathParam(r, "key")
	}
	return principal, id, err
}

// keySpecOf reads the body of a request for a key. An empty body means the defaults.
func keySpecOf(body []byte) (spec client.KeySpec, err error) {
	if len(body) == 0 {
		return spec, nil
	}
	f, err := web.ParseFields(body, "key")
	if err != nil {
		return spec, err
	}
	spec.Description, spec.Roles = f.Text("description"), f.Texts("roles")
	if text := f.Text("ends"); text != "" {
		if spec.Ends, err = time.Parse(time.RFC3339, text); err != nil {
			f.Fail("member %q must be a time such as 2027-01-31T12:00:00Z, not %q", "ends", text)
		}
	}
	spec.GraceSeconds = f.Integer("grace-seconds")
	return spec, f.Failure
}

func (s *server) listRoles(w http.ResponseWriter, r *http.Request) error {
	return list(s, "roles", pageSizes, s.administrator(r).Roles, func(found []client.Role, next *string) any {
		return client.RolesPage{Roles: found, NextPageToken: next}
	})(w, r)
}

func (s *server) loadRole(w http.ResponseWriter, r *http.Request) error {
	name, err := web.PathParam(r, "role")
	if err != nil {
		return err
	}
	found, err := s.administrator(r).LoadRole(r.Context(), name)
	if err != nil {
		return err
	}
	return s.AnswerJSON(w, r, found)
}

func (s *server) putRole(r *http.Request, body []byte) (any, error) {
	name, err := web.PathParam(r, "role")
	if err != nil {
		return nil, err
	}
	f, err := web.ParseFields(body, "role")
	if err != nil {
		return nil, err
	}
	role := client.Role{Name: name, Description: f.Text("description"), Members: f.Texts("members")}
	if f.Failure != nil {
		return nil, f.Failure
	}
	return s.administrator(r).PutRole(r.Context(), role)
}

func (s *server) deleteRole(r *http.Request, _ []byte) (any, error) {
	name, err := web.PathParam(r, "role")
	if err != nil {
		return nil, err
	}
	return client.Done{}, s.administrator(r).DeleteRole(r.Context(), name)
}

func (s *server) changeMembers(r *http.Request, body []byte) (any, error) {
	name, err := web.PathParam(r, "role")
	if err != nil {
		return nil, err
	}
	f, err := web.ParseFields(body, "change of members")
	if err != nil {
		return nil, err
	}
	change := client.MembersChange{Add: f.Texts("add"), Remove: f.Texts("remove")}
	if f.Failure == nil && len(change.Add)+len(change.Remove) == 0 {
		f.Fail("it names no member to add or remove")
	}
	if f.Failure != nil {
		return nil, f.Failure
	}
	return s.administrator(r).ChangeMembers(r.Context(), name, change)
}
