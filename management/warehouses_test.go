package management

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog/vending"
	"moorage/catalog/warehouses"
	"moorage/registry"
)

// fakeWarehouses answers like a catalog with one warehouse, and records the calls in fake.
type fakeWarehouses struct {
	*fake
	caller moorage.Caller
}

func (f fakeWarehouses) note(format string, args ...any) error {
	return f.call(f.caller.Name + ": " + fmt.Sprintf(format, args...))
}

func fakeWarehouse() warehouses.Details {
	return warehouses.Details{
		Warehouse: warehouses.Warehouse{Name: "lake", Location: "s3://lake/warehouse", Delegation: vending.Delegations()},
		ID:        registry.ID{0xa1}, Storage: map[string]string{"s3.region": "eu-west-1"},
		Secret: &warehouses.SecretDetails{Kind: "access-key", By: "key:root", At: fakeTime},
	}
}

func (f fakeWarehouses) List(_ context.Context, page moorage.Page) ([]warehouses.Warehouse, string, error) {
	return []warehouses.Warehouse{fakeWarehouse().Warehouse}, f.next, f.note("List %q %d", page.After, page.Limit)
}

func (f fakeWarehouses) Load(_ context.Context, name string) (warehouses.Details, error) {
	return fakeWarehouse(), f.note("Load %s", name)
}

func (f fakeWarehouses) Create(_ context.Context, spec warehouses.Spec) (warehouses.Details, error) {
	return fakeWarehouse(), f.note("Create %+v", spec)
}

func (f fakeWarehouses) Change(_ context.Context, name string, change warehouses.Change) (warehouses.Details, error) {
	text, err := json.Marshal(struct {
		warehouses.Change
		Match bool `json:",omitempty"` // in place of the function
	}{change, false})
	if err != nil {
		return warehouses.Details{}, err
	}
	if change.Match != nil && !change.Match(fakeWarehouse()) {
		return warehouses.Details{}, moorage.Errorf(moorage.KindPreconditionFailed, "it has changed")
	}
	return warehouses.Details{}, f.note("Change %s %s", name, text)
}

func (f fakeWarehouses) Drop(_ context.Context, name string) error { return f.note("Drop %s", name) }

func (f fakeWarehouses) Validate(_ context.Context, name string) (warehouses.Validation, error) {
	return warehouses.Validation{
		Trials:  []warehouses.Trial{{Name: "files"}, {Name: "vended-credentials", Failure: "let through"}},
		Stopped: []vending.Delegation{vending.VendedCredentials},
	}, f.note("Validate %s", name)
}

func fakeTombstone() warehouses.Left {
	return warehouses.Left{Location: "s3://lake/t", Tombstone: registry.Tombstone{
		Table: moorage.Identifier{Warehouse: "lake", Namespace: moorage.Namespace{"ns"}, Name: "t"}, TableUUID: "u",
		Ended: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), How: registry.EndedUnregister, Lasting: true,
	}}
}

func (f fakeWarehouses) Tombstones(_ context.Context, name string, page moorage.Page) ([]warehouses.Left, string, error) {
	return []warehouses.Left{fakeTombstone()}, "", f.note("Tombstones %s %q %d", name, page.After, page.Limit)
}

func (f fakeWarehouses) ClearTombstone(_ context.Context, name, location string) (warehouses.Left, error) {
	return fakeTombstone(), f.note("ClearTombstone %s %s", name, location)
}

// Each operation calls the catalog with the values in the request, and refuses malformed requests.
// No answer, not even a refusal, contains any part of a secret.
func TestWarehouseOperations(t *testing.T) {
	t.Parallel()
	const lake, secret = "/warehouses/lake", `{"access-key-id":"AKIA","secret-access-key":"Zm9vYmFy"}`
	tests := []struct {
		name, method, path, body string
		status                   int
		answer                   string // a part of the answer
		call                     string // the call of the catalog, without the caller; empty if there is none
	}{
		{"page", "GET", "/warehouses?pageSize=7", "", 200, `"name":"lake"`, `List "" 7`},
		{"load", "GET", lake, "", 200, `"secret":{"kind":"access-key","set":"2026-11-25T10:00:00Z","by":"key:root"}`, "Load lake"},
		{"escaped name", "GET", "/warehouses/a%2Fb", "", 200, `"name"`, "Load a/b"},
		{"create", "POST", "/warehouses", `{"name":"lake","location":"s3://b/w","allowed-locations":["s3://c"],"storage":{"a":"b"},"properties":{"c":"d"},"delegation":["remote-signing"],"secret":` + secret + `}`, 200, `"id":"a1`,
			"Create {Name:lake Location:s3://b/w AllowedLocations:[s3://c] Storage:map[a:b] Secrets:map[server:map[access-key-id:AKIA secret-access-key:Zm9vYmFy]] Properties:map[c:d] Delegation:[remote-signing]}"},
		{"create without a location", "POST", "/warehouses", `{"name":"lake"}`, 400, `\"location\" is missing`, ""},
		{"secret that is a text", "POST", "/warehouses", `{"name":"lake","location":"s3://b/w","secret":"Zm9vYmFy"}`, 400, `\"secret\" must be`, ""},
		{"secret with a number", "POST", "/warehouses", `{"name":"lake","location":"s3://b/w","secret":{"secret-access-key":["Zm9vYmFy"]}}`, 400, `\"secret\" must be`, ""},
		{"change", "PATCH", lake, `{"storage":{"a":"b","c":null},"properties":{"d":null}}`, 200, `"secret":null`, `Change lake {"Properties":{"d":null},"Storage":{"a":"b","c":null},"AllowLocations":null,"RemoveLocations":null,"Delegation":null,"Secrets":null}`},
		{"allow", "PATCH", lake, `{"allow-locations":["s3://a"],"remove-locations":["s3://b"]}`, 200, "", `Change lake {"Properties":null,"Storage":null,"AllowLocations":["s3://a"],"RemoveLocations":["s3://b"],"Delegation":null,"Secrets":null}`},
		{"allowed as a list", "PATCH", lake, `{"allowed-locations":["s3://a"]}`, 400, `remove-locations`, ""},
		{"stop vending", "PATCH", lake, `{"delegation":[]}`, 200, `"delegation":[]`, `Change lake {"Properties":null,"Storage":null,"AllowLocations":null,"RemoveLocations":null,"Delegation":[],"Secrets":null}`},
		{"another secret", "PATCH", lake, `{"secret":` + secret + `}`, 200, "", `Change lake {"Properties":null,"Storage":null,"AllowLocations":null,"RemoveLocations":null,"Delegation":null,"Secrets":{"server":{"access-key-id":"AKIA","secret-access-key":"Zm9vYmFy"}}}`},
		{"no secret", "PATCH", lake, `{"secret":null}`, 200, "", `Change lake {"Properties":null,"Storage":null,"AllowLocations":null,"RemoveLocations":null,"Delegation":null,"Secrets":{"server":null}}`},
		{"empty secret", "PATCH", lake, `{"secret":{}}`, 400, `\"secret\" is empty`, ""},
		{"move", "PATCH", lake, `{"location":"s3://elsewhere"}`, 400, `\"location\" of a warehouse cannot be changed`, ""},
		{"number for an option", "PATCH", lake, `{"storage":{"a":1}}`, 400, `\"storage\" must be an object with strings and null`, ""},
		{"drop", "DELETE", lake, "", 200, "{}", "Drop lake"},
		{"tombstones", "GET", lake + "/tombstones", "", 200, `{"tombstones":[{"location":"s3://lake/t","table":"ns.t","table-uuid":"u","ended":"2026-11-01T12:00:00Z","how":"unregister","lasting":true}],"next-page-token":null}`, `Tombstones lake "" 100`},
		{"clear a tombstone", "POST", lake + "/tombstones/clear", `{"location":"s3://lake/t"}`, 200, `{"location":"s3://lake/t","table":"ns.t","table-uuid":"u","ended":"2026-11-01T12:00:00Z","how":"unregister","lasting":true}`, "ClearTombstone lake s3://lake/t"},
		{"clear nothing", "POST", lake + "/tombstones/clear", `{}`, 400, "", ""},
		{"validate", "POST", lake + "/validate", "", 200, `{"passed":false,"trials":[{"name":"files","passed":true},{"name":"vended-credentials","passed":false,"failure":"let through"}],"stopped":["vended-credentials"],"features":[]}`, "Validate lake"},
		{"rotate", "POST", "/secrets/rotate", "", 200, `{"key":"2","before":"1","sealed":3}`, "Rotate {false}"},
		{"seal again", "POST", "/secrets/rotate", `{"keep-key":true}`, 200, `"sealed":3`, "Rotate {true}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := &fake{}
			w := send(newServer(t, configOf(f)), tt.method, base+tt.path, tt.body)
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.answer) || strings.Contains(w.Body.String(), "Zm9vYmFy") {
				t.Errorf("answered %d %s, want %d with %s", w.Code, w.Body, tt.status, tt.answer)
			}
			var want []string
			if tt.call != "" {
				want = []string{moorage.Anonymous().Name + ": " + tt.call}
			}
			if !slices.Equal(f.calls, want) {
				t.Errorf("called\n%q, want\n%q", f.calls, want)
			}
		})
	}
}

// A server without keys for secrets cannot rotate them.
func TestRotateWithoutKeys(t *testing.T) {
	t.Parallel()
	f := &fake{}
	config := configOf(f)
	config.RotateSecrets = nil
	wantFailure(t, send(newServer(t, config), "POST", base+"/secrets/rotate", ""), 406, "UnsupportedOperationException")
}
