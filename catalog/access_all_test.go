package catalog_test

import (
	"fmt"
	"maps"
	"testing"

	"moorage"
	"moorage/access"
	"moorage/catalog/grants"
	"moorage/registry"
)

// An administrator finds all grants and owners object by object, also of names without a record,
// and nobody else does.
func TestAllGrants(t *testing.T) {
	eachPolicyStore(t, func(t *testing.T, store registry.Store, alone bool) {
		s := newSecured(t, store, alone)
		s.populate()
		ctx := t.Context()
		s.grant(grants.Object{Kind: access.Server}, "corp:248289761001", access.Admin)
		s.grant(onNamespace("ns"), "corp/analysts", access.Read)
		s.grant(onTable("u"), bobName, access.Read)
		if err := s.admin().SetOwner(ctx, onTable("t"), "corp/owners"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.as(annName).UnregisterTable(ctx, ident("u")); err != nil {
			t.Fatal(err)
		}
		got := make(map[string]string)
		for page := (moorage.Page{Limit: 1}); ; {
			found, next, err := s.admin().AllGrants(ctx, page)
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
		_, _, err := s.access(annName).AllGrants(ctx, moorage.Page{})
		if moorage.KindOf(err) != moorage.KindForbidden {
			t.Errorf("all grants for somebody else: %v", err)
		}
	})
}
