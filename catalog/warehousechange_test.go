package catalog_test

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
)

// toEndpoint is a change of the server that the files of a warehouse are on.
func toEndpoint(endpoint string) warehouses.Change {
	return warehouses.Change{Storage: map[string]*string{"endpoint": &endpoint}}
}

// twoNodes returns two catalogs over the store of f, which share nothing else but the clock.
func twoNodes(t *testing.T, f *fixture, store registry.Store) (a, b *instance) {
	t.Helper()
	config := f.instance.config
	config.AbortPending = false
	a, err := newInstance(config)
	must(t, err)
	config.Store = store
	b, err = newInstance(config)
	must(t, err)
	return a, b
}

// configAt returns what a node tells engines of the server of the table.
func configAt(t *testing.T, n *instance) string {
	t.Helper()
	table, err := n.LoadTable(t.Context(), lakeIdent())
	must(t, err)
	return table.Config["endpoint"]
}

// TestChangeReachesOtherNodes changes on one node where the files of a warehouse are. That node
// goes by it at once, and another one from directory.WarehouseTrust on: by loads, commits,
// transactions and creates.
func TestChangeReachesOtherNodes(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		f, servers := newRemoteFixture(t)
		testChangeReachesOtherNodes(t, f, servers, f.store)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		dsn, random := newDatabase(t), newLockedRandom(1)
		servers := newServers()
		f := newFixture(t, func(c *catalog.Config) {
			c.Store, c.OpenStorage = openPostgres(t, dsn, random), servers.open
		})
		f.createLake(map[string]string{"endpoint": "one"})
		testChangeReachesOtherNodes(t, f, servers, openPostgres(t, dsn, random))
	})
}

func testChangeReachesOtherNodes(t *testing.T, f *fixture, servers *servers, second registry.Store) {
	a, b := twoNodes(t, f, second)
	_, err := a.CreateTable(f.ctx, lakeIdent(), catalog.CreateTableRequest{Schema: []byte(testSchema)})
	must(t, err)
	for _, n := range []*instance{a, b} {
		if got := configAt(t, n); got != "one" {
			t.Fatalf("before the change it is on %q", got)
		}
	}
	_, err = a.Warehouses().Change(f.ctx, "lake", toEndpoint("two"))
	must(t, err)
	if got := configAt(t, a); got != "two" {
		t.Errorf("the node that made the change still says %q", got)
	}
	f.clock.Advance(directory.WarehouseTrust + time.Millisecond)
	if got := configAt(t, b); got != "two" {
		t.Errorf("%s after the change another node still says %q", directory.WarehouseTrust, got)
	}

	_, err = a.Warehouses().Change(f.ctx, "lake", toEndpoint("three"))
	must(t, err)
	f.clock.Advance(directory.WarehouseTrust + time.Millisecond)
	table, err := b.Commit(f.ctx, lakeIdent(), setProperty(t, "a", "b"))
	must(t, err)
	if _, err := servers.at("three").Stat(f.ctx, table.MetadataLocation); err != nil {
		t.Errorf("a commit after the change wrote elsewhere: %v", err)
	}
	if got := configAt(t, b); got != "three" {
		t.Errorf("after a commit the table is on %q", got)
	}

	_, err = a.Warehouses().Change(f.ctx, "lake", toEndpoint("four"))
	must(t, err)
	f.clock.Advance(directory.WarehouseTrust + time.Millisecond)
	must(t, b.CommitTransaction(f.ctx, "lake", []catalog.TableChange{{Ident: lakeIdent(), CommitRequest: setProperty(t, "a", "c")}}))
	if got := configAt(t, b); got != "four" {
		t.Errorf("after a transaction the table is on %q", got)
	}
	// A read on the way to a new name shows the change to what is known already, without waiting.
	_, err = a.Warehouses().Change(f.ctx, "lake", toEndpoint("five"))
	must(t, err)
	other := lakeIdent()
	other.Name = "other"
	_, err = b.CreateTable(f.ctx, other, catalog.CreateTableRequest{Schema: []byte(testSchema)})
	must(t, err)
	if got := configAt(t, b); got != "five" {
		t.Errorf("after a create the table is on %q", got)
	}
}

// TestDroppedWarehouseIsForgotten drops a warehouse and makes another one of its name. No node
// takes the one for the other, without waiting.
func TestDroppedWarehouseIsForgotten(t *testing.T) {
	t.Parallel()
	f, _ := newRemoteFixture(t)
	a, b := twoNodes(t, f, f.store)
	_, err := a.CreateTable(f.ctx, lakeIdent(), catalog.CreateTableRequest{Schema: []byte(testSchema)})
	must(t, err)
	if got := configAt(t, b); got != "one" {
		t.Fatalf("the table is on %q", got)
	}
	wantKind(t, a.Warehouses().Drop(f.ctx, "lake"), moorage.KindNamespaceNotEmpty)
	must(t, a.DropTable(f.ctx, lakeIdent(), catalog.DropOptions{}))
	must(t, a.DropNamespace(f.ctx, "lake", lakeIdent().Namespace))
	must(t, a.Warehouses().Drop(f.ctx, "lake"))
	_, err = b.LoadTable(f.ctx, lakeIdent())
	wantKind(t, err, moorage.KindNoSuchWarehouse)
	f.createLake(map[string]string{"endpoint": "two"})
	_, err = a.CreateTable(f.ctx, lakeIdent(), catalog.CreateTableRequest{Schema: []byte(testSchema)})
	must(t, err)
	if got := configAt(t, b); got != "two" {
		t.Errorf("the table of the new warehouse is on %q", got)
	}
}

// TestSecretIsReplaced sets, replaces and takes away the secret of a warehouse. Other nodes open
// its storage with the new one.
func TestSecretIsReplaced(t *testing.T) {
	t.Parallel()
	s := newSealed(t)
	s.createLake(nil)
	_, err := s.CreateTable(s.ctx, lakeIdent(), catalog.CreateTableRequest{Schema: []byte(testSchema)})
	must(t, err)
	a, b := twoNodes(t, s.fixture, s.store)
	_, err = b.LoadTable(s.ctx, lakeIdent())
	must(t, err)
	set := func(value map[string]string) warehouses.Details {
		t.Helper()
		details, err := a.as("corp:ann").Warehouses().Change(s.ctx, "lake",
			warehouses.Change{Secrets: map[string]map[string]string{storage.SecretServer: value}})
		must(t, err)
		loaded, err := b.Warehouses().Load(s.ctx, "lake")
		if must(t, err); (loaded.Secret == nil) != (details.Secret == nil) || loaded.Secret != nil && *loaded.Secret != *details.Secret {
			t.Errorf("answered %+v, then %+v", details.Secret, loaded.Secret)
		}
		s.clock.Advance(directory.WarehouseTrust + time.Millisecond)
		_, err = b.LoadTable(s.ctx, lakeIdent())
		must(t, err)
		return details
	}
	if details := set(nil); details.Secret != nil { // it has none yet
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
		path, err := b.directory.Path(s.ctx, "lake", nil)
		must(t, err)
		ref := path.Warehouse.Secret
		if first.IsZero() {
			first = ref.ID
		}
		if ref.ID != first || ref.Version != uint64(version+1) { // dropped tables name the id
			t.Errorf("the secret is %+v, want the id %s in version %d", ref, first, version+1)
		}
	}
	if details := set(nil); details.Secret != nil || s.last().ID != "" {
		t.Errorf("without a secret: %+v, opened with %+v", details, s.last())
	}
	records, err := s.store.Get(s.ctx, registry.SecretKey(first))
	if must(t, err); records[0].Exists() {
		t.Error("the secret that was taken away is still stored")
	}
	s.wantClean()
}

// TestRefusedChange asks for changes that cannot be. Each leaves the warehouse as it was.
func TestRefusedChange(t *testing.T) {
	t.Parallel()
	f, servers := newRemoteFixture(t)
	before, err := f.store.Get(f.ctx, registry.WarehouseKey("lake"))
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
		{"delegation that the storage has not", name, warehouses.Change{Delegation: bothWays}, nil, moorage.KindBadRequest},
		{"secret without a key", name, warehouses.Change{Secrets: secretSpec("lake").Secrets}, nil, moorage.KindBadRequest},
		{"storage that refuses", name, toEndpoint("two"), errors.New("403"), moorage.KindBadRequest},
		{"storage that is away", name, toEndpoint("two"), storage.ErrUnavailable, moorage.KindUnavailable},
	} {
		servers.probes = tt.probes
		_, err := f.Warehouses().Change(f.ctx, tt.warehouse, tt.change)
		if moorage.KindOf(err) != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
	after, err := f.store.Get(f.ctx, registry.WarehouseKey("lake"))
	if must(t, err); after[0].ETag != before[0].ETag {
		t.Errorf("the warehouse became %s", after[0].Value)
	}
}

// meddling is a storage that calls do when it is probed.
type meddling struct {
	remoteFiles
	do *func()
}

func (m meddling) Probe(context.Context) error {
	if do := *m.do; do != nil {
		*m.do = nil
		do()
	}
	return nil
}

// TestChangesAtOnce changes a warehouse while another change of it is being tried. Changes of
// properties go together with any other. The later one of two changes of the storage is refused: it
// was tried on another storage than it would be stored for.
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
			servers, do := newServers(), new(func())
			f := newFixture(t, func(c *catalog.Config) {
				c.OpenStorage = func(place storage.Place) (storage.Store, error) {
					store, err := servers.open(place)
					if remote, ok := store.(remoteFiles); ok {
						return meddling{remote, do}, err
					}
					return store, err
				}
			})
			f.createLake(map[string]string{"endpoint": "one"})
			*do = func() {
				_, err := f.Warehouses().Change(f.ctx, "lake", tt.meanwhile)
				must(t, err)
			}
			_, err := f.Warehouses().Change(f.ctx, "lake", toEndpoint("two"))
			if moorage.KindOf(err) != tt.want {
				t.Errorf("%v, want %v", err, tt.want)
			}
			details, err := f.Warehouses().Load(f.ctx, "lake")
			must(t, err)
			if marked := details.Properties["marked"] == "x"; details.Storage["endpoint"] != tt.endpoint || marked != tt.wantsMarked {
				t.Errorf("the warehouse is %+v", details)
			}
		})
	}
}

// TestValidate tries the storage of warehouses that do what they offer, and of some that do not.
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
			f, venders, _ := newVendingFixture(t, bothWays...)
			if given := f.given("a", bothWays...); given.Delegation == "" {
				t.Fatal("nothing is given before")
			}
			venders.probes = tt.probes
			found, err := f.Warehouses().Validate(f.ctx, "lake")
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
			details, err := f.Warehouses().Load(f.ctx, "lake")
			must(t, err)
			if given := f.given("a", bothWays...); (len(details.Delegation) == 0) != tt.stops || (given.Delegation == "") != tt.stops {
				t.Errorf("afterwards the warehouse offers %q, and %q is given", details.Delegation, given.Delegation)
			}
			f.wantClean()
		})
	}
}

// TestStopVendingWhileTheStorageIsAway takes what is offered away, which needs no storage.
func TestStopVendingWhileTheStorageIsAway(t *testing.T) {
	t.Parallel()
	f, venders, _ := newVendingFixture(t, bothWays...)
	venders.probes = storage.ErrUnavailable
	for _, tt := range []struct {
		offers []vending.Delegation
		want   moorage.Kind
	}{
		{[]vending.Delegation{vending.RemoteSigning}, 0}, {bothWays, moorage.KindUnavailable}, {[]vending.Delegation{}, 0},
	} {
		_, err := f.Warehouses().Change(f.ctx, "lake", warehouses.Change{Delegation: tt.offers})
		if moorage.KindOf(err) != tt.want {
			t.Errorf("offer %q: %v, want %v", tt.offers, err, tt.want)
		}
	}
	if given := f.given("a", bothWays...); given.Delegation != "" {
		t.Errorf("engines are still given %q", given.Delegation)
	}
}

// TestListWarehouses lists in pages of one.
func TestListWarehouses(t *testing.T) {
	t.Parallel()
	f, _ := newRemoteFixture(t)
	var names []string
	for page := (moorage.Page{Limit: 1}); ; {
		found, next, err := f.Warehouses().List(f.ctx, page)
		must(t, err)
		for _, each := range found {
			names = append(names, each.Name)
		}
		if page.After = next; next == "" {
			break
		}
	}
	if want := []string{"lake", testWarehouse}; !slices.Equal(names, want) {
		t.Errorf("listed %q, want %q", names, want)
	}
	details, err := f.Warehouses().Load(f.ctx, "lake")
	if must(t, err); !maps.Equal(details.Storage, map[string]string{"endpoint": "one"}) || details.ID.IsZero() {
		t.Errorf("loaded %+v", details)
	}
}

// TestRewrapMeetsChanges seals all secrets again by two nodes while a third one replaces them. Each
// is sealed with the newest key in the end, and is what was set last.
func TestRewrapMeetsChanges(t *testing.T) {
	t.Parallel()
	s := newSealed(t)
	for _, name := range []string{"a", "b", "c"} {
		_, err := s.Warehouses().Create(s.ctx, secretSpec(name))
		must(t, err)
	}
	one, two := twoNodes(t, s.fixture, s.store)
	now, _, err := secrets.Rotate(s.path)
	must(t, err)
	must(t, s.keys.Reload())
	var working sync.WaitGroup
	for _, n := range []*instance{one, two} {
		working.Go(func() {
			if _, err := n.As(moorage.System("test")).Warehouses().RewrapSecrets(s.ctx); err != nil {
				t.Error(err)
			}
		})
	}
	working.Go(func() {
		for _, name := range []string{"c", "b", "a"} {
			for moorage.KindCommitFailed == changeSecret(t, s.fixture, name, "new") { // Rewrap was faster
			}
		}
	})
	working.Wait()
	later, err := newInstance(s.config)
	must(t, err)
	for _, name := range []string{"a", "b", "c"} {
		_, err := later.LoadWarehouse(s.ctx, name)
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

func changeSecret(t *testing.T, f *fixture, name, value string) moorage.Kind {
	_, err := f.Warehouses().Change(f.ctx, name, warehouses.Change{Secrets: map[string]map[string]string{
		storage.SecretServer: {"secret-access-key": value},
	}})
	if kind := moorage.KindOf(err); err != nil && kind != moorage.KindCommitFailed {
		t.Error(err)
	}
	return moorage.KindOf(err)
}
