package browse_test

import (
	"crypto/rand"
	"testing"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/internal/jsontext"
	"moorage/ledger"
	"moorage/locks"
	"moorage/metadata"
	memoryregistry "moorage/registry/memory"
	"moorage/storage"
	memorystorage "moorage/storage/memory"
	"moorage/testkit"
	"moorage/testkit/registrytest"
)

// The refusals of a container cover all objects in it, since its creation. If a refusal is not a
// conflict with another commit, only the refused caller gets the reason.
func TestRefusalsOfContainers(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC)
	files, ctx := memorystorage.New(), t.Context()
	made, err := catalog.New(catalog.Config{
		Deps:        registrytest.LedgerDeps(ledger.Config{Store: memoryregistry.New(rand.Reader), Now: func() time.Time { return now }}),
		Locks:       locks.NewLocal(locks.LocalConfig{}),
		OpenStorage: func(place storage.Place) (storage.Store, error) { return files.Within(place.Roots) },
	})
	testkit.Must(t, err)
	c := made.As(moorage.Caller{Name: "ann"})
	_, err = c.Warehouses().Create(ctx, warehouses.Spec{Name: "w", Location: "file:///w"})
	testkit.Must(t, err)
	for _, ns := range []moorage.Namespace{{"a"}, {"a", "b"}, {"c"}} {
		_, err := c.CreateNamespace(ctx, "w", ns, nil)
		testkit.Must(t, err)
		_, err = c.CreateTable(ctx, moorage.Identifier{Warehouse: "w", Namespace: ns, Name: "t"}, catalog.CreateTableRequest{Schema: []byte(schemaText)})
		testkit.Must(t, err)
	}
	refused := func(updates string) {
		t.Helper()
		checked, err := jsontext.Check([]byte(updates))
		testkit.Must(t, err)
		decoded, err := metadata.DecodeUpdates(checked)
		testkit.Must(t, err)
		for _, ns := range []moorage.Namespace{{"a"}, {"a", "b"}, {"c"}} {
			if _, err := c.Commit(ctx, moorage.Identifier{Warehouse: "w", Namespace: ns, Name: "t"}, catalog.CommitRequest{Updates: decoded}); err == nil {
				t.Fatalf("%s was committed", updates)
			}
		}
	}
	count := func(kind access.Kind, want int, path ...string) {
		t.Helper()
		found, err := c.Browse().Refusals(ctx, kind, moorage.Identifier{Warehouse: "w", Namespace: path}, 100)
		if err != nil || len(found) != want {
			t.Errorf("%v has %d refusals, want %d: %v", path, len(found), want, err)
		}
	}
	refused(`[{"action":"set-current-schema","schema-id":77}]`)
	count(access.Warehouse, 0) // they may belong to an earlier warehouse "w"
	now = now.Add(2 * time.Minute)
	refused(`[{"action":"set-current-schema","schema-id":78}]`)
	count(access.Warehouse, 3)
	count(access.Namespace, 2, "a")
	count(access.Namespace, 1, "a", "b")
	count(access.Namespace, 1, "c")
	of := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"c"}, Name: "t"}
	for caller, wants := range map[string]bool{"ann": true, "bob": false} {
		found, err := made.As(moorage.Caller{Name: caller}).Browse().Refusals(ctx, access.Table, of, 100)
		if err != nil || len(found) != 2 || (found[0].Reason != "") != wants || found[0].Caller != "ann" {
			t.Errorf("%s sees %+v, %v", caller, found, err)
		}
	}
	requirements, err := jsontext.Check([]byte(`[{"type":"assert-table-uuid","uuid":"00000000-0000-4000-8000-000000000000"}]`))
	testkit.Must(t, err)
	decoded, err := metadata.DecodeRequirements(requirements)
	testkit.Must(t, err)
	beside := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t"}
	err = c.CommitTransaction(ctx, "w", []catalog.TableChange{ // its error names the table
		{Ident: beside}, {Ident: of, CommitRequest: catalog.CommitRequest{Requirements: decoded}},
	})
	if moorage.KindOf(err) != moorage.KindCommitFailed {
		t.Fatalf("a wrong uuid: %v", err)
	}
	moved := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "moved"}
	for _, name := range []moorage.Identifier{of, moved} {
		if name.Name == "moved" {
			testkit.Must(t, c.RenameTable(ctx, of, moved))
		}
		found, err := made.As(moorage.Caller{Name: "bob"}).Browse().Refusals(ctx, access.Table, name, 100)
		if err != nil || len(found) != 3 || (found[0].Reason != "") != (name.Name == "t") {
			t.Errorf("the refusals of %s: %+v, %v; a reason can have the earlier name", name, found, err)
		}
	}
	now = now.Add(25 * time.Hour)
	count(access.Warehouse, 0)
}
