package catalog_test

import (
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/ledger"
	"moorage/maintenance/retention"
	"moorage/registry"
	"moorage/storage"
	"moorage/testkit/registrytest"
)

// The life of a limitedFiles credential.
const limitedLife = 2 * time.Hour

// restingTable is where a table lived that is gone. Credentials for it may have been given.
const restingTable = "s3://bucket/lake/ns/here"

// newRestingFixture returns a fixture with a table at restingTable, in a warehouse whose
// credentials live for limitedLife.
func newRestingFixture(t *testing.T) (*fixture, *catalog.Table) {
	t.Helper()
	v := new(venders)
	f := newFixture(t, func(config *catalog.Config) {
		wrapStorage(config, func(inner storage.Store) storage.Store { return limitedFiles{venderFiles{inner, v}} })
	})
	v.clock = f.clock
	_, err := f.Warehouses().Create(f.ctx, warehouses.Spec{Name: "lake", Location: "s3://bucket/lake", Delegation: bothWays})
	must(t, err)
	_, err = f.CreateNamespace(f.ctx, "lake", moorage.Namespace{"ns"}, nil)
	must(t, err)
	table, err := f.CreateTable(f.ctx, lakeIdent(), catalog.CreateTableRequest{Schema: []byte(testSchema), Location: restingTable})
	must(t, err)
	return f, table
}

// anotherAt makes, or stages, another table at a location.
func (f *fixture) anotherAt(location string, stage bool) error {
	other := lakeIdent()
	other.Name = "other"
	_, err := f.CreateTable(f.ctx, other, catalog.CreateTableRequest{Schema: []byte(testSchema), Location: location, Stage: stage})
	return err
}

// TestClaimOfWhatIsGonePasses: however a table has gone, its location passes to another one when
// the last credential for it has ended, and not before.
func TestClaimOfWhatIsGonePasses(t *testing.T) {
	t.Parallel()
	ways := map[string]func(f *fixture) error{
		"unregistered": func(f *fixture) error {
			_, err := f.UnregisterTable(f.ctx, lakeIdent())
			return err
		},
		"purged": func(f *fixture) error {
			if err := f.DropTable(f.ctx, lakeIdent(), catalog.DropOptions{Purge: true}); err != nil {
				return err
			}
			f.clock.Advance(time.Hour) // nothing of it has to be answered again
			return f.purgeAll(f.ctx)
		},
		"dropped, with a short window": func(f *fixture) error {
			if err := f.DropTable(f.ctx, lakeIdent(), catalog.DropOptions{}); err != nil {
				return err
			}
			f.clock.Advance(time.Hour)
			made, err := retention.New(retention.Config{
				Deps: registrytest.LedgerDeps(ledger.Config{Store: f.config.Store, Now: f.config.Now, Random: newLockedRandom(2)}), KeyLife: f.keyLife(), UndropWindow: time.Minute,
			})
			if err != nil {
				return err
			}
			return made.RunOnce(f.ctx, retention.Windows)
		},
	}
	for name, leave := range ways {
		for _, swept := range []bool{false, true} {
			for _, at := range []string{restingTable, restingTable + "/within"} {
				t.Run(strings.Join([]string{name, at[len(restingTable):], map[bool]string{true: "swept"}[swept]}, " "), func(t *testing.T) {
					t.Parallel()
					f, _ := newRestingFixture(t)
					began := f.clock.Now()
					must(t, leave(f))
					if pointers, err := f.ledger.ListKeys(f.ctx, registry.TablePointer, "", "", 1); err != nil || len(pointers) > 0 {
						t.Fatalf("there are still the pointers %v (%v)", pointers, err)
					}
					must(t, f.sweepFolders(f.ctx))
					end := began.Add(limitedLife)
					for _, stage := range []bool{false, true} {
						err := f.anotherAt(at, stage)
						wantKind(t, err, moorage.KindCommitFailed)
						if want := "until " + end.Format(time.RFC3339); err != nil && !strings.Contains(err.Error(), want) {
							t.Errorf("%s, want it %s", err, want)
						}
					}
					f.wantClean()
					f.clock.Advance(end.Sub(f.clock.Now()))
					if swept {
						f.clearTombstones() // which the purge did not need
						for range strings.Count(restingTable, "/") {
							must(t, f.sweepFolders(f.ctx))
						}
						records, err := f.ledger.Get(f.ctx, registry.LocationKey(restingTable))
						if err != nil || records[0].Exists() {
							t.Errorf("after the sweep there is %v (%v)", records[0].State, err)
						}
					}
					must(t, f.anotherAt(at, false))
					f.wantClean()
				})
			}
		}
	}
}

// TestUnregisteredComesBack: a table that was unregistered is registered again at once. Its
// location is as well kept from others as before.
func TestUnregisteredComesBack(t *testing.T) {
	t.Parallel()
	f, table := newRestingFixture(t)
	_, err := f.UnregisterTable(f.ctx, lakeIdent())
	must(t, err)
	_, err = f.RegisterTable(f.ctx, lakeIdent(), catalog.RegisterRequest{MetadataLocation: table.MetadataLocation})
	must(t, err)
	f.clock.Advance(limitedLife)
	must(t, f.sweepFolders(f.ctx))
	wantKind(t, f.anotherAt(restingTable, false), moorage.KindBadRequest)
	f.wantClean()
}

// TestRegisterOverKeepsClaims: a table that takes the name of another one by a register does not
// get its location, neither at once nor before the credentials for it have ended.
func TestRegisterOverKeepsClaims(t *testing.T) {
	t.Parallel()
	f, table := newRestingFixture(t)
	over := func(location string) error {
		text := strings.Replace(string(table.Document.Raw()), table.Document.UUID(), "9c12d441-03fe-4693-9a96-a0705ddf69c2", 1)
		text = strings.ReplaceAll(text, restingTable, location)
		file := location + "/metadata/copy.metadata.json"
		must(t, f.files.Create(f.ctx, file, []byte(text)))
		_, err := f.RegisterTable(f.ctx, lakeIdent(), catalog.RegisterRequest{MetadataLocation: file, Overwrite: true})
		return err
	}
	end := f.clock.Now().Add(limitedLife)
	err := over(restingTable)
	wantKind(t, err, moorage.KindCommitFailed)
	if want := "Drop it now, and repeat the request after " + end.Format(time.RFC3339); !strings.Contains(err.Error(), want) {
		t.Errorf("%s, want %s", err, want)
	}
	if now, err := f.LoadTable(f.ctx, lakeIdent()); err != nil || now.Document.UUID() != table.Document.UUID() {
		t.Errorf("the refused register left %v (%v)", now, err)
	}
	must(t, over("s3://bucket/lake/ns/there"))
	wantKind(t, f.anotherAt(restingTable, false), moorage.KindCommitFailed)
	f.clock.Advance(limitedLife)
	must(t, f.anotherAt(restingTable, false))
	f.wantClean()
}
