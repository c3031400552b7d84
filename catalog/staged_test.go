package catalog_test

import (
	"slices"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/catalog/vending"
	"moorage/catalog/warehouses"
	"moorage/storage"
)

// stagedIdent is a table that is about to be made, in a namespace of its own.
func stagedIdent() moorage.Identifier {
	return moorage.Identifier{Warehouse: "lake", Namespace: moorage.Namespace{"alone"}, Name: "staged"}
}

// stage stages stagedIdent as somebody, and returns the location that the server chose for it.
func (f *fixture) stage(as *catalog.Catalog, asked ...vending.Delegation) vending.Delegated {
	f.t.Helper()
	table, err := as.CreateTable(f.ctx, stagedIdent(), catalog.CreateTableRequest{Schema: []byte(testSchema), Stage: true})
	must(f.t, err)
	given, err := as.Delegate(f.ctx, table, asked)
	must(f.t, err)
	if given.Staged == "" || !given.Refresh {
		f.t.Fatalf("the staged table is given %+v", given)
	}
	return given
}

// newStagingFixture is newVendingFixture with the namespace of stagedIdent.
func newStagingFixture(t *testing.T) (*fixture, *venders) {
	t.Helper()
	f, v, _ := newVendingFixture(t, bothWays...)
	_, err := f.CreateNamespace(f.ctx, "lake", stagedIdent().Namespace, nil)
	must(t, err)
	return f, v
}

// TestStagedIsRenewed: who is about to make a table gets new credentials and signatures for it,
// until it is made and afterwards.
func TestStagedIsRenewed(t *testing.T) {
	t.Parallel()
	f, v := newStagingFixture(t)
	files := f.Catalog
	if given := f.stage(f.Catalog, vending.RemoteSigning); given.Delegation != vending.RemoteSigning {
		t.Errorf("who can use signatures only is given %+v", given)
	}
	location := f.stage(f.Catalog, bothWays...).Staged
	renewed := func(staged bool) {
		t.Helper()
		f.clock.Advance(time.Hour)
		given, err := files.LoadCredentials(f.ctx, stagedIdent(), location)
		asked := v.asked()
		life := map[bool]time.Duration{true: 15 * time.Minute}[staged]
		if last := asked[len(asked)-1]; err != nil || given.Delegation != vending.VendedCredentials || !given.Refresh ||
			(given.Staged == location) != staged || last.Duration != life || !slices.Equal(last.Locations, []string{location}) {
			t.Errorf("LoadCredentials = %+v, %v, the storage was asked for %+v", given, err, last)
		}
		_, err = files.Sign(f.ctx, stagedIdent(), location, vending.SignRequest{Method: "PUT"})
		if last := v.signed[len(v.signed)-1]; err != nil || !last.Write || !slices.Equal(last.Locations, []string{location}) {
			t.Errorf("Sign: %v, for %+v", err, last)
		}
	}
	renewed(true)
	_, err := files.LoadCredentials(f.ctx, stagedIdent(), "")
	wantKind(t, err, moorage.KindNoSuchTable)
	_, err = f.Commit(f.ctx, stagedIdent(), stagedAt(t, location))
	must(t, err)
	renewed(false)
}

// TestStagedAtAnothersClaim: what others claimed at, above or beneath the location of a table that
// is about to be made keeps its maker away from it, for good.
func TestStagedAtAnothersClaim(t *testing.T) {
	t.Parallel()
	for name, claim := range map[string]func(f *fixture, location string) error{
		"at": func(f *fixture, location string) error { return f.anotherAt(location, false) },
		"above": func(f *fixture, _ string) error {
			return f.anotherAt("s3://bucket/lake/alone", false)
		},
		"beneath": func(f *fixture, location string) error { return f.anotherAt(location+"/data", false) },
		"dropped": func(f *fixture, location string) error {
			if err := f.anotherAt(location, false); err != nil {
				return err
			}
			other := lakeIdent()
			other.Name = "other"
			return f.DropTable(f.ctx, other, catalog.DropOptions{})
		},
		"under the same name, elsewhere": func(f *fixture, _ string) error {
			_, err := f.Commit(f.ctx, stagedIdent(), stagedAt(f.t, "s3://bucket/lake/elsewhere"))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, v := newStagingFixture(t)
			location := f.stage(f.Catalog, bothWays...).Staged
			must(t, claim(f, location))
			asked := len(v.asked())
			_, err := f.Catalog.LoadCredentials(f.ctx, stagedIdent(), location)
			wantKind(t, err, moorage.KindNoSuchTable)
			_, err = f.Catalog.Sign(f.ctx, stagedIdent(), location, vending.SignRequest{Method: "GET"})
			wantKind(t, err, moorage.KindNoSuchTable)
			if len(v.asked()) != asked || len(v.signed) > 0 {
				t.Error("the storage was asked")
			}
		})
	}
}

// TestStagedByPrivilege: it takes the right to make the table, each time.
func TestStagedByPrivilege(t *testing.T) {
	t.Parallel()
	v := new(venders)
	f := newFixture(t, func(config *catalog.Config) {
		wrapStorage(config, func(inner storage.Store) storage.Store { return venderFiles{inner, v} })
		config.Guard = gate.New(gate.Config{Store: config.Store, Now: config.Now})
	})
	v.clock = f.clock
	_, err := f.Warehouses().Create(f.ctx, warehouses.Spec{Name: "lake", Location: "s3://bucket/lake", Delegation: bothWays})
	must(t, err)
	_, err = f.CreateNamespace(f.ctx, "lake", stagedIdent().Namespace, nil)
	must(t, err)
	f.switchAccessOn("lake", map[string]string{"corp:c": "create", "corp:w": "write"})
	location := f.stage(f.As(moorage.Caller{Name: "corp:c"}), bothWays...).Staged
	use := func(caller string) (loading, signing error) {
		files := f.As(moorage.Caller{Name: caller})
		_, loading = files.LoadCredentials(f.ctx, stagedIdent(), location)
		_, signing = files.Sign(f.ctx, stagedIdent(), location, vending.SignRequest{Method: "PUT"})
		return loading, signing
	}
	loading, signing := use("corp:c")
	must(t, loading)
	must(t, signing)
	for caller, want := range map[string]moorage.Kind{
		"corp:w": moorage.KindForbidden, "corp:stranger": moorage.KindNoSuchWarehouse,
	} {
		loading, signing := use(caller)
		wantKind(t, loading, want)
		wantKind(t, signing, want)
	}
	_, err = f.As(moorage.Caller{Name: "corp:c"}).Commit(f.ctx, stagedIdent(), stagedAt(t, location))
	must(t, err)
	for _, caller := range []string{"corp:c", "corp:w"} { // its owner, and who may write to all
		loading, signing := use(caller)
		must(t, loading)
		must(t, signing)
	}
}
