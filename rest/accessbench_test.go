package rest_test

import (
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/internal/web"
	"moorage/ledger"
	"moorage/locks"
	memoryregistry "moorage/registry/memory"
	"moorage/rest"
	"moorage/storage"
	memorystorage "moorage/storage/memory"
	"moorage/testkit/registrytest"
)

// newLoadWorld returns a guarded world with the table a.t, in which decisions are not recorded.
func newLoadWorld(b *testing.B, on bool) *guardedWorld {
	b.Helper()
	records, files := memoryregistry.New(rand.Reader), memorystorage.New()
	w := &guardedWorld{t: b, guard: gate.New(gate.Config{Store: records, Alone: true})}
	w.store = w.guard.Watch(records)
	made, err := catalog.New(catalog.Config{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: w.store}), Guard: w.guard, Locks: locks.NewLocal(locks.LocalConfig{}),
		OpenStorage: func(place storage.Place) (storage.Store, error) { return files.Within(place.Roots) },
	})
	if err != nil {
		b.Fatal(err)
	}
	w.catalog = made
	server := web.New(web.Config{})
	rest.Mount(server, rest.Config{Catalog: made})
	w.Handler = server
	w.warehouse("w")
	w.must(root, "POST", "/v1/w/namespaces", `{"namespace":["a"]}`)
	w.must(root, "POST", "/v1/w/namespaces/a/tables", `{"name":"t","schema":`+schemaJSON+`}`)
	if on { // a grant to a role on the warehouse, so that every object on the path is checked
		path := w.objects()["w"]
		w.setPolicy(access.Grants{ID: path[0].ID, Kind: access.Warehouse, Grants: []access.Grant{
			{Grantee: "corp/engineers", Privileges: access.Read},
		}})
	}
	return w
}

// BenchmarkLoadAccess loads a table alternately from a server without access control and from one
// with it. It reports the medians of both, and the ratio of the rates.
func BenchmarkLoadAccess(b *testing.B) {
	caller := moorage.Caller{Name: ann, Roles: []string{"corp/engineers"}}
	const path = "/v1/w/namespaces/a/tables/t"
	var requesters [2]func() time.Duration // off, on
	for i := range requesters {
		w := newLoadWorld(b, i == 1)
		server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
			w.ServeHTTP(answer, r.WithContext(moorage.WithArrival(r.Context(), moorage.Arrival{From: "test", Caller: caller})))
		}))
		defer server.Close()
		requesters[i] = newRequester(b, server, path)
	}
	took := [2][]time.Duration{}
	for b.Loop() {
		for i, request := range requesters {
			took[i] = append(took[i], request())
		}
	}
	off, on := median(took[0]), median(took[1])
	b.ReportMetric(off, "off-µs")
	b.ReportMetric(on, "on-µs")
	b.ReportMetric(100*off/on, "share-%")
}

// newRequester returns a function that sends a load over its own connection, and returns how long
// the load took.
func newRequester(b *testing.B, server *httptest.Server, path string, headers ...string) func() time.Duration {
	b.Helper()
	connection, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = connection.Close() })
	first, err := http.NewRequestWithContext(b.Context(), http.MethodGet, server.URL+path, nil)
	if err != nil {
		b.Fatal(err)
	}
	lines := ""
	for i := 0; i < len(headers); i += 2 {
		first.Header.Set(headers[i], headers[i+1])
		lines += headers[i] + ": " + headers[i+1] + "\r\n"
	}
	answer, err := http.DefaultClient.Do(first)
	if err != nil {
		b.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		b.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK || answer.ContentLength <= 0 {
		b.Fatal(answer.Status, answer.ContentLength)
	}
	request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: x\r\nAccept-Encoding: identity\r\n%s\r\n", path, lines)
	buffer := make([]byte, 1<<20)
	return func() time.Duration {
		start := time.Now()
		if _, err := connection.Write(request); err != nil {
			b.Fatal(err)
		}
		if err := readAnswer(connection, buffer, int(answer.ContentLength)); err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
}
