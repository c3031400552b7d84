package vending_test

import (
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/vending"
	"moorage/catalog/warehouses"
	"moorage/ledger"
	"moorage/maintenance/retention"
	"moorage/registry"
	"moorage/testkit/catalogkit"
	"moorage/testkit/registrytest"
)

// TestClaimOfWhatIsGonePasses: however a table has ended, its location can be reused after the last
// credential for it has expired, and not earlier.
func TestClaimOfWhatIsGonePasses(t *testing.T) {
	t.Parallel()
	ways := map[string]func(f *catalogkit.Fixture) error{
		"unregistered": func(f *catalogkit.Fixture) error {
			_, err := f.UnregisterTable(f.Ctx, catalogkit.LakeIdent())
			return err
		},
		"purged": func(f *catalogkit.Fixture) error {
			if err := f.DropTable(f.Ctx, catalogkit.LakeIdent(), catalog.DropOptions{Purge: true}); err != nil {
				return err
			}
			f.Clock.Advance(time.Hour) // so no outcome of a key needs its versions
			return f.PurgeAll(f.Ctx)
		},
		"dropped, with a short window": func(f *catalogkit.Fixture) error {
			if err := f.DropTable(f.Ctx, catalogkit.LakeIdent(), catalog.DropOptions{}); err != nil {
				return err
			}
			f.Clock.Advance(time.Hour)
			made, err := retention.New(retention.Config{
				Deps: registrytest.LedgerDeps(ledger.Config{Store: f.Config.Store, Now: f.Config.Now, Random: newLockedRandom(2)}), KeyLife: f.KeyLife(), UndropWindow: time.Minute,
			})
			if err != nil {
				return err
			}
			return made.RunOnce(f.Ctx, retention.Windows)
		},
	}
	for name, leave := range ways {
		for _, swept := range []bool{false, true} {
			for _, at := range []string{catalogkit.RestingTable, catalogkit.RestingTable + "/within"} {
				t.Run(strings.Join([]string{name, at[len(catalogkit.RestingTable):], map[bool]string{true: "swept"}[swept]}, " "), func(t *testing.T) {
					t.Parallel()
					f, _ := catalogkit.NewRestingFixture(t)
					began := f.Clock.Now()
					must(t, leave(f))
					if pointers, err := f.Ledger.ListKeys(f.Ctx, registry.TablePointer, "", "", 1); err != nil || len(pointers) > 0 {
						t.Fatalf("there are still the pointers %v (%v)", pointers, err)
					}
					must(t, f.SweepFolders(f.Ctx))
					end := began.Add(catalogkit.LimitedLife)
					for _, stage := range []bool{false, true} {
						err := f.AnotherAt(at, stage)
						catalogkit.WantKind(t, err, moorage.KindCommitFailed)
						if want := "until " + end.Format(time.RFC3339); err != nil && !strings.Contains(err.Error(), want) {
							t.Errorf("%s, want it %s", err, want)
						}
					}
					f.WantClean()
					f.Clock.Advance(end.Sub(f.Clock.Now()))
					if swept {
						f.ClearTombstones() // not needed after a purge
						for range strings.Count(catalogkit.RestingTable, "/") {
							must(t, f.SweepFolders(f.Ctx))
						}
						records, err := f.Ledger.Get(f.Ctx, registry.LocationKey(catalogkit.RestingTable))
						if err != nil || records[0].Exists() {
							t.Errorf("after the sweep there is %v (%v)", records[0].State, err)
						}
					}
					must(t, f.AnotherAt(at, false))
					f.WantClean()
				})
			}
		}
	}
}

// TestDropReadsTheOffers: another node has just made a warehouse offer credentials, and has given
// one. A node that still has the earlier warehouse in memory drops the table. Its location is
// reserved until the credential has expired, and a purge reaches the files as the present warehouse
// does.
func TestDropReadsTheOffers(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(f *catalogkit.Fixture, node *catalogkit.Instance) error{
		"drop": func(f *catalogkit.Fixture, node *catalogkit.Instance) error {
			return node.DropTable(f.Ctx, catalogkit.LakeIdent(), catalog.DropOptions{})
		},
		"unregister": func(f *catalogkit.Fixture, node *catalogkit.Instance) error {
			_, err := node.UnregisterTable(f.Ctx, catalogkit.LakeIdent())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _ := catalogkit.NewRestingFixture(t)
			_, err := f.Warehouses().Change(f.Ctx, "lake", warehouses.Change{Delegation: []vending.Delegation{}})
			must(t, err)
			node := f.Other(f.Store)
			_, err = node.LoadTable(f.Ctx, catalogkit.LakeIdent())
			must(t, err)
			_, err = f.Warehouses().Change(f.Ctx, "lake", warehouses.Change{
				Delegation: catalogkit.BothWays, Storage: map[string]*string{"region": new("b")},
			})
			must(t, err)
			if given := f.Given("a", catalogkit.BothWays...); given.Delegation != vending.VendedCredentials {
				t.Fatalf("given %+v", given)
			}
			must(t, leave(f, node))
			pointers, err := f.Ledger.List(f.Ctx, registry.TablePointer, "", "", 1)
			must(t, err)
			for _, record := range pointers {
				if dropped, err := ledger.Decode[registry.Pointer](record); err != nil || dropped.Storage["region"] != "b" {
					t.Errorf("it was dropped with the storage %v, %v", dropped.Storage, err)
				}
			}
			catalogkit.WantKind(t, f.AnotherAt(catalogkit.RestingTable, false), moorage.KindCommitFailed)
			f.Clock.Advance(catalogkit.LimitedLife)
			must(t, f.AnotherAt(catalogkit.RestingTable, false))
			f.WantClean()
		})
	}
}

// TestUnregisteredComesBack: an unregistered table can be registered again at once. Its location is
// then protected from other tables as before.
func TestUnregisteredComesBack(t *testing.T) {
	t.Parallel()
	f, table := catalogkit.NewRestingFixture(t)
	_, err := f.UnregisterTable(f.Ctx, catalogkit.LakeIdent())
	must(t, err)
	_, err = f.RegisterTable(f.Ctx, catalogkit.LakeIdent(), catalog.RegisterRequest{MetadataLocation: table.MetadataLocation})
	must(t, err)
	f.Clock.Advance(catalogkit.LimitedLife)
	must(t, f.SweepFolders(f.Ctx))
	catalogkit.WantKind(t, f.AnotherAt(catalogkit.RestingTable, false), moorage.KindBadRequest)
	f.WantClean()
}

// TestRegisterOverKeepsClaims: if a register replaces another table of the same name, the new table
// cannot get the old one's location until the credentials for it have expired.
func TestRegisterOverKeepsClaims(t *testing.T) {
	t.Parallel()
	f, table := catalogkit.NewRestingFixture(t)
	over := func(location string) error {
		text := strings.Replace(string(table.Document.Raw()), table.Document.UUID(), "9c12d441-03fe-4693-9a96-a0705ddf69c2", 1)
		text = strings.ReplaceAll(text, catalogkit.RestingTable, location)
		file := location + "/metadata/copy.metadata.json"
		must(t, f.Files.Create(f.Ctx, file, []byte(text)))
		_, err := f.RegisterTable(f.Ctx, catalogkit.LakeIdent(), catalog.RegisterRequest{MetadataLocation: file, Overwrite: true})
		return err
	}
	end := f.Clock.Now().Add(catalogkit.LimitedLife)
	err := over(catalogkit.RestingTable)
	catalogkit.WantKind(t, err, moorage.KindCommitFailed)
	if want := "Drop it now, and repeat the request after " + end.Format(time.RFC3339); !strings.Contains(err.Error(), want) {
		t.Errorf("%s, want %s", err, want)
	}
	if now, err := f.LoadTable(f.Ctx, catalogkit.LakeIdent()); err != nil || now.Document.UUID() != table.Document.UUID() {
		t.Errorf("the refused register left %v (%v)", now, err)
	}
	must(t, over("s3://bucket/lake/ns/there"))
	catalogkit.WantKind(t, f.AnotherAt(catalogkit.RestingTable, false), moorage.KindCommitFailed)
	f.Clock.Advance(catalogkit.LimitedLife)
	must(t, f.AnotherAt(catalogkit.RestingTable, false))
	f.WantClean()
}
