package rest

import (
	"context"
	"crypto/rand"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/locks"
	memoryregistry "moorage/registry/memory"
	"moorage/storage"
	memorystorage "moorage/storage/memory"
	"moorage/testkit/registrytest"
)

// closedGate is a gate that refuses every request, and records them.
type closedGate struct {
	mu      sync.Mutex // guards the fields below
	asked   []gate.Request
	refused []gate.Request
}

func (g *closedGate) Authorize(_ context.Context, request gate.Request) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, request)
	return moorage.Errorf(moorage.KindForbidden, "The gate is closed")
}

func (g *closedGate) Audit(_ context.Context, request gate.Request, outcome error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if moorage.KindOf(outcome) == moorage.KindForbidden {
		g.refused = append(g.refused, request)
	}
}

// Every route asks the gate about a verb that the table lists for its operation. It does so before
// it checks whether the object exists, and even if the body is malformed. A refusal by the gate is
// audited, with or without an idempotency key.
func TestEveryRouteReachesTheGate(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		t.Run(s.operation, func(t *testing.T) {
			t.Parallel()
			closed := &closedGate{}
			files := memorystorage.New()
			made, err := catalog.New(catalog.Config{
				Deps: registrytest.LedgerDeps(ledger.Config{Store: memoryregistry.New(rand.Reader)}), Locks: locks.NewLocal(locks.LocalConfig{}), Gate: closed,
				OpenStorage: func(place storage.Place) (storage.Store, error) { return files.Within(place.Roots) },
			})
			if err != nil {
				t.Fatal(err)
			}
			h := NewServer(TestConfig{Catalog: made})
			bodies := []string{s.body}
			switch {
			case s.operation == "commitTransaction":
				const one, other = `{"identifier":{"namespace":["a"],"name":"t"},"requirements":[],"updates":[]}`,
					`{"identifier":{"namespace":["a"],"name":"u"},"requirements":[{"type":"assert-create"}],"updates":[]}`
				bodies = append(bodies, `{"table-changes":[`+one+`]}`, `{"table-changes":[`+other+`]}`,
					`{"table-changes":[`+one+`,`+other+`]}`, `{"table-changes":7}`)
			case s.body != "" && s.operation != "reportMetrics":
				bodies = append(bodies, `{"namespace":7,"source":7,"requirements":7,"removals":7,"name":7}`)
			}
			nobody := moorage.Anonymous()
			nobody.Client = "@192.0.2.1" // the peer address that httptest sets
			for _, body := range bodies {
				for _, header := range []string{"X-None", "Idempotency-Key"} {
					closed.asked, closed.refused = nil, nil
					if answer := send(h, s.method, s.path, body, header, someKey); answer.Code != http.StatusForbidden {
						t.Errorf("%s is answered %d, not 403: %s", body, answer.Code, answer.Body)
					}
					if len(closed.asked) != 1 || len(closed.refused) != 1 {
						t.Fatalf("%s: the gate was asked %v, and heard of refusals %v", body, closed.asked, closed.refused)
					}
					asked := closed.asked[0]
					if !slices.Contains(gate.OfIceberg(s.operation), asked.Verb) || !reflect.DeepEqual(asked.Caller, nobody) {
						t.Errorf("%s: the gate was asked for %v", body, asked)
					}
					if len(asked.On) == 0 || asked.On[0].Warehouse != "w" {
						t.Errorf("%s: the gate was asked about %v", body, asked.On)
					}
				}
			}
		})
	}
}

// The table of verbs has each served operation, and reports which operations accept a key.
func TestVerbsOfOperations(t *testing.T) {
	t.Parallel()
	for _, op := range NewServer(TestConfig{Catalog: &fakeCatalog{}}).operations() {
		verbs := gate.OfIceberg(op.id)
		if len(verbs) == 0 {
			t.Errorf("%s is no verb", op.id)
		}
		for _, v := range verbs {
			if row, _ := v.Row(); row.Keyed != (op.mutate != nil) {
				t.Errorf("%s, which is %s: takes a key %v, its verb %v", op.id, v, op.mutate != nil, row.Keyed)
			}
		}
	}
}

// The gate refuses every caller.
func TestNobodyIsRefused(t *testing.T) {
	t.Parallel()
	files := memorystorage.New()
	made, err := catalog.New(catalog.Config{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: memoryregistry.New(rand.Reader)}), Locks: locks.NewLocal(locks.LocalConfig{}),
		OpenStorage: func(place storage.Place) (storage.Store, error) { return files.Within(place.Roots) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ident := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t"}
	_, loadErr := made.LoadTable(t.Context(), ident)
	_, createErr := made.CreateTable(t.Context(), ident, catalog.CreateTableRequest{})
	for _, err := range []error{loadErr, createErr} {
		if moorage.KindOf(err) != moorage.KindForbidden {
			t.Errorf("got %v, want a refusal", err)
		}
	}
}
