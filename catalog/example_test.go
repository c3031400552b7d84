package catalog_test

import (
	"context"
	"crypto/rand"
	"fmt"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/internal/jsontext"
	"moorage/ledger"
	"moorage/locks"
	"moorage/metadata"
	registry "moorage/registry/memory"
	"moorage/storage"
	files "moorage/storage/memory"
	"moorage/testkit/registrytest"
)

// A catalog stands on a store of records, on locks, and on what opens storages. A commit changes a
// table and returns its new version.
func ExampleCatalog() {
	ctx := context.Background()
	lake := files.New()
	c, err := catalog.New(catalog.Config{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: registry.New(rand.Reader)}), Locks: locks.NewLocal(locks.LocalConfig{}),
		OpenStorage: func(place storage.Place) (storage.Store, error) { return lake.Within(place.Roots) },
	})
	if err == nil {
		c = c.As(moorage.Anonymous())
		_, err = c.Warehouses().Create(ctx, warehouses.Spec{Name: "sales", Location: "file:///lake"})
	}
	if err == nil {
		_, err = c.CreateNamespace(ctx, "sales", moorage.Namespace{"eu"}, nil)
	}
	orders := moorage.Identifier{Warehouse: "sales", Namespace: moorage.Namespace{"eu"}, Name: "orders"}
	if err == nil {
		schema := []byte(`{"type":"struct","fields":[{"id":1,"name":"id","required":true,"type":"long"}]}`)
		_, err = c.CreateTable(ctx, orders, catalog.CreateTableRequest{Schema: schema})
	}
	var body jsontext.Checked
	if err == nil {
		body, err = jsontext.Check([]byte(`[{"action":"set-properties","updates":{"team":"b"}}]`))
	}
	var updates []metadata.Update
	if err == nil {
		updates, err = metadata.DecodeUpdates(body)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	table, err := c.Commit(ctx, orders, catalog.CommitRequest{Updates: updates})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(table.Document.Properties()["team"])
	orders.Name = "returns"
	_, err = c.LoadTable(ctx, orders)
	fmt.Println(moorage.KindOf(err))
	// Output:
	// b
	// no such table
}
