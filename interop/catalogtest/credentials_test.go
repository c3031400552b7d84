package catalogtest

import (
	"net/url"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog/rest"
	"github.com/apache/iceberg-go/table"

	"moorage/testkit/servers"
)

// A client creates, changes and reads a table with an API key: as a bearer token, and as a
// credential that it exchanges.
func TestCredentials(t *testing.T) {
	t.Parallel()
	binary, data := servers.Build(t), t.TempDir()
	first, err := servers.Start(binary, "--data", data)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Stop(); err != nil { // it created the store
		t.Fatal(err)
	}
	if _, err := servers.Key(t.Context(), binary, "root", "--admin", "--data", data); err != nil {
		t.Fatal(err)
	}
	key, err := servers.Key(t.Context(), binary, "go", "--data", data)
	if err != nil {
		t.Fatal(err)
	}
	server, err := servers.Start(binary, "--data", data, "--keys", "--admin", "key:go")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Kill() })
	grant := servers.NewClient(server.URI, 0).As(key).Manage(t.Context(), "POST", "grants", servers.Object{
		"changes": []servers.Object{{
			"change": "grant", "object": servers.Object{"warehouse": "default"}, "grantee": "key:go", "privileges": []string{"create"},
		}},
	})
	if grant.Outcome != servers.Acknowledged {
		t.Fatalf("%d %s", grant.Status, grant.Text)
	}
	tokens, err := url.Parse(server.URI + "/v1/oauth/tokens")
	if err != nil {
		t.Fatal(err)
	}
	id := strings.Split(key, "_")[1]
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64})
	for name, options := range map[string][]rest.Option{
		"token":      {rest.WithOAuthToken(key)},
		"credential": {rest.WithCredential(id + ":" + key), rest.WithAuthURI(tokens)},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := rest.NewCatalog(t.Context(), "m", server.URI, append(options, rest.WithWarehouseLocation("default"))...)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.CreateNamespace(t.Context(), table.Identifier{name}, nil); err != nil {
				t.Fatal(err)
			}
			made, err := c.CreateTable(t.Context(), table.Identifier{name, "events"}, schema)
			if err != nil {
				t.Fatal(err)
			}
			change := made.NewTransaction()
			if err := change.SetProperties(iceberg.Properties{"k": "v"}); err != nil {
				t.Fatal(err)
			}
			if _, err := change.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			loaded, err := c.LoadTable(t.Context(), table.Identifier{name, "events"})
			if err != nil || loaded.Properties()["k"] != "v" {
				t.Errorf("%v, %v", loaded, err)
			}
		})
	}
	if _, err := rest.NewCatalog(t.Context(), "m", server.URI, rest.WithOAuthToken(key[:len(key)-1]+"!")); err == nil {
		t.Error("a wrong key is let in")
	}
}
