package vending_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/catalog/grants"
	"moorage/catalog/vending"
	"moorage/catalog/warehouses"
	"moorage/registry"
	memoryregistry "moorage/registry/memory"
	"moorage/storage"
	memorystorage "moorage/storage/memory"
	"moorage/testkit/catalogkit"
	"moorage/testkit/registrytest"
	"moorage/testkit/storetest"
)

const (
	carlName  = "corp:carl"
	trinoName = "key:trino"
)

func onView(name string) grants.Object {
	return grants.Object{Kind: access.View, Ident: ident(name)}
}

// by returns the catalog for a request of engine on behalf of user.
func by(s *catalogkit.Secured, engine, user string) *catalog.Catalog {
	return s.As(moorage.Caller{Name: user, Via: []string{engine}})
}

// definerView creates a definer view of owner, and allows bob to read it.
func definerView(s *catalogkit.Secured, owner, name string) {
	s.T.Helper()
	s.Grant(catalogkit.OnNamespace("ns"), owner, access.Create)
	request := catalogkit.ViewRequest("")
	request.Properties = map[string]string{"security": "DEFINER"}
	if _, err := s.Named(owner).CreateView(s.T.Context(), ident(name), request); err != nil {
		s.T.Fatal(err)
	}
	s.Revoke(catalogkit.OnNamespace("ns"), owner, access.Create)
	s.Grant(onView(name), catalogkit.BobName, access.Read)
}

// newDefiners returns a catalog with ann's table t and carl's definer view v, which bob may read.
// The engine trino is trusted.
func newDefiners(t *testing.T, store registry.Store, alone bool, change ...func(*catalog.Config)) *catalogkit.Secured {
	t.Helper()
	s := catalogkit.NewSecured(t, store, alone, change...)
	s.Populate()
	definerView(s, carlName, "v")
	s.Grant(catalogkit.OnTable("t"), carlName, access.Read)
	s.Grant(catalogkit.OnWarehouse(), trinoName, access.Delegate)
	return s
}

// If the engine is trusted, a table is loaded through a definer view with the privileges of the
// view's owner.
func TestLoadThroughDefinerView(t *testing.T) {
	catalogkit.EachPolicyStore(t, &stores, func(t *testing.T, store registry.Store, alone bool) {
		s := newDefiners(t, store, alone)
		ctx := t.Context()
		load := func(c *catalog.Catalog, views ...string) error {
			var through []moorage.Identifier
			for _, name := range views {
				through = append(through, ident(name))
			}
			_, err := c.LoadTable(ctx, ident("t"), through...)
			return err
		}
		bob, missing := by(s, trinoName, catalogkit.BobName), gate.NoSuchTable(ident("t"))
		through := func(what string) {
			t.Helper()
			if err := load(bob, "v"); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		refused := func(what string) {
			t.Helper()
			catalogkit.WantSame(t, what, load(bob, "v"), missing)
		}
		through("with the rights of carl")
		catalogkit.WantSame(t, "without the view", load(bob), missing)
		catalogkit.WantSame(t, "through a view that is not there", load(bob, "w"), missing)
		catalogkit.WantSame(t, "through a view that names another", load(bob, "v", "w"), missing)
		catalogkit.WantSame(t, "by himself", load(s.As(moorage.Caller{Name: catalogkit.BobName}), "v"), missing)
		catalogkit.WantSame(t, "by an engine that nobody trusts", load(by(s, "key:spark", catalogkit.BobName), "v"), missing)
		catalogkit.WantSame(t, "somebody who does not see the view", load(by(s, trinoName, "corp:dan"), "v"), gate.NoSuchWarehouse(catalogkit.Warehouse))
		if _, err := bob.LoadTable(ctx, ident("u"), ident("v")); moorage.KindOf(err) != moorage.KindNoSuchTable {
			t.Errorf("another table: %v", err)
		}

		s.Revoke(catalogkit.OnTable("t"), carlName, access.Read)
		refused("carl may not any more")
		s.Grant(catalogkit.OnTable("t"), catalogkit.BobName, access.Read)
		if err := load(bob, "v"); moorage.KindOf(err) != moorage.KindForbidden {
			t.Errorf("bob may, and carl may not: %v", err)
		}
		s.Revoke(catalogkit.OnTable("t"), catalogkit.BobName, access.Read)
		s.Grant(catalogkit.OnTable("t"), carlName, access.Read)
		through("carl may again")

		disable(s, carlName, true)
		refused("carl is disabled")
		disable(s, carlName, false)
		through("carl is enabled")

		if err := s.Admin().SetOwner(ctx, onView("v"), "corp:dan", nil); err != nil {
			t.Fatal(err)
		}
		refused("dan owns the view")
		s.Grant(catalogkit.OnTable("t"), "corp:dan", access.Read)
		through("dan may too")
		if err := s.Admin().SetOwner(ctx, onView("v"), "readers", nil); err != nil {
			t.Fatal(err)
		}
		refused("a role owns the view that does not exist")

		s.Revoke(catalogkit.OnWarehouse(), trinoName, access.Delegate)
		if err := s.Admin().SetOwner(ctx, onView("v"), "", nil); err != nil {
			t.Fatal(err)
		}
		refused("trino is not trusted any more")
		s.Grant(catalogkit.OnWarehouse(), trinoName, access.Delegate)
		through("trino is trusted again")
		if err := s.Named(carlName).DropView(ctx, ident("v")); err != nil {
			t.Fatal(err)
		}
		refused("the view is dropped")
	})
}

// disable disables or enables a principal.
func disable(s *catalogkit.Secured, name string, disabled bool) {
	s.T.Helper()
	if _, err := s.Admin().PutPrincipal(s.T.Context(), name, grants.PrincipalSpec{Disabled: disabled}); err != nil {
		s.T.Fatal(err)
	}
}

// Views can be nested, also across namespaces. Behind each definer view, the privileges of its
// owner count.
func TestLoadThroughManyViews(t *testing.T) {
	t.Parallel()
	s := newDefiners(t, memoryregistry.New(newLockedRandom(1)), true)
	ctx := t.Context()
	elsewhere := moorage.Identifier{Warehouse: catalogkit.Warehouse, Namespace: moorage.Namespace{"other"}, Name: "outer"}
	s.Grant(catalogkit.OnNamespace("other"), "corp:dan", access.Create)
	request := catalogkit.ViewRequest("")
	request.Properties = map[string]string{"trino.run-as-owner": "whoever"}
	if _, err := s.Named("corp:dan").CreateView(ctx, elsewhere, request); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Named(catalogkit.AnnName).CreateView(ctx, ident("plain"), catalogkit.ViewRequest("")); err != nil {
		t.Fatal(err)
	}
	s.Grant(grants.Object{Kind: access.View, Ident: elsewhere}, catalogkit.BobName, access.Read)
	bob := by(s, trinoName, catalogkit.BobName)
	load := func() error {
		_, err := bob.LoadTable(ctx, ident("t"), elsewhere, ident("plain"), ident("v"))
		return err
	}
	catalogkit.WantSame(t, "dan may not go through the others", load(), gate.NoSuchTable(ident("t")))
	s.Grant(onView("plain"), "corp:dan", access.Read)
	s.Grant(onView("v"), "corp:dan", access.Read)
	if err := load(); err != nil {
		t.Error(err)
	}
	if _, err := bob.LoadView(ctx, ident("plain"), elsewhere); err != nil {
		t.Errorf("a view behind a view: %v", err)
	}
	if _, err := bob.LoadView(ctx, ident("plain")); moorage.KindOf(err) != moorage.KindNoSuchView {
		t.Errorf("that view without the one in front: %v", err)
	}
	many := make([]moorage.Identifier, vending.ViewsMax+1)
	for i := range many {
		many[i] = ident(string(rune('a' + i)))
	}
	for name, through := range map[string][]moorage.Identifier{
		"eleven views": many, "a loop": {ident("v"), ident("plain"), ident("v")},
	} {
		for _, c := range []*catalog.Catalog{bob, s.As(moorage.Caller{Name: catalogkit.AnnName})} {
			if _, err := c.LoadTable(ctx, ident("t"), through...); moorage.KindOf(err) != moorage.KindBadRequest {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// A caller that replaces a definer view becomes its owner at that moment. Only the owner, or a
// trusted engine, determines whose privileges the view uses.
func TestDefinerViewIsOfItsWriter(t *testing.T) {
	t.Parallel()
	s := newDefiners(t, memoryregistry.New(newLockedRandom(1)), true)
	ctx := t.Context()
	owner := func() string {
		t.Helper()
		grants, err := s.Admin().GrantsOn(ctx, onView("v"))
		if err != nil {
			t.Fatal(err)
		}
		return grants.Owner
	}
	replace := func(c *catalog.Catalog, request catalog.ReplaceViewRequest, want moorage.Kind) {
		t.Helper()
		if _, err := c.ReplaceView(ctx, ident("v"), request); moorage.KindOf(err) != want {
			t.Errorf("replace: %v, want %v", err, want)
		}
	}
	query := catalogkit.NewQuery(t, `[]`, "select 2")
	invoker := catalogkit.ReplaceRequest(t, `[]`, `[{"action":"remove-properties","removals":["security"]}]`)
	definer := catalogkit.SetViewProperty(t, "security", "definer")

	replace(s.As(moorage.Caller{Name: catalogkit.BobName}), query, moorage.KindForbidden) // without alter
	s.Grant(onView("v"), catalogkit.BobName, access.Alter)
	replace(s.As(moorage.Caller{Name: catalogkit.BobName}), invoker, moorage.KindForbidden)
	s.Grant(onView("v"), access.Everyone, access.Alter)
	replace(s.As(moorage.Caller{Name: catalogkit.BobName, Only: []string{access.Everyone}}), query, moorage.KindForbidden)
	s.Revoke(onView("v"), access.Everyone, access.Alter)
	if got := owner(); got != carlName {
		t.Errorf("the view is %s's before it is replaced", got)
	}
	replace(s.As(moorage.Caller{Name: catalogkit.BobName}), query, moorage.Kind(0))
	if got := owner(); got != catalogkit.BobName {
		t.Errorf("bob replaced the view, and it is %s's", got)
	}
	_, err := by(s, trinoName, catalogkit.BobName).LoadTable(ctx, ident("t"), ident("v"))
	catalogkit.WantSame(t, "bob's query with the rights of carl", err, gate.NoSuchTable(ident("t")))

	for _, to := range []string{carlName, "", "readers"} {
		if err := s.Access(catalogkit.BobName).SetOwner(ctx, onView("v"), to, nil); moorage.KindOf(err) != moorage.KindForbidden {
			t.Errorf("bob hands his query to %q: %v", to, err)
		}
	}
	replace(s.As(moorage.Caller{Name: catalogkit.BobName}), invoker, moorage.Kind(0)) // he owns it
	if err := s.Access(catalogkit.BobName).SetOwner(ctx, onView("v"), carlName, nil); err != nil {
		t.Errorf("bob hands an invoker's view over: %v", err)
	}
	replace(s.As(moorage.Caller{Name: catalogkit.BobName}), definer, moorage.KindForbidden)
	replace(by(s, "key:spark", catalogkit.BobName), definer, moorage.KindForbidden)
	replace(by(s, trinoName, catalogkit.BobName), definer, moorage.Kind(0))
	if got := owner(); got != catalogkit.BobName {
		t.Errorf("trino made it bob's definer view, and it is %s's", got)
	}
	replace(s.As(moorage.Caller{Name: carlName}), query, moorage.KindNoSuchView) // he has lost his access
	s.Grant(onView("v"), carlName, access.Alter)
	replace(s.As(moorage.Caller{Name: carlName}), catalogkit.NewQuery(t, `[]`, "select 3"), moorage.Kind(0))
	if got := owner(); got != carlName {
		t.Errorf("carl replaced it, and it is %s's", got)
	}
}

// The owner of a definer view can replace it, whether or not the view has or ever had a record of
// grants.
func TestDefinerViewWithoutGrants(t *testing.T) {
	t.Parallel()
	s := newDefiners(t, registrytest.WellFormed(t, memoryregistry.New(newLockedRandom(1))), true)
	replace := func(what, query string) {
		t.Helper()
		_, err := s.As(moorage.Caller{Name: carlName}).ReplaceView(t.Context(), ident("v"), catalogkit.NewQuery(t, `[]`, query))
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	replace("nothing was ever granted", "select 2")
	s.Grant(onView("v"), catalogkit.BobName, access.Alter)
	replace("something is granted", "select 3")
	s.Revoke(onView("v"), catalogkit.BobName, access.Alter)
	replace("the last grant was taken back", "select 4")
}

// A restored view belongs to the caller that restored it. A view that is created with a narrowed
// credential has no owner.
func TestDefinerViewComesBack(t *testing.T) {
	t.Parallel()
	s := newDefiners(t, memoryregistry.New(newLockedRandom(1)), true)
	ctx := t.Context()
	view, err := s.Named(carlName).LoadView(ctx, ident("v"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Named(carlName).DropView(ctx, ident("v")); err != nil {
		t.Fatal(err)
	}
	s.Grant(catalogkit.OnNamespace("ns"), catalogkit.BobName, access.Create|access.Locate|access.Drop)
	bob := s.Named(catalogkit.BobName)
	narrowed := s.As(moorage.Caller{Name: catalogkit.BobName, Only: []string{access.Everyone}})
	s.Grant(catalogkit.OnNamespace("ns"), access.Everyone, access.Create|access.Locate|access.Drop)
	if _, err := narrowed.RegisterView(ctx, ident("v"), view.MetadataLocation); moorage.KindOf(err) != moorage.KindForbidden {
		t.Errorf("with a narrowed credential: %v", err)
	}
	request := catalogkit.ViewRequest("")
	request.Properties = map[string]string{"security": "definer"}
	if _, err := narrowed.CreateView(ctx, ident("w"), request); moorage.KindOf(err) != moorage.KindForbidden {
		t.Errorf("made with a narrowed credential: %v", err)
	}
	if _, err := bob.RegisterView(ctx, ident("v"), view.MetadataLocation); err != nil {
		t.Fatal(err)
	}
	if grants, err := s.Admin().GrantsOn(ctx, onView("v")); err != nil || grants.Owner != catalogkit.BobName {
		t.Errorf("bob brought it back, and it is %s's: %v", grants.Owner, err)
	}
	if err := bob.DropView(ctx, ident("v")); err != nil { // this also ends its grants
		t.Error(err)
	}
}

// applyHook is a store that calls its hook before each Apply.
type applyHook struct {
	registry.Store
	before atomic.Pointer[func(registry.Batch)]
}

func (h *applyHook) Unwrap() registry.Store { return h.Store }

func (h *applyHook) Apply(ctx context.Context, batch registry.Batch) ([]registry.ETag, error) {
	if before := h.before.Load(); before != nil {
		(*before)(batch)
	}
	return h.Store.Apply(ctx, batch)
}

// If a definer view is transferred while its owner replaces it, the replacing caller owns it
// afterwards. That caller's query never runs with the other principal's privileges.
func TestReplaceWhileHandedOver(t *testing.T) {
	t.Parallel()
	hook := &applyHook{Store: memoryregistry.New(newLockedRandom(1))}
	s := newDefiners(t, hook, false)
	s.Grant(onView("v"), carlName, access.Alter)
	before := func(batch registry.Batch) {
		if !slices.ContainsFunc(batch.Writes, func(w registry.Write) bool { return w.Key.Table == registry.TablePointer }) {
			return
		}
		hook.before.Store(nil)
		if err := s.Admin().SetOwner(t.Context(), onView("v"), catalogkit.AnnName, nil); err != nil {
			t.Error(err)
		}
	}
	hook.before.Store(&before)
	if _, err := s.Named(carlName).ReplaceView(t.Context(), ident("v"), catalogkit.NewQuery(t, `[]`, "select 2")); err != nil {
		t.Fatal(err)
	}
	if hook.before.Load() != nil {
		t.Fatal("nothing came in between")
	}
	if grants, err := s.Admin().GrantsOn(t.Context(), onView("v")); err != nil || grants.Owner != carlName {
		t.Errorf("the view is %s's: %v", grants.Owner, err)
	}
}

// Credentials for a table behind a view only allow reading, whatever privileges the reader has.
func TestCredentialsThroughView(t *testing.T) {
	t.Parallel()
	v := &catalogkit.Venders{Clock: newClock()}
	var given []vending.Given
	s := catalogkit.NewSecured(t, memoryregistry.New(newLockedRandom(1)), true, func(config *catalog.Config) {
		catalogkit.WrapStorage(config, func(inner storage.Store) storage.Store { return catalogkit.VenderFiles{Store: inner, Venders: v} })
		config.Given = func(_ context.Context, one vending.Given) { given = append(given, one) }
	})
	ctx := t.Context()
	if _, err := s.Named(catalogkit.AdminName).Warehouses().Create(ctx, warehouses.Spec{
		Name: catalogkit.Warehouse, Location: "s3://bucket/lake", Delegation: catalogkit.BothWays}); err != nil {
		t.Fatal(err)
	}
	s.Grant(catalogkit.OnWarehouse(), catalogkit.AnnName, access.Create)
	if _, err := s.Named(catalogkit.AnnName).CreateNamespace(ctx, catalogkit.Warehouse, moorage.Namespace{"ns"}, nil); err != nil {
		t.Fatal(err)
	}
	table, err := s.Named(catalogkit.AnnName).CreateTable(ctx, ident("t"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
	if err != nil {
		t.Fatal(err)
	}
	definerView(s, carlName, "v")
	s.Grant(catalogkit.OnTable("t"), carlName, access.Write)
	s.Grant(catalogkit.OnWarehouse(), trinoName, access.Delegate)

	bob, through := by(s, trinoName, catalogkit.BobName), ident("v")
	loaded, err := bob.LoadTable(ctx, ident("t"), through)
	if err != nil {
		t.Fatal(err)
	}
	vended, err := bob.Delegate(ctx, loaded, catalogkit.BothWays)
	if err != nil || vended.Delegation != vending.VendedCredentials || !slices.EqualFunc(vended.Through, []moorage.Identifier{through}, moorage.Identifier.Equal) {
		t.Errorf("given %+v: %v", vended, err)
	}
	if _, err := bob.LoadCredentials(ctx, ident("t"), "", through); err != nil {
		t.Error(err)
	}
	if _, err := bob.Sign(ctx, ident("t"), "", vending.SignRequest{Method: "GET"}, through); err != nil {
		t.Error(err)
	}
	if len(v.Signed) != 1 || v.Signed[0].Write {
		t.Errorf("signed %+v", v.Signed)
	}
	for _, scope := range askedOf(v) {
		if scope.Write || !slices.Equal(scope.Locations, []string{table.Document.Location()}) {
			t.Errorf("the storage was asked for %+v", scope)
		}
	}
	if len(given) != 3 || given[0].Caller.Name != catalogkit.BobName || given[0].Write || len(given[0].Through) != 1 {
		t.Errorf("noted %+v", given)
	}
	s.Revoke(catalogkit.OnTable("t"), carlName, access.Write)
	s.Grant(catalogkit.OnTable("t"), carlName, access.Describe)
	if loaded, err = bob.LoadTable(ctx, ident("t"), through); err != nil {
		t.Fatal(err)
	}
	if vended, err := bob.Delegate(ctx, loaded, catalogkit.BothWays); err != nil || vended.Delegation != "" || vended.Reason == "" {
		t.Errorf("carl may only describe it: %+v, %v", vended, err)
	}
	_, err = bob.LoadCredentials(ctx, ident("t"), "", through)
	if moorage.KindOf(err) != moorage.KindForbidden {
		t.Errorf("LoadCredentials: %v", err)
	}
}

// After a revoke from the owner of a view was answered, no node allows access through the view with
// the lost privilege.
func TestDefinerRevokeHoldsOnEveryNode(t *testing.T) {
	t.Parallel()
	random := newLockedRandom(catalogkit.NewSeed(t))
	dsn := stores.NewDatabase(t)
	files := memorystorage.New()
	share := func(config *catalog.Config) {
		config.OpenStorage = func(place storage.Place) (storage.Store, error) { return files.Within(place.Roots) }
	}
	nodes := []*catalogkit.Secured{newDefiners(t, storetest.OpenNode(t, dsn, random), false, share)}
	for range 2 {
		nodes = append(nodes, catalogkit.Secure(t, storetest.OpenNode(t, dsn, random), false, share))
	}
	for round := range 25 {
		at := round % len(nodes)
		for _, allowed := range []bool{false, true} {
			change := grants.Change{Revoke: !allowed, Object: catalogkit.OnTable("t"), Grantee: carlName, Privileges: access.Read}
			nodes[at].Change(change)
			for i := range nodes {
				node := (at + 1 + i) % len(nodes)
				_, err := by(nodes[node], trinoName, catalogkit.BobName).LoadTable(t.Context(), ident("t"), ident("v"))
				if (err == nil) != allowed || err != nil && moorage.KindOf(err) != moorage.KindNoSuchTable {
					t.Fatalf("round %d: carl may is %v, and node %d answers %v", round, allowed, node, err)
				}
			}
		}
	}
}

// Explain returns the answer that a load through views would get, and the principal whose
// privileges count.
func TestExplainThroughViews(t *testing.T) {
	t.Parallel()
	s := newDefiners(t, memoryregistry.New(newLockedRandom(1)), true)
	ctx := t.Context()
	question := grants.Question{
		Caller: moorage.Caller{Name: catalogkit.BobName, Via: []string{trinoName}}, Operation: "load-table",
		Object: catalogkit.OnTable("t"), Through: []moorage.Identifier{ident("v")},
	}
	if _, err := s.Access(catalogkit.BobName).Explain(ctx, question); moorage.KindOf(err) != moorage.KindForbidden {
		t.Errorf("bob asks whose rights decide: %v", err)
	}
	s.Grant(grants.Object{Kind: access.Server}, catalogkit.AnnName, access.Audit)
	explain := func() grants.Answer {
		t.Helper()
		answer, err := s.Access(catalogkit.AnnName).Explain(ctx, question)
		if err != nil {
			t.Fatal(err)
		}
		if checked, err := s.Access(catalogkit.AnnName).Check(ctx, []grants.Question{question}); err != nil || checked[0].Allowed != answer.Allowed {
			t.Errorf("checked %+v: %v, explained %+v", checked, err, answer)
		}
		return answer
	}
	got := explain()
	if !got.Allowed || got.Owner != carlName || got.Ignored || len(got.Through) != 1 ||
		got.Through[0].Outcome != access.Allow || got.Through[0].AsOwner || got.Names[0] != "ns.t" {
		t.Errorf("explained by %+v", got)
	}
	s.Revoke(catalogkit.OnTable("t"), carlName, access.Read)
	if got := explain(); got.Allowed || got.Owner != carlName || got.Explanation.Decision.Outcome != access.Hidden ||
		got.Explanation.Decision.Missing != access.Describe || !slices.Contains(got.Explanation.Grantors, catalogkit.AnnName) {
		t.Errorf("carl may not: %+v", got)
	}
	s.Revoke(onView("v"), catalogkit.BobName, access.Read)
	if got := explain(); got.Allowed || got.Through[0].Outcome != access.Hidden || got.Names[0] != "ns.v" {
		t.Errorf("bob may not: %+v", got)
	}
	question.Through = []moorage.Identifier{ident("w")}
	if got := explain(); got.Allowed || got.Through[0].Outcome != access.Hidden || len(got.Names) != 0 {
		t.Errorf("a view that is not there: %+v", got)
	}
	question.Through, question.Caller.Via = []moorage.Identifier{ident("v")}, []string{"key:spark"}
	if got := explain(); got.Allowed || !got.Ignored || got.Through != nil {
		t.Errorf("an engine that nobody trusts: %+v", got)
	}
}
