package cli

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"moorage/management/client"
)

// The words of commands about access, and what is wrong with others.
func TestAccessWords(t *testing.T) {
	t.Parallel()
	tests := []struct{ line, want string }{
		{"grant read on table w.a.t to role analysts", "{[read]  table w.a.t analysts    [] [] }"},
		{"grant read,write alter on namespace w.a.b to corp:ann", "{[read write alter]  namespace w.a.b corp:ann    [] [] }"},
		{`grant read on view w."a.b"."say ""hi""" to corp/analysts`, `{[read]  view w."a.b"."say ""hi""" corp/analysts    [] [] }`},
		{"grant admin on server to principal key:root", "{[admin]  server key:root    [] [] }"},
		{"grant read on table w.on.to to everyone", "{[read]  table w.on.to everyone    [] [] }"},
		{"revoke read on warehouse w from analysts", "{[read]  warehouse w analysts    [] [] }"},
		{"grants on function w.a.f", "{[]  function w.a.f     [] [] }"},
		{"grants to key:etl", "{[]  server key:etl    [] [] }"},
		{"owner table w.a.t to corp:ann", "{[]  table w.a.t corp:ann    [] [] }"},
		{"explain load-table on table w.a.t", "{[] load-table table w.a.t     [] [] }"},
		{"explain read on table w.a.t for key:etl", "{[read]  table w.a.t key:etl    [] [] }"},
		{"explain read on table w.a.t through w.a.v w.b.u for key:etl by key:trino", "{[read]  table w.a.t key:etl    [] [view w.a.v view w.b.u] key:trino}"},
		{"explain read on table w.a.t through w.v", "explain: w.v does not name a view"},
		{"key create etl", "{[]  server  key:etl   [] [] }"},
		{"key create key:etl --admin", "{[]  server  key:etl   [] [] }"},
		{"key withdraw etl abc", "{[]  server  key:etl abc  [] [] }"},
		{"role add analysts key:etl corp/x other", "{[]  server    analysts [key:etl corp/x other] [] }"},

		{"grant", "grant: takes PRIVILEGES on server|KIND NAME to GRANTEE"},
		{"grant rule on table w.a.t to analysts", `grant: unknown privilege "rule"`},
		{"grant read on table w.t to analysts", "grant: w.t does not name a table"},
		{"grant read on table w..t to analysts", "grant: w..t is not a name"},
		{`grant read on table w."a"b.t to analysts`, "is not a name"},
		{"grant read on ship w.a.t to analysts", `"ship" is not server`},
		{"grant read on warehouse w.a to analysts", "w.a is no warehouse"},
		{"grant read on table w.a.t to", "is not one GRANTEE"},
		{"grant read on table w.a.t to role key:etl", `"key:etl" is no role`},
		{"grant read on table w.a.t to principal analysts", `"analysts" is no principal`},
		{"grant read on table w.a.t to group analysts", "is not one GRANTEE"},
		{"owner server to corp:ann", "the server belongs to nobody"},
		{"grants analysts", "takes on server|KIND NAME, or to GRANTEE"},
		{"explain read on table w.a.t for analysts", "names no principal"},
		{"key create corp:ann", `"corp:ann" is no name for a key`},
		{"key create", "takes one NAME"},
		{"role create corp/x", `"corp/x" is no name for a role`},
		{"role add analysts", "takes NAME MEMBER..."},
	}
	for _, tt := range tests {
		t.Run(tt.line, func(t *testing.T) {
			t.Parallel()
			got := ""
			note := func(_ context.Context, c Config, _ Environment) error {
				w := c.Access
				got = fmt.Sprint("{", w.Privileges, " ", w.Operation, " ", w.Object, " ", w.Grantee, " ", w.Principal, " ", w.Key, " ", w.Role, " ", w.Members, " ", w.Through, " ", w.Engine, "}")
				return nil
			}
			var stdout, stderr strings.Builder
			code := Run(t.Context(), split(tt.line), Environment{Stdout: &stdout, Stderr: &stderr}, Actions{
				Grant: note, Revoke: note, Grants: note, Owner: note, Explain: note, KeyCreate: note, KeyWithdraw: note,
				RoleCreate: note, RoleAdd: note,
			})
			if code == ExitDone && got != tt.want || code != ExitDone && (code != ExitUsage || !strings.Contains(stderr.String(), tt.want)) {
				t.Errorf("exit %d, %s, stderr %s; want %s", code, got, stderr.String(), tt.want)
			}
		})
	}
}

// split splits a line at spaces outside of double quotes, and leaves the quotes.
func split(line string) (words []string) {
	quoted := false
	return strings.FieldsFunc(line, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ' ' && !quoted
	})
}

// What ParseObject reads is what String writes.
func TestObjectNames(t *testing.T) {
	t.Parallel()
	for _, o := range []client.Object{
		{Warehouse: "w"}, {Warehouse: "w.x"}, {Warehouse: "w", Namespace: []string{"a", "b c"}},
		{Warehouse: `w"`, Namespace: []string{`"a"`, "."}, Table: `t"."u`}, {Warehouse: "w", Namespace: []string{"a"}, View: "v"},
	} {
		kind, name, _ := strings.Cut(o.String(), " ")
		if got, err := client.ParseObject(kind, name); err != nil || fmt.Sprint(got) != fmt.Sprint(o) {
			t.Errorf("%s is read as %s: %v", o, got, err)
		}
	}
}
