package catalog_test

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
	"moorage/testkit/registrytest"
)

// decisions returns what a node answers some callers who ask for some objects.
func (s *secured) decisions() (all []string) {
	ctx := s.t.Context()
	callers := []moorage.Caller{
		{Name: adminName}, {Name: annName}, {Name: bobName}, {Name: "corp:eve"}, {Name: "anonymous"},
		keyedCaller(oldKey), keyedCaller(newKey),
	}
	for _, caller := range callers {
		c := s.As(caller)
		for _, name := range []string{"t", "u", "missing"} {
			_, err := c.LoadTable(ctx, ident(name))
			all = append(all, fmt.Sprintf("%s loads %s: %v", caller.Name, name, err))
		}
		for _, name := range []string{"ns", "other"} {
			_, err := c.LoadNamespace(ctx, testWarehouse, moorage.Namespace{name})
			all = append(all, fmt.Sprintf("%s loads namespace %s: %v", caller.Name, name, err))
		}
		for _, object := range []grants.Object{onWarehouse(), onTable("t"), onTable("u")} {
			_, err := c.Grants().GrantsOn(ctx, object)
			all = append(all, fmt.Sprintf("%s lists the grants on a %s: %v", caller.Name, object.Kind, err))
		}
	}
	return all
}

// A backup has all policy, as it was when the copy was made: what was granted or taken away later
// does not reach it. A server over the copy decides by it from its first request.
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
	s := newSecured(t, store, true)
	s.populate()
	s.grant(onTable("t"), bobName, access.Read)
	s.grant(onWarehouse(), etlName, access.Describe)
	must(t, s.admin().SetManaged(ctx, onNamespace("other"), true))
	must(t, s.access(annName).SetOwner(ctx, onTable("u"), bobName))
	spec := grants.KeySpec{ID: oldKey, SHA256: [32]byte{1}, Ends: s.config.Now().Add(1 << 50)}
	_, err := s.admin().CreateKey(ctx, etlName, spec)
	must(t, err)
	want := s.decisions()

	const records = "registry"
	_, err = store.Backup(ctx, "backup", records, func(ctx context.Context, copied registry.Store) error {
		_, err := recovery.CancelDeletions(ctx, registrytest.Ledger(copied), s.config.Now())
		return err
	})
	must(t, err)
	s.revoke(onTable("t"), bobName, access.Read|access.Describe)
	must(t, s.admin().WithdrawKey(ctx, etlName, oldKey))
	s.grant(onWarehouse(), "corp:eve", access.Read)

	if slices.Equal(s.decisions(), want) {
		t.Fatal("what was changed since the backup changes no decision")
	}

	share := func(c *catalog.Config) { c.OpenStorage = s.config.OpenStorage }
	restored := secure(t, open(files.PathJoin("backup", records)), true, share)
	on, err := restored.admin().IsOn(ctx)
	if err != nil || !on {
		t.Fatalf("access in the copy is on: %t, %v", on, err)
	}
	got := restored.decisions()
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("the copy answers %q, the store %q", got[i], want[i])
		}
	}
	wantClean(t, restored.instance)
	restored.revoke(onTable("t"), bobName, access.Read|access.Describe)
	wantKind(t, restored.as(bobName).TableExists(ctx, ident("t")), moorage.KindNoSuchTable)
}
