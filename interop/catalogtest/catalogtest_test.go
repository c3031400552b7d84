package catalogtest

import (
	"context"
	"crypto/rand"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/iceberg-go"
	icebergcatalog "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/catalogtest"
	_ "github.com/apache/iceberg-go/catalog/rest" // registers the catalog type "rest"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/check"
	"moorage/internal/web"
	"moorage/ledger"
	"moorage/locks"
	memoryregistry "moorage/registry/memory"
	"moorage/rest"
	"moorage/storage"
	filestorage "moorage/storage/file"
	"moorage/testkit/registrytest"
)

// newServer starts a server over an empty catalog with the warehouses "default" and warehouse. It
// returns the catalog and the server's URI.
func newServer(t *testing.T, warehouse string) (*catalog.Catalog, string) {
	t.Helper()
	// TempDir's path contains the test's name, and that has characters that a URI must escape.
	folder, err := os.MkdirTemp("", "moorage-catalogtest-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	store := memoryregistry.New(rand.Reader)
	served, err := catalog.New(catalog.Config{
		Deps:        registrytest.LedgerDeps(ledger.Config{Store: store}),
		Locks:       locks.NewLocal(locks.LocalConfig{}),
		OpenStorage: func(place storage.Place) (storage.Store, error) { return filestorage.New(place.Roots) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{moorage.DefaultWarehouse, warehouse} {
		location := filepath.Join(folder, []string{"first", "second"}[i])
		if err := os.Mkdir(location, 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := served.As(moorage.Anonymous()).Warehouses().Create(t.Context(), warehouses.Spec{Name: name, Location: "file://" + location}); err != nil {
			t.Fatal(err)
		}
	}
	handler := web.New(web.Config{})
	rest.Mount(handler, rest.Config{Catalog: served})
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	t.Cleanup(func() {
		report, err := check.New(check.Config{Deps: registrytest.LedgerDeps(ledger.Config{Store: store}), Files: served.Documents()}).Check(context.Background()) // the test's own has ended
		if err != nil || len(report.Problems)+len(report.Unread) > 0 {
			t.Errorf("check: %v %q %q", err, report.Problems, report.Unread)
		}
	})
	return served, server.URL
}

// warehousePaths are warehouses for paths without a prefix, with one, and with one that must be
// escaped.
var warehousePaths = []struct{ name, warehouse string }{
	{"no prefix", ""}, {"prefix", "wh"}, {"escaped prefix", "a/b c+d%"}, {"reserved prefix", "namespaces"},
}

// newClient starts a server and returns a client for the warehouse, or for the default one.
func newClient(t *testing.T, warehouse string) icebergcatalog.Catalog {
	t.Helper()
	other := warehouse
	if other == "" {
		other = "other"
	}
	_, uri := newServer(t, other)
	properties := iceberg.Properties{"type": "rest", "uri": uri}
	if warehouse != "" {
		properties["warehouse"] = warehouse
	}
	client, err := icebergcatalog.Load(t.Context(), "moorage", properties)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if closer, ok := client.(icebergcatalog.Closer); ok {
			_ = closer.Close()
		}
	})
	return client
}

// The conformance suite passes for all warehousePaths.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, row := range warehousePaths {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			catalogtest.RunCatalogTests(t, catalogtest.Config{
				SupportsNamespaceProperties: true,
				NewCatalog:                  func(t *testing.T) icebergcatalog.Catalog { return newClient(t, row.warehouse) },
			})
		})
	}
}
