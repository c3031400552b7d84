package grants_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/grants"
	"moorage/recovery"
	"moorage/registry"
	"moorage/registry/pebble"
	"moorage/testkit/catalogkit"
	"moorage/testkit/registrytest"
)

// decisions returns the answers of a node to some callers about some objects.
func decisions(s *catalogkit.Secured) (all []string) {
	ctx := s.T.Context()
	callers := []moorage.Caller{
		{Name: catalogkit.AdminName}, {Name: catalogkit.AnnName}, {Name: catalogkit.BobName}, {Name: "corp:eve"}, {Name: "anonymous"},
		catalogkit.KeyedCaller(catalogkit.OldKey), catalogkit.KeyedCaller(catalogkit.NewKey),
	}
	for _, caller := range callers {
		c := s.As(caller)
		for _, name := range []string{"t", "u", "missing"} {
			_, err := c.LoadTable(ctx, ident(name))
			all = append(all, fmt.Sprintf("%s loads %s: %v", caller.Name, name, err))
		}
		for _, name := range []string{"ns", "other"} {
			_, err := c.LoadNamespace(ctx, catalogkit.Warehouse, moorage.Namespace{name})
			all = append(all, fmt.Sprintf("%s loads namespace %s: %v", caller.Name, name, err))
		}
		for _, object := range []grants.Object{catalogkit.OnWarehouse(), catalogkit.OnTable("t"), catalogkit.OnTable("u")} {
			_, err := c.Grants().GrantsOn(ctx, object)
			all = append(all, fmt.Sprintf("%s lists the grants on a %s: %v", caller.Name, object.Kind, err))
		}
	}
	return all
}

// A backup contains the whole policy at the time of the copy, and no later grants or revocations. A
// server over the copy uses that policy from its first request.
func TestBackupKeepsPolicy(t *testing.T) {
	t.Parallel()
	ctx, files, random := t.Context(), vfs.NewMem(), newLockedRandom(1)
	open := func(dir string) *pebble.Store {
		store, err := pebble.Open(dir, pebble.Options{FS: files, Random: random})
		must(t, err)
		t.Cleanup(func() { must(t, store.Close()) })
		return store
	}
	store := open("store")
	s := catalogkit.NewSecured(t, store, true)
	s.Populate()
	s.Grant(catalogkit.OnTable("t"), catalogkit.BobName, access.Read)
	s.Grant(catalogkit.OnWarehouse(), catalogkit.EtlName, access.Describe)
	must(t, s.Admin().SetManaged(ctx, catalogkit.OnNamespace("other"), true))
	must(t, s.Access(catalogkit.AnnName).SetOwner(ctx, catalogkit.OnTable("u"), catalogkit.BobName, nil))
	spec := grants.KeySpec{ID: catalogkit.OldKey, SHA256: [32]byte{1}, Ends: s.Config.Now().Add(1 << 50)}
	_, err := s.Admin().CreateKey(ctx, catalogkit.EtlName, spec)
	must(t, err)
	want := decisions(s)

	const records = "registry"
	_, err = store.Backup(ctx, "backup", records, func(ctx context.Context, copied registry.Store) error {
		_, err := recovery.CancelDeletions(ctx, registrytest.Ledger(copied), s.Config.Now())
		return err
	})
	must(t, err)
	s.Revoke(catalogkit.OnTable("t"), catalogkit.BobName, access.Read|access.Describe)
	must(t, s.Admin().WithdrawKey(ctx, catalogkit.EtlName, catalogkit.OldKey))
	s.Grant(catalogkit.OnWarehouse(), "corp:eve", access.Read)

	if slices.Equal(decisions(s), want) {
		t.Fatal("what was changed since the backup changes no decision")
	}

	share := func(c *catalog.Config) { c.OpenStorage = s.Config.OpenStorage }
	restored := catalogkit.Secure(t, open(files.PathJoin("backup", records)), true, share)
	on, err := restored.Admin().IsOn(ctx)
	if err != nil || !on {
		t.Fatalf("access in the copy is on: %t, %v", on, err)
	}
	got := decisions(restored)
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("the copy answers %q, the store %q", got[i], want[i])
		}
	}
	catalogkit.WantClean(t, restored.Instance)
	restored.Revoke(catalogkit.OnTable("t"), catalogkit.BobName, access.Read|access.Describe)
	catalogkit.WantKind(t, restored.Named(catalogkit.BobName).TableExists(ctx, ident("t")), moorage.KindNoSuchTable)
}
