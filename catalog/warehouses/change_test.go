package warehouses_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/directory"
	"moorage/catalog/vending"
	"moorage/catalog/warehouses"
	"moorage/registry"
	"moorage/secrets"
	"moorage/storage"
	"moorage/testkit/catalogkit"
	"moorage/testkit/storetest"
)

// toEndpoint returns a change of the server that has a warehouse's files.
func toEndpoint(endpoint string) warehouses.Change {
	return warehouses.Change{Storage: map[string]*string{"endpoint": &endpoint}}
}

// twoNodes returns two catalogs over the store of f, which share only the store and the clock.
func twoNodes(t *testing.T, f *catalogkit.Fixture, store registry.Store) (a, b *catalogkit.Instance) {
	t.Helper()
	config := f.Instance.Config
	config.AbortPending = false
	a, err := catalogkit.NewInstance(config)
	must(t, err)
	config.Store = store
	b, err = catalogkit.NewInstance(config)
	must(t, err)
	return a, b
}

// configAt returns the endpoint of the table's storage in the configuration that a node sends to
// engines.
func configAt(t *testing.T, n *catalogkit.Instance) string {
	t.Helper()
	table, err := n.LoadTable(t.Context(), catalogkit.LakeIdent())
	must(t, err)
	return table.Config["endpoint"]
}

// TestChangeReachesOtherNodes changes the place of a warehouse's files on one node. That node uses
// the change at once. Another node uses it after directory.WarehouseTrust, for loads, commits,
// transactions and creates.
func TestChangeReachesOtherNodes(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		f, servers := catalogkit.NewRemoteFixture(t)
		testChangeReachesOtherNodes(t, f, servers, f.Store)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		dsn, random := stores.NewDatabase(t), newLockedRandom(1)
		servers := catalogkit.NewServers()
		f := catalogkit.New(t, func(c *catalog.Config) {
			c.Store, c.OpenStorage = storetest.OpenNode(t, dsn, random), servers.Open
		})
		f.CreateLake(map[string]string{"endpoint": "one"})
		testChangeReachesOtherNodes(t, f, servers, storetest.OpenNode(t, dsn, random))
	})
}

func testChangeReachesOtherNodes(t *testing.T, f *catalogkit.Fixture, servers *catalogkit.Servers, second registry.Store) {
	a, b := twoNodes(t, f, second)
	_, err := a.CreateTable(f.Ctx, catalogkit.LakeIdent(), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
	must(t, err)
	for _, n := range []*catalogkit.Instance{a, b} {
		if got := configAt(t, n); got != "one" {
			t.Fatalf("before the change it is on %q", got)
		}
	}
	_, err = a.Warehouses().Change(f.Ctx, "lake", toEndpoint("two"))
	must(t, err)
	if got := configAt(t, a); got != "two" {
		t.Errorf("the node that made the change still says %q", got)
	}
	f.Clock.Advance(directory.WarehouseTrust + time.Millisecond)
	if got := configAt(t, b); got != "two" {
		t.Errorf("%s after the change another node still says %q", directory.WarehouseTrust, got)
	}

	_, err = a.Warehouses().Change(f.Ctx, "lake", toEndpoint("three"))
	must(t, err)
	f.Clock.Advance(directory.WarehouseTrust + time.Millisecond)
	table, err := b.Commit(f.Ctx, catalogkit.LakeIdent(), catalogkit.SetProperty(t, "a", "b"))
	must(t, err)
	if _, err := servers.At("three").Stat(f.Ctx, table.MetadataLocation); err != nil {
		t.Errorf("a commit after the change wrote elsewhere: %v", err)
	}
	if got := configAt(t, b); got != "three" {
		t.Errorf("after a commit the table is on %q", got)
	}

	_, err = a.Warehouses().Change(f.Ctx, "lake", toEndpoint("four"))
	must(t, err)
	f.Clock.Advance(directory.WarehouseTrust + time.Millisecond)
	must(t, b.CommitTransaction(f.Ctx, "lake", []catalog.TableChange{{Ident: catalogkit.LakeIdent(), CommitRequest: catalogkit.SetProperty(t, "a", "c")}}))
	if got := configAt(t, b); got != "four" {
		t.Errorf("after a transaction the table is on %q", got)
	}
	// A read of the path to a new name also updates cached names at once.
	_, err = a.Warehouses().Change(f.Ctx, "lake", toEndpoint("five"))
	must(t, err)
	other := catalogkit.LakeIdent()
	other.Name = "other"
	_, err = b.CreateTable(f.Ctx, other, catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
	must(t, err)
	if got := configAt(t, b); got != "five" {
		t.Errorf("after a create the table is on %q", got)
	}
}

// TestDroppedWarehouseIsForgotten drops a warehouse and creates another of the same name. No node
// confuses the two, even without waiting.
func TestDroppedWarehouseIsForgotten(t *testing.T) {
	t.Parallel()
	f, _ := catalogkit.NewRemoteFixture(t)
	a, b := twoNodes(t, f, f.Store)
	_, err := a.CreateTable(f.Ctx, catalogkit.LakeIdent(), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
	must(t, err)
	if got := configAt(t, b); got != "one" {
		t.Fatalf("the table is on %q", got)
	}
	catalogkit.WantKind(t, a.Warehouses().Drop(f.Ctx, "lake"), moorage.KindNamespaceNotEmpty)
	must(t, a.DropTable(f.Ctx, catalogkit.LakeIdent(), catalog.DropOptions{}))
	must(t, a.DropNamespace(f.Ctx, "lake", catalogkit.LakeIdent().Namespace))
	must(t, a.Warehouses().Drop(f.Ctx, "lake"))
	_, err = b.LoadTable(f.Ctx, catalogkit.LakeIdent())
	catalogkit.WantKind(t, err, moorage.KindNoSuchWarehouse)
	f.CreateLake(map[string]string{"endpoint": "two"})
	_, err = a.CreateTable(f.Ctx, catalogkit.LakeIdent(), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
	must(t, err)
	if got := configAt(t, b); got != "two" {
		t.Errorf("the table of the new warehouse is on %q", got)
	}
}

// TestSecretIsReplaced sets, replaces and removes the secret of a warehouse. Other nodes open its
// storage with the new secret.
func TestSecretIsReplaced(t *testing.T) {
	t.Parallel()
	s := newSealed(t)
	s.CreateLake(nil)
	_, err := s.CreateTable(s.Ctx, catalogkit.LakeIdent(), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
	must(t, err)
	a, b := twoNodes(t, s.Fixture, s.Store)
	_, err = b.LoadTable(s.Ctx, catalogkit.LakeIdent())
	must(t, err)
	set := func(value map[string]string) warehouses.Details {
		t.Helper()
		details, err := a.Named("corp:ann").Warehouses().Change(s.Ctx, "lake",
			warehouses.Change{Secrets: map[string]map[string]string{storage.SecretServer: value}})
		must(t, err)
		loaded, err := b.Warehouses().Load(s.Ctx, "lake")
		if must(t, err); (loaded.Secret == nil) != (details.Secret == nil) || loaded.Secret != nil && *loaded.Secret != *details.Secret {
			t.Errorf("answered %+v, then %+v", details.Secret, loaded.Secret)
		}
		s.Clock.Advance(directory.WarehouseTrust + time.Millisecond)
		_, err = b.LoadTable(s.Ctx, catalogkit.LakeIdent())
		must(t, err)
		return details
	}
	if details := set(nil); details.Secret != nil { // it has no secret yet
		t.Errorf("a secret that was never there is gone, and left %+v", details)
	}
	first := registry.ID{}
	for version, value := range []string{"first", "second", "third"} {
		details := set(map[string]string{"secret-access-key": value})
		if plain, err := s.plain(s.last()); err != nil || plain != `{"secret-access-key":"`+value+`"}` {
			t.Errorf("the other node opens the storage with %q, %v, want %q", plain, err, value)
		}
		if details.Secret == nil || details.Secret.Kind != "access-key" || details.Secret.By != "corp:ann" || details.Secret.At.IsZero() {
			t.Errorf("the secret is described as %+v", details.Secret)
		}
		path, err := b.Directory.Path(s.Ctx, "lake", nil)
		must(t, err)
		ref := path.Warehouse.Secret
		if first.IsZero() {
			first = ref.ID
		}
		if ref.ID != first || ref.Version != uint64(version+1) { // dropped tables refer to the ID
			t.Errorf("the secret is %+v, want the id %s in version %d", ref, first, version+1)
		}
	}
	if details := set(nil); details.Secret != nil || s.last().ID != "" {
		t.Errorf("without a secret: %+v, opened with %+v", details, s.last())
	}
	records, err := s.Store.Get(s.Ctx, registry.SecretKey(first))
	if must(t, err); records[0].Exists() {
		t.Error("the secret that was taken away is still stored")
	}
	s.WantClean()
}

// TestRefusedChange requests invalid changes. Each leaves the warehouse unchanged.
func TestRefusedChange(t *testing.T) {
	t.Parallel()
	f, servers := catalogkit.NewRemoteFixture(t)
	before, err := f.Store.Get(f.Ctx, registry.WarehouseKey("lake"))
	must(t, err)
	const name, other = "lake", "sea"
	long := map[string]*string{"k": new(string(make([]byte, registry.PropertiesBytesMax)))}
	for _, tt := range []struct {
		name, warehouse string
		change          warehouses.Change
		probes          error
		want            moorage.Kind
	}{
		{"nothing", name, warehouses.Change{}, nil, moorage.KindBadRequest},
		{"no such warehouse", other, toEndpoint("two"), nil, moorage.KindNoSuchWarehouse},
		{"no name", "", toEndpoint("two"), nil, moorage.KindNoSuchWarehouse},
		{"own property", name, warehouses.Change{Properties: map[string]*string{"prefix": new("x")}}, nil, moorage.KindBadRequest},
		{"long properties", name, warehouses.Change{Properties: long}, nil, moorage.KindTooLarge},
		{"unknown delegation", name, warehouses.Change{Delegation: []vending.Delegation{"trust"}}, nil, moorage.KindBadRequest},
		{"delegation that the storage has not", name, warehouses.Change{Delegation: catalogkit.BothWays}, nil, moorage.KindBadRequest},
		{"secret without a key", name, warehouses.Change{Secrets: secretSpec("lake").Secrets}, nil, moorage.KindBadRequest},
		{"storage that refuses", name, toEndpoint("two"), errors.New("403"), moorage.KindBadRequest},
		{"storage that is away", name, toEndpoint("two"), storage.ErrUnavailable, moorage.KindUnavailable},
	} {
		servers.Probes = tt.probes
		_, err := f.Warehouses().Change(f.Ctx, tt.warehouse, tt.change)
		if moorage.KindOf(err) != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
	after, err := f.Store.Get(f.Ctx, registry.WarehouseKey("lake"))
	if must(t, err); after[0].ETag != before[0].ETag {
		t.Errorf("the warehouse became %s", after[0].Value)
	}
}

// meddling is a storage that calls the function do when it is probed.
type meddling struct {
	catalogkit.RemoteFiles
	do *func()
}

func (m meddling) Probe(context.Context) error {
	if do := *m.do; do != nil {
		*m.do = nil
		do()
	}
	return nil
}

// TestChangesAtOnce changes a warehouse while another change of it is being tested. A change of
// properties is compatible with any other change. Of two changes of the storage, the later one is
// refused, because it was tested with outdated settings.
func TestChangesAtOnce(t *testing.T) {
	t.Parallel()
	property := func(key string) warehouses.Change {
		return warehouses.Change{Properties: map[string]*string{key: new("x")}}
	}
	for _, tt := range []struct {
		name        string
		meanwhile   warehouses.Change
		want        moorage.Kind
		endpoint    string
		wantsMarked bool
	}{
		{"properties", property("marked"), 0, "two", true},
		{"storage", toEndpoint("three"), moorage.KindCommitFailed, "three", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			servers, do := catalogkit.NewServers(), new(func())
			f := catalogkit.New(t, func(c *catalog.Config) {
				c.OpenStorage = func(place storage.Place) (storage.Store, error) {
					store, err := servers.Open(place)
					if remote, ok := store.(catalogkit.RemoteFiles); ok {
						return meddling{remote, do}, err
					}
					return store, err
				}
			})
			f.CreateLake(map[string]string{"endpoint": "one"})
			*do = func() {
				_, err := f.Warehouses().Change(f.Ctx, "lake", tt.meanwhile)
				must(t, err)
			}
			_, err := f.Warehouses().Change(f.Ctx, "lake", toEndpoint("two"))
			if moorage.KindOf(err) != tt.want {
				t.Errorf("%v, want %v", err, tt.want)
			}
			details, err := f.Warehouses().Load(f.Ctx, "lake")
			must(t, err)
			if marked := details.Properties["marked"] == "x"; details.Storage["endpoint"] != tt.endpoint || marked != tt.wantsMarked {
				t.Errorf("the warehouse is %+v", details)
			}
		})
	}
}

// TestValidate tests storages that enforce the offered delegations, and storages that do not.
func TestValidate(t *testing.T) {
	t.Parallel()
	offers := []string{"vended-credentials", "remote-signing"}
	for _, tt := range []struct {
		name   string
		probes error
		stops  bool
	}{
		{"all is well", nil, false},
		{"the storage is away", storage.ErrUnavailable, false},
		{"the storage lets credentials through", storage.ErrUnenforced, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, venders, _ := catalogkit.NewVendingFixture(t, catalogkit.BothWays...)
			if given := f.Given("a", catalogkit.BothWays...); given.Delegation == "" {
				t.Fatal("nothing is given before")
			}
			venders.Probes = tt.probes
			found, err := f.Warehouses().Validate(f.Ctx, "lake")
			must(t, err)
			var failed []string
			for _, trial := range found.Trials {
				if trial.Failure != "" {
					failed = append(failed, trial.Name)
				}
			}
			wantFailed := offers
			if tt.probes == nil {
				wantFailed = nil
			}
			if len(found.Trials) != 3 || found.Trials[0].Name != "files" || !slices.Equal(failed, wantFailed) {
				t.Errorf("found %+v, want %q to fail", found, wantFailed)
			}
			if (len(found.Stopped) == 2) != tt.stops {
				t.Errorf("stopped %q", found.Stopped)
			}
			details, err := f.Warehouses().Load(f.Ctx, "lake")
			must(t, err)
			if given := f.Given("a", catalogkit.BothWays...); (len(details.Delegation) == 0) != tt.stops || (given.Delegation == "") != tt.stops {
				t.Errorf("afterwards the warehouse offers %q, and %q is given", details.Delegation, given.Delegation)
			}
			f.WantClean()
		})
	}
}

// TestValidateMeetsChange changes the storage of a warehouse while the earlier one is tested. The
// result is about the earlier storage, so the offers of the warehouse stay.
func TestValidateMeetsChange(t *testing.T) {
	t.Parallel()
	f, venders, _ := catalogkit.NewVendingFixture(t, catalogkit.BothWays...)
	store := &beforeStore{Store: f.Store, key: registry.WarehouseKey("lake")}
	a, b := twoNodes(t, f, store)
	venders.Probes = storage.ErrUnenforced
	store.do = func() {
		venders.Probes = nil
		_, err := a.Warehouses().Change(f.Ctx, "lake", toEndpoint("two"))
		must(t, err)
	}
	_, err := b.Warehouses().Validate(f.Ctx, "lake")
	catalogkit.WantKind(t, err, moorage.KindCommitFailed)
	details, err := f.Warehouses().Load(f.Ctx, "lake")
	must(t, err)
	if details.Storage["endpoint"] != "two" || !slices.Equal(details.Delegation, catalogkit.BothWays) {
		t.Errorf("the warehouse is %+v", details)
	}
}

// TestStopVendingWhileTheStorageIsAway removes delegations while the storage is unavailable,
// because that needs no storage.
func TestStopVendingWhileTheStorageIsAway(t *testing.T) {
	t.Parallel()
	f, venders, _ := catalogkit.NewVendingFixture(t, catalogkit.BothWays...)
	venders.Probes = storage.ErrUnavailable
	for _, tt := range []struct {
		offers []vending.Delegation
		want   moorage.Kind
	}{
		{[]vending.Delegation{vending.RemoteSigning}, 0}, {catalogkit.BothWays, moorage.KindUnavailable}, {[]vending.Delegation{}, 0},
	} {
		_, err := f.Warehouses().Change(f.Ctx, "lake", warehouses.Change{Delegation: tt.offers})
		if moorage.KindOf(err) != tt.want {
			t.Errorf("offer %q: %v, want %v", tt.offers, err, tt.want)
		}
	}
	if given := f.Given("a", catalogkit.BothWays...); given.Delegation != "" {
		t.Errorf("engines are still given %q", given.Delegation)
	}
}

// TestListWarehouses lists in pages of one.
func TestListWarehouses(t *testing.T) {
	t.Parallel()
	f, _ := catalogkit.NewRemoteFixture(t)
	var names []string
	for page := (moorage.Page{Limit: 1}); ; {
		found, next, err := f.Warehouses().List(f.Ctx, page)
		must(t, err)
		for _, each := range found {
			names = append(names, each.Name)
		}
		if page.After = next; next == "" {
			break
		}
	}
	if want := []string{"lake", catalogkit.Warehouse}; !slices.Equal(names, want) {
		t.Errorf("listed %q, want %q", names, want)
	}
	details, err := f.Warehouses().Load(f.Ctx, "lake")
	if must(t, err); !maps.Equal(details.Storage, map[string]string{"endpoint": "one"}) || details.ID.IsZero() {
		t.Errorf("loaded %+v", details)
	}
}

// TestRewrapMeetsChanges: two nodes rewrap all secrets while a third node replaces them. In the
// end, each secret is sealed with the newest key and has the value that was set last.
func TestRewrapMeetsChanges(t *testing.T) {
	t.Parallel()
	s := newSealed(t)
	for _, name := range []string{"a", "b", "c"} {
		_, err := s.Warehouses().Create(s.Ctx, secretSpec(name))
		must(t, err)
	}
	one, two := twoNodes(t, s.Fixture, s.Store)
	now, _, err := secrets.Rotate(s.path)
	must(t, err)
	must(t, s.keys.Reload())
	var working sync.WaitGroup
	for _, n := range []*catalogkit.Instance{one, two} {
		working.Go(func() {
			if _, err := n.As(moorage.System("test")).Warehouses().RewrapSecrets(s.Ctx); err != nil {
				t.Error(err)
			}
		})
	}
	working.Go(func() {
		for _, name := range []string{"c", "b", "a"} {
			for moorage.KindCommitFailed == changeSecret(t, s.Fixture, name, "new") { // Rewrap was faster
			}
		}
	})
	working.Wait()
	later, err := catalogkit.NewInstance(s.Config)
	must(t, err)
	for _, name := range []string{"a", "b", "c"} {
		_, err := later.LoadWarehouse(s.Ctx, name)
		must(t, err)
		secret := s.last()
		if plain, err := s.plain(secret); err != nil || plain != `{"secret-access-key":"new"}` {
			t.Errorf("%s opens with %q, %v", name, plain, err)
		}
		if id, _ := secrets.KeyOf(secret.Sealed[storage.SecretServer]); id != now {
			t.Errorf("%s is sealed with the key %s, want %s", name, id, now)
		}
	}
}

func changeSecret(t *testing.T, f *catalogkit.Fixture, name, value string) moorage.Kind {
	_, err := f.Warehouses().Change(f.Ctx, name, warehouses.Change{Secrets: map[string]map[string]string{
		storage.SecretServer: {"secret-access-key": value},
	}})
	if kind := moorage.KindOf(err); err != nil && kind != moorage.KindCommitFailed {
		t.Error(err)
	}
	return moorage.KindOf(err)
}
