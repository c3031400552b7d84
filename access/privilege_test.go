package access_test

import (
	"slices"
	"strings"
	"testing"

	"moorage/access"
)

// Records contain the words of privileges. The design defines what each privilege implies and on
// which kinds it can be granted.
func TestPrivileges(t *testing.T) {
	t.Parallel()
	const all = "server warehouse namespace table view function"
	rows := []struct{ word, closure, on string }{
		{"describe", "describe", all},
		{"read", "describe read", "warehouse namespace table view function"},
		{"write", "describe read write", "warehouse namespace table"},
		{"alter", "describe alter", "warehouse namespace table view"},
		{"maintain", "describe maintain", "warehouse namespace table"},
		{"create", "describe create", "warehouse namespace"},
		{"locate", "locate", "warehouse namespace"},
		{"drop", "describe drop", "namespace table view"},
		{"purge", "describe drop purge", "namespace table view"},
		{"manage", "describe manage", all},
		{"delegate", "delegate", "warehouse"},
		{"admin", "admin", "server"},
		{"operate", "operate", "server"},
		{"audit", "audit", "server"},
		{"impersonate", "impersonate", "server"},
	}
	var words []string
	for i, row := range rows {
		set, err := access.Parse([]string{row.word})
		if err != nil || set != access.Every()[i] {
			t.Errorf("%s is %b, %v", row.word, set, err)
		}
		if got := strings.Join(set.Implied().Words(), " "); got != row.closure {
			t.Errorf("%s implies %q, want %q", row.word, got, row.closure)
		}
		var on []string
		for _, kind := range kinds() {
			if access.CheckGrantable(set, kind) == nil {
				on = append(on, kind.String())
			}
		}
		if got := strings.Join(on, " "); got != row.on {
			t.Errorf("%s may stand on %q, want %q", row.word, got, row.on)
		}
		words = append(words, row.word)
	}
	set, err := access.Parse(words)
	if err != nil || !slices.Equal(set.Words(), words) || len(access.Every()) != len(words) {
		t.Errorf("all words are %q, %v", set.Words(), err)
	}
}

func TestOfOwner(t *testing.T) {
	t.Parallel()
	for kind, want := range map[access.Kind]string{
		access.Server:    "",
		access.Warehouse: "describe, read, write, alter, maintain, create, locate, drop, purge, manage, delegate",
		access.Namespace: "describe, read, write, alter, maintain, create, locate, drop, purge, manage",
		access.Table:     "describe, read, write, alter, maintain, drop, purge, manage",
		access.View:      "describe, read, alter, drop, purge, manage",
		access.Function:  "describe, read, manage",
	} {
		if got := access.OfOwner(kind).String(); got != want {
			t.Errorf("the owner of a %s has %s, want %s", kind, got, want)
		}
	}
}

func TestGranteeOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]access.GranteeKind{
		"corp:ann": access.IsPrincipal, "k8s:system:serviceaccount:jobs:spark": access.IsPrincipal,
		"cert:spiffe://a/b": access.IsPrincipal, "key:e t l": access.IsPrincipal, "corp:é日": access.IsPrincipal,
		"analysts": access.IsRole, "everyone": access.IsRole, "A.b_c-1": access.IsRole, "1": access.IsRole,
		"corp/analysts": access.IsTokenRole, "k8s/ns/jobs": access.IsTokenRole, "corp/a:b": access.IsTokenRole,
		"": access.Nobody, "anonymous": access.Nobody, "corp:": access.Nobody, "corp/": access.Nobody, ":ann": access.Nobody,
		"/x": access.Nobody, "Corp:ann": access.Nobody, "1corp:ann": access.Nobody, "a b": access.Nobody, "-a": access.Nobody,
		"corp:a\nb": access.Nobody, "corp:a\x00": access.Nobody, "é": access.Nobody, "corp:\xff": access.Nobody,
		"corp:" + strings.Repeat("x", access.GranteeBytesMax): access.Nobody,
	} {
		if got := access.GranteeOf(name); got != want {
			t.Errorf("%q is %d, want %d", name, got, want)
		}
		if err := access.CheckGrantee(name); (err == nil) != (want != access.Nobody) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Whatever the words, the known ones are returned, in order and once, and the error names the
// others.
func FuzzParse(f *testing.F) {
	f.Add("read write")
	f.Add("purge purge fly")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		words := strings.Split(text, " ")
		set, err := access.Parse(words)
		again, againErr := access.Parse(set.Words())
		if againErr != nil || again != set {
			t.Errorf("%q becomes %q: %v", words, set, againErr)
		}
		for _, word := range words {
			if known := slices.Contains(set.Words(), word); !known && err == nil {
				t.Errorf("%q is taken as %q without an error", word, set)
			}
		}
	})
}

// No text is a valid name of two kinds. Every valid name can be granted to and found again.
func FuzzGrantee(f *testing.F) {
	for _, name := range []string{"corp:ann", "corp/analysts", "analysts", "everyone", "a:b/c", "a/b:c", ":", "\xff"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		record := grantOn(0, name, access.Read)
		if err := access.CheckGrants(record); (err == nil) != (access.GranteeOf(name) != access.Nobody) {
			t.Errorf("%q is of kind %d: %v", name, access.GranteeOf(name), err)
		}
		s := access.New(1, access.Records{Grants: []access.Grants{record}})
		got, found := s.Grants(record.ID)
		if !found || len(got.Grants) > 1 || (len(got.Grants) == 1) != (access.GranteeOf(name) != access.Nobody) {
			t.Errorf("%q comes back as %+v", name, got)
		}
		principal := s.Who(access.Caller{Name: name}).Decide(lake(), access.Read).Outcome == access.Allow
		token := s.Who(access.Caller{Name: "x:y", Roles: []string{name}}).Decide(lake(), access.Read).Outcome == access.Allow
		kind := access.GranteeOf(name)
		if principal != (kind == access.IsPrincipal || name == bob) || token != (kind == access.IsTokenRole || name == access.Everyone) {
			t.Errorf("%q counts for the principal %v, for the token role %v", name, principal, token)
		}
	})
}

// kinds returns every kind, outer ones first.
func kinds() []access.Kind {
	return []access.Kind{access.Server, access.Warehouse, access.Namespace, access.Table, access.View, access.Function}
}
