package catalog_test

import (
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/vending"
	"moorage/catalog/warehouses"
	"moorage/storage"
)

// limitedFiles is a venderFiles whose credentials live for two hours at most.
type limitedFiles struct{ venderFiles }

func (limitedFiles) CredentialLife() time.Duration { return limitedLife }

// TestClaimPassesWhenCredentialsHaveEnded makes tables at the location of one that was dropped.
func TestClaimPassesWhenCredentialsHaveEnded(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		offers  []vending.Delegation
		limited bool
		life    time.Duration
	}{
		"nothing offered":       {nil, false, 0},
		"a storage with limits": {bothWays, true, 2 * time.Hour},
		"a storage without":     {bothWays, false, 12 * time.Hour},
		"signatures alone":      {[]vending.Delegation{vending.RemoteSigning}, true, 15 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := new(venders)
			f := newFixture(t, func(config *catalog.Config) {
				wrapStorage(config, func(inner storage.Store) storage.Store {
					if row.limited {
						return limitedFiles{venderFiles{inner, v}}
					}
					return venderFiles{inner, v}
				})
			})
			v.clock = f.clock
			_, err := f.Warehouses().Create(f.ctx, warehouses.Spec{Name: "lake", Location: "s3://bucket/lake", Delegation: row.offers})
			must(t, err)
			_, err = f.CreateNamespace(f.ctx, "lake", moorage.Namespace{"ns"}, nil)
			must(t, err)
			request := catalog.CreateTableRequest{Schema: []byte(testSchema), Location: "s3://bucket/lake/ns/here"}
			dropped, err := f.CreateTable(f.ctx, lakeIdent(), request)
			must(t, err)
			before, err := f.store.Time(f.ctx)
			must(t, err)
			must(t, f.DropTable(f.ctx, lakeIdent(), catalog.DropOptions{}))
			other := lakeIdent()
			other.Name = "other"
			_, err = f.CreateTable(f.ctx, other, request)
			if row.life == 0 {
				must(t, err)
				return
			}
			wantKind(t, err, moorage.KindCommitFailed)
			_, said, _ := strings.Cut(err.Error(), "until ")
			said, _, _ = strings.Cut(said, ". ")
			until, timeErr := time.Parse(time.RFC3339, said)
			if timeErr != nil || until.Sub(before).Truncate(time.Minute) < row.life-time.Minute ||
				until.Sub(before) > row.life+time.Minute {
				t.Errorf("%s: until %s, the drop was at %s", err, said, before)
			}
			// A staged one is refused as well: credentials for it would reach what others write.
			request.Stage = true
			_, err = f.CreateTable(f.ctx, other, request)
			wantKind(t, err, moorage.KindCommitFailed)
			// The table itself comes back.
			_, err = f.RegisterTable(f.ctx, lakeIdent(), catalog.RegisterRequest{MetadataLocation: dropped.MetadataLocation})
			must(t, err)
		})
	}
}

// TestPathPropertiesLieWithinClaims sets properties that say where files are.
func TestPathPropertiesLieWithinClaims(t *testing.T) {
	t.Parallel()
	f, _, table := newVendingFixture(t, bothWays...)
	own := table.Document.Location()
	set := func(updates string) error {
		_, err := f.Commit(f.ctx, lakeIdent(), commitRequest(t, `[]`, `[`+updates+`]`))
		return err
	}
	property := func(name, value string) string {
		return `{"action":"set-properties","updates":{"` + name + `":"` + value + `"}}`
	}
	for _, name := range []string{"write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path"} {
		for _, elsewhere := range []string{"s3://bucket/lake/ns/others", own + "y", "s3://other/x", "nonsense", "", own + "/../x"} {
			wantKind(t, set(property(name, elsewhere)), moorage.KindBadRequest)
		}
		must(t, set(property(name, own)))
		must(t, set(property(name, own+"/deep/er")))
	}
	must(t, set(property("write.data.paths", "s3://bucket/lake/ns/others")))
	const moved = "s3://bucket/lake/moved"
	must(t, set(`{"action":"set-location","location":"`+moved+`"},`+property("write.data.path", moved+"/data")))
	must(t, set(property("write.data.path", own+"/data"))) // it keeps that claim

	other := lakeIdent()
	other.Name = "other"
	create := catalog.CreateTableRequest{
		Schema: []byte(testSchema), Location: "s3://bucket/lake/ns/o",
		Properties: map[string]string{"write.data.path": "s3://bucket/lake/ns/others"},
	}
	for _, stage := range []bool{false, true} {
		create.Stage = stage
		_, err := f.CreateTable(f.ctx, other, create)
		wantKind(t, err, moorage.KindBadRequest)
	}
	create.Stage, create.Properties["write.data.path"] = false, "s3://bucket/lake/ns/o/data"
	_, err := f.CreateTable(f.ctx, other, create)
	must(t, err)
	err = f.CommitTransaction(f.ctx, "lake", []catalog.TableChange{
		{Ident: other, CommitRequest: commitRequest(t, `[]`, `[`+property("k", "v")+`]`)},
		{Ident: lakeIdent(), CommitRequest: commitRequest(t, `[]`, `[`+property("write.data.path", "s3://bucket/lake/ns/o")+`]`)},
	})
	wantKind(t, err, moorage.KindBadRequest)
}
