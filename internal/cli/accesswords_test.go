package cli

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"moorage/management/client"
)

// Valid operands of commands about access, and the faults of invalid ones.
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
		{"key withdraw --sessions", "{[]  server     [] [] }"},
		{"role add analysts key:etl corp/x other", "{[]  server    analysts [key:etl corp/x other] [] }"},

		{"grant", "grant: takes PRIVILEGES on server|KIND NAME to GRANTEE"},
		{"grant rule on table w.a.t to analysts", `grant: unknown privilege "rule"`},
		{"grant read on table w.t to analysts", "grant: w.t does not name a table"},
		{"grant read on table w..t to analysts", "grant: w..t is not a name"},
		{`grant read on table w."a"b.t to analysts`, "is not a name"},
		{"grant read on ship w.a.t to analysts", `"ship" is not server`},
		{"grant read on warehouse w.a to analysts", "w.a is no warehouse"},
		{"grant read on table w.a.t to", "is not one GRANTEE"},
		{"grant read on table w.a.t to role key:etl", `"key:etl" is not a role`},
		{"grant read on table w.a.t to principal analysts", `"analysts" is not a principal`},
		{"grant read on table w.a.t to group analysts", "is not one GRANTEE"},
		{"owner server to corp:ann", "the server has no owner"},
		{"grants analysts", "takes on server|KIND NAME, or to GRANTEE"},
		{"explain read on table w.a.t for analysts", "is not a principal"},
		{"key create corp:ann", `"corp:ann" is not the name of a key`},
		{"key create", "takes one NAME"},
		{"key withdraw", "takes either NAME ID, as moorage key list shows them, or --sessions"},
		{"key withdraw etl abc --sessions", "takes either NAME ID"},
		{"key withdraw etl", "takes NAME ID"},
		{"role create corp/x", `"corp/x" is not the name of a role`},
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
			code := Run(t.Context(), split(tt.line), Environment{Stdout: &stdout, Stderr: &stderr}, map[string]Action{
				"grant": note, "revoke": note, "grants": note, "owner": note, "explain": note, "key create": note,
				"key withdraw": note, "role create": note, "role add": note,
			})
			if code == ExitDone && got != tt.want || code != ExitDone && (code != ExitUsage || !strings.Contains(stderr.String(), tt.want)) {
				t.Errorf("exit %d, %s, stderr %s; want %s", code, got, stderr.String(), tt.want)
			}
		})
	}
}

// split splits a line at spaces outside of double quotes. It keeps the quotes.
func split(line string) (words []string) {
	quoted := false
	return strings.FieldsFunc(line, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ' ' && !quoted
	})
}

// ParseObject reads the names that String writes.
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

// Valid operands of commands about maintenance, and the faults of invalid ones.
func TestMaintainWords(t *testing.T) {
	t.Parallel()
	const id = "0123456789abcdef0123456789abcdef"
	tests := []struct{ line, want string }{
		{"maintain status", "server     false"},
		{"maintain status server", "server     true"},
		{"maintain status table w.a.t", "table w.a.t     true"},
		{"maintain set server snapshots on", "server snapshots on   true"},
		{"maintain set table w.a.t compaction inherit", "table w.a.t compaction inherit   true"},
		{`maintain set namespace w."a.b" orphans off`, `namespace w."a.b" orphans off   true`},
		{"maintain run snapshots w.a.t", "table w.a.t snapshots    true"},
		{"maintain run compaction w.a.t --by-policy", "table w.a.t compaction    true"},
		{"maintain run orphans warehouse w --dry-run", "warehouse w orphans    true"},
		{"maintain run orphans warehouse w --adopt", "warehouse w orphans    true"},
		{"maintain pause namespace w.a", "namespace w.a     true"},
		{"maintain job " + id, "server    " + id + " false"},
		{"maintain job retry " + id, "server   retry " + id + " false"},

		{"maintain set server snapshots", "takes OBJECT, then snapshots, orphans or compaction, then on, off or inherit"},
		{"maintain set server sorting on", "takes OBJECT, then"},
		{"maintain set view w.a.v snapshots on", "only tables are maintained"},
		{"maintain set server snapshots off --dry-run", "only on takes --set, --unsafe and --dry-run"},
		{"maintain run snapshots", "takes snapshots, orphans or compaction and TABLE"},
		{"maintain run sorting w.a.t", "takes snapshots, orphans or compaction and TABLE"},
		{"maintain run snapshots warehouse w", "takes snapshots, orphans or compaction and TABLE"},
		{"maintain run compaction w.a.t", "give --by-policy"},
		{"maintain run orphans warehouse w", "a warehouse takes either --dry-run or --adopt"},
		{"maintain run orphans warehouse w --adopt --dry-run", "a warehouse takes either --dry-run or --adopt"},
		{"maintain run orphans warehouse w --dry-run --by-policy", "policies are about tables"},
		{"maintain run orphans w.a.t --unsafe", "only the dry run of a warehouse can be unsafe"},
		{"maintain run orphans w.a.t --older-than 0s", "is too short"},
		{"maintain run orphans w.a.t --quarantine 1h --adopt --confirm --equal-authorities --older-than 48h", "table w.a.t orphans    true"},
		{"maintain run snapshots w.a.t --keep-files --delay 1h", "table w.a.t snapshots    true"},
		{"maintain run snapshots w.a.t --by-policy --dry-run -v", "table w.a.t snapshots    true"},
		{"maintain run orphans warehouse w --dry-run --older-than 200h --unsafe --sample 3", "warehouse w orphans    true"},
		{"maintain run orphans warehouse w --dry-run --quarantine 240h", "--quarantine has no effect here: maintain run orphans warehouse --dry-run only prints files"},
		{"maintain run orphans warehouse w --dry-run --confirm", "--confirm has no effect here"},
		{"maintain run orphans warehouse w --dry-run --equal-authorities", "--equal-authorities has no effect here"},
		{"maintain run orphans warehouse w --dry-run --keep-files", "--keep-files has no effect here"},
		{"maintain run orphans warehouse w --adopt --older-than 200h", "--older-than has no effect here: maintain run orphans warehouse --adopt begins no job"},
		{"maintain run snapshots w.a.t --by-policy --max-snapshot-age 120h", "--max-snapshot-age has no effect here: maintain run --by-policy takes all settings from the policies"},
		{"maintain run orphans w.a.t --by-policy --confirm", "--confirm has no effect here"},
		{"maintain run orphans w.a.t --by-policy --adopt", "--adopt has no effect here"},
		{"maintain run orphans w.a.t --keep-files", "--keep-files has no effect here: maintain run orphans expires no snapshots"},
		{"maintain run snapshots w.a.t --older-than 48h", "--older-than has no effect here: maintain run snapshots finds no orphans"},
		{"maintain job quarantine " + id + " --reason look", "server   quarantine " + id + " false"},
		{"maintain job retry " + id + " --confirm", "server   retry " + id + " false"},
		{"maintain job " + id + " --reason look", "--reason: only maintain job quarantine and maintain job pause take a reason"},
		{"maintain job cancel " + id + " --reason look", "--reason: only"},
		{"maintain job " + id + " --confirm", "--confirm: only maintain job retry can be confirmed"},
		{"maintain pause", "is not server, or KIND NAME"},
		{"maintain job", "takes the ID of a job"},
		{"maintain job retry", "takes the ID of a job"},
		{"maintain job mend " + id, "takes the ID of a job"},
		{"maintain status view w.a.v", "only tables are maintained"},
	}
	for _, tt := range tests {
		t.Run(tt.line, func(t *testing.T) {
			t.Parallel()
			got := ""
			note := func(_ context.Context, c Config, _ Environment) error {
				w := c.Maintain
				got = fmt.Sprint(w.Object, " ", w.Kind, " ", w.Set, " ", w.Change, " ", w.Job, " ", w.Named || w.Kind != "" || w.Object.Warehouse != "")
				return nil
			}
			actions := make(map[string]Action)
			for _, word := range []string{"status", "set", "run", "pause", "job"} {
				actions["maintain "+word] = note
			}
			var stdout, stderr strings.Builder
			code := Run(t.Context(), split(tt.line), Environment{Stdout: &stdout, Stderr: &stderr}, actions)
			if code == ExitDone && got != tt.want || code != ExitDone && (code != ExitUsage || !strings.Contains(stderr.String(), tt.want)) {
				t.Errorf("exit %d, %q, stderr %s; want %s", code, got, stderr.String(), tt.want)
			}
			if faults := strings.Count(stderr.String(), "moorage: "); code == ExitUsage && faults != 1 {
				t.Errorf("%d faults: %s; want one", faults, stderr.String())
			}
		})
	}
}
