package management

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog/activity"
	"moorage/catalog/browse"
	"moorage/management/client"
	"moorage/metadata"
	"moorage/registry"
)

// fakeBrowse has the table w.a.t, and records its calls.
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

func (f fakeBrowse) Manifests(_ context.Context, ident moorage.Identifier, asked browse.ManifestsRequest) (browse.ManifestList,
	error) {
	word, count := "x", int64(1)
	return browse.ManifestList{
		Snapshot: 7, Manifests: []browse.Manifest{{Path: "m", Deletes: true, Bytes: 5, Added: &count}}, FilesMore: asked.Manifest != nil,
		Files: []browse.ManifestFile{{
			Path: ident.Name, Content: client.ContentEquality, Status: client.StatusRemoved, Rows: 3,
			Bounds: []browse.ColumnBounds{{ID: 1, Path: "n", Lower: &word}},
		}},
	}, f.call(fmt.Sprint("Manifests ", ident))
}

func (f fakeBrowse) Health(_ context.Context, ident moorage.Identifier, deep bool) (browse.Health, error) {
	found := browse.Health{MetadataLocation: "file:///w/a/t/1.metadata.json", Snapshot: -1, Symptoms: []browse.Symptom{
		{Severity: browse.SeverityOK, What: "metadata", Fact: "small"},
		{Severity: browse.SeverityWarn, What: "small files", Fact: "many", Limit: "few", Remedy: browse.RemedyCompact},
	}}
	if deep {
		found.Snapshot = 7
		found.Symptoms = append(found.Symptoms, browse.Symptom{Severity: browse.SeverityBad, What: "unreadable", Fact: "gone", Remedy: browse.RemedyRollback})
		found.Shape = &browse.Shape{
			Files: 2, Sizes: []browse.SizeClass{{Below: 1000, Files: 2, Bytes: 8}, {}}, Partitions: 1,
			Worst: []browse.PartitionShape{{Name: "m=2026-11", Files: 2, Small: 2}},
		}
	}
	return found, f.call(fmt.Sprint("Health ", ident.Warehouse, " ", ident, " ", deep))
}

func (f fakeBrowse) Refusals(_ context.Context, kind access.Kind, ident moorage.Identifier, limit int) ([]activity.Refusal, error) {
	expected := int64(7)
	return []activity.Refusal{{
		At: fakeTime, Of: activity.Table{Ident: fakeRow.Ident}, Caller: "ann", Client: "Iceberg 1.12.0", RequestID: "R", Kind: moorage.KindCommitFailed,
		Reason: "why", Ref: "main", Expected: &expected, By: "bob", LastAt: fakeTime, Change: registry.ID{15: 2},
	}}, f.call(fmt.Sprint("Refusals ", kind, " ", ident.Warehouse, " ", ident, " ", limit))
}

// Each remedy has a command that can be typed. Names in it are quoted if necessary.
func TestCommandsAgainstSymptoms(t *testing.T) {
	t.Parallel()
	plain := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a", "b"}, Name: "t"}
	odd := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a.b"}, Name: "it's"}
	for remedy, want := range map[browse.Remedy][2]string{
		browse.RemedyNone:    {"", ""},
		browse.RemedyCompact: {"moorage maintain set table w.a.b.t compaction on", `moorage maintain set table 'w."a.b".it'\''s' compaction on`},
		browse.RemedyExpire:  {"moorage maintain set table w.a.b.t snapshots on", `moorage maintain set table 'w."a.b".it'\''s' snapshots on`},
		browse.RemedyManifests: {
			"CALL moorage.system.rewrite_manifests('a.b.t')", "CALL moorage.system.rewrite_manifests('`a.b`.`it\\'s`')",
		},
		browse.RemedyPartitions: {
			"ALTER TABLE moorage.a.b.t REPLACE PARTITION FIELD days(COLUMN) WITH months(COLUMN)",
			"ALTER TABLE moorage.`a.b`.`it's` REPLACE PARTITION FIELD days(COLUMN) WITH months(COLUMN)",
		},
		browse.RemedyRollback: {"moorage rollback w/a.b.t now~1", `moorage rollback 'w/"a.b".it'\''s' now~1`},
	} {
		if got := [2]string{commandFor(remedy, plain), commandFor(remedy, odd)}; got != want {
			t.Errorf("%d: got %q, want %q", remedy, got, want)
		}
	}
}

// The operations that show objects call the catalog with the values in the request, and refuse
// malformed requests.
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
		"/health?warehouse=w&namespace=a&table=t": {200, "Health w a.t false", `{"metadata-location":"file:///w/a/t/1.metadata.json","level":"warn",` +
			`"findings":[{"level":"ok","what":"metadata","fact":"small"},{"level":"warn","what":"small files","fact":"many","limit":"few",` +
			`"command":"moorage maintain set table w.a.t compaction on"}]}`},
		"/health?warehouse=w&namespace=a&table=t&deep=true": {200, "Health w a.t true", `"level":"bad"`},
		"/health?warehouse=w&namespace=a":                   {400, "", "table is missing"},
		"/health?warehouse=w&namespace=a&table=t&deep=x":    {400, "", "deep"},
		"/refusals?warehouse=w&namespace=a&table=t": {200, "Refusals table w a.t 100", `"refusals":[{"time":"` + fakeTime.UTC().Format(time.RFC3339Nano) + `","warehouse":"w","namespace":["a"],"name":"t",` +
			`"caller":"ann","client":"Iceberg 1.12.0","request-id":"R","type":"CommitFailedException","reason":"why","ref":"main","expected":7,"by":"bob",`},
		"/refusals?warehouse=w&namespace=a%1Fb&view=v&limit=7": {200, "Refusals view w a.b.v 7", ""},
		"/refusals?warehouse=w&namespace=a":                    {200, "Refusals namespace w a. 100", ""},
		"/refusals?warehouse=w":                                {200, "Refusals warehouse w  100", ""},
		"/refusals":                                            {400, "", "Name an object"},
		"/refusals?object=server":                              {400, "", "Name a warehouse"},
		"/refusals?warehouse=w&limit=1001":                     {400, "", "limit"},
		"/search?q=x&limit=201":                                {400, "", "limit"},
		"/search?q=x&limit=0":                                  {400, "", "limit"},
		"/search?q=" + strings.Repeat("x", 201):                {400, "", "at most 200"},
	} {
		f := &fake{}
		w := send(newServer(t, configOf(f)), "GET", "/management/v1"+path, "")
		calls := strings.Join(f.calls, "; ")
		if w.Code != tt.status || calls != tt.call || !strings.Contains(w.Body.String(), tt.answer) {
			t.Errorf("%s: %d %s, called %q", path, w.Code, w.Body, calls)
		}
	}
}
