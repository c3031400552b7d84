package grants_test

import (
	"fmt"
	"maps"
	"testing"

	"moorage"
	"moorage/access"
	"moorage/catalog/grants"
	"moorage/registry"
	"moorage/testkit/catalogkit"
)

// An administrator, and no other caller, can list all grants and owners object by object. The list
// includes the grants to names without a record.
func TestAllGrants(t *testing.T) {
	catalogkit.EachPolicyStore(t, &stores, func(t *testing.T, store registry.Store, alone bool) {
		s := catalogkit.NewSecured(t, store, alone)
		s.Populate()
		ctx := t.Context()
		s.Grant(grants.Object{Kind: access.Server}, "corp:248289761001", access.Admin)
		s.Grant(catalogkit.OnNamespace("ns"), "corp/analysts", access.Read)
		s.Grant(catalogkit.OnTable("u"), catalogkit.BobName, access.Read)
		if err := s.Admin().SetOwner(ctx, catalogkit.OnTable("t"), "corp/owners", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Named(catalogkit.AnnName).UnregisterTable(ctx, ident("u")); err != nil {
			t.Fatal(err)
		}
		got := make(map[string]string)
		for page := (moorage.Page{Limit: 1}); ; {
			found, next, err := s.Admin().AllGrants(ctx, page)
			if err != nil || len(found) > 1 {
				t.Fatalf("%d objects on a page of one: %v", len(found), err)
			}
			for _, on := range found {
				text := on.Owner
				for _, grant := range on.Grants {
					text += fmt.Sprintf(" %s %s", grant.Grantee, grant.Privileges)
				}
				got[on.Object.Kind.String()+" "+on.Object.Ident.String()] = text
			}
			if page.After = next; next == "" {
				break
			}
		}
		want := map[string]string{
			"server ":       " corp:248289761001 admin key:admin admin, operate, audit",
			"warehouse ":    " corp:ann create",
			"namespace ns.": " corp/analysts read",
			"table ns.t":    "corp/owners",
		}
		if !maps.Equal(got, want) {
			t.Errorf("all grants: %q, want %q", got, want)
		}
		_, _, err := s.Access(catalogkit.AnnName).AllGrants(ctx, moorage.Page{})
		if moorage.KindOf(err) != moorage.KindForbidden {
			t.Errorf("all grants for somebody else: %v", err)
		}
	})
}
