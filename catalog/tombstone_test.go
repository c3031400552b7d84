package catalog_test

import (
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/registry"
	"moorage/registry/memory"
)

// TestTombstoneTakesLocate: what lived at a location may live on in another catalog. So a tenant
// who may create there gets neither the location nor one above or below it, by whatever way he
// asks. He gets another one if he names none.
func TestTombstoneTakesLocate(t *testing.T) {
	t.Parallel()
	const left = "file:///wh/ns/deep/t"
	for _, at := range []string{left, "file:///wh/ns/deep", left + "/in/ner"} {
		for way, ask := range map[string]func(c *instance, location string) error{
			"create": func(c *instance, location string) error {
				_, err := c.CreateTable(t.Context(), ident("mine"), catalog.CreateTableRequest{Schema: []byte(testSchema), Location: location})
				return err
			},
			"stage": func(c *instance, location string) error {
				_, err := c.CreateTable(t.Context(), ident("mine"), catalog.CreateTableRequest{Schema: []byte(testSchema), Location: location, Stage: true})
				return err
			},
			"commit": func(c *instance, location string) error {
				_, err := c.Commit(t.Context(), ident("mine"), stagedAt(t, location))
				return err
			},
			"view": func(c *instance, location string) error {
				_, err := c.CreateView(t.Context(), ident("mine"), viewRequest(location))
				return err
			},
		} {
			t.Run(way+" "+at, func(t *testing.T) {
				t.Parallel()
				s := newSecured(t, memory.New(newLockedRandom(1)), true)
				s.populate()
				s.grant(onWarehouse(), annName, access.Locate)
				_, err := s.as(annName).CreateTable(t.Context(), ident("there"), catalog.CreateTableRequest{Schema: []byte(testSchema), Location: left})
				must(t, err)
				_, err = s.as(annName).UnregisterTable(t.Context(), ident("there"))
				must(t, err)
				s.grant(onNamespace("ns"), bobName, access.Create)
				wantKind(t, ask(s.as(bobName), at), moorage.KindForbidden)
				s.grant(onNamespace("ns"), bobName, access.Locate)
				must(t, ask(s.as(bobName), at))
			})
		}
	}
}

// TestWhatGoneTablesLeave: the way in which a table ends decides what is left of its location. The
// default name takes a suffix where something is left.
func TestWhatGoneTablesLeave(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		leave func(f *fixture, table *catalog.Table) error
		how   string // empty: nothing is left
	}{
		"unregister": {func(f *fixture, _ *catalog.Table) error {
			_, err := f.UnregisterTable(f.ctx, ident("t"))
			return err
		}, registry.EndedUnregister},
		"window": {func(f *fixture, _ *catalog.Table) error {
			err := f.DropTable(f.ctx, ident("t"), catalog.DropOptions{})
			f.clock.Advance(undropWindow + time.Second)
			must(f.t, f.endWindows(f.ctx))
			return err
		}, registry.EndedWindow},
		"purge": {func(f *fixture, _ *catalog.Table) error {
			must(f.t, f.DropTable(f.ctx, ident("t"), catalog.DropOptions{Purge: true}))
			return f.purgeAll(f.ctx)
		}, ""},
		"purge that leaves a file": {func(f *fixture, table *catalog.Table) error {
			must(f.t, f.files.Create(f.ctx, table.Document.Location()+"/data/of-another-job.parquet", []byte("x")))
			must(f.t, f.DropTable(f.ctx, ident("t"), catalog.DropOptions{Purge: true}))
			return f.purgeAll(f.ctx)
		}, registry.EndedPurge},
		"purge without its metadata": {func(f *fixture, table *catalog.Table) error {
			must(f.t, f.DropTable(f.ctx, ident("t"), catalog.DropOptions{Purge: true}))
			must(f.t, f.files.Delete(f.ctx, table.MetadataLocation))
			return f.purgeAll(f.ctx)
		}, registry.EndedPurge},
		"takeover": {func(f *fixture, table *catalog.Table) error {
			must(f.t, f.DropTable(f.ctx, ident("t"), catalog.DropOptions{}))
			f.createAt("other", table.Document.Location())
			return nil
		}, registry.EndedTakeover},
	} {
		for storeName, open := range anyStores() {
			t.Run(name+" "+storeName, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, func(c *catalog.Config) { c.Store = clockedStore{open(t, newLockedRandom(5)), c.Now} })
				table := f.create("t")
				location := table.Document.Location()
				must(t, test.leave(f, table))
				f.wantClean()
				records, err := f.ledger.Get(f.ctx, registry.TombstoneKey(location))
				must(t, err)
				again := f.create("t").Document.Location()
				if test.how == "" {
					if records[0].Exists() || again != location {
						t.Errorf("there is %q, and the next one lives at %s", records[0].Value, again)
					}
					return
				}
				left, err := registry.Decode[registry.Tombstone](records[0])
				must(t, err)
				if left.How != test.how || !left.Lasting || left.Pointer != table.PointerID() || left.TableUUID != table.Document.UUID() || left.WarehouseID.IsZero() {
					t.Errorf("there is %+v", left)
				}
				if !strings.HasPrefix(again, location+"-") {
					t.Errorf("the next one lives at %s", again)
				}
				f.wantClean()
			})
		}
	}
}

// TestTombstoneOfItsOwn: a table takes its own location back, and its tombstone goes.
func TestTombstoneOfItsOwn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	table := f.create("t")
	_, err := f.UnregisterTable(f.ctx, ident("t"))
	must(t, err)
	_, err = f.RegisterTable(f.ctx, ident("t"), catalog.RegisterRequest{MetadataLocation: table.MetadataLocation})
	must(t, err)
	left, err := f.ledger.ListKeys(f.ctx, registry.TableTombstone, "", "", 1)
	if err != nil || len(left) > 0 {
		t.Errorf("there is %v (%v)", left, err)
	}
	f.wantClean()
}
