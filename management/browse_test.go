package management

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog/browse"
	"moorage/metadata"
	"moorage/registry"
)

// fakeBrowse has the table w.a.t, and notes what it is asked for.
type fakeBrowse struct{ *fake }

var fakeRow = browse.Row{
	Kind: access.Table, Ident: moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t"},
	Details: &browse.Details{ID: registry.ID{15: 1}, UUID: "u", Creator: "key:etl", Labelled: true},
}

func (f fakeBrowse) Object(_ context.Context, warehouse string, path []string) (browse.Object, error) {
	return browse.Object{
		Row: fakeRow, Owner: "analysts", Location: "file:///w/a/t", MetadataLocation: "file:///w/a/t/metadata/1.metadata.json",
		Columns: []metadata.Column{{ID: 1, Path: "id", Type: "long", Required: true}},
		Labels:  registry.Labels{Object: map[string]string{"team": "billing"}},
	}, f.call(fmt.Sprint("Object ", warehouse, path))
}

func (f fakeBrowse) Objects(_ context.Context, of browse.Listing, page moorage.Page) ([]browse.Row, string, error) {
	inner := browse.Row{Kind: access.Namespace, Ident: moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a", "b"}}}
	return []browse.Row{inner, fakeRow}, f.next, f.call(fmt.Sprintf("Objects %+v", of), page)
}

func (f fakeBrowse) Search(_ context.Context, asked browse.Search) ([]browse.Row, bool, error) {
	return []browse.Row{fakeRow}, true, f.call(fmt.Sprintf("Search %+v", asked))
}

func (f fakeBrowse) Stats(_ context.Context, warehouse string, maxAge time.Duration) (browse.Stats, error) {
	return browse.Stats{Tables: 3, Rows: 7, Unknown: 1, AsOf: fakeTime, Complete: true}, f.call(fmt.Sprint("Stats ", warehouse, " ", maxAge))
}

// The operations that show objects ask the catalog for what the request says, and refuse what
// cannot be read.
func TestBrowseOperations(t *testing.T) {
	t.Parallel()
	const row = `{"kind":"table","warehouse":"w","namespace":["a"],"name":"t","id":"00000000000000000000000000000001","uuid":"u","creator":"key:etl","labelled":true`
	for path, tt := range map[string]struct {
		status int
		call   string
		answer string
	}{
		"/object?warehouse=w&path=a%1Ft": {200, "Object w[a t]", row + `,"owner":"analysts","location":"file:///w/a/t","properties":{},` +
			`"metadata-location":"file:///w/a/t/metadata/1.metadata.json","columns":[{"id":1,"path":"id","type":"long","required":true}],` +
			`"labels":{"object-labels":{"team":"billing"},"fields":[]}}`},
		"/object?warehouse=w":             {200, "Object w[]", ""},
		"/object?path=a":                  {400, "", "warehouse is missing"},
		"/object?warehouse=w&warehouse=v": {400, "", "2 times"},
		"/objects?warehouse=w": {200, "Objects {Warehouse:w Namespace: Recursive:false Kinds:[] Prefix:}",
			`{"objects":[{"kind":"namespace","warehouse":"w","namespace":["a"],"name":"b"},` + row + `}],"next-page-token":null}`},
		"/objects?warehouse=w&namespace=a%1Fb&recursive=true&kind=table,view&prefix=o&pageSize=7": {
			200, "Objects {Warehouse:w Namespace:a.b Recursive:true Kinds:[table view] Prefix:o}", "",
		},
		"/objects?namespace=a":                             {400, "", "warehouse is missing"},
		"/objects?warehouse=w&recursive=x":                 {400, "", "want true or false"},
		"/objects?warehouse=w&kind=fish":                   {400, "", "Unknown kind"},
		"/objects?warehouse=w&pageSize=0":                  {400, "", "pageSize"},
		"/search?q=order+daily":                            {200, "Search {Words:order daily Warehouse: Kinds:[] Limit:50}", `{"objects":[` + row + `}],"more":true}`},
		"/search?q=x&warehouse=w&kind=namespace&limit=200": {200, "Search {Words:x Warehouse:w Kinds:[namespace] Limit:200}", ""},
		"/warehouses/w/stats":                              {200, "Stats w 5m0s", `{"tables":3,"views":0,"namespaces":0,"dropped":0,"rows":7,"bytes":0,"files":0,"unknown":1,"as-of":"`},
		"/warehouses/w/stats?max-age=0s":                   {200, "Stats w 0s", `"complete":true`},
		"/warehouses/w/stats?max-age=x":                    {400, "", "want a duration"},
		"/search?q=x&limit=201":                            {400, "", "limit"},
		"/search?q=x&limit=0":                              {400, "", "limit"},
		"/search?q=" + strings.Repeat("x", 201):            {400, "", "at most 200"},
	} {
		f := &fake{}
		w := send(newServer(t, configOf(f)), "GET", "/management/v1"+path, "")
		calls := strings.Join(f.calls, "; ")
		if w.Code != tt.status || calls != tt.call || !strings.Contains(w.Body.String(), tt.answer) {
			t.Errorf("%s: %d %s, called %q", path, w.Code, w.Body, calls)
		}
	}
}
