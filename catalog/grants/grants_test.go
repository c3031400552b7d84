package grants_test

import (
	cryptorand "crypto/rand"
	"fmt"
	"slices"
	"testing"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/catalog/grants"
	"moorage/registry"
	memoryregistry "moorage/registry/memory"
	"moorage/testkit/catalogkit"
	"moorage/testkit/storetest"
)

func TestAccess(t *testing.T) {
	catalogkit.EachPolicyStore(t, &stores, func(t *testing.T, store registry.Store, alone bool) {
		s := catalogkit.NewSecured(t, store, alone)
		s.Populate()
		ctx := t.Context()
		bob := s.Named(catalogkit.BobName)
		_, err := bob.LoadTable(ctx, ident("t"))
		catalogkit.WantSame(t, "load in an unseen warehouse", err, gate.NoSuchWarehouse(catalogkit.Warehouse))
		_, err = bob.LoadTable(ctx, ident("missing"))
		catalogkit.WantSame(t, "load of nothing in an unseen warehouse", err, gate.NoSuchWarehouse(catalogkit.Warehouse))

		s.Grant(catalogkit.OnTable("t"), catalogkit.BobName, access.Read)
		if _, err := bob.LoadTable(ctx, ident("t")); err != nil {
			t.Errorf("load of a granted table: %v", err)
		}
		_, err = bob.LoadTable(ctx, ident("u"))
		catalogkit.WantSame(t, "load of a hidden table", err, gate.NoSuchTable(ident("u")))
		if !moorage.IsHidden(err) {
			t.Error("the refusal of a hidden table does not say so")
		}
		_, err = bob.LoadNamespace(ctx, catalogkit.Warehouse, moorage.Namespace{"other"})
		catalogkit.WantSame(t, "load of a hidden namespace", err, gate.NoSuchNamespace(moorage.Namespace{"other"}))
		err = bob.DropTable(ctx, ident("t"), catalog.DropOptions{})
		catalogkit.WantKind(t, err, moorage.KindForbidden)
		if text := moorage.MessageOf(err); text != "Not allowed: drop on table ns.t; why: moorage explain drop on table w.ns.t" {
			t.Errorf("drop of a table that is only read: %s", text)
		}
		_, err = bob.CreateNamespace(ctx, catalogkit.Warehouse, moorage.Namespace{"mine"}, nil)
		catalogkit.WantKind(t, err, moorage.KindForbidden)

		s.Revoke(catalogkit.OnTable("t"), catalogkit.BobName, access.Read|access.Describe)
		_, err = bob.LoadTable(ctx, ident("t"))
		catalogkit.WantSame(t, "load after a revoke", err, gate.NoSuchWarehouse(catalogkit.Warehouse))
		if _, err := s.Named(catalogkit.AnnName).LoadTable(ctx, ident("t")); err != nil {
			t.Errorf("load by the owner: %v", err)
		}
		_, err = s.Named("anonymous").LoadTable(ctx, ident("t"))
		catalogkit.WantKind(t, err, moorage.KindNotAuthorized)
	})
}

// After a revoke was answered, it applies to every request that begins later, on every node.
func TestRevokeHoldsOnEveryNode(t *testing.T) {
	t.Parallel()
	dsn, random := stores.NewDatabase(t), newLockedRandom(1)
	first := catalogkit.NewSecured(t, storetest.OpenNode(t, dsn, random), false)
	first.Populate()
	second := catalogkit.Secure(t, storetest.OpenNode(t, dsn, random), false, func(c *catalog.Config) {
		c.OpenStorage = first.Config.OpenStorage
	})
	ctx := t.Context()
	for i := range 100 {
		first.Grant(catalogkit.OnTable("t"), catalogkit.BobName, access.Read)
		if _, err := second.Named(catalogkit.BobName).LoadTable(ctx, ident("t")); err != nil {
			t.Fatalf("round %d: load after a grant: %v", i, err)
		}
		second.Revoke(catalogkit.OnTable("t"), catalogkit.BobName, access.Read|access.Describe)
		if _, err := first.Named(catalogkit.BobName).LoadTable(ctx, ident("t")); err == nil {
			t.Fatalf("round %d: loaded after a revoke", i)
		}
	}
}

// Grants move with their table, and end with it.
func TestGrantsFollowTheirObject(t *testing.T) {
	catalogkit.EachPolicyStore(t, &stores, func(t *testing.T, store registry.Store, alone bool) {
		s := catalogkit.NewSecured(t, store, alone)
		s.Populate()
		ctx := t.Context()
		s.Grant(catalogkit.OnTable("t"), catalogkit.BobName, access.Read)
		moved := moorage.Identifier{Warehouse: catalogkit.Warehouse, Namespace: moorage.Namespace{"other"}, Name: "t"}
		if err := s.Named(catalogkit.AnnName).RenameTable(ctx, ident("t"), moved); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Named(catalogkit.BobName).LoadTable(ctx, moved); err != nil {
			t.Errorf("load of a table that moved: %v", err)
		}
		if _, err := s.Named(catalogkit.BobName).LoadNamespace(ctx, catalogkit.Warehouse, moorage.Namespace{"other"}); err != nil {
			t.Errorf("the way to a table that moved: %v", err)
		}
		_, err := s.Named(catalogkit.BobName).LoadNamespace(ctx, catalogkit.Warehouse, moorage.Namespace{"ns"})
		catalogkit.WantSame(t, "the way to where the table was", err, gate.NoSuchNamespace(moorage.Namespace{"ns"}))
		if _, err := s.Named(catalogkit.AnnName).UnregisterTable(ctx, moved); err != nil {
			t.Fatal(err)
		}
		_, err = s.Named(catalogkit.BobName).LoadNamespace(ctx, catalogkit.Warehouse, moorage.Namespace{"other"})
		catalogkit.WantSame(t, "the way to a table that is gone", err, gate.NoSuchWarehouse(catalogkit.Warehouse))

		s.Grant(catalogkit.OnNamespace("other"), catalogkit.BobName, access.Describe)
		if err := s.Named(catalogkit.AnnName).DropNamespace(ctx, catalogkit.Warehouse, moorage.Namespace{"other"}); err != nil {
			t.Fatal(err)
		}
		left, err := store.List(ctx, registry.TableGrants, "", "", 100)
		if err != nil || len(left) != 2 { // the grants on the server and on the warehouse
			t.Errorf("%d grants records are left, %v", len(left), err)
		}
	})
}

// Administrators and owners may grant privileges; other callers may not.
func TestWhoMayGrant(t *testing.T) {
	catalogkit.EachPolicyStore(t, &stores, func(t *testing.T, store registry.Store, alone bool) {
		s := catalogkit.NewSecured(t, store, alone)
		s.Populate()
		ctx := t.Context()
		toBob := grants.Change{Object: catalogkit.OnTable("t"), Grantee: catalogkit.BobName, Privileges: access.Read}
		_, err := s.Access(catalogkit.BobName).ChangeGrants(ctx, []grants.Change{toBob})
		catalogkit.WantSame(t, "grant on a hidden table", err, gate.NoSuchWarehouse(catalogkit.Warehouse))
		unknown, err := s.Access(catalogkit.AnnName).ChangeGrants(ctx, []grants.Change{toBob})
		if err != nil || len(unknown) > 0 { // only auditors may learn which principals exist
			t.Errorf("grant by the owner: %v, %v", unknown, err)
		}
		unknown, err = s.Admin().ChangeGrants(ctx, []grants.Change{toBob})
		if err != nil || fmt.Sprint(unknown) != "[corp:bob]" {
			t.Errorf("grant by an administrator: %v, %v", unknown, err)
		}
		_, err = s.Access(catalogkit.BobName).ChangeGrants(ctx, []grants.Change{toBob})
		catalogkit.WantKind(t, err, moorage.KindForbidden)
		more := toBob
		more.Object = catalogkit.OnWarehouse()
		_, err = s.Access(catalogkit.AnnName).ChangeGrants(ctx, []grants.Change{toBob, more})
		catalogkit.WantKind(t, err, moorage.KindForbidden) // she may create there, and no more
		if err := s.Access(catalogkit.AnnName).SetOwner(ctx, catalogkit.OnTable("t"), catalogkit.BobName, nil); err != nil {
			t.Errorf("the owner hands over: %v", err)
		}
		if err := s.Named(catalogkit.BobName).DropTable(ctx, ident("t"), catalog.DropOptions{}); err != nil {
			t.Errorf("drop by the new owner: %v", err)
		}
	})
}

// A role and an owner change only if the caller accepts what they are then.
func TestChangesOfWhatWasRead(t *testing.T) {
	catalogkit.EachPolicyStore(t, &stores, func(t *testing.T, store registry.Store, alone bool) {
		s := catalogkit.NewSecured(t, store, alone)
		s.Populate()
		ctx, role := t.Context(), grants.Role{Name: "staff", Description: "d", Members: []string{catalogkit.BobName}}
		var seen *grants.Role
		match := func(accepts bool) func(present *grants.Role) bool {
			return func(present *grants.Role) bool {
				seen = present
				return accepts
			}
		}
		_, err := s.Admin().PutRole(ctx, role, match(false))
		catalogkit.WantKind(t, err, moorage.KindPreconditionFailed)
		if _, err := s.Admin().LoadRole(ctx, "staff"); seen != nil || moorage.KindOf(err) != moorage.KindNotFound {
			t.Errorf("a role that was refused: %v, after %v", err, seen)
		}
		_, err = s.Admin().PutRole(ctx, role, match(true))
		must(t, err)
		_, err = s.Admin().PutRole(ctx, grants.Role{Name: "staff"}, match(false))
		catalogkit.WantKind(t, err, moorage.KindPreconditionFailed)
		now, err := s.Admin().LoadRole(ctx, "staff")
		must(t, err)
		if fmt.Sprint(now) != fmt.Sprint(role) || fmt.Sprint(*seen) != fmt.Sprint(role) {
			t.Errorf("the role is %v, and %v was seen", now, *seen)
		}
		owners := ""
		for _, accepts := range []bool{false, true, false} {
			err := s.Admin().SetOwner(ctx, catalogkit.OnTable("t"), catalogkit.BobName, func(present grants.ObjectGrants) bool {
				owners += fmt.Sprint(present.Owner, " ", present.OwnerIsCreator, "; ")
				return accepts
			})
			if (moorage.KindOf(err) == moorage.KindPreconditionFailed) == accepts {
				t.Errorf("accepts %t: %v", accepts, err)
			}
		}
		if want := catalogkit.AnnName + " true; " + catalogkit.AnnName + " true; " + catalogkit.BobName + " false; "; owners != want {
			t.Errorf("the owners are %s, want %s", owners, want)
		}
	})
}

// API keys are found at once on every node, and end at once.
func TestKeys(t *testing.T) {
	catalogkit.EachPolicyStore(t, &stores, func(t *testing.T, store registry.Store, alone bool) {
		s := catalogkit.NewSecured(t, store, alone)
		s.Populate()
		ctx := t.Context()
		ends := s.Config.Now().Add(time.Hour)
		spec := grants.KeySpec{ID: "abc", SHA256: [32]byte{1}, Ends: ends}
		if _, err := s.Admin().CreateKey(ctx, "key:etl", spec); err != nil {
			t.Fatal(err)
		}
		key, found, err := s.Admin().Key(ctx, "abc")
		if err != nil || !found || key.Principal != "key:etl" || len(key.Secrets) != 1 {
			t.Fatalf("found %+v, %t, %v", key, found, err)
		}
		s.Grant(catalogkit.OnWarehouse(), "key:etl", access.Describe)
		caller := moorage.Caller{Name: "key:etl", KeyID: "abc", KeyGeneration: 1}
		if err := s.As(caller).TableExists(ctx, ident("t")); err != nil {
			t.Errorf("a live key: %v", err)
		}
		spec.SHA256 = [32]byte{2}
		if _, err := s.Admin().RotateKey(ctx, "key:etl", spec, time.Minute); err != nil {
			t.Fatal(err)
		}
		if key, _, _ := s.Admin().Key(ctx, "abc"); len(key.Secrets) != 2 {
			t.Errorf("while it is replaced the key has %d secrets, want 2", len(key.Secrets))
		}
		if err := s.As(caller).TableExists(ctx, ident("t")); err != nil {
			t.Errorf("the secret before, in its grace: %v", err)
		}
		if err := s.Admin().WithdrawKey(ctx, "key:etl", "abc"); err != nil {
			t.Fatal(err)
		}
		catalogkit.WantKind(t, s.As(caller).TableExists(ctx, ident("t")), moorage.KindNotAuthorized)
		if _, err := s.Admin().PutPrincipal(ctx, catalogkit.BobName, grants.PrincipalSpec{Disabled: true}); err != nil {
			t.Fatal(err)
		}
		catalogkit.WantKind(t, s.Named(catalogkit.BobName).TableExists(ctx, ident("t")), moorage.KindNotAuthorized)
	})
}

// A repeated request with a key gets its earlier answer, even if it is forbidden now. A request for
// a hidden object stores no outcome, because a later grant could make it wrong.
func TestKeysOfIdempotencyAndAccess(t *testing.T) {
	t.Parallel()
	s := catalogkit.NewSecured(t, memoryregistry.New(cryptorand.Reader), true)
	s.Populate()
	ctx := t.Context()
	drop := func(key string) error {
		keyed := s.For(moorage.Caller{Name: catalogkit.BobName}, &catalog.Key{ID: key, Warehouse: catalogkit.Warehouse, Method: "DELETE", Path: "/t"}, nil)
		return keyed.DropTable(ctx, ident("t"), catalog.DropOptions{})
	}
	catalogkit.WantKind(t, drop("a"), moorage.KindNoSuchWarehouse)
	s.Grant(catalogkit.OnTable("t"), catalogkit.BobName, access.Read)
	catalogkit.WantKind(t, drop("a"), moorage.KindForbidden)
	s.Grant(catalogkit.OnTable("t"), catalogkit.BobName, access.Drop)
	if err := drop("a"); err != nil {
		t.Fatalf("after grants: %v", err)
	}
	if _, err := s.Named(catalogkit.AnnName).CreateTable(ctx, ident("t"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)}); err != nil {
		t.Fatal(err)
	}
	if err := drop("a"); err != nil {
		t.Errorf("again, forbidden by now: %v, want the earlier success", err)
	}
	if err := s.Named(catalogkit.AnnName).TableExists(ctx, ident("t")); err != nil {
		t.Errorf("the table of a later life was dropped: %v", err)
	}
}

// While the store cannot be read, every caller is refused.
func TestUnreadablePolicyDenies(t *testing.T) {
	t.Parallel()
	store := memoryregistry.New(cryptorand.Reader)
	s := catalogkit.NewSecured(t, store, false)
	s.Populate()
	epoch, err := store.Get(t.Context(), registry.EpochKey())
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Apply(t.Context(), registry.Batch{Writes: []registry.Write{registry.Put(epoch[0].Key, 0, []byte("{"))}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Named(catalogkit.AnnName).LoadTable(t.Context(), ident("t"))
	catalogkit.WantKind(t, err, moorage.KindUnavailable)
}

// Lists and their pages have only names that are visible to the caller.
func TestListsNameWhatIsSeen(t *testing.T) {
	catalogkit.EachPolicyStore(t, &stores, func(t *testing.T, store registry.Store, alone bool) {
		s := catalogkit.NewSecured(t, store, alone)
		s.Populate()
		ctx, ns := t.Context(), moorage.Namespace{"ns"}
		bob := s.Named(catalogkit.BobName)
		tables := func(limit int) (all []string) {
			t.Helper()
			page := moorage.Page{Limit: limit}
			for range 10 {
				names, next, err := bob.ListTables(ctx, catalogkit.Warehouse, ns, page)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, names...)
				if next == "t" && !slices.Contains(all, "t") {
					t.Errorf("the position %q names a table", next)
				}
				if page.After = next; next == "" {
					return all
				}
			}
			t.Fatal("the list does not end")
			return nil
		}
		s.Grant(catalogkit.OnTable("u"), catalogkit.BobName, access.Read)
		for _, limit := range []int{0, 1} {
			if got := fmt.Sprint(tables(limit)); got != "[u]" {
				t.Errorf("limit %d: one granted table lists %s", limit, got)
			}
		}
		s.Grant(catalogkit.OnNamespace("ns"), catalogkit.BobName, access.Locate) // he sees the namespace, but nothing in it
		for _, limit := range []int{0, 1} {
			if got := fmt.Sprint(tables(limit)); got != "[u]" {
				t.Errorf("limit %d: a filtered list has %s", limit, got)
			}
		}
		if _, _, err := bob.ListTables(ctx, catalogkit.Warehouse, ns, moorage.Page{After: "\x00forged position, of no list", Limit: 1}); moorage.KindOf(err) != moorage.KindBadRequest {
			t.Errorf("a forged position: %v", err)
		}
		spaces, _, err := bob.ListNamespaces(ctx, catalogkit.Warehouse, nil, moorage.Page{})
		if err != nil || fmt.Sprint(spaces) != "[ns]" {
			t.Errorf("namespaces %v, %v; want ns", spaces, err)
		}
		s.Grant(catalogkit.OnNamespace("ns"), catalogkit.BobName, access.Describe)
		if got := fmt.Sprint(tables(1)); got != "[t u]" {
			t.Errorf("who describes the namespace lists %s", got)
		}
		if found, _, err := bob.Warehouses().List(ctx, moorage.Page{}); err != nil || len(found) != 1 {
			t.Errorf("warehouses %v, %v", found, err)
		}
		if found, _, err := s.Named("corp:eve").Warehouses().List(ctx, moorage.Page{}); err != nil || len(found) != 0 {
			t.Errorf("somebody without grants lists warehouses %v, %v", found, err)
		}
	})
}

// Explain reveals nothing about a dropped table: the answer is the same as for a table that never
// existed.
func TestExplainOfADroppedTable(t *testing.T) {
	t.Parallel()
	s := catalogkit.NewSecured(t, memoryregistry.New(cryptorand.Reader), true)
	s.Populate()
	s.Grant(catalogkit.OnTable("t"), catalogkit.BobName, access.Describe)
	if err := s.Named(catalogkit.AnnName).DropTable(t.Context(), ident("t"), catalog.DropOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, by := range map[string]struct {
		*grants.Grants
		about string
	}{"an administrator": {s.Admin(), catalogkit.BobName}, "bob": {s.Access(catalogkit.BobName), ""}} {
		var kinds []moorage.Kind
		for _, table := range []string{"t", "never"} {
			question := grants.Question{Caller: moorage.Caller{Name: by.about}, Privileges: access.Describe, Object: catalogkit.OnTable(table)}
			_, err := by.Explain(t.Context(), question)
			kinds = append(kinds, moorage.KindOf(err))
			answers, err := by.Check(t.Context(), []grants.Question{question})
			if err != nil || answers[0].Allowed {
				t.Errorf("%s checks %s: %+v, %v", name, table, answers, err)
			}
		}
		if kinds[0] != kinds[1] || by.about != "" && kinds[0] != moorage.KindNoSuchTable {
			t.Errorf("%s is answered %v about the dropped table, %v about one that never was", name, kinds[0], kinds[1])
		}
	}
}

// For questions about oneself, the roles from authentication count. A question that names roles
// requires audit. Otherwise callers could name any role, and learn its grants and who made them.
func TestExplainBelievesNoRolesInTheQuestion(t *testing.T) {
	t.Parallel()
	s := catalogkit.NewSecured(t, memoryregistry.New(cryptorand.Reader), true)
	s.Populate()
	s.Grant(catalogkit.OnTable("t"), "corp/payroll", access.Write)
	s.Grant(catalogkit.OnTable("t"), catalogkit.BobName, access.Describe)
	ask := func(as, about moorage.Caller) (grants.Answer, error) {
		question := grants.Question{Caller: about, Privileges: access.Write, Object: catalogkit.OnTable("t")}
		checked, checkErr := s.As(as).Grants().Check(t.Context(), []grants.Question{question})
		answer, err := s.As(as).Grants().Explain(t.Context(), question)
		if checkErr == nil && checked[0].Allowed != answer.Allowed || checkErr != nil && err == nil {
			t.Errorf("check says %v, %v; explain %t, %v", checked, checkErr, answer.Allowed, err)
		}
		return answer, err
	}
	made := moorage.Caller{Name: catalogkit.BobName, Roles: []string{"corp/payroll"}}
	if _, err := ask(moorage.Caller{Name: catalogkit.BobName}, made); moorage.KindOf(err) != moorage.KindForbidden {
		t.Errorf("with made-up roles: %v", err)
	}
	if answer, err := ask(moorage.Caller{Name: catalogkit.BobName}, moorage.Caller{Name: catalogkit.BobName}); err != nil || answer.Allowed {
		t.Errorf("without roles: %t, %v", answer.Allowed, err)
	}
	if answer, err := ask(made, moorage.Caller{Name: catalogkit.BobName}); err != nil || !answer.Allowed {
		t.Errorf("with roles that authentication found: %t, %v", answer.Allowed, err)
	}
	narrowed := made
	narrowed.Only = []string{}
	if answer, err := ask(narrowed, moorage.Caller{Name: catalogkit.BobName}); err == nil && answer.Allowed {
		t.Error("a narrowed credential is told that it may more than it may")
	}
	if answer, err := ask(moorage.Caller{Name: catalogkit.AdminName}, made); err != nil || !answer.Allowed {
		t.Errorf("an auditor asks with roles: %t, %v", answer.Allowed, err)
	}
}
