package catalog_test

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
	"moorage/catalog/warehouses"
	"moorage/ledger"
	"moorage/locks"
	"moorage/registry"
	memoryregistry "moorage/registry/memory"
	"moorage/storage"
	memorystorage "moorage/storage/memory"
	"moorage/testkit/registrytest"
)

// secured is a catalog in which access is on, over a store that others may use too if it is shared.
type secured struct {
	*instance
	t     testing.TB
	store registry.Store
}

const (
	adminName = "key:admin"
	annName   = "corp:ann"
	bobName   = "corp:bob"
)

// newSecured returns a catalog over store in which access is on, and adminName may grant.
func newSecured(t testing.TB, store registry.Store, alone bool, change ...func(*catalog.Config)) *secured {
	t.Helper()
	s := secure(t, store, alone, change...)
	if err := s.admin().Enable(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// secure returns a further catalog over store.
func secure(t testing.TB, store registry.Store, alone bool, change ...func(*catalog.Config)) *secured {
	t.Helper()
	files := memorystorage.New()
	config := catalog.Config{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: store, Now: newClock().Now}), Locks: locks.NewLocal(locks.LocalConfig{}),
		OpenStorage: func(place storage.Place) (storage.Store, error) { return files.Within(place.Roots) },
	}
	g := gate.New(gate.Config{Store: store, Alone: alone, Now: config.Now})
	config.Guard = g
	if alone {
		config.Store = g.Watch(store)
	}
	for _, set := range change {
		set(&config)
	}
	n, err := newInstance(config)
	if err != nil {
		t.Fatal(err)
	}
	return &secured{n, t, store}
}

// admin returns the verbs of somebody who administers the server.
func (s *secured) admin() *grants.Grants { return s.access(adminName) }

func (s *secured) access(name string) *grants.Grants {
	return s.As(moorage.Caller{Name: name}).Grants()
}

// grant grants privileges, as the administrator.
func (s *secured) grant(object grants.Object, grantee string, privileges access.Privileges) {
	s.t.Helper()
	s.change(grants.Change{Object: object, Grantee: grantee, Privileges: privileges})
}

func (s *secured) revoke(object grants.Object, grantee string, privileges access.Privileges) {
	s.t.Helper()
	s.change(grants.Change{Revoke: true, Object: object, Grantee: grantee, Privileges: privileges})
}

func (s *secured) change(changes ...grants.Change) {
	s.t.Helper()
	if _, err := s.admin().ChangeGrants(s.t.Context(), changes); err != nil {
		s.t.Fatal(err)
	}
}

func onWarehouse() grants.Object {
	return grants.Object{Kind: access.Warehouse, Ident: moorage.Identifier{Warehouse: testWarehouse}}
}

func onNamespace(levels ...string) grants.Object {
	return grants.Object{Kind: access.Namespace, Ident: moorage.Identifier{Warehouse: testWarehouse, Namespace: levels}}
}

func onTable(name string) grants.Object {
	return grants.Object{Kind: access.Table, Ident: ident(name)}
}

// populate makes the warehouse, the namespaces ns and other, and the tables t and u in ns: all of
// them annName's.
func (s *secured) populate() {
	s.t.Helper()
	ctx := s.t.Context()
	if _, err := s.as(adminName).Warehouses().Create(ctx, warehouses.Spec{Name: testWarehouse, Location: "file:///wh"}); err != nil {
		s.t.Fatal(err)
	}
	s.grant(onWarehouse(), annName, access.Create)
	for _, name := range []string{"ns", "other"} {
		if _, err := s.as(annName).CreateNamespace(ctx, testWarehouse, moorage.Namespace{name}, nil); err != nil {
			s.t.Fatal(err)
		}
	}
	for _, name := range []string{"t", "u"} {
		if _, err := s.as(annName).CreateTable(ctx, ident(name), catalog.CreateTableRequest{Schema: []byte(testSchema)}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// wantSame fails unless got has the kind and the text of want.
func wantSame(t *testing.T, what string, got, want error) {
	t.Helper()
	if moorage.KindOf(got) != moorage.KindOf(want) || moorage.MessageOf(got) != moorage.MessageOf(want) {
		t.Errorf("%s: %v, want what is missing: %v", what, got, want)
	}
}

// eachPolicyStore runs test over each kind of store. alone says whether requests need not read the
// epoch.
func eachPolicyStore(t *testing.T, test func(t *testing.T, store registry.Store, alone bool)) {
	t.Parallel()
	for name, open := range anyStores() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t, newLockedRandom(1)), name != "postgres")
		})
	}
	t.Run("shared", func(t *testing.T) {
		t.Parallel()
		test(t, memoryregistry.New(cryptorand.Reader), false)
	})
}

func TestAccess(t *testing.T) {
	eachPolicyStore(t, func(t *testing.T, store registry.Store, alone bool) {
		s := newSecured(t, store, alone)
		s.populate()
		ctx := t.Context()
		bob := s.as(bobName)
		_, err := bob.LoadTable(ctx, ident("t"))
		wantSame(t, "load in an unseen warehouse", err, gate.NoSuchWarehouse(testWarehouse))
		_, err = bob.LoadTable(ctx, ident("missing"))
		wantSame(t, "load of nothing in an unseen warehouse", err, gate.NoSuchWarehouse(testWarehouse))

		s.grant(onTable("t"), bobName, access.Read)
		if _, err := bob.LoadTable(ctx, ident("t")); err != nil {
			t.Errorf("load of a granted table: %v", err)
		}
		_, err = bob.LoadTable(ctx, ident("u"))
		wantSame(t, "load of a hidden table", err, gate.NoSuchTable(ident("u")))
		if !moorage.IsHidden(err) {
			t.Error("the refusal of a hidden table does not say so")
		}
		_, err = bob.LoadNamespace(ctx, testWarehouse, moorage.Namespace{"other"})
		wantSame(t, "load of a hidden namespace", err, gate.NoSuchNamespace(moorage.Namespace{"other"}))
		err = bob.DropTable(ctx, ident("t"), catalog.DropOptions{})
		wantKind(t, err, moorage.KindForbidden)
		if text := moorage.MessageOf(err); text != "Not allowed: drop on table ns.t" {
			t.Errorf("drop of a table that is only read: %s", text)
		}
		_, err = bob.CreateNamespace(ctx, testWarehouse, moorage.Namespace{"mine"}, nil)
		wantKind(t, err, moorage.KindForbidden)

		s.revoke(onTable("t"), bobName, access.Read|access.Describe)
		_, err = bob.LoadTable(ctx, ident("t"))
		wantSame(t, "load after a revoke", err, gate.NoSuchWarehouse(testWarehouse))
		if _, err := s.as(annName).LoadTable(ctx, ident("t")); err != nil {
			t.Errorf("load by the owner: %v", err)
		}
		_, err = s.as("anonymous").LoadTable(ctx, ident("t"))
		wantKind(t, err, moorage.KindNotAuthorized)
	})
}

// A revoke that was answered holds for every request that begins afterwards, on every node.
func TestRevokeHoldsOnEveryNode(t *testing.T) {
	t.Parallel()
	dsn, random := newDatabase(t), newLockedRandom(1)
	first := newSecured(t, openPostgres(t, dsn, random), false)
	first.populate()
	second := secure(t, openPostgres(t, dsn, random), false, func(c *catalog.Config) {
		c.OpenStorage = first.config.OpenStorage
	})
	ctx := t.Context()
	for i := range 100 {
		first.grant(onTable("t"), bobName, access.Read)
		if _, err := second.as(bobName).LoadTable(ctx, ident("t")); err != nil {
			t.Fatalf("round %d: load after a grant: %v", i, err)
		}
		second.revoke(onTable("t"), bobName, access.Read|access.Describe)
		if _, err := first.as(bobName).LoadTable(ctx, ident("t")); err == nil {
			t.Fatalf("round %d: loaded after a revoke", i)
		}
	}
}

// Grants move with their table, and end with it.
func TestGrantsFollowTheirObject(t *testing.T) {
	eachPolicyStore(t, func(t *testing.T, store registry.Store, alone bool) {
		s := newSecured(t, store, alone)
		s.populate()
		ctx := t.Context()
		s.grant(onTable("t"), bobName, access.Read)
		moved := moorage.Identifier{Warehouse: testWarehouse, Namespace: moorage.Namespace{"other"}, Name: "t"}
		if err := s.as(annName).RenameTable(ctx, ident("t"), moved); err != nil {
			t.Fatal(err)
		}
		if _, err := s.as(bobName).LoadTable(ctx, moved); err != nil {
			t.Errorf("load of a table that moved: %v", err)
		}
		if _, err := s.as(bobName).LoadNamespace(ctx, testWarehouse, moorage.Namespace{"other"}); err != nil {
			t.Errorf("the way to a table that moved: %v", err)
		}
		_, err := s.as(bobName).LoadNamespace(ctx, testWarehouse, moorage.Namespace{"ns"})
		wantSame(t, "the way to where the table was", err, gate.NoSuchNamespace(moorage.Namespace{"ns"}))
		if _, err := s.as(annName).UnregisterTable(ctx, moved); err != nil {
			t.Fatal(err)
		}
		_, err = s.as(bobName).LoadNamespace(ctx, testWarehouse, moorage.Namespace{"other"})
		wantSame(t, "the way to a table that is gone", err, gate.NoSuchWarehouse(testWarehouse))

		s.grant(onNamespace("other"), bobName, access.Describe)
		if err := s.as(annName).DropNamespace(ctx, testWarehouse, moorage.Namespace{"other"}); err != nil {
			t.Fatal(err)
		}
		left, err := store.List(ctx, registry.TableGrants, "", "", 100)
		if err != nil || len(left) != 2 { // of the server and the warehouse
			t.Errorf("%d grants records are left, %v", len(left), err)
		}
	})
}

// Who administers, and who owns, may grant; others may not.
func TestWhoMayGrant(t *testing.T) {
	eachPolicyStore(t, func(t *testing.T, store registry.Store, alone bool) {
		s := newSecured(t, store, alone)
		s.populate()
		ctx := t.Context()
		toBob := grants.Change{Object: onTable("t"), Grantee: bobName, Privileges: access.Read}
		_, err := s.access(bobName).ChangeGrants(ctx, []grants.Change{toBob})
		wantSame(t, "grant on a hidden table", err, gate.NoSuchWarehouse(testWarehouse))
		unknown, err := s.access(annName).ChangeGrants(ctx, []grants.Change{toBob})
		if err != nil || len(unknown) > 0 { // which principals there are is for auditors
			t.Errorf("grant by the owner: %v, %v", unknown, err)
		}
		unknown, err = s.admin().ChangeGrants(ctx, []grants.Change{toBob})
		if err != nil || fmt.Sprint(unknown) != "[corp:bob]" {
			t.Errorf("grant by an administrator: %v, %v", unknown, err)
		}
		_, err = s.access(bobName).ChangeGrants(ctx, []grants.Change{toBob})
		wantKind(t, err, moorage.KindForbidden)
		more := toBob
		more.Object = onWarehouse()
		_, err = s.access(annName).ChangeGrants(ctx, []grants.Change{toBob, more})
		wantKind(t, err, moorage.KindForbidden) // she may create there, and no more
		if err := s.access(annName).SetOwner(ctx, onTable("t"), bobName); err != nil {
			t.Errorf("the owner hands over: %v", err)
		}
		if err := s.as(bobName).DropTable(ctx, ident("t"), catalog.DropOptions{}); err != nil {
			t.Errorf("drop by the new owner: %v", err)
		}
	})
}

// API keys are found at once on every node, and end at once.
func TestKeys(t *testing.T) {
	eachPolicyStore(t, func(t *testing.T, store registry.Store, alone bool) {
		s := newSecured(t, store, alone)
		s.populate()
		ctx := t.Context()
		ends := s.config.Now().Add(time.Hour)
		spec := grants.KeySpec{ID: "abc", SHA256: [32]byte{1}, Ends: ends}
		if _, err := s.admin().CreateKey(ctx, "key:etl", spec); err != nil {
			t.Fatal(err)
		}
		key, found, err := s.admin().Key(ctx, "abc")
		if err != nil || !found || key.Principal != "key:etl" || len(key.Secrets) != 1 {
			t.Fatalf("found %+v, %t, %v", key, found, err)
		}
		s.grant(onWarehouse(), "key:etl", access.Describe)
		caller := moorage.Caller{Name: "key:etl", KeyID: "abc", KeyGeneration: 1}
		if err := s.As(caller).TableExists(ctx, ident("t")); err != nil {
			t.Errorf("a live key: %v", err)
		}
		spec.SHA256 = [32]byte{2}
		if _, err := s.admin().RotateKey(ctx, "key:etl", spec, time.Minute); err != nil {
			t.Fatal(err)
		}
		if key, _, _ := s.admin().Key(ctx, "abc"); len(key.Secrets) != 2 {
			t.Errorf("while it is replaced the key has %d secrets, want 2", len(key.Secrets))
		}
		if err := s.As(caller).TableExists(ctx, ident("t")); err != nil {
			t.Errorf("the secret before, in its grace: %v", err)
		}
		if err := s.admin().WithdrawKey(ctx, "key:etl", "abc"); err != nil {
			t.Fatal(err)
		}
		wantKind(t, s.As(caller).TableExists(ctx, ident("t")), moorage.KindNotAuthorized)
		if _, err := s.admin().PutPrincipal(ctx, bobName, grants.PrincipalSpec{Disabled: true}); err != nil {
			t.Fatal(err)
		}
		wantKind(t, s.as(bobName).TableExists(ctx, ident("t")), moorage.KindNotAuthorized)
	})
}

// A keyed request that is forbidden by now is answered as it was before. One that is hidden leaves
// nothing that a later grant would make wrong.
func TestKeysOfIdempotencyAndAccess(t *testing.T) {
	t.Parallel()
	s := newSecured(t, memoryregistry.New(cryptorand.Reader), true)
	s.populate()
	ctx := t.Context()
	drop := func(key string) error {
		keyed := s.For(moorage.Caller{Name: bobName}, &catalog.Key{ID: key, Warehouse: testWarehouse, Method: "DELETE", Path: "/t"}, nil)
		return keyed.DropTable(ctx, ident("t"), catalog.DropOptions{})
	}
	wantKind(t, drop("a"), moorage.KindNoSuchWarehouse)
	s.grant(onTable("t"), bobName, access.Read)
	wantKind(t, drop("a"), moorage.KindForbidden)
	s.grant(onTable("t"), bobName, access.Drop)
	if err := drop("a"); err != nil {
		t.Fatalf("after grants: %v", err)
	}
	if _, err := s.as(annName).CreateTable(ctx, ident("t"), catalog.CreateTableRequest{Schema: []byte(testSchema)}); err != nil {
		t.Fatal(err)
	}
	if err := drop("a"); err != nil {
		t.Errorf("again, forbidden by now: %v, want the earlier success", err)
	}
	if err := s.as(annName).TableExists(ctx, ident("t")); err != nil {
		t.Errorf("the table of a later life was dropped: %v", err)
	}
}

// A store that cannot be read lets nobody in.
func TestUnreadablePolicyDenies(t *testing.T) {
	t.Parallel()
	store := memoryregistry.New(cryptorand.Reader)
	s := newSecured(t, store, false)
	s.populate()
	epoch, err := store.Get(t.Context(), registry.EpochKey())
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Apply(t.Context(), registry.Batch{Writes: []registry.Write{registry.Put(epoch[0].Key, 0, []byte("{"))}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.as(annName).LoadTable(t.Context(), ident("t"))
	wantKind(t, err, moorage.KindUnavailable)
}

// Lists and their pages name what their caller sees, and nothing else.
func TestListsNameWhatIsSeen(t *testing.T) {
	eachPolicyStore(t, func(t *testing.T, store registry.Store, alone bool) {
		s := newSecured(t, store, alone)
		s.populate()
		ctx, ns := t.Context(), moorage.Namespace{"ns"}
		bob := s.as(bobName)
		tables := func(limit int) (all []string) {
			t.Helper()
			page := moorage.Page{Limit: limit}
			for range 10 {
				names, next, err := bob.ListTables(ctx, testWarehouse, ns, page)
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
		s.grant(onTable("u"), bobName, access.Read)
		for _, limit := range []int{0, 1} {
			if got := fmt.Sprint(tables(limit)); got != "[u]" {
				t.Errorf("limit %d: one granted table lists %s", limit, got)
			}
		}
		s.grant(onNamespace("ns"), bobName, access.Locate) // sees it, and nothing beneath by that
		for _, limit := range []int{0, 1} {
			if got := fmt.Sprint(tables(limit)); got != "[u]" {
				t.Errorf("limit %d: a filtered list has %s", limit, got)
			}
		}
		if _, _, err := bob.ListTables(ctx, testWarehouse, ns, moorage.Page{After: "\x00forged position, of no list", Limit: 1}); moorage.KindOf(err) != moorage.KindBadRequest {
			t.Errorf("a forged position: %v", err)
		}
		spaces, _, err := bob.ListNamespaces(ctx, testWarehouse, nil, moorage.Page{})
		if err != nil || fmt.Sprint(spaces) != "[ns]" {
			t.Errorf("namespaces %v, %v; want ns", spaces, err)
		}
		s.grant(onNamespace("ns"), bobName, access.Describe)
		if got := fmt.Sprint(tables(1)); got != "[t u]" {
			t.Errorf("who describes the namespace lists %s", got)
		}
		if found, _, err := bob.Warehouses().List(ctx, moorage.Page{}); err != nil || len(found) != 1 {
			t.Errorf("warehouses %v, %v", found, err)
		}
		if found, _, err := s.as("corp:eve").Warehouses().List(ctx, moorage.Page{}); err != nil || len(found) != 0 {
			t.Errorf("somebody without grants lists warehouses %v, %v", found, err)
		}
	})
}

// A question about oneself goes by the roles that authentication found. Roles in the question need
// audit: else made-up ones would show what was granted to them, and by whom.
func TestExplainBelievesNoRolesInTheQuestion(t *testing.T) {
	t.Parallel()
	s := newSecured(t, memoryregistry.New(cryptorand.Reader), true)
	s.populate()
	s.grant(onTable("t"), "corp/payroll", access.Write)
	s.grant(onTable("t"), bobName, access.Describe)
	ask := func(as, about moorage.Caller) (grants.Answer, error) {
		question := grants.Question{Caller: about, Privileges: access.Write, Object: onTable("t")}
		checked, checkErr := s.As(as).Grants().Check(t.Context(), []grants.Question{question})
		answer, err := s.As(as).Grants().Explain(t.Context(), question)
		if checkErr == nil && checked[0].Allowed != answer.Allowed || checkErr != nil && err == nil {
			t.Errorf("check says %v, %v; explain %t, %v", checked, checkErr, answer.Allowed, err)
		}
		return answer, err
	}
	made := moorage.Caller{Name: bobName, Roles: []string{"corp/payroll"}}
	if _, err := ask(moorage.Caller{Name: bobName}, made); moorage.KindOf(err) != moorage.KindForbidden {
		t.Errorf("with made-up roles: %v", err)
	}
	if answer, err := ask(moorage.Caller{Name: bobName}, moorage.Caller{Name: bobName}); err != nil || answer.Allowed {
		t.Errorf("without roles: %t, %v", answer.Allowed, err)
	}
	if answer, err := ask(made, moorage.Caller{Name: bobName}); err != nil || !answer.Allowed {
		t.Errorf("with roles that authentication found: %t, %v", answer.Allowed, err)
	}
	narrowed := made
	narrowed.Only = []string{}
	if answer, err := ask(narrowed, moorage.Caller{Name: bobName}); err == nil && answer.Allowed {
		t.Error("a narrowed credential is told that it may more than it may")
	}
	if answer, err := ask(moorage.Caller{Name: adminName}, made); err != nil || !answer.Allowed {
		t.Errorf("an auditor asks with roles: %t, %v", answer.Allowed, err)
	}
}
