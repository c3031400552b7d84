package management

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog"
	"moorage/catalog/history"
	"moorage/registry"
)

// fakeDropped records its calls. The table sales.orders is dropped.
type fakeDropped struct {
	*fake

	key *catalog.Key
}

func (f fakeDropped) List(_ context.Context, of catalog.DroppedListing, page moorage.Page) ([]catalog.DroppedRow, string, error) {
	at := time.Date(2026, 11, 27, 3, 12, 9, 0, time.UTC)
	return []catalog.DroppedRow{
		{
			ID: registry.ID{0xa1}, Kind: registry.ItemTable, UUID: "u", State: registry.StateDropped, At: at, By: "1#corp:bob",
			Ident: moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"sales"}, Name: "orders"}, Change: registry.ID{7},
			EndsAt: at.Add(time.Hour), Purge: history.PurgeWaiting, MetadataLocation: "f", Undrop: catalog.UndropYes,
			Summary: &registry.Summary{Format: 2, Rows: 7, Bytes: -1},
		},
		{
			ID: registry.ID{0xa2}, Kind: registry.ItemNamespace, State: registry.StateEnded, At: at, Purge: history.PurgeNone,
			Ident: moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"sales", "old"}}, Undrop: "No.", Ended: at,
		},
	}, f.next, f.call(fmt.Sprintf("List %+v", of), page)
}

func (f fakeDropped) Undrop(_ context.Context, asked catalog.UndropRequest) (catalog.Undropped, error) {
	key := "none"
	if f.key != nil {
		key = f.key.ID
	}
	as := "-"
	if asked.As != nil {
		as = asked.As.String()
	}
	return catalog.Undropped{
		Kind: access.Table, Ident: moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"sales"}, Name: "orders"},
		ID: registry.ID{0xa1}, UUID: "u", MetadataLocation: "f",
	}, f.call(fmt.Sprintf("Undrop %s %s %s as %s replace %t make %t key %s", asked.ID, asked.Ident, asked.Kind, as, asked.Replace, asked.MakeNamespace, key))
}

func (f fakeDropped) Purge(_ context.Context, name catalog.DroppedName) error {
	return f.call("Purge " + name.ID.String())
}

func (f fakeDropped) Forget(_ context.Context, name catalog.DroppedName) error {
	return f.call("Forget " + name.ID.String())
}

// The operations on dropped objects call the catalog with the values in the request, and refuse
// malformed requests.
func TestDroppedOperations(t *testing.T) {
	t.Parallel()
	const key, id = "0190f3a0-1234-7abc-8def-0123456789ab", "a1000000000000000000000000000000"
	for name, tt := range map[string]struct {
		method, path, body string
		status             int
		call, answer       string
	}{
		"list": {
			"GET", "/dropped?warehouse=w&namespace=a%1Fb&recursive=true&name=t&ended=true&id=" + id, "", 200,
			"List {Warehouse:w Namespace:a.b Recursive:true Name:t Ended:true ID:" + id + "}",
			`{"dropped":[{"id":"` + id + `","kind":"table","warehouse":"w","namespace":["sales"],"name":"orders","uuid":"u",` +
				`"state":"dropped","at":"2026-11-27T03:12:09Z","by":"corp:bob","change":"07000000000000000000000000000000",` +
				`"ends-at":"2026-11-27T04:12:09Z","purge":"waiting","metadata-location":"f","summary":{"format":2,`,
		},
		"list a namespace":     {"GET", "/dropped?warehouse=w", "", 200, "List {Warehouse:w", `"namespace":["sales"],"name":"old","state":"ended"`},
		"list by a bad id":     {"GET", "/dropped?warehouse=w&id=x", "", 400, "", "Invalid id: x"},
		"list nothing":         {"GET", "/dropped", "", 400, "", "parameter warehouse is missing"},
		"list with a bad flag": {"GET", "/dropped?warehouse=w&ended=2x", "", 400, "", "Invalid ended"},
		"undrop": {
			"POST", "/undrop", `{"warehouse":"w","namespace":["sales"],"name":"orders","kind":"table","as":{"namespace":["b"],"name":"c"},"replace":true,"make-namespace":true}`,
			200, "sales.orders table as b.c replace true make true key " + key, `{"kind":"table","warehouse":"w","namespace":["sales"],"name":"orders","id":"` + id + `","uuid":"u","metadata-location":"f","warnings":[]}`,
		},
		"undrop by id":         {"POST", "/undrop", `{"id":"` + id + `"}`, 200, "Undrop " + id, `"uuid":"u"`},
		"undrop nothing":       {"POST", "/undrop", `{"warehouse":"w"}`, 400, "", "it must name a dropped object"},
		"undrop a bad id":      {"POST", "/undrop", `{"id":"x"}`, 400, "", `member \"id\" is not an id: x`},
		"undrop another kind":  {"POST", "/undrop", `{"id":"` + id + `","kind":"namespace"}`, 400, "", "it is table or view"},
		"undrop as half":       {"POST", "/undrop", `{"id":"` + id + `","as":{"name":"x"}}`, 400, "", `member \"namespace\" is missing`},
		"purge":                {"POST", "/dropped/" + id + "/purge", "", 200, "Purge " + id, "{}"},
		"forget":               {"POST", "/dropped/" + id + "/forget", "", 200, "Forget " + id, "{}"},
		"forget without an id": {"POST", "/dropped/x/forget", "", 400, "", "Invalid id: x"},
	} {
		f := &fake{}
		w := send(newServer(t, configOf(f)), tt.method, base+tt.path, tt.body, "Idempotency-Key", key)
		calls := strings.Join(f.calls, "; ")
		if w.Code != tt.status || !strings.Contains(calls, tt.call) || tt.call == "" && calls != "" || !strings.Contains(w.Body.String(), tt.answer) {
			t.Errorf("%s: %d %s, called %q", name, w.Code, w.Body, calls)
		}
	}
}

// If a table does not exist because it was dropped, the answer reports that, and how it can come
// back.
func TestMissingTellsOfTheDrop(t *testing.T) {
	t.Parallel()
	const told, plain = "the words. It was dropped at 2026-11-27T03:12:09Z by corp:bob: moorage undrop w/sales.orders", `"the words"`
	for _, c := range []struct {
		path string
		kind moorage.Kind
		want string
	}{
		{"/object?warehouse=w&path=sales%1Forders", moorage.KindNotFound, told},
		{"/labels?warehouse=w&namespace=sales&table=orders", moorage.KindNoSuchTable, told},
		{"/protection?warehouse=w&namespace=sales&table=orders", moorage.KindNoSuchTable, told},
		{"/object?warehouse=w&path=sales", moorage.KindNotFound, plain},
		// The dropped object is a table.
		{"/protection?warehouse=w&namespace=sales&view=orders", moorage.KindNoSuchView, plain},
		// The labels are missing, and the table is live.
		{"/labels?warehouse=w&namespace=sales&table=orders", moorage.KindNotFound, plain},
	} {
		path, want := c.path, c.want
		failing, f := &fake{fail: moorage.Errorf(c.kind, "the words")}, &fake{}
		config := configOf(failing)
		config.Dropped = func(moorage.Caller, *catalog.Key) Dropped { return fakeDropped{f, nil} }
		if w := send(newServer(t, config), "GET", base+path, ""); w.Code != 404 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
