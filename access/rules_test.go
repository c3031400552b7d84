package access_test

import (
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/access"
)

// The rules, one by one: which caller may do what on the lake's table, which bob made, in a
// namespace and a warehouse made by root.
func TestRules(t *testing.T) {
	t.Parallel()
	const root = "corp:root"
	managed := grantOn(1, ann, access.Describe)
	managed.Managed = true
	handed := grantOn(0, "corp:eve", access.Read)
	handed.Owner = readers
	role := access.Role{Name: readers, Members: []string{"corp/analysts", "staff"}}
	staff := access.Role{Name: "staff", Members: []string{ann}}
	table, namespace, warehouse := 0, 1, 2
	const server = 3

	for _, tt := range []struct {
		name    string
		records []access.Grants
		caller  access.Caller
		on      int
		asked   access.Privileges
		want    access.Outcome
	}{
		{"a grant above", []access.Grants{grantOn(warehouse, ann, access.Read)}, access.Caller{Name: ann}, table, access.Read, access.Allow},
		{"a grant below", []access.Grants{grantOn(table, ann, access.Read)}, access.Caller{Name: ann}, namespace, access.Read, access.Forbid},
		{"a grant below shows the way", []access.Grants{grantOn(table, ann, access.Read)}, access.Caller{Name: ann}, warehouse, access.See, access.Allow},
		{"two grants together", []access.Grants{grantOn(table, ann, access.Alter), grantOn(warehouse, ann, access.Locate)}, access.Caller{Name: ann}, table, access.Alter | access.Locate, access.Allow},
		{"describe on the server", []access.Grants{grantOn(server, access.Everyone, access.Describe)}, access.Caller{Name: ann}, table, access.Describe, access.Allow},
		{"everyone is not anonymous", []access.Grants{grantOn(server, access.Everyone, access.Describe)}, moorageAnonymous(), table, access.See, access.Hidden},
		{"a role of a token", []access.Grants{grantOn(namespace, "corp/ops", access.Write)}, access.Caller{Name: ann, Roles: []string{"corp/ops"}}, table, access.Write, access.Allow},
		{"a role of the store in a token", []access.Grants{grantOn(namespace, "staff", access.Write)}, access.Caller{Name: "corp:eve", Roles: []string{"staff", access.Everyone}}, table, access.See, access.Hidden},
		{"a role in a role", []access.Grants{grantOn(namespace, readers, access.Read)}, access.Caller{Name: ann}, table, access.Read, access.Allow},
		{"a token role in a role", []access.Grants{grantOn(namespace, readers, access.Read)}, access.Caller{Name: "corp:eve", Roles: []string{"corp/analysts"}}, table, access.Read, access.Allow},

		{"the owner", nil, access.Caller{Name: bob}, table, access.Purge | access.Manage, access.Allow},
		{"the owner of a table has no locate", nil, access.Caller{Name: bob}, table, access.Locate, access.Forbid},
		{"the owner above", nil, access.Caller{Name: root}, table, access.Locate | access.Purge, access.Allow},
		{"nobody owned it", nil, access.Caller{}, table, access.See, access.Hidden},
		{"handed over: before", []access.Grants{handed}, access.Caller{Name: bob}, table, access.See, access.Hidden},
		{"handed over: after, to a role", []access.Grants{handed}, access.Caller{Name: ann}, table, access.Manage, access.Allow},
		{"managed: the owner below", []access.Grants{managed}, access.Caller{Name: bob}, table, access.Manage, access.Forbid},
		{"managed: all else stays", []access.Grants{managed}, access.Caller{Name: bob}, table, access.Purge, access.Allow},
		{"managed: its own owner", []access.Grants{managed}, access.Caller{Name: root}, namespace, access.Manage, access.Allow},
		{"managed: its own owner below", []access.Grants{managed}, access.Caller{Name: root}, table, access.Manage, access.Allow},

		{"admin sees every name", []access.Grants{grantOn(server, ann, access.Admin)}, access.Caller{Name: ann}, table, access.See, access.Allow},
		{"admin reads nothing", []access.Grants{grantOn(server, ann, access.Admin)}, access.Caller{Name: ann}, table, access.Describe, access.Forbid},
		{"operate shows nothing", []access.Grants{grantOn(server, ann, access.Operate|access.Audit|access.Impersonate)}, access.Caller{Name: ann}, warehouse, access.See, access.Hidden},
		{"locate shows where it stands", []access.Grants{grantOn(namespace, ann, access.Locate)}, access.Caller{Name: ann}, namespace, access.See, access.Allow},
		{"locate shows the way there", []access.Grants{grantOn(namespace, ann, access.Locate)}, access.Caller{Name: ann}, warehouse, access.See, access.Allow},
		{"locate shows nothing below", []access.Grants{grantOn(namespace, ann, access.Locate)}, access.Caller{Name: ann}, table, access.Locate, access.Hidden},
		{"delegate shows nothing below", []access.Grants{grantOn(warehouse, ann, access.Delegate)}, access.Caller{Name: ann}, namespace, access.See, access.Hidden},

		{"an engine in his name", []access.Grants{grantOn(warehouse, ann, access.Read)}, access.Caller{Name: ann, Acting: true}, table, access.Read, access.Allow},
		{"an engine has nothing of the server", []access.Grants{grantOn(server, ann, access.Admin|access.Describe)}, access.Caller{Name: ann, Acting: true}, table, access.See, access.Hidden},
		{"narrowed to a role he has", []access.Grants{grantOn(namespace, "staff", access.Read)}, access.Caller{Name: ann, Only: []string{"staff"}}, table, access.Read, access.Allow},
		{"narrowed, and what that is in", []access.Grants{grantOn(namespace, readers, access.Read)}, access.Caller{Name: ann, Only: []string{"staff"}}, table, access.Read, access.Allow},
		{"narrowed: nothing of his own", []access.Grants{grantOn(namespace, ann, access.Read)}, access.Caller{Name: ann, Only: []string{"staff"}}, table, access.See, access.Hidden},
		{"narrowed: he owns nothing", nil, access.Caller{Name: bob, Only: []string{}}, table, access.See, access.Hidden},
		{"narrowed to a role he lacks", []access.Grants{grantOn(namespace, readers, access.Read)}, access.Caller{Name: bob, Only: []string{readers}}, table, access.See, access.Hidden},
		{"narrowed to himself", []access.Grants{grantOn(namespace, ann, access.Read)}, access.Caller{Name: ann, Only: []string{ann}}, table, access.See, access.Hidden},
	} {
		s := access.New(1, access.Records{Roles: []access.Role{role, staff}, Grants: tt.records})
		if d := s.Who(tt.caller).Decide(lake()[tt.on:], tt.asked); d.Outcome != tt.want {
			t.Errorf("%s: %+v, want %s", tt.name, d, tt.want)
		}
	}
}

func moorageAnonymous() access.Caller { return access.Caller{Name: moorage.Anonymous().Name} }

// A disabled principal sees nothing, and its keys end. A key also ends when it expires or is
// withdrawn.
func TestPrincipals(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
	sum := [32]byte{1}
	key := access.Key{ID: "abc", Generation: 2, SHA256: sum, Ends: now.Add(time.Hour)}
	records := access.Records{Principals: []access.Principal{{Name: ann, Keys: []access.Key{key}}, {Name: "corp:eve"}}}
	s := access.New(1, records)
	if keys, owner := s.Keys("abc"); len(keys) != 1 || owner.Name != ann || keys[0].SHA256 != sum ||
		!keys[0].Ends.Equal(key.Ends) {
		t.Errorf("the key is %+v of %+v", keys, owner)
	}
	if keys, _ := s.Keys("abd"); keys != nil {
		t.Errorf("a key that does not exist is %+v", keys)
	}
	disabled := s.With(2, access.Changes{Records: access.Records{
		Principals: []access.Principal{{Name: bob, Disabled: true}, {Name: ann, Disabled: true, Keys: []access.Key{key}}},
	}})
	withdrawn := s.With(2, access.Changes{GonePrincipals: []string{ann}})
	for _, tt := range []struct {
		name       string
		snapshot   *access.Snapshot
		generation uint64
		at         time.Time
		want       bool
	}{
		{"alive", s, 2, now, true},
		{"another generation", s, 1, now, false},
		{"ended", s, 2, key.Ends, false},
		{"disabled", disabled, 2, now, false},
		{"withdrawn", withdrawn, 2, now, false},
	} {
		if got := tt.snapshot.KeyLives("abc", tt.generation, tt.at); got != tt.want {
			t.Errorf("%s: the key lives %v", tt.name, got)
		}
	}
	if d := disabled.Who(access.Caller{Name: bob}).Decide(lake(), access.See); d.Outcome != access.Hidden || d.HiddenAt != 2 {
		t.Errorf("a disabled owner is answered %+v", d)
	}
	if d := disabled.Who(access.Caller{Name: bob}).Decide(nil, access.See); d.Outcome == access.Allow {
		t.Errorf("a disabled principal sees the server: %+v", d)
	}
}

func TestCheckRole(t *testing.T) {
	t.Parallel()
	var chain []access.Role // r1 in r2 in ... in r7
	for i := 1; i < access.DepthMax; i++ {
		role := access.Role{Name: "r" + string(rune('0'+i))}
		if i > 1 {
			role.Members = []string{chain[i-2].Name}
		}
		chain = append(chain, role)
	}
	s := access.New(1, access.Records{Roles: chain})
	for _, tt := range []struct {
		name string
		role access.Role
		want string // text in the error; empty if the role may be written
		kind moorage.Kind
	}{
		{"principals and token roles", access.Role{Name: "a", Members: []string{ann, "corp/x", "everyone"}}, "", 0},
		{"as deep as can be", access.Role{Name: "r8", Members: []string{"r7"}}, "", 0},
		{"too deep below", access.Role{Name: "r0", Members: []string{"r9", "r7", "r8"}}, "", 0}, // r8 and r9 do not exist
		{"too deep in the middle", access.Role{Name: "r1", Members: []string{"a", "b"}}, "", 0},
		{"itself", access.Role{Name: "a", Members: []string{"a"}}, "a has the member a", moorage.KindIllegalArgument},
		{"a cycle", access.Role{Name: "r1", Members: []string{"r3"}}, "r1 has the member r3 has the member r2 has the member r1", moorage.KindIllegalArgument},
		{"everyone", access.Role{Name: "everyone"}, "cannot be the name", moorage.KindIllegalArgument},
		{"the name of a principal", access.Role{Name: ann}, "cannot be the name", moorage.KindIllegalArgument},
		{"a member that is nobody", access.Role{Name: "a", Members: []string{"b c"}}, `"b c" is neither`, moorage.KindIllegalArgument},
		{"too many members", access.Role{Name: "a", Members: make([]string, access.MembersMax+1)}, "10001 members", moorage.KindTooLarge},
	} {
		err := s.CheckRole(tt.role)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || moorage.KindOf(err) != tt.kind) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	s = s.With(2, access.Changes{Records: access.Records{Roles: []access.Role{{Name: "r8", Members: []string{"r7"}}}}})
	for _, role := range []access.Role{{Name: "r9", Members: []string{"r8"}}, {Name: "r1", Members: []string{"r0x"}}, {Name: "r4", Members: []string{"r3", "r4x"}}} {
		s := s.With(3, access.Changes{Records: access.Records{Roles: []access.Role{
			{Name: "r0x"}, {Name: "r4x", Members: []string{"y1"}}, {Name: "y1", Members: []string{"y2"}}, {Name: "y2", Members: []string{"y3"}}, {Name: "y3"},
		}}})
		if err := s.CheckRole(role); err == nil || !strings.Contains(err.Error(), "chain of 9 roles") {
			t.Errorf("%s makes a chain that is too long: %v", role.Name, err)
		}
	}
}

func TestCheckGrants(t *testing.T) {
	t.Parallel()
	for want, record := range map[string]access.Grants{
		"write cannot be granted on a view":     {Kind: access.View, Grants: []access.Grant{{ann, access.Write}}},
		"locate cannot be granted on a table":   {Kind: access.Table, Grants: []access.Grant{{ann, access.Read | access.Locate}}},
		"admin cannot be granted on":            {Kind: access.Warehouse, Grants: []access.Grant{{ann, access.Admin}}},
		"drop cannot be granted on a warehouse": {Kind: access.Warehouse, Grants: []access.Grant{{ann, access.Drop}}},
		`"nobody here" is neither`:              {Kind: access.Table, Grants: []access.Grant{{"nobody here", access.Read}}},
		"Owner:":                                {Kind: access.Table, Owner: "x y"},
		"The server has no owner":               {Kind: access.Server, Owner: ann},
		"A table cannot be managed":             {Kind: access.Table, Managed: true},
		"1001 grantees":                         {Kind: access.Table, Grants: make([]access.Grant, access.GranteesMax+1)},
	} {
		if err := access.CheckGrants(record); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := access.CheckGrants(access.Grants{Kind: access.Namespace, Managed: true, Owner: readers}); err != nil {
		t.Error(err)
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	s := access.New(1, access.Records{
		Roles: []access.Role{{Name: readers, Members: []string{"staff"}}, {Name: "staff", Members: []string{ann, "corp/ops"}}},
		Grants: []access.Grants{
			grantOn(1, readers, access.Read), grantOn(2, "corp:boss", access.Manage|access.Write), grantOn(3, "corp:it", access.Admin),
		},
	})
	e := s.Who(access.Caller{Name: ann}).Explain(lake(), access.Write)
	if e.Decision.Outcome != access.Forbid || e.Decision.Missing != access.Write || e.Has != access.Read|access.Describe || len(e.Steps) != 4 {
		t.Errorf("%+v", e)
	}
	if got := strings.Join(e.Grantors, " "); got != "corp:bob corp:boss corp:it corp:root" {
		t.Errorf("those who could grant it are %s", got)
	}
	if got := e.Steps[1].Grants; len(got) != 1 || got[0].Grantee != readers || strings.Join(got[0].Via, " ") != "staff readers" {
		t.Errorf("the grant that counts is %+v", got)
	}
	if e.Steps[0].Owner != bob || e.Steps[0].Owns || e.Steps[2].Grants != nil || e.Steps[3].Object.Kind != access.Server {
		t.Errorf("the steps are %+v", e.Steps)
	}
	token := s.Who(access.Caller{Name: "x:y", Roles: []string{"corp/ops"}}).Explain(lake(), access.Read)
	if got := token.Steps[1].Grants; len(got) != 1 || strings.Join(got[0].Via, " ") != "corp/ops staff readers" || token.Grantors != nil {
		t.Errorf("the token role leads to %+v; %q", got, token.Grantors)
	}
	own := s.Who(access.Caller{Name: "corp:boss"}).Explain(lake(), access.Write)
	if got := own.Steps[2].Grants; len(got) != 1 || got[0].Via != nil || own.Decision.Grantee != "corp:boss" {
		t.Errorf("his own grant is %+v by %+v", got, own.Decision)
	}
}
