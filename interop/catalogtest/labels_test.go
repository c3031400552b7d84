package catalogtest

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/apache/iceberg-go"
	icebergcatalog "github.com/apache/iceberg-go/catalog"

	"moorage"
	"moorage/access"
	"moorage/registry"
)

// iceberg-go's type for labels decodes the labels that were set. Its tables do not expose them yet,
// so the test reads the response that the client gets.
func TestLabels(t *testing.T) {
	t.Parallel()
	served, uri := newServer(t, "wh")
	client, err := icebergcatalog.Load(t.Context(), "moorage", iceberg.Properties{"type": "rest", "uri": uri})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.CreateNamespace(t.Context(), []string{"sales"}, nil); err != nil {
		t.Fatal(err)
	}
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64})
	if _, err := client.CreateTable(t.Context(), []string{"sales", "orders"}, schema); err != nil {
		t.Fatal(err)
	}
	ident := moorage.Identifier{Warehouse: moorage.DefaultWarehouse, Namespace: []string{"sales"}, Name: "orders"}
	put := registry.Labels{
		Object: map[string]string{"team": "billing"},
		Fields: []registry.FieldLabels{{Field: 1, Labels: map[string]string{"classification": "pii"}}},
	}
	if _, err := served.As(moorage.Anonymous()).Labels().Put(t.Context(), access.Table, ident, put, nil); err != nil {
		t.Fatal(err)
	}
	answer, err := http.Get(uri + "/v1/namespaces/sales/tables/orders")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var loaded struct {
		Labels *iceberg.Labels `json:"labels"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&loaded); err != nil {
		t.Fatal(err)
	}
	if loaded.Labels.Object()["team"] != "billing" || loaded.Labels.Field(1)["classification"] != "pii" {
		t.Errorf("the client reads %+v", loaded.Labels)
	}
	if _, err := client.LoadTable(t.Context(), []string{"sales", "orders"}); err != nil {
		t.Errorf("with labels the client cannot load the table: %v", err)
	}
}
