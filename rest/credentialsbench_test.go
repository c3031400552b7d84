package rest_test

import (
	"context"
	"crypto/rand"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/vending"
	"moorage/catalog/warehouses"
	"moorage/internal/web"
	"moorage/ledger"
	"moorage/locks"
	memoryregistry "moorage/registry/memory"
	"moorage/rest"
	"moorage/storage"
	memorystorage "moorage/storage/memory"
	"moorage/testkit/registrytest"
)

// vendingFiles is a storage that issues credentials of the same size as Amazon's, and signs
// requests.
type vendingFiles struct{ *memorystorage.Store }

func (vendingFiles) Vend(context.Context, storage.Scope) (storage.Credential, error) {
	return storage.Credential{Expires: time.Now().Add(time.Hour), Config: map[string]string{
		"s3.access-key-id": strings.Repeat("A", 20), "s3.secret-access-key": strings.Repeat("s", 40),
		"s3.session-token": strings.Repeat("t", 1000),
	}}, nil
}

func (vendingFiles) ProbeVending(context.Context) error { return nil }

func (vendingFiles) Sign(context.Context, storage.SignRequest) (storage.Signature, error) {
	return storage.Signature{Headers: map[string][]string{"Authorization": {"AWS4"}}}, nil
}

func (vendingFiles) ProbeSigning(context.Context) error { return nil }

// BenchmarkLoadCredentials loads a table alternately without a credential and with one, which stays
// in memory after the first load. It reports the medians of both, and their ratio.
func BenchmarkLoadCredentials(b *testing.B) {
	files := memorystorage.New()
	made, err := catalog.New(catalog.Config{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: memoryregistry.New(rand.Reader)}), Locks: locks.NewLocal(locks.LocalConfig{}),
		OpenStorage: func(place storage.Place) (storage.Store, error) {
			within, err := files.Within(place.Roots)
			return vendingFiles{within}, err
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, c := b.Context(), made.As(moorage.Anonymous())
	_, err = c.Warehouses().Create(ctx, warehouses.Spec{
		Name: "w", Location: "s3://bucket/lake", Delegation: []vending.Delegation{vending.VendedCredentials},
	})
	if err == nil {
		_, err = c.CreateNamespace(ctx, "w", moorage.Namespace{"a"}, nil)
	}
	if err == nil {
		_, err = c.CreateTable(ctx, moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t"},
			catalog.CreateTableRequest{Schema: []byte(schemaJSON)})
	}
	if err != nil {
		b.Fatal(err)
	}
	handler := web.New(web.Config{})
	rest.Mount(handler, rest.Config{Catalog: made})
	server := httptest.NewServer(handler)
	defer server.Close()
	const path = "/v1/w/namespaces/a/tables/t"
	requesters := [2]func() time.Duration{
		newRequester(b, server, path),
		newRequester(b, server, path, "X-Iceberg-Access-Delegation", "vended-credentials"),
	}
	took := [2][]time.Duration{}
	for b.Loop() {
		for i, request := range requesters {
			took[i] = append(took[i], request())
		}
	}
	without, with := median(took[0]), median(took[1])
	b.ReportMetric(without, "without-µs")
	b.ReportMetric(with, "with-µs")
	b.ReportMetric(with/without, "times")
}
