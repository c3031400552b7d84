package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/guard"
)

// The table-uuids of forged files.
const forgedUUID, otherForgedUUID = "9c12d441-03fe-4693-9a96-a0705ddf69c2", "9c12d441-03fe-4693-9a96-a0705ddf69c3"

// forge writes a metadata file like that of table with another table-uuid, changed so, and returns
// its location.
func (f *fixture) forge(table *catalog.Table, file, uuid string, changes ...string) string {
	f.t.Helper()
	text := strings.NewReplacer(append(changes, table.Document.UUID(), uuid)...).Replace(string(table.Document.Raw()))
	must(f.t, f.files.Create(f.ctx, file, []byte(text)))
	return file
}

// TestForgedFileWidensNothing: what a registered file names besides its location is not reached,
// and its location must be nobody's.
func TestForgedFileWidensNothing(t *testing.T) {
	t.Parallel()
	f, v, victim := newVendingFixture(t, bothWays...)
	own, theirs := "s3://bucket/lake/ns/own", victim.Document.Location()
	forged := lakeIdent()
	forged.Name = "forged"
	file := f.forge(victim, own+"/metadata/a.metadata.json", forgedUUID, `"location":"`+theirs+`"`, `"location":"`+own+`"`,
		`"properties":{`, `"properties":{"write.data.path":"`+theirs+`/data",`)
	table, err := f.RegisterTable(f.ctx, forged, catalog.RegisterRequest{MetadataLocation: file})
	must(t, err)
	if !strings.Contains(string(table.Document.Raw()), theirs+"/data") {
		t.Fatalf("the file names nothing of the other table: %s", table.Document.Raw())
	}
	given, err := catalog.FilesOf(f.Catalog).Delegate(f.ctx, table, bothWays)
	must(t, err)
	if asked := v.asked()[0]; !slices.Equal(asked.Locations, []string{own}) || given.Prefix != own+"/" {
		t.Errorf("asked for %+v, given %+v", asked, given)
	}
	_, err = catalog.FilesOf(f.Catalog).Sign(f.ctx, forged, "", catalog.SignRequest{Method: "GET"})
	must(t, err)
	if signed := v.signed[0]; !slices.Equal(signed.Locations, []string{own}) {
		t.Errorf("signed for %q", signed.Locations)
	}
	forged.Name = "again"
	for _, location := range []string{theirs, theirs + "/data", "s3://bucket/lake/ns"} {
		file := f.forge(victim, location+"/metadata/b.metadata.json", otherForgedUUID, `"location":"`+theirs+`"`,
			`"location":"`+location+`"`)
		_, err := f.RegisterTable(f.ctx, forged, catalog.RegisterRequest{MetadataLocation: file})
		wantKind(t, err, moorage.KindBadRequest)
	}
}

// TestTakingOverTakesDrop: the location of a dropped table passes to who has drop on that table. A
// new table without a location of its own leaves it alone.
func TestTakingOverTakesDrop(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(config *catalog.Config) {
		config.Guard = guard.New(guard.Config{Store: config.Store, Now: config.Now})
	})
	_, err := f.CreateWarehouse(f.ctx, catalog.WarehouseSpec{Name: "lake", Location: "s3://bucket/lake"})
	must(t, err)
	_, err = f.CreateNamespace(f.ctx, "lake", moorage.Namespace{"ns"}, nil)
	must(t, err)
	maker, owner := f.As(moorage.Caller{Name: "corp:maker"}), f.As(moorage.Caller{Name: "corp:owner"})
	dropped, err := owner.CreateTable(f.ctx, lakeIdent(), catalog.CreateTableRequest{Schema: []byte(testSchema)})
	must(t, err)
	must(t, owner.DropTable(f.ctx, lakeIdent(), catalog.DropOptions{}))
	location := dropped.Document.Location()
	f.switchAccessOn("lake", map[string]string{"corp:maker": "create,locate", "corp:owner": "create,locate"})
	beside := lakeIdent()
	beside.Name = "beside"
	made, err := maker.CreateTable(f.ctx, lakeIdent(), catalog.CreateTableRequest{Schema: []byte(testSchema)})
	must(t, err)
	if made.Document.Location() == location {
		t.Errorf("the new table is where the dropped one is, %s", location)
	}
	request := catalog.CreateTableRequest{Schema: []byte(testSchema), Location: location}
	_, err = maker.CreateTable(f.ctx, beside, request)
	wantKind(t, err, moorage.KindForbidden)
	_, err = maker.Commit(f.ctx, lakeIdent(), moveTo(t, location))
	wantKind(t, err, moorage.KindForbidden)
	_, err = maker.Commit(f.ctx, beside, stagedAt(t, location))
	wantKind(t, err, moorage.KindForbidden)
	file := f.forge(dropped, "s3://bucket/lake/ns/a.metadata.json", forgedUUID)
	_, err = maker.RegisterTable(f.ctx, beside, catalog.RegisterRequest{MetadataLocation: file})
	wantKind(t, err, moorage.KindForbidden)
	_, err = owner.CreateTable(f.ctx, beside, request)
	must(t, err)
}
