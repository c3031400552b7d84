package catalog_test

import (
	cryptorand "crypto/rand"
	"fmt"
	"testing"

	"moorage"
	"moorage/access"
	"moorage/catalog/grants"
	"moorage/ledger"
	"moorage/registry"
	memoryregistry "moorage/registry/memory"
	"moorage/testkit/catalogkit"
)

// formerlyGranted grants bob a privilege and revokes it. So the object is marked as having grants,
// and has no grants record.
func formerlyGranted(node *catalogkit.Secured, object grants.Object) {
	node.T.Helper()
	node.Grant(object, catalogkit.BobName, access.Read)
	node.Revoke(object, catalogkit.BobName, access.Read)
}

// For k = 0, 1, 2 …: before the k-th store call of a rename to another namespace, the table gets a
// grant. The table had grants before, and has none when the rename begins. The grant moves with the
// table.
func TestGrantDuringARename(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for k := 0; ; k++ {
		raw := memoryregistry.New(cryptorand.Reader)
		store := &interrupted{Store: raw}
		node, other := catalogkit.NewSecured(t, store, false), catalogkit.Secure(t, raw, false)
		node.Populate()
		formerlyGranted(node, catalogkit.OnTable("t"))
		ann := node.Named(catalogkit.AnnName)
		table, err := ann.LoadTable(ctx, ident("t"))
		must(t, err)

		var granted error
		store.k, store.calls = k, 0
		store.happen = func() {
			_, granted = other.Admin().ChangeGrants(ctx, []grants.Change{
				{Object: catalogkit.OnTable("t"), Grantee: catalogkit.BobName, Privileges: access.Read},
			})
		}
		must(t, ann.RenameTable(ctx, ident("t"), inOther()))
		if store.happen != nil {
			if k < 2 {
				t.Errorf("the rename called the store %d times", k)
			}
			return
		}
		if moorage.KindOf(granted) == moorage.KindNoSuchTable { // the rename was first
			continue
		}
		must(t, granted)
		records, err := raw.Get(ctx, registry.PointerKey(table.PointerID()), registry.GrantsKey(table.PointerID()))
		must(t, err)
		pointer, err := ledger.Decode[registry.Pointer](records[0])
		must(t, err)
		moved, err := ledger.Decode[registry.Grants](records[1])
		must(t, err)
		if moved.Ancestors[0] != pointer.NamespaceID {
			t.Errorf("before call %d: the table is in the namespace %s, its grants in %s", k, pointer.NamespaceID, moved.Ancestors[0])
		}
	}
}

// For k = 0, 1, 2 …: before the k-th store call of a replace of a definer view, the view is handed
// over. Neither changes the definer, and the view has no grants record before. The caller of the
// replace owns the view afterwards, unless the view was handed over later.
func TestHandOverDuringAReplace(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for k := 0; ; k++ {
		raw := memoryregistry.New(cryptorand.Reader)
		store := &interrupted{Store: raw}
		node, other := catalogkit.NewSecured(t, store, false), catalogkit.Secure(t, raw, false)
		node.Populate()
		ann, object := node.Named(catalogkit.AnnName), grants.Object{Kind: access.View, Ident: ident("v")}
		request := catalogkit.ViewRequest("")
		request.Properties = map[string]string{"security": "definer"}
		before, err := ann.CreateView(ctx, ident("v"), request)
		must(t, err)
		formerlyGranted(node, object)
		records, err := raw.Get(ctx, registry.PointerKey(before.PointerID()))
		must(t, err)

		want := catalogkit.AnnName
		store.k, store.calls = k, 0
		store.happen = func() {
			now, err := raw.Get(ctx, records[0].Key)
			must(t, err)
			if now[0].ETag != records[0].ETag { // the replace was first
				want = catalogkit.BobName
			}
			must(t, other.Admin().SetOwner(ctx, object, catalogkit.BobName, nil))
		}
		_, err = ann.ReplaceView(ctx, ident("v"), catalogkit.NewQuery(t, `[]`, "select 2"))
		must(t, err)
		if store.happen != nil {
			if k < 2 {
				t.Errorf("the replace called the store %d times", k)
			}
			return
		}
		if on, err := other.Admin().GrantsOn(ctx, object); err != nil || on.Owner != want {
			t.Errorf("%s: the view is %s's, want %s's: %v", fmt.Sprint("before call ", k), on.Owner, want, err)
		}
	}
}
