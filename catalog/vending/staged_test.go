package vending_test

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
	"moorage/testkit/catalogkit"
)

// stagedIdent returns the name of a staged table, in its own namespace.
func stagedIdent() moorage.Identifier {
	return moorage.Identifier{Warehouse: "lake", Namespace: moorage.Namespace{"alone"}, Name: "staged"}
}

// stage stages stagedIdent as the caller of a catalog, and returns the delegation for it.
func stage(f *catalogkit.Fixture, as *catalog.Catalog, asked ...vending.Delegation) vending.Delegated {
	f.T.Helper()
	table, err := as.CreateTable(f.Ctx, stagedIdent(), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Stage: true})
	must(f.T, err)
	given, err := as.Delegate(f.Ctx, table, asked)
	must(f.T, err)
	if given.Staged == "" || !given.Refresh {
		f.T.Fatalf("the staged table is given %+v", given)
	}
	return given
}

// newStagingFixture returns catalogkit.NewVendingFixture with the namespace of stagedIdent.
func newStagingFixture(t *testing.T) (*catalogkit.Fixture, *catalogkit.Venders) {
	t.Helper()
	f, v, _ := catalogkit.NewVendingFixture(t, catalogkit.BothWays...)
	_, err := f.CreateNamespace(f.Ctx, "lake", stagedIdent().Namespace, nil)
	must(t, err)
	return f, v
}

// TestStagedIsRenewed: the client of a staged table can get new credentials and signatures, before
// and after the table is created.
func TestStagedIsRenewed(t *testing.T) {
	t.Parallel()
	f, v := newStagingFixture(t)
	files := f.Catalog
	if given := stage(f, f.Catalog, vending.RemoteSigning); given.Delegation != vending.RemoteSigning {
		t.Errorf("who can use signatures only is given %+v", given)
	}
	location := stage(f, f.Catalog, catalogkit.BothWays...).Staged
	renewed := func(staged bool) {
		t.Helper()
		f.Clock.Advance(time.Hour)
		given, err := files.LoadCredentials(f.Ctx, stagedIdent(), location)
		asked := askedOf(v)
		life := map[bool]time.Duration{true: 15 * time.Minute}[staged]
		if last := asked[len(asked)-1]; err != nil || given.Delegation != vending.VendedCredentials || !given.Refresh ||
			(given.Staged == location) != staged || last.Duration != life || !slices.Equal(last.Locations, []string{location}) {
			t.Errorf("LoadCredentials = %+v, %v, the storage was asked for %+v", given, err, last)
		}
		_, err = files.Sign(f.Ctx, stagedIdent(), location, vending.SignRequest{Method: "PUT"})
		if last := v.Signed[len(v.Signed)-1]; err != nil || !last.Write || !slices.Equal(last.Locations, []string{location}) {
			t.Errorf("Sign: %v, for %+v", err, last)
		}
	}
	renewed(true)
	_, err := files.LoadCredentials(f.Ctx, stagedIdent(), "")
	catalogkit.WantKind(t, err, moorage.KindNoSuchTable)
	_, err = f.Commit(f.Ctx, stagedIdent(), catalogkit.StagedAt(t, location))
	must(t, err)
	renewed(false)
}

// TestStagedAtAnothersClaim: if another table claims a location at, above or below that of a staged
// table, the client of the staged table permanently loses access to it.
func TestStagedAtAnothersClaim(t *testing.T) {
	t.Parallel()
	for name, claim := range map[string]func(f *catalogkit.Fixture, location string) error{
		"at": func(f *catalogkit.Fixture, location string) error { return f.AnotherAt(location, false) },
		"above": func(f *catalogkit.Fixture, _ string) error {
			return f.AnotherAt("s3://bucket/lake/alone", false)
		},
		"beneath": func(f *catalogkit.Fixture, location string) error { return f.AnotherAt(location+"/data", false) },
		"dropped": func(f *catalogkit.Fixture, location string) error {
			if err := f.AnotherAt(location, false); err != nil {
				return err
			}
			other := catalogkit.LakeIdent()
			other.Name = "other"
			return f.DropTable(f.Ctx, other, catalog.DropOptions{})
		},
		"under the same name, elsewhere": func(f *catalogkit.Fixture, _ string) error {
			_, err := f.Commit(f.Ctx, stagedIdent(), catalogkit.StagedAt(f.T, "s3://bucket/lake/elsewhere"))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, v := newStagingFixture(t)
			location := stage(f, f.Catalog, catalogkit.BothWays...).Staged
			must(t, claim(f, location))
			asked := len(askedOf(v))
			_, err := f.Catalog.LoadCredentials(f.Ctx, stagedIdent(), location)
			catalogkit.WantKind(t, err, moorage.KindNoSuchTable)
			_, err = f.Catalog.Sign(f.Ctx, stagedIdent(), location, vending.SignRequest{Method: "GET"})
			catalogkit.WantKind(t, err, moorage.KindNoSuchTable)
			if len(askedOf(v)) != asked || len(v.Signed) > 0 {
				t.Error("the storage was asked")
			}
		})
	}
}

// TestStagedByPrivilege: each renewal requires the privilege to create the table.
func TestStagedByPrivilege(t *testing.T) {
	t.Parallel()
	v := new(catalogkit.Venders)
	f := catalogkit.New(t, func(config *catalog.Config) {
		catalogkit.WrapStorage(config, func(inner storage.Store) storage.Store { return catalogkit.VenderFiles{Store: inner, Venders: v} })
		config.Guard = gate.New(gate.Config{Store: config.Store, Now: config.Now})
	})
	v.Clock = f.Clock
	_, err := f.Warehouses().Create(f.Ctx, warehouses.Spec{Name: "lake", Location: "s3://bucket/lake", Delegation: catalogkit.BothWays})
	must(t, err)
	_, err = f.CreateNamespace(f.Ctx, "lake", stagedIdent().Namespace, nil)
	must(t, err)
	f.SwitchAccessOn("lake", map[string]string{"corp:c": "create", "corp:w": "write"})
	location := stage(f, f.As(moorage.Caller{Name: "corp:c"}), catalogkit.BothWays...).Staged
	use := func(caller string) (loading, signing error) {
		files := f.As(moorage.Caller{Name: caller})
		_, loading = files.LoadCredentials(f.Ctx, stagedIdent(), location)
		_, signing = files.Sign(f.Ctx, stagedIdent(), location, vending.SignRequest{Method: "PUT"})
		return loading, signing
	}
	loading, signing := use("corp:c")
	must(t, loading)
	must(t, signing)
	for caller, want := range map[string]moorage.Kind{
		"corp:w": moorage.KindForbidden, "corp:stranger": moorage.KindNoSuchWarehouse,
	} {
		loading, signing := use(caller)
		catalogkit.WantKind(t, loading, want)
		catalogkit.WantKind(t, signing, want)
	}
	_, err = f.As(moorage.Caller{Name: "corp:c"}).Commit(f.Ctx, stagedIdent(), catalogkit.StagedAt(t, location))
	must(t, err)
	for _, caller := range []string{"corp:c", "corp:w"} { // its owner, and a caller with write access to all tables
		loading, signing := use(caller)
		must(t, loading)
		must(t, signing)
	}
}
