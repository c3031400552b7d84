package catalog_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/vending"
	"moorage/catalog/warehouses"
	"moorage/storage"
)

// TestGivenIsNoted lets engines have credentials and signatures. Each is noted once, without
// anything secret.
func TestGivenIsNoted(t *testing.T) {
	t.Parallel()
	v := new(venders)
	var noted []vending.Given
	f := newFixture(t, func(config *catalog.Config) {
		wrapStorage(config, func(inner storage.Store) storage.Store { return venderFiles{inner, v} })
		config.Given = func(_ context.Context, given vending.Given) { noted = append(noted, given) }
	})
	v.clock = f.clock
	_, err := f.Warehouses().Create(f.ctx, warehouses.Spec{Name: "lake", Location: "s3://bucket/lake", Delegation: bothWays})
	must(t, err)
	_, err = f.CreateNamespace(f.ctx, "lake", moorage.Namespace{"ns"}, nil)
	must(t, err)
	table, err := f.CreateTable(f.ctx, lakeIdent(), catalog.CreateTableRequest{Schema: []byte(testSchema)})
	must(t, err)
	given := f.given("corp:ann", vending.VendedCredentials)
	again := f.given("corp:ann", vending.VendedCredentials) // from memory
	f.given("corp:ann")                                     // nothing
	const uri = "https://bucket.s3.amazonaws.com/lake/ns/t/data/x?partNumber=1"
	_, err = f.As(moorage.Caller{Name: "corp:ann"}).Sign(f.ctx, lakeIdent(), "", vending.SignRequest{Method: "PUT", URI: uri})
	must(t, err)
	v.fail = storage.ErrNotSigned
	_, err = f.As(moorage.Caller{Name: "corp:ann"}).Sign(f.ctx, lakeIdent(), "", vending.SignRequest{Method: "PUT", URI: uri})
	wantKind(t, err, moorage.KindForbidden) // the gate hears of it
	if len(noted) != 3 {
		t.Fatalf("%d things were noted: %+v", len(noted), noted)
	}
	for i, each := range noted {
		if each.Caller.Name != "corp:ann" || !each.Table.Equal(lakeIdent()) || !each.Write {
			t.Errorf("noted %+v", each)
		}
		if text := fmt.Sprintf("%+v", each); strings.Contains(text, given.Credential.Config["s3.session-token"]) || strings.Contains(text, "partNumber") {
			t.Errorf("noted too much: %s", text)
		}
		if i == 2 {
			continue
		}
		if each.Credential == "" || each.Credential != noted[0].Credential || !each.Ends.Equal(again.Credential.Expires) ||
			!slices.Equal(each.Locations, []string{table.Document.Location()}) {
			t.Errorf("noted %+v", each)
		}
	}
	if last := noted[2]; last.Method != "PUT" || len(last.Target) != 64 || last.Credential != "" {
		t.Errorf("noted %+v", last)
	}
}
