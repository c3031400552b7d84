package management

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/access"
	"moorage/audit"
	"moorage/catalog"
	"moorage/catalog/grants"
	"moorage/internal/web"
	"moorage/maintenance/policy"
	"moorage/management/client"
)

// fakeAccess answers like a catalog with a fixed policy, and records the calls in fake.
type fakeAccess struct {
	*fake
	caller moorage.Caller
}

func (f *fakeAccess) note(format string, args ...any) error {
	return f.call(f.caller.Name + ": " + fmt.Sprintf(format, args...))
}

var fakeTime = time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)

func fakeKey(id string) grants.APIKey {
	return grants.APIKey{ID: id, Generation: 1, Created: fakeTime, By: "key:root", Ends: fakeTime.Add(time.Hour)}
}

func (f *fakeAccess) Principals(_ context.Context, page moorage.Page) ([]grants.Principal, string, error) {
	return []grants.Principal{{Name: "key:etl", Created: fakeTime, Keys: []grants.APIKey{fakeKey("abc")}}}, f.next,
		f.note("Principals %v", page)
}

func (f *fakeAccess) LoadPrincipal(_ context.Context, name string) (grants.Principal, error) {
	return grants.Principal{Name: name}, f.note("LoadPrincipal %s", name)
}

func (f *fakeAccess) PutPrincipal(_ context.Context, name string, spec grants.PrincipalSpec) (grants.Principal, error) {
	return grants.Principal{Name: name, PrincipalSpec: spec}, f.note("PutPrincipal %s %v", name, spec)
}

func (f *fakeAccess) DeletePrincipal(_ context.Context, name string) error {
	return f.note("DeletePrincipal %s", name)
}

func (f *fakeAccess) CreateKey(_ context.Context, principal string, spec grants.KeySpec) (grants.APIKey, error) {
	return fakeKey(spec.ID), f.note("CreateKey %s %s %s", principal, spec.ID, spec.Ends.Format(time.RFC3339))
}

func (f *fakeAccess) RotateKey(_ context.Context, principal string, spec grants.KeySpec, grace time.Duration) (grants.APIKey, error) {
	return fakeKey(spec.ID), f.note("RotateKey %s %s %s", principal, spec.ID, grace)
}

func (f *fakeAccess) WithdrawKey(_ context.Context, principal, id string) error {
	return f.note("WithdrawKey %s %s", principal, id)
}

func (f *fakeAccess) Roles(_ context.Context, page moorage.Page) ([]grants.Role, string, error) {
	return []grants.Role{{Name: "analysts", Members: []string{"key:etl", "corp/x"}}}, f.next, f.note("Roles %v", page)
}

func (f *fakeAccess) LoadRole(_ context.Context, name string) (grants.Role, error) {
	return grants.Role{Name: name}, f.note("LoadRole %s", name)
}

func (f *fakeAccess) PutRole(_ context.Context, role grants.Role, match func(present *grants.Role) bool) (grants.Role, error) {
	present := &grants.Role{Name: role.Name}
	if role.Name == "new" {
		present = nil
	}
	if !match(present) {
		return role, moorage.Errorf(moorage.KindPreconditionFailed, "it has changed")
	}
	return role, f.note("PutRole %v", role)
}

func (f *fakeAccess) ChangeMembers(_ context.Context, name string, add, remove []string) (grants.Role, error) {
	return grants.Role{Name: name, Members: add}, f.note("ChangeMembers %s +%v -%v", name, add, remove)
}

func (f *fakeAccess) DeleteRole(_ context.Context, name string) error {
	return f.note("DeleteRole %s", name)
}

func (f *fakeAccess) ChangeGrants(_ context.Context, changes []grants.Change) ([]string, error) {
	return []string{"analysts"}, f.note("ChangeGrants %v", changes)
}

func (f *fakeAccess) GrantsOn(_ context.Context, object grants.Object) (grants.ObjectGrants, error) {
	return grants.ObjectGrants{Object: object, Owner: "key:etl"}, f.note("GrantsOn %v", object)
}

func (f *fakeAccess) GrantsTo(_ context.Context, grantee string, page moorage.Page) ([]grants.ObjectGrants, string, error) {
	table := grants.Object{Kind: access.Table, Ident: moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t"}}
	return []grants.ObjectGrants{{Object: table, Grants: []grants.Grant{
		{Grantee: grantee, Privileges: access.Read, By: "key:root", At: fakeTime},
	}}}, f.next, f.note("GrantsTo %s %v", grantee, page)
}

func (f *fakeAccess) AllGrants(_ context.Context, page moorage.Page) ([]grants.ObjectGrants, string, error) {
	namespace := grants.Object{Kind: access.Namespace, Ident: moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}}}
	if page.After == "" {
		return []grants.ObjectGrants{{Object: grants.Object{Kind: access.Server}, Grants: []grants.Grant{
			{Grantee: "corp:248289761001", Privileges: access.Admin, By: "key:root", At: fakeTime},
		}}}, "second", f.note("AllGrants %v", page)
	}
	return []grants.ObjectGrants{{Object: namespace, Owner: "corp:ann", Grants: []grants.Grant{
		{Grantee: "corp/analysts", Privileges: access.Read, By: "key:root", At: fakeTime},
	}}}, "", f.note("AllGrants %v", page)
}

func (f *fakeAccess) SetOwner(_ context.Context, object grants.Object, owner string, match func(present grants.ObjectGrants) bool) error {
	if !match(grants.ObjectGrants{Object: object, Owner: "key:etl"}) {
		return moorage.Errorf(moorage.KindPreconditionFailed, "it has changed")
	}
	return f.note("SetOwner %v %s", object, owner)
}

func (f *fakeAccess) SetManaged(_ context.Context, object grants.Object, managed bool) error {
	return f.note("SetManaged %v %v", object, managed)
}

func (f *fakeAccess) IsOn(context.Context) (bool, error) { return true, f.note("IsOn") }
func (f *fakeAccess) Enable(context.Context) error       { return f.note("Enable") }

func (f *fakeAccess) Explain(_ context.Context, question grants.Question) (grants.Answer, error) {
	server := access.Object{Kind: access.Server}
	return grants.Answer{Explanation: access.Explanation{
		Decision: access.Decision{Outcome: access.Forbid, Missing: access.Alter}, Asked: access.Alter, Has: access.Read | access.Describe,
		Steps: []access.Step{{Object: server, Grants: []access.Counted{{Grantee: "analysts", Privileges: access.Read, Via: []string{"staff"}}}}},
	}, Names: []string{"server"}}, f.note("Explain %s %v %v", question.Operation, question.Privileges, question.Object)
}

func (f *fakeAccess) Check(_ context.Context, questions []grants.Question) ([]grants.Answer, error) {
	return make([]grants.Answer, len(questions)), f.note("Check %v", questions)
}

// configOf returns a Config in which f plays every part.
func configOf(f *fake) Config {
	return Config{
		Recovery: f, Purges: f, Backup: backupOf(f), Authenticates: true, Work: fakeWork{fake: f},
		Access:      func(caller moorage.Caller) Access { return &fakeAccess{f, caller} },
		Warehouses:  func(caller moorage.Caller) Warehouses { return fakeWarehouses{f, caller} },
		Browse:      func(moorage.Caller) Browse { return fakeBrowse{f} },
		Labels:      func(caller moorage.Caller, key *catalog.Key) Labels { return fakeLabels{f, caller, key} },
		Dropped:     func(_ moorage.Caller, key *catalog.Key) Dropped { return fakeDropped{f, key} },
		Protections: func(moorage.Caller, *catalog.Key) Protections { return fakeProtections{f} },
		Mirrors:     func(moorage.Caller, *catalog.Key) Mirrors { return fakeMirrors{f} },
		RotateSecrets: func(_ context.Context, caller moorage.Caller, rotation client.SecretsRotation) (client.SecretsRotated, error) {
			return client.SecretsRotated{Key: "2", Before: "1", Sealed: 3}, fakeWarehouses{f, caller}.note("Rotate %v", rotation)
		},
		EndSessions: func(context.Context) error { return f.call("EndSessions") },
		DrawKey:     func(id string) (Drawn, error) { return Drawn{ID: max(id, "drawn"), Text: "mrg_text"}, nil },
		Now:         func() time.Time { return fakeTime },
		Denials: func(id string) []audit.Line {
			if id != "ABCDEFGHIJ-17" {
				return nil
			}
			object := audit.Object{Kind: "table", Warehouse: "w", Namespace: []string{"a"}, Name: "t.u"}
			return []audit.Line{{Time: fakeTime, RequestID: id, Caller: "key:etl", Operation: "load-table", Decision: "hidden", Object: object}}
		},
	}
}

// Each operation calls the catalog with the values in the request, and refuses malformed requests.
func TestAccessOperations(t *testing.T) {
	t.Parallel()
	const etl, table = "/principals/key:etl", `{"warehouse":"w","namespace":["a"],"table":"t"}`
	tests := []struct {
		name, method, path, body string
		status                   int
		answer                   string // a part of the answer
		call                     string // the call of the catalog, without the caller; empty if there is none
	}{
		{"page of principals", "GET", "/principals?pageSize=7", "", 200, `"name":"key:etl"`, "Principals { 7}"},
		{"name that is escaped", "GET", "/principals/corp:a%2Fb", "", 200, `"name":"corp:a/b"`, "LoadPrincipal corp:a/b"},
		{"disabled", "PUT", etl, `{"disabled":true}`, 200, `"disabled":true`, "PutPrincipal key:etl {true  }"},
		{"disabled by a word", "PUT", etl, `{"disabled":"yes"}`, 400, "must be a boolean", ""},
		{"new key", "POST", etl + "/keys", "", 200, `"key":"mrg_text"`, "CreateKey key:etl drawn 2027-02-23T10:00:00Z"},
		{"new key with an end", "POST", etl + "/keys", `{"ends":"2026-12-01T00:00:00Z"}`, 200, `"principal":"key:etl"`,
			"CreateKey key:etl drawn 2026-12-01T00:00:00Z"},
		{"new key that ended", "POST", etl + "/keys", `{"ends":"2026-11-25T10:00:00Z"}`, 400, "would have ended", ""},
		{"new key with a bad end", "POST", etl + "/keys", `{"ends":"soon"}`, 400, "must be a time such as", ""},
		{"rotation", "POST", etl + "/keys/abc/rotate", `{"grace-seconds":60}`, 200, `"id":"drawn"`, "RotateKey key:etl drawn 1m0s"},
		{"rotation with a bad grace", "POST", etl + "/keys/abc/rotate", `{"grace-seconds":-1}`, 400, "Invalid grace-seconds", ""},
		{"rotation with half a second", "POST", etl + "/keys/abc/rotate", `{"grace-seconds":0.5}`, 400, "whole number", ""},
		{"withdrawal", "DELETE", etl + "/keys/abc", "", 200, "{}", "WithdrawKey key:etl abc"},
		{"sessions", "POST", "/sessions/end", "", 200, "{}", "EndSessions"},
		{"role", "PUT", "/roles/r", `{"members":["key:etl"]}`, 200, `"members":["key:etl"]`, "PutRole {r  [key:etl]}"},
		{"members", "PATCH", "/roles/r/members", `{"add":["a:b"],"remove":["c:d"]}`, 200, `"members":["a:b"]`, "ChangeMembers r +[a:b] -[c:d]"},
		{"no members", "PATCH", "/roles/r/members", `{}`, 400, "names no member", ""},
		{"grants to", "GET", "/grants?grantee=key:etl", "", 200, `"table":"t"`, "GrantsTo key:etl { 100}"},
		{"grants on the server", "GET", "/grants?object=server", "", 200, `"object":"server"`, "GrantsOn {server *}"},
		{"grants on a table", "GET", "/grants?warehouse=w&namespace=a%1Fb&table=t", "", 200, `"namespace":["a","b"]`, "GrantsOn {table *}"},
		{"grants on nothing", "GET", "/grants", "", 400, "Name an object or a grantee", ""},
		{"grants on and to", "GET", "/grants?grantee=a:b&object=server", "", 400, "not both", ""},
		{"grants on two things", "GET", "/grants?warehouse=w&namespace=a&table=t&view=v", "", 400, "not several", ""},
		{"grant", "POST", "/grants", `{"changes":[{"change":"grant","object":` + table + `,"grantee":"analysts","privileges":["read","alter"]}]}`,
			200, `{"changes":1,"unknown":true,"unknown-grantees":["analysts"]}`, "ChangeGrants [{false {table *} analysts read, alter}]"},
		{"grant of an unknown privilege", "POST", "/grants", `{"changes":[{"change":"grant","object":"server","grantee":"a","privileges":["rule"]}]}`,
			400, "unknown privilege", ""},
		{"grant without privileges", "POST", "/grants", `{"changes":[{"change":"grant","object":"server","grantee":"a"}]}`, 400, "No privileges", ""},
		{"grant that is no change", "POST", "/grants", `{"changes":[{"change":"give","object":"server","grantee":"a","privileges":["read"]}]}`,
			400, "grant or revoke", ""},
		{"grant on the ship", "POST", "/grants", `{"changes":[{"change":"grant","object":"ship","grantee":"a","privileges":["read"]}]}`,
			400, "not known", ""},
		{"grant on an object with more", "POST", "/grants", `{"changes":[{"change":"grant","object":{"warehouse":"w","tabel":"t"},"grantee":"a","privileges":["read"]}]}`,
			400, "tabel", ""},
		{"no grants", "POST", "/grants", `{"changes":[]}`, 400, "no changes", ""},
		{"too many grants", "POST", "/grants", `{"changes":[` + strings.Repeat(`{"object":"server"},`, 1000) + `{"object":"server"}]}`, 413, "at most 1000", ""},
		{"owner", "PUT", "/owner", `{"object":` + table + `,"owner":"corp:ann"}`, 200, `"owner":"corp:ann"`, "SetOwner {table *} corp:ann"},
		{"no owner", "PUT", "/owner", `{"object":` + table + `}`, 400, `\"owner\" is missing`, ""},
		{"managed", "PUT", "/managed", `{"object":{"warehouse":"w"},"managed":true}`, 200, `"managed":true`, "SetManaged {warehouse *} true"},
		{"on", "GET", "/access", "", 200,
			`{"on":true,"caller":"anonymous","grantees":["anonymous","everyone"]}`, "IsOn"},
		{"enable", "POST", "/access/enable", "", 200, `{"on":true}`, "IsOn; anonymous: Enable"},
		{"explain", "POST", "/access/explain", `{"operation":"load-table","object":` + table + `}`, 200,
			`"decision":"forbid","asked":["alter"],"has":["describe","read"],"missing":["alter"]`, "Explain load-table  {table *}"},
		{"explain what is unknown", "POST", "/access/explain", `{"operation":"fly","object":"server"}`, 400, "Unknown operation", ""},
		{"explain two things", "POST", "/access/explain", `{"operation":"load-table","privileges":["read"],"object":"server"}`, 400, "either an operation", ""},
		{"explain for a role", "POST", "/access/explain", `{"operation":"load-table","caller":{"name":"analysts"},"object":"server"}`, 400, "names no principal", ""},
		{"check", "POST", "/access/check", `{"questions":[{"privileges":["read"],"object":{"warehouse":"w"}}]}`, 200, `{"allowed":[false]}`, "Check *"},
		{"decisions", "GET", "/access/decisions/ABCDEFGHIJ-17", "", 200, `"object":"w.a.\"t.u\""`, ""},
		{"decisions of nobody", "GET", "/access/decisions/x", "", 404, "Nothing was decided", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := &fake{}
			w := send(newServer(t, configOf(f)), tt.method, base+tt.path, tt.body)
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.answer) {
				t.Errorf("%d %s, want %d and %s", w.Code, w.Body, tt.status, tt.answer)
			}
			got := strings.TrimPrefix(strings.Join(f.calls, "; "), "anonymous: ")
			before, _, cut := strings.Cut(tt.call, "*")
			if got != tt.call && !(cut && strings.HasPrefix(got, before)) {
				t.Errorf("the catalog was asked %q, want %q", got, tt.call)
			}
		})
	}
}

// A server that does not authenticate its callers does not switch access control on.
func TestEnableWithoutAuthentication(t *testing.T) {
	t.Parallel()
	f := &fake{}
	config := configOf(f)
	config.Authenticates = false
	wantFailure(t, send(newServer(t, config), "POST", base+"/access/enable", ""), 400, "IllegalArgumentException")
	if len(f.calls) > 0 {
		t.Errorf("the catalog was asked %q", f.calls)
	}
}

// openAccess is a fakeAccess for a store without access control.
type openAccess struct{ *fakeAccess }

func (f openAccess) IsOn(context.Context) (bool, error) { return false, f.note("IsOn") }

// Over the network, only an administrator with whom the server was started can switch access
// control on, and only with all of its privileges. Otherwise any caller could become the
// administrator.
func TestEnableTakesAnAdmin(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		caller moorage.Caller
		status int
		access string // answer of loadAccess
	}{
		"the administrator": {moorage.Caller{Name: "corp:root"}, 200,
			`"caller":"corp:root","grantees":["corp:root","everyone"],"always-administrator":true}`},
		"another caller": {moorage.Caller{Name: "corp:eve", Roles: []string{"corp/ops"}}, 403,
			`"caller":"corp:eve","grantees":["corp:eve","everyone","corp/ops"]}`},
		"an engine in its name": {moorage.Caller{Name: "corp:root", Via: []string{"key:trino"}}, 403,
			`"caller":"corp:root","grantees":["corp:root","everyone"]}`},
		"a narrowed credential of its": {moorage.Caller{Name: "corp:root", Only: []string{}}, 403,
			`"caller":"corp:root","grantees":["corp:root","everyone"],"limited-to":[]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{}
			config := configOf(f)
			config.Admins = []string{"corp:root"}
			config.Access = func(caller moorage.Caller) Access { return openAccess{&fakeAccess{f, caller}} }
			handler := web.New(web.Config{Authenticate: func(*http.Request) (moorage.Caller, error) { return tt.caller, nil }})
			Mount(handler, config)
			w := send(handler, "POST", base+"/access/enable", "")
			if enabled := slices.Contains(f.calls, "corp:root: Enable"); w.Code != tt.status || enabled != (tt.status == 200) {
				t.Errorf("answered %d %s, after %q", w.Code, w.Body, f.calls)
			}
			if shown := send(handler, "GET", base+"/access", "").Body.String(); !strings.Contains(shown, tt.access) {
				t.Errorf("the caller is shown as %s, not %s", shown, tt.access)
			}
		})
	}
}

// The creation and withdrawal of keys is in the audit log, without secrets.
func TestKeysAreNoted(t *testing.T) {
	t.Parallel()
	var lines []audit.Line
	config := configOf(&fake{})
	config.Note = func(line audit.Line) { lines = append(lines, line) }
	h := newServer(t, config)
	send(h, "POST", base+"/principals/key:etl/keys", "")
	send(h, "DELETE", base+"/principals/key:etl/keys/abc", "")
	if len(lines) != 2 || lines[0].Event != audit.KeyMade || lines[1].Event != audit.KeyWithdrawn || lines[1].Key != "abc" {
		t.Fatalf("noted are %+v", lines)
	}
	if text := fmt.Sprint(lines); strings.Contains(text, "mrg_text") {
		t.Errorf("the secret is in %s", text)
	}
}

// An export contains all pages of grants, including grants to names without a record, and the
// owners.
func TestExport(t *testing.T) {
	t.Parallel()
	f := &fake{}
	w := send(newServer(t, configOf(f)), "GET", base+"/access/export", "")
	var all struct {
		Principals, Roles []struct{ Name string }
		Grants            []struct {
			Owner  string
			Grants []struct {
				Grantee    string
				Privileges []string
			}
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &all); err != nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	const want = "{[{key:etl}] [{analysts}] [{ [{corp:248289761001 [admin]}]} {corp:ann [{corp/analysts [read]}]}]}"
	if got := fmt.Sprint(all); got != want {
		t.Errorf("the export is %s, want %s", got, want)
	}
	if secret := url.QueryEscape("mrg_"); strings.Contains(w.Body.String(), secret) {
		t.Errorf("an export holds a key: %s", w.Body)
	}
}

// A role, and the owner of an object, change only if they are as the request has read them.
func TestAccessIfMatch(t *testing.T) {
	t.Parallel()
	h := newServer(t, configOf(&fake{}))
	tag := func(target string) string {
		return strings.Join(send(h, "GET", base+target, "").Header()["ETag"], " ")
	}
	role, grants := tag("/roles/r"), tag("/grants?warehouse=w")
	if other := tag("/roles/s"); role == "" || grants == "" || other == role {
		t.Errorf("the ETags are %s, %s and %s", role, grants, other)
	}
	const owner = `{"object":{"warehouse":"w"},"owner":"corp:ann"}`
	const policies, enabled = "/maintenance/policies/", `{"status":"enabled"}`
	rule := tag(policies + string(policy.SnapshotManagement) + "?object=server")
	for _, tt := range []struct {
		name, target, body, header, value string
		code                              int
	}{
		{"the present role", "/roles/r", `{}`, "If-Match", `"0", ` + role, 200},
		{"another role", "/roles/r", `{}`, "If-Match", `"0"`, 412},
		{"any role", "/roles/r", `{}`, "If-Match", "*", 200},
		{"any role, and there is none", "/roles/new", `{}`, "If-Match", "*", 412},
		{"a role, and there is none", "/roles/new", `{}`, "If-Match", role, 412},
		{"a new role", "/roles/new", `{}`, "If-None-Match", "*", 200},
		{"a new role, and there is one", "/roles/r", `{}`, "If-None-Match", "*", 412},
		{"no such role", "/roles/r", `{}`, "If-None-Match", role, 400},
		{"the present owner", "/owner", owner, "If-Match", grants, 200},
		{"another owner", "/owner", owner, "If-Match", role, 412},
		{"the present policy", policies + string(policy.SnapshotManagement) + "?object=server", enabled, "If-Match", rule, 200},
		{"another policy", policies + string(policy.SnapshotManagement) + "?object=server", enabled, "If-Match", `"0"`, 412},
		{"a new policy, and there is one", policies + string(policy.SnapshotManagement) + "?object=server", enabled, "If-None-Match", "*", 412},
		{"a new policy", policies + string(policy.Compaction) + "?object=server", enabled, "If-None-Match", "*", 200},
		{"a policy, and there is none", policies + string(policy.Compaction) + "?object=server", enabled, "If-Match", rule, 412},
		{"a managed one", "/managed", `{"object":{"warehouse":"w"},"managed":true}`, "If-Match", grants, 400},
	} {
		if got := send(h, "PUT", base+tt.target, tt.body, tt.header, tt.value); got.Code != tt.code {
			t.Errorf("%s: %d %s, want %d", tt.name, got.Code, got.Body, tt.code)
		}
	}
	lake := tag("/warehouses/lake")
	for _, tt := range []struct {
		name, method, target, value string
		code                        int
	}{
		{"the present policy", "DELETE", policies + string(policy.SnapshotManagement) + "?object=server", rule, 200},
		{"another policy", "DELETE", policies + string(policy.SnapshotManagement) + "?object=server", role, 412},
		{"the present warehouse", "PATCH", "/warehouses/lake", lake, 200},
		{"another warehouse", "PATCH", "/warehouses/lake", rule, 412},
	} {
		if got := send(h, tt.method, base+tt.target, `{"delegation":[]}`, "If-Match", tt.value); got.Code != tt.code {
			t.Errorf("%s: %d %s, want %d", tt.name, got.Code, got.Body, tt.code)
		}
	}
	first := send(h, "PUT", base+"/roles/r", `{}`, "If-Match", role, "Idempotency-Key", someKey)
	again := send(h, "PUT", base+"/roles/r", `{}`, "If-Match", `"0"`, "Idempotency-Key", someKey)
	if first.Code != 200 || again.Code != 422 {
		t.Errorf("one key with two conditions: %d, %d", first.Code, again.Code)
	}
	const otherKey = "0196ab9c-0000-7000-8000-00000000aaaa"
	first = send(h, "PUT", base+"/roles/r", `{}`, "If-Match", "*", "Idempotency-Key", otherKey)
	again = send(h, "PUT", base+"/roles/r", `{}`, "If-None-Match", "*", "Idempotency-Key", otherKey)
	if first.Code != 200 || again.Code != 422 {
		t.Errorf("one key with two conditions of *: %d, %d", first.Code, again.Code)
	}
}
