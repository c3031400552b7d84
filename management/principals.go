package management

import (
	"net/http"
	"time"

	"moorage"
	"moorage/audit"
	"moorage/catalog/grants"
	"moorage/internal/web"
	"moorage/management/client"
)

// Drawn is a new API key: the hash that is stored, and the text that its owner gets.
type Drawn struct {
	ID     string
	SHA256 [32]byte // of the secret in Text
	Text   string
}

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
		{"endSessions", post, "/sessions/end", s.change(s.endSessions)},
		{"listRoles", get, "/roles", s.listRoles},
		{"loadRole", get, "/roles/{role}", s.loadRole},
		{"putRole", put, "/roles/{role}", s.changeIfMatch(s.putRole)},
		{"deleteRole", del, "/roles/{role}", s.change(s.deleteRole)},
		{"changeMembers", patch, "/roles/{role}/members", s.change(s.changeMembers)},
		{"listGrants", get, "/grants", s.listGrants},
		{"changeGrants", post, "/grants", s.change(s.changeGrants)},
		{"setOwner", put, "/owner", s.changeIfMatch(s.setOwner)},
		{"setManaged", put, "/managed", s.change(s.setManaged)},
		{"loadAccess", get, "/access", s.loadAccess},
		{"enableAccess", post, "/access/enable", s.change(s.enableAccess)},
		{"explainAccess", post, "/access/explain", s.explain},
		{"checkAccess", post, "/access/check", s.checkAccess},
		{"exportAccess", get, "/access/export", s.export},
		{"loadDecisions", get, "/access/decisions/{request}", s.decisions},
	}
}

func (s *server) listPrincipals(w http.ResponseWriter, r *http.Request) error {
	return list(s, "principals", pageSizes, pagesOf(s.access(r).Principals, principalOf),
		func(found []client.Principal, next *string) any {
			return client.PrincipalsPage{Principals: found, NextPage: client.NextPage{NextPageToken: next}}
		})(w, r)
}

func (s *server) loadPrincipal(w http.ResponseWriter, r *http.Request) error {
	name, err := web.PathParam(r, "principal")
	if err != nil {
		return err
	}
	found, err := s.access(r).LoadPrincipal(r.Context(), name)
	if err != nil {
		return err
	}
	return s.AnswerJSON(w, r, principalOf(found))
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
	spec := grants.PrincipalSpec{
		Disabled: f.Boolean("disabled"), Description: f.Text("description"), SpeaksFor: f.Text("speaks-for"),
	}
	if f.Failure != nil {
		return nil, f.Failure
	}
	put, err := s.access(r).PutPrincipal(r.Context(), name, spec)
	return principalOf(put), err
}

func (s *server) deletePrincipal(r *http.Request, _ []byte) (any, error) {
	name, err := web.PathParam(r, "principal")
	if err != nil {
		return nil, err
	}
	return client.Done{}, s.access(r).DeletePrincipal(r.Context(), name)
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
	made, err := s.draw(principal, "", spec, func(drawn grants.KeySpec) (grants.APIKey, error) {
		return s.access(r).CreateKey(r.Context(), principal, drawn)
	})
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
	if spec.GraceSeconds < 0 || spec.GraceSeconds > int64(keyLifetime/time.Second) {
		return nil, moorage.Errorf(moorage.KindBadRequest, "Invalid grace-seconds: %d, want a number from 0 to %d",
			spec.GraceSeconds, keyLifetime/time.Second)
	}
	made, err := s.draw(principal, id, spec, func(drawn grants.KeySpec) (grants.APIKey, error) {
		return s.access(r).RotateKey(r.Context(), principal, drawn, time.Duration(spec.GraceSeconds)*time.Second)
	})
	return made, s.noteKey(r, audit.KeyMade, principal, id, err)
}

func (s *server) withdrawKey(r *http.Request, _ []byte) (any, error) {
	principal, id, err := keyOfPath(r)
	if err != nil {
		return nil, err
	}
	err = s.access(r).WithdrawKey(r.Context(), principal, id)
	return client.Done{}, s.noteKey(r, audit.KeyWithdrawn, principal, id, err)
}

func (s *server) endSessions(r *http.Request, _ []byte) (any, error) {
	return client.Done{}, s.config.EndSessions(r.Context())
}

// keyLifetime is the default lifetime of a key.
const keyLifetime = 90 * 24 * time.Hour

// draw draws a secret and stores it with store.
func (s *server) draw(principal, id string, spec client.KeySpec,
	store func(grants.KeySpec) (grants.APIKey, error)) (client.MadeKey, error) {
	now := s.config.Now()
	if spec.Ends.IsZero() {
		spec.Ends = now.Add(keyLifetime)
	}
	if !spec.Ends.After(now) {
		return client.MadeKey{}, moorage.Errorf(moorage.KindBadRequest, "The key would have ended already, at %s",
			spec.Ends.Format(time.RFC3339))
	}
	drawn, err := s.config.DrawKey(id)
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

// noteKey returns err. If err is nil, it notes the change of a key in the audit log.
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
	return list(s, "roles", pageSizes, pagesOf(s.access(r).Roles, roleOf), func(found []client.Role, next *string) any {
		return client.RolesPage{Roles: found, NextPage: client.NextPage{NextPageToken: next}}
	})(w, r)
}

func (s *server) loadRole(w http.ResponseWriter, r *http.Request) error {
	name, err := web.PathParam(r, "role")
	if err != nil {
		return err
	}
	found, err := s.access(r).LoadRole(r.Context(), name)
	if err != nil {
		return err
	}
	w.Header()["ETag"] = []string{tagOfValue(roleOf(found))}
	return s.AnswerJSON(w, r, roleOf(found))
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
	role := grants.Role{Name: name, Description: f.Text("description"), Members: f.Texts("members")}
	if f.Failure != nil {
		return nil, f.Failure
	}
	put, err := s.access(r).PutRole(r.Context(), role, func(present *grants.Role) bool {
		if present == nil {
			return matches(r, "", false)
		}
		return matches(r, tagOfValue(roleOf(*present)), true)
	})
	return roleOf(put), err
}

func (s *server) deleteRole(r *http.Request, _ []byte) (any, error) {
	name, err := web.PathParam(r, "role")
	if err != nil {
		return nil, err
	}
	return client.Done{}, s.access(r).DeleteRole(r.Context(), name)
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
	add, remove := f.Texts("add"), f.Texts("remove")
	if f.Failure == nil && len(add)+len(remove) == 0 {
		f.Fail("it names no member to add or remove")
	}
	if f.Failure != nil {
		return nil, f.Failure
	}
	changed, err := s.access(r).ChangeMembers(r.Context(), name, add, remove)
	return roleOf(changed), err
}
