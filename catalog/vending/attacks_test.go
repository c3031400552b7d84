package vending_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/catalog/vending"
	"moorage/catalog/warehouses"
	"moorage/registry"
	"moorage/testkit/catalogkit"
)

// forge writes a modified copy of a table's metadata file, with another table-uuid, and returns its
// location. changes lists pairs of old and new texts.
func forge(f *catalogkit.Fixture, table *catalog.Table, file, uuid string, changes ...string) string {
	f.T.Helper()
	text := strings.NewReplacer(append(changes, table.Document.UUID(), uuid)...).Replace(string(table.Document.Raw()))
	must(f.T, f.Files.Create(f.Ctx, file, []byte(text)))
	return file
}

// TestForgedFileWidensNothing: credentials do not reach places that a registered file names in
// addition to its location, and that location must be free.
func TestForgedFileWidensNothing(t *testing.T) {
	t.Parallel()
	f, v, victim := catalogkit.NewVendingFixture(t, catalogkit.BothWays...)
	own, theirs := "s3://bucket/lake/ns/own", victim.Document.Location()
	forged := catalogkit.LakeIdent()
	forged.Name = "forged"
	file := forge(f, victim, own+"/metadata/a.metadata.json", catalogkit.ForgedUUID, `"location":"`+theirs+`"`, `"location":"`+own+`"`,
		`"properties":{`, `"properties":{"write.data.path":"`+theirs+`/data",`)
	table, err := f.RegisterTable(f.Ctx, forged, catalog.RegisterRequest{MetadataLocation: file})
	must(t, err)
	if !strings.Contains(string(table.Document.Raw()), theirs+"/data") {
		t.Fatalf("the file names nothing of the other table: %s", table.Document.Raw())
	}
	given, err := f.Catalog.Delegate(f.Ctx, table, catalogkit.BothWays)
	must(t, err)
	if asked := askedOf(v)[0]; !slices.Equal(asked.Locations, []string{own}) || given.Prefix != own+"/" {
		t.Errorf("asked for %+v, given %+v", asked, given)
	}
	_, err = f.Catalog.Sign(f.Ctx, forged, "", vending.SignRequest{Method: "GET"})
	must(t, err)
	if signed := v.Signed[0]; !slices.Equal(signed.Locations, []string{own}) {
		t.Errorf("signed for %q", signed.Locations)
	}
	forged.Name = "again"
	for _, location := range []string{theirs, theirs + "/data", "s3://bucket/lake/ns"} {
		file := forge(f, victim, location+"/metadata/b.metadata.json", catalogkit.OtherForgedUUID, `"location":"`+theirs+`"`,
			`"location":"`+location+`"`)
		_, err := f.RegisterTable(f.Ctx, forged, catalog.RegisterRequest{MetadataLocation: file})
		catalogkit.WantKind(t, err, moorage.KindBadRequest)
	}
}

// TestTakingOverTakesDrop: only a caller with drop on a dropped table can take over its location. A
// create that names no location does not take it over.
func TestTakingOverTakesDrop(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t, func(config *catalog.Config) {
		config.Guard = gate.New(gate.Config{Store: config.Store, Now: config.Now})
	})
	_, err := f.Warehouses().Create(f.Ctx, warehouses.Spec{Name: "lake", Location: "s3://bucket/lake"})
	must(t, err)
	_, err = f.CreateNamespace(f.Ctx, "lake", moorage.Namespace{"ns"}, nil)
	must(t, err)
	maker, owner := f.As(moorage.Caller{Name: "corp:maker"}), f.As(moorage.Caller{Name: "corp:owner"})
	dropped, err := owner.CreateTable(f.Ctx, catalogkit.LakeIdent(), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
	must(t, err)
	must(t, owner.DropTable(f.Ctx, catalogkit.LakeIdent(), catalog.DropOptions{}))
	location := dropped.Document.Location()
	f.SwitchAccessOn("lake", map[string]string{"corp:maker": "create,locate", "corp:owner": "create,locate"})
	beside := catalogkit.LakeIdent()
	beside.Name = "beside"
	made, err := maker.CreateTable(f.Ctx, catalogkit.LakeIdent(), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
	must(t, err)
	if made.Document.Location() == location {
		t.Errorf("the new table is where the dropped one is, %s", location)
	}
	request := catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Location: location}
	_, err = maker.CreateTable(f.Ctx, beside, request)
	catalogkit.WantKind(t, err, moorage.KindForbidden)
	_, err = maker.Commit(f.Ctx, catalogkit.LakeIdent(), catalogkit.MoveTo(t, location))
	catalogkit.WantKind(t, err, moorage.KindForbidden)
	_, err = maker.Commit(f.Ctx, beside, catalogkit.StagedAt(t, location))
	catalogkit.WantKind(t, err, moorage.KindForbidden)
	file := forge(f, dropped, "s3://bucket/lake/ns/a.metadata.json", catalogkit.ForgedUUID)
	_, err = maker.RegisterTable(f.Ctx, beside, catalog.RegisterRequest{MetadataLocation: file})
	catalogkit.WantKind(t, err, moorage.KindForbidden)
	_, err = owner.CreateTable(f.Ctx, beside, request)
	must(t, err)
}

// TestForeignPlacesTakeLocate: a table or view may name places in the folder of another table only
// if the caller has locate there. In this test, the tenant has all privileges in one namespace.
func TestForeignPlacesTakeLocate(t *testing.T) {
	t.Parallel()
	f := catalogkit.New(t, func(config *catalog.Config) {
		config.Guard = gate.New(gate.Config{Store: config.Store, Now: config.Now})
	})
	_, err := f.Warehouses().Create(f.Ctx, warehouses.Spec{Name: "lake", Location: "s3://bucket/lake"})
	must(t, err)
	mine := moorage.Namespace{"mine"}
	for _, ns := range []moorage.Namespace{{"ns"}, mine} {
		_, err = f.CreateNamespace(f.Ctx, "lake", ns, nil)
		must(t, err)
	}
	victim, err := f.CreateTable(f.Ctx, catalogkit.LakeIdent(), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
	must(t, err)
	own := moorage.Identifier{Warehouse: "lake", Namespace: mine, Name: "own"}
	table, err := f.CreateTable(f.Ctx, own, catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
	must(t, err)
	view := moorage.Identifier{Warehouse: "lake", Namespace: mine, Name: "view"}
	_, err = f.Catalog.CreateView(f.Ctx, view, catalogkit.ViewRequest(""))
	must(t, err)
	f.SwitchAccessOn("lake", map[string]string{"corp:admin": "locate,create,alter,drop,write"})
	grantOn(f, t, own, "corp:tenant", "locate", "create", "alter", "drop", "write")
	tenant, admin := f.As(moorage.Caller{Name: "corp:tenant"}), f.As(moorage.Caller{Name: "corp:admin"})

	theirs, free := victim.Document.Location(), "s3://bucket/lake/free"
	other := own
	for i, tt := range []struct {
		property, place string
		foreign         bool
	}{
		{"write.metadata.path", theirs, true}, {"write.metadata.path", theirs + "/metadata", true},
		{"write.data.path", theirs + "/data", true}, {"write.object-storage.path", theirs, true},
		{"write.folder-storage.path", theirs + "/x", true}, {"write.metadata.path", "s3a://bucket/lake/ns", true},
		{"write.metadata.path", free, false}, {"write.metadata.path", table.Document.Location() + "/m", false},
		{"write.data.paths", theirs, false},
	} {
		properties := map[string]string{tt.property: tt.place}
		change := catalogkit.CommitRequest(t, `[]`, `[{"action":"set-properties","updates":{"`+tt.property+`":"`+tt.place+`"}}]`)
		for who, as := range map[string]*catalog.Catalog{"tenant": tenant, "admin": admin} {
			want := tt.foreign && who == "tenant"
			other.Name = fmt.Sprint(who, i)
			file := forge(f, table, fmt.Sprintf("s3://bucket/lake/mine/%s/metadata/a.metadata.json", other.Name),
				fmt.Sprintf("00000000-0000-0000-0000-0000000%05d", i*10+len(who)), `"location":"`+table.Document.Location()+`"`,
				`"location":"s3://bucket/lake/mine/`+other.Name+`"`, `"properties":{`,
				`"properties":{"`+tt.property+`":"`+tt.place+`",`)
			_, registered := as.RegisterTable(f.Ctx, other, catalog.RegisterRequest{MetadataLocation: file})
			other.Name += "-made"
			_, created := as.CreateTable(f.Ctx, other, catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema), Properties: properties})
			_, committed := as.Commit(f.Ctx, own, change)
			_, replaced := as.ReplaceView(f.Ctx, view, catalogkit.SetViewProperty(t, tt.property, tt.place))
			for how, err := range map[string]error{
				"register": registered, "create": created, "commit": committed, "replace a view": replaced,
			} {
				if (moorage.KindOf(err) == moorage.KindForbidden) != want || !want && err != nil {
					t.Errorf("%s by %s, %s=%s: %v", how, who, tt.property, tt.place, err)
				}
			}
		}
	}
	file := forge(f, table, "s3://bucket/lake/mine/s/metadata/a.metadata.json", catalogkit.ForgedUUID,
		`"location":"`+table.Document.Location()+`"`, `"location":"s3://bucket/lake/mine/s"`, `"statistics":[]`,
		`"statistics":[{"snapshot-id":1,"statistics-path":"`+theirs+`/a.stats","file-size-in-bytes":1,`+
			`"file-footer-size-in-bytes":1,"blob-metadata":[]}]`)
	other.Name = "statistics"
	_, err = tenant.RegisterTable(f.Ctx, other, catalog.RegisterRequest{MetadataLocation: file})
	catalogkit.WantKind(t, err, moorage.KindForbidden)
}

// grantOn grants privileges on the namespace of a table to grantee.
func grantOn(f *catalogkit.Fixture, t *testing.T, ident moorage.Identifier, grantee string, privileges ...string) {
	t.Helper()
	found, err := f.Store.Get(f.Ctx, registry.WarehouseKey(ident.Warehouse))
	must(t, err)
	warehouse, err := registry.Decode[registry.Warehouse](found[0])
	must(t, err)
	records, err := f.Store.Get(f.Ctx, registry.NamespaceKey(warehouse.ID, warehouse.ID, ident.Namespace[0]))
	must(t, err)
	namespace, err := registry.Decode[registry.Namespace](records[0])
	must(t, err)
	value, err := registry.Encode(registry.Grants{Kind: "namespace", Ident: moorage.Identifier{
		Warehouse: ident.Warehouse, Namespace: ident.Namespace,
	}, Grants: []registry.Grant{{Grantee: grantee, Privileges: privileges}}})
	must(t, err)
	_, err = f.Store.Apply(f.Ctx, registry.Batch{
		Conditions: []registry.Condition{registry.Absent(registry.GrantsKey(namespace.ID))},
		Writes:     []registry.Write{registry.Put(registry.GrantsKey(namespace.ID), registry.StateNone, value)},
	})
	must(t, err)
}
