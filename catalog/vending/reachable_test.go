package vending_test

import (
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/vending"
	"moorage/catalog/warehouses"
	"moorage/storage"
	"moorage/testkit/catalogkit"
)

// TestClaimPassesWhenCredentialsHaveEnded creates tables at the location of a dropped table.
func TestClaimPassesWhenCredentialsHaveEnded(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		offers  []vending.Delegation
		limited bool
		life    time.Duration
	}{
		"nothing offered":       {nil, false, 0},
		"a storage with limits": {catalogkit.BothWays, true, 2 * time.Hour},
		"a storage without":     {catalogkit.BothWays, false, 12 * time.Hour},
		"signatures alone":      {[]vending.Delegation{vending.RemoteSigning}, true, 15 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := new(catalogkit.Venders)
			f := catalogkit.New(t, func(config *catalog.Config) {
				catalogkit.WrapStorage(config, func(inner storage.Store) storage.Store {
					if row.limited {
						return catalogkit.LimitedFiles{VenderFiles: catalogkit.VenderFiles{Store: inner, Venders: v}}
					}
					return catalogkit.VenderFiles{Store: inner, Venders: v}
				})
			})
			v.Clock = f.Clock
			_, err := f.Warehouses().Create(f.Ctx, warehouses.Spec{Name: "lake", Location: "s3://bucket/lake", Delegation: row.offers})
			must(t, err)
			_, err = f.CreateNamespace(f.Ctx, "lake", moorage.Namespace{"ns"}, nil)
			must(t, err)
			request := catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Location: "s3://bucket/lake/ns/here"}
			dropped, err := f.CreateTable(f.Ctx, catalogkit.LakeIdent(), request)
			must(t, err)
			before, err := f.Store.Time(f.Ctx)
			must(t, err)
			must(t, f.DropTable(f.Ctx, catalogkit.LakeIdent(), catalog.DropOptions{}))
			other := catalogkit.LakeIdent()
			other.Name = "other"
			_, err = f.CreateTable(f.Ctx, other, request)
			if row.life == 0 {
				must(t, err)
				return
			}
			catalogkit.WantKind(t, err, moorage.KindCommitFailed)
			_, said, _ := strings.Cut(err.Error(), "until ")
			said, _, _ = strings.Cut(said, ". ")
			until, timeErr := time.Parse(time.RFC3339, said)
			if timeErr != nil || until.Sub(before).Truncate(time.Minute) < row.life-time.Minute ||
				until.Sub(before) > row.life+time.Minute {
				t.Errorf("%s: until %s, the drop was at %s", err, said, before)
			}
			// A staged table is refused too: credentials for it would reach files that others
			// write.
			request.Stage = true
			_, err = f.CreateTable(f.Ctx, other, request)
			catalogkit.WantKind(t, err, moorage.KindCommitFailed)
			// The table itself can be restored.
			_, err = f.RegisterTable(f.Ctx, catalogkit.LakeIdent(), catalog.RegisterRequest{MetadataLocation: dropped.MetadataLocation})
			must(t, err)
		})
	}
}

// TestPathPropertiesLieWithinClaims sets properties that determine the locations of files.
func TestPathPropertiesLieWithinClaims(t *testing.T) {
	t.Parallel()
	f, _, table := catalogkit.NewVendingFixture(t, catalogkit.BothWays...)
	own := table.Document.Location()
	set := func(updates string) error {
		_, err := f.Commit(f.Ctx, catalogkit.LakeIdent(), catalogkit.CommitRequest(t, `[]`, `[`+updates+`]`))
		return err
	}
	property := func(name, value string) string {
		return `{"action":"set-properties","updates":{"` + name + `":"` + value + `"}}`
	}
	for _, name := range []string{"write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path"} {
		for _, elsewhere := range []string{"s3://bucket/lake/ns/others", own + "y", "s3://other/x", "nonsense", "", own + "/../x"} {
			catalogkit.WantKind(t, set(property(name, elsewhere)), moorage.KindBadRequest)
		}
		must(t, set(property(name, own)))
		must(t, set(property(name, own+"/deep/er")))
	}
	must(t, set(property("write.data.paths", "s3://bucket/lake/ns/others")))
	const moved = "s3://bucket/lake/moved"
	must(t, set(`{"action":"set-location","location":"`+moved+`"},`+property("write.data.path", moved+"/data")))
	must(t, set(property("write.data.path", own+"/data"))) // the table keeps that claim

	other := catalogkit.LakeIdent()
	other.Name = "other"
	create := catalog.CreateTableRequest{
		Schema: []byte(catalogkit.Schema), Location: "s3://bucket/lake/ns/o",
		Properties: map[string]string{"write.data.path": "s3://bucket/lake/ns/others"},
	}
	for _, stage := range []bool{false, true} {
		create.Stage = stage
		_, err := f.CreateTable(f.Ctx, other, create)
		catalogkit.WantKind(t, err, moorage.KindBadRequest)
	}
	create.Stage, create.Properties["write.data.path"] = false, "s3://bucket/lake/ns/o/data"
	_, err := f.CreateTable(f.Ctx, other, create)
	must(t, err)
	err = f.CommitTransaction(f.Ctx, "lake", []catalog.TableChange{
		{Ident: other, CommitRequest: catalogkit.CommitRequest(t, `[]`, `[`+property("k", "v")+`]`)},
		{Ident: catalogkit.LakeIdent(), CommitRequest: catalogkit.CommitRequest(t, `[]`, `[`+property("write.data.path", "s3://bucket/lake/ns/o")+`]`)},
	})
	catalogkit.WantKind(t, err, moorage.KindBadRequest)
}
