package claims_test

import (
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/registry"
	"moorage/registry/memory"
	"moorage/testkit/catalogkit"
)

// TestTombstoneTakesLocate: a table that has left a location may live on in another catalog. So a
// tenant with only create cannot get that location, or one above or below it, by any request. If
// the request names no location, the tenant gets a different one.
func TestTombstoneTakesLocate(t *testing.T) {
	t.Parallel()
	const left = "file:///wh/ns/deep/t"
	for _, at := range []string{left, "file:///wh/ns/deep", left + "/in/ner"} {
		for way, ask := range map[string]func(c *catalogkit.Instance, location string) error{
			"create": func(c *catalogkit.Instance, location string) error {
				_, err := c.CreateTable(t.Context(), ident("mine"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Location: location})
				return err
			},
			"stage": func(c *catalogkit.Instance, location string) error {
				_, err := c.CreateTable(t.Context(), ident("mine"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Location: location, Stage: true})
				return err
			},
			"commit": func(c *catalogkit.Instance, location string) error {
				_, err := c.Commit(t.Context(), ident("mine"), catalogkit.StagedAt(t, location))
				return err
			},
			"view": func(c *catalogkit.Instance, location string) error {
				_, err := c.CreateView(t.Context(), ident("mine"), catalogkit.ViewRequest(location))
				return err
			},
		} {
			t.Run(way+" "+at, func(t *testing.T) {
				t.Parallel()
				s := catalogkit.NewSecured(t, memory.New(newLockedRandom(1)), true)
				s.Populate()
				s.Grant(catalogkit.OnWarehouse(), catalogkit.AnnName, access.Locate)
				_, err := s.Named(catalogkit.AnnName).CreateTable(t.Context(), ident("there"), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Location: left})
				must(t, err)
				_, err = s.Named(catalogkit.AnnName).UnregisterTable(t.Context(), ident("there"))
				must(t, err)
				s.Grant(catalogkit.OnNamespace("ns"), catalogkit.BobName, access.Create)
				catalogkit.WantKind(t, ask(s.Named(catalogkit.BobName), at), moorage.KindForbidden)
				s.Grant(catalogkit.OnNamespace("ns"), catalogkit.BobName, access.Locate)
				must(t, ask(s.Named(catalogkit.BobName), at))
			})
		}
	}
}

// TestWhatGoneTablesLeave: it depends on how a table ends whether a tombstone is left at its
// location. If one is left, the next default location gets a suffix.
func TestWhatGoneTablesLeave(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		leave func(f *catalogkit.Fixture, table *catalog.Table) error
		how   string // empty if no tombstone is left
	}{
		"unregister": {func(f *catalogkit.Fixture, _ *catalog.Table) error {
			_, err := f.UnregisterTable(f.Ctx, ident("t"))
			return err
		}, registry.EndedUnregister},
		"window": {func(f *catalogkit.Fixture, _ *catalog.Table) error {
			err := f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{})
			f.Clock.Advance(catalogkit.UndropWindow + time.Second)
			must(f.T, f.EndWindows(f.Ctx))
			return err
		}, registry.EndedWindow},
		"purge": {func(f *catalogkit.Fixture, _ *catalog.Table) error {
			must(f.T, f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{Purge: true}))
			return f.PurgeAll(f.Ctx)
		}, ""},
		"purge that leaves a file": {func(f *catalogkit.Fixture, table *catalog.Table) error {
			must(f.T, f.Files.Create(f.Ctx, table.Document.Location()+"/data/of-another-job.parquet", []byte("x")))
			must(f.T, f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{Purge: true}))
			return f.PurgeAll(f.Ctx)
		}, registry.EndedPurge},
		"purge without its metadata": {func(f *catalogkit.Fixture, table *catalog.Table) error {
			must(f.T, f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{Purge: true}))
			must(f.T, f.Files.Delete(f.Ctx, table.MetadataLocation))
			return f.PurgeAll(f.Ctx)
		}, registry.EndedPurge},
		"takeover": {func(f *catalogkit.Fixture, table *catalog.Table) error {
			must(f.T, f.DropTable(f.Ctx, ident("t"), catalog.DropOptions{}))
			f.CreateAt("other", table.Document.Location())
			return nil
		}, registry.EndedTakeover},
	} {
		for storeName, open := range stores.Kinds() {
			t.Run(name+" "+storeName, func(t *testing.T) {
				t.Parallel()
				f := catalogkit.New(t, func(c *catalog.Config) {
					c.Store = catalogkit.ClockedStore{Store: open(t, newLockedRandom(5)), Now: c.Now}
				})
				table, pointer := f.Create("t"), f.PointerOf("t").ID
				location := table.Document.Location()
				must(t, test.leave(f, table))
				f.WantClean()
				records, err := f.Ledger.Get(f.Ctx, registry.TombstoneKey(location))
				must(t, err)
				again := f.Create("t").Document.Location()
				if test.how == "" {
					if records[0].Exists() || again != location {
						t.Errorf("there is %q, and the next one lives at %s", records[0].Value, again)
					}
					return
				}
				left, err := registry.Decode[registry.Tombstone](records[0])
				must(t, err)
				if left.How != test.how || !left.Lasting || left.Pointer != pointer || left.TableUUID != table.Document.UUID() || left.WarehouseID.IsZero() {
					t.Errorf("there is %+v", left)
				}
				if !strings.HasPrefix(again, location+"-") {
					t.Errorf("the next one lives at %s", again)
				}
				f.WantClean()
			})
		}
	}
}

// TestTombstoneOfItsOwn: a table can take back its own location, and that removes its tombstone.
func TestTombstoneOfItsOwn(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t)
	table := f.Create("t")
	_, err := f.UnregisterTable(f.Ctx, ident("t"))
	must(t, err)
	_, err = f.RegisterTable(f.Ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: table.MetadataLocation})
	must(t, err)
	left, err := f.Ledger.ListKeys(f.Ctx, registry.TableTombstone, "", "", 1)
	if err != nil || len(left) > 0 {
		t.Errorf("there is %v (%v)", left, err)
	}
	f.WantClean()
}
