package grants_test

import (
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/catalog/grants"
	"moorage/registry"
	"moorage/testkit/catalogkit"
)

// A principal or role with the name of a deleted one inherits nothing: no grants, no memberships,
// no tables that the deleted one created, and none that were transferred to it. This holds on a
// node that followed the changes, and on one that loads the whole policy.
func TestLaterOnesInheritNothing(t *testing.T) {
	const key, role = "key:etl", "team"
	catalogkit.EachPolicyStore(t, &stores, func(t *testing.T, store registry.Store, alone bool) {
		s := catalogkit.NewSecured(t, store, alone)
		s.Populate()
		ctx, admin, etl := t.Context(), s.Admin(), s.Named(key)
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		sees := func(c *catalog.Catalog, who string, want ...string) {
			t.Helper()
			tables, _, err := c.As(moorage.Caller{Name: who}).ListTables(ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}, moorage.Page{})
			if len(want) == 0 {
				catalogkit.WantSame(t, who+" lists", err, gate.NoSuchWarehouse(catalogkit.Warehouse))
			} else if got := strings.Join(tables, " "); got != strings.Join(want, " ") || err != nil {
				t.Errorf("%s sees %q, %v, want %q", who, got, err, want)
			}
		}
		made := 0
		createKey := func() {
			t.Helper()
			made++
			_, err := admin.CreateKey(ctx, key, grants.KeySpec{
				ID: string(rune('a' + made)), SHA256: [32]byte{byte(made)}, Ends: s.Config.Now().Add(time.Hour)})
			must(err)
		}
		putRole := func(members ...string) {
			t.Helper()
			_, err := admin.PutRole(ctx, grants.Role{Name: role, Members: members}, nil)
			must(err)
		}

		createKey()
		putRole(key)
		s.Grant(catalogkit.OnNamespace("ns"), key, access.Create)
		for _, name := range []string{"mine", "read", "ofrole", "given", "roles"} {
			_, err := etl.CreateTable(ctx, ident(name), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
			must(err)
			if name != "mine" {
				must(admin.SetOwner(ctx, catalogkit.OnTable(name), catalogkit.AnnName, nil))
			}
		}
		s.Revoke(catalogkit.OnNamespace("ns"), key, access.Create)
		s.Grant(catalogkit.OnTable("read"), key, access.Read)
		s.Grant(catalogkit.OnTable("ofrole"), role, access.Read)
		must(admin.SetOwner(ctx, catalogkit.OnTable("given"), key, nil))
		must(admin.SetOwner(ctx, catalogkit.OnTable("roles"), role, nil))
		sees(s.Catalog, key, "given", "mine", "ofrole", "read", "roles")

		must(admin.DeleteRole(ctx, role))
		putRole(key, catalogkit.BobName)
		sees(s.Catalog, key, "given", "mine", "read")
		sees(s.Catalog, catalogkit.BobName)
		s.Grant(catalogkit.OnTable("u"), role, access.Read)
		sees(s.Catalog, key, "given", "mine", "read", "u")
		s.Grant(catalogkit.OnNamespace("ns"), key, access.Read)

		must(admin.DeletePrincipal(ctx, key))
		if _, err := admin.LoadPrincipal(ctx, key); moorage.KindOf(err) != moorage.KindNotFound {
			t.Errorf("a deleted principal is loaded: %v", err)
		}
		createKey()
		later := catalogkit.Secure(t, store, alone, func(c *catalog.Config) { c.OpenStorage = s.Config.OpenStorage })
		for _, node := range []*catalog.Catalog{s.Catalog, later.Catalog} {
			sees(node, key)
			sees(node, catalogkit.BobName, "u")
			as := node.As(moorage.Caller{Name: catalogkit.AdminName}).Grants()
			if roles, err := as.RolesOf(ctx, moorage.Caller{Name: key}); err != nil || strings.Join(roles, " ") != access.Everyone {
				t.Errorf("the later one has the roles %q, %v", roles, err)
			}
			if found, err := as.LoadRole(ctx, role); err != nil || strings.Join(found.Members, " ") != catalogkit.BobName {
				t.Errorf("the role has the members %q, %v", found.Members, err)
			}
			if found, _, err := as.GrantsTo(ctx, key, moorage.Page{}); err != nil || len(found) > 0 {
				t.Errorf("the later one has the grants %+v, %v", found, err)
			}
			for _, name := range []string{"mine", "given", "roles", "ofrole"} {
				found, err := as.GrantsOn(ctx, catalogkit.OnTable(name))
				if want := map[string]string{"ofrole": catalogkit.AnnName}[name]; err != nil || found.Owner != want || len(found.Grants) > 0 {
					t.Errorf("%s is %+v, %v, want the owner %q and no grant", name, found, err, want)
				}
			}
		}

		// Later objects and grants belong to the new principal, also through its role.
		s.Grant(catalogkit.OnNamespace("ns"), key, access.Create)
		_, err := etl.CreateTable(ctx, ident("new"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
		must(err)
		s.Revoke(catalogkit.OnNamespace("ns"), key, access.Create)
		s.Grant(catalogkit.OnTable("read"), key, access.Describe)
		_, err = admin.ChangeMembers(ctx, role, []string{key}, []string{catalogkit.BobName})
		must(err)
		must(admin.SetOwner(ctx, catalogkit.OnTable("given"), key, nil))
		for _, node := range []*catalog.Catalog{s.Catalog, later.Catalog} {
			if !alone || node == s.Catalog {
				sees(node, key, "given", "new", "read", "u")
				sees(node, catalogkit.BobName)
			}
		}
		if found, err := admin.GrantsOn(ctx, catalogkit.OnTable("read")); err != nil || len(found.Grants) != 1 || found.Grants[0].Privileges != access.Describe {
			t.Errorf("the grants on a table that both had are %+v, %v", found, err)
		}
		catalogkit.WantClean(t, s.Instance)
	})
}
