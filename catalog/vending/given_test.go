package vending_test

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
	"moorage/testkit/catalogkit"
)

// TestGivenIsNoted gives credentials and signatures to engines. Each is reported once, without its
// secrets.
func TestGivenIsNoted(t *testing.T) {
	t.Parallel()
	v := new(catalogkit.Venders)
	var noted []vending.Given
	f := catalogkit.New(t, func(config *catalog.Config) {
		catalogkit.WrapStorage(config, func(inner storage.Store) storage.Store { return catalogkit.VenderFiles{Store: inner, Venders: v} })
		config.Given = func(_ context.Context, given vending.Given) { noted = append(noted, given) }
	})
	v.Clock = f.Clock
	_, err := f.Warehouses().Create(f.Ctx, warehouses.Spec{Name: "lake", Location: "s3://bucket/lake", Delegation: catalogkit.BothWays})
	must(t, err)
	_, err = f.CreateNamespace(f.Ctx, "lake", moorage.Namespace{"ns"}, nil)
	must(t, err)
	table, err := f.CreateTable(f.Ctx, catalogkit.LakeIdent(), catalog.CreateTableRequest{Schema: []byte(catalogkit.Schema)})
	must(t, err)
	given := f.Given("corp:ann", vending.VendedCredentials)
	again := f.Given("corp:ann", vending.VendedCredentials) // from the cache
	f.Given("corp:ann")                                     // no delegation requested
	const uri = "https://bucket.s3.amazonaws.com/lake/ns/t/data/x?partNumber=1"
	_, err = f.As(moorage.Caller{Name: "corp:ann"}).Sign(f.Ctx, catalogkit.LakeIdent(), "", vending.SignRequest{Method: "PUT", URI: uri})
	must(t, err)
	v.Fail = storage.ErrNotSigned
	_, err = f.As(moorage.Caller{Name: "corp:ann"}).Sign(f.Ctx, catalogkit.LakeIdent(), "", vending.SignRequest{Method: "PUT", URI: uri})
	catalogkit.WantKind(t, err, moorage.KindForbidden) // reported by the gate
	if len(noted) != 3 {
		t.Fatalf("%d things were noted: %+v", len(noted), noted)
	}
	for i, each := range noted {
		if each.Caller.Name != "corp:ann" || !each.Table.Equal(catalogkit.LakeIdent()) || !each.Write {
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
