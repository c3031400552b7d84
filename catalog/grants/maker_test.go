package grants_test

import (
	cryptorand "crypto/rand"
	"fmt"
	"slices"
	"testing"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/catalog/grants"
	memoryregistry "moorage/registry/memory"
	"moorage/testkit/catalogkit"
)

// A principal that created an object and has no grants left still sees the path to its object, and
// nothing else.
func TestMakersSeeTheWay(t *testing.T) {
	t.Parallel()
	s := catalogkit.NewSecured(t, memoryregistry.New(cryptorand.Reader), true)
	s.Populate()
	ctx, bob := t.Context(), s.Named(catalogkit.BobName)
	s.Grant(catalogkit.OnNamespace("ns"), catalogkit.BobName, access.Create)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := bob.CreateTable(ctx, ident("mine"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
	must(err)
	must(bob.CommitTransaction(ctx, catalogkit.Warehouse, []catalog.TableChange{
		{Ident: ident("first"), CommitRequest: catalogkit.CreateWithUUID(t, "file:///wh/ns/first", 1)},
		{Ident: ident("second"), CommitRequest: catalogkit.CreateWithUUID(t, "file:///wh/ns/second", 2)},
	}))
	s.Revoke(catalogkit.OnNamespace("ns"), catalogkit.BobName, access.Create)

	all := moorage.Page{}
	see := func(who string, tables, namespaces []string) {
		t.Helper()
		c := s.Named(who)
		found, _, err := c.Warehouses().List(ctx, moorage.Page{})
		if must(err); len(found) != min(1, len(namespaces)) {
			t.Errorf("%s sees the warehouses %v", who, found)
		}
		if len(namespaces) == 0 {
			if _, _, err := c.ListNamespaces(ctx, catalogkit.Warehouse, nil, all); moorage.KindOf(err) != moorage.KindNoSuchWarehouse {
				t.Errorf("%s lists the namespaces: %v", who, err)
			}
			return
		}
		names, _, err := c.ListNamespaces(ctx, catalogkit.Warehouse, nil, all)
		must(err)
		if got := fmt.Sprint(names); got != fmt.Sprint(namespaces) {
			t.Errorf("%s sees the namespaces %s, want %v", who, got, namespaces)
		}
		for _, name := range []string{"ns", "other"} {
			_, err := c.LoadNamespace(ctx, catalogkit.Warehouse, moorage.Namespace{name})
			if seen := slices.Contains(namespaces, name); seen != (err == nil) ||
				!seen && moorage.KindOf(err) != moorage.KindNoSuchNamespace {
				t.Errorf("%s loads %s: %v", who, name, err)
			}
		}
		if !slices.Contains(namespaces, "ns") {
			return
		}
		inNS, _, err := c.ListTables(ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}, all)
		if must(err); fmt.Sprint(inNS) != fmt.Sprint(tables) {
			t.Errorf("%s sees the tables %v, want %v", who, inNS, tables)
		}
		if _, err := c.LoadTable(ctx, ident("t")); moorage.KindOf(err) != moorage.KindNoSuchTable {
			t.Errorf("%s loads what is not his: %v", who, err)
		}
	}
	see("corp:carol", nil, nil)
	see(catalogkit.BobName, []string{"first", "mine", "second"}, []string{"ns"})
	_, err = bob.LoadTable(ctx, ident("mine"))
	must(err)

	// A caller with a token that is narrowed to roles owns nothing.
	narrowed := s.As(moorage.Caller{Name: catalogkit.BobName, Only: []string{}})
	if _, err := narrowed.LoadTable(ctx, ident("mine")); moorage.KindOf(err) != moorage.KindNoSuchWarehouse {
		t.Errorf("with a narrowed token: %v", err)
	}

	// After a move of the table, its new path is visible.
	s.Grant(catalogkit.OnNamespace("other"), catalogkit.BobName, access.Create)
	to := moorage.Identifier{Warehouse: catalogkit.Warehouse, Namespace: moorage.Namespace{"other"}, Name: "moved"}
	must(bob.RenameTable(ctx, ident("mine"), to))
	s.Revoke(catalogkit.OnNamespace("other"), catalogkit.BobName, access.Create)
	see(catalogkit.BobName, []string{"first", "second"}, []string{"ns", "other"})

	// Explain gives the same answer.
	answer, err := s.Access(catalogkit.BobName).Explain(ctx, grants.Question{Operation: string(gate.LoadNamespace), Object: catalogkit.OnNamespace("ns")})
	if err != nil || !answer.Allowed {
		t.Errorf("explain: %+v, %v", answer, err)
	}
}
