package management

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/rows"
	"moorage/metadata"
)

const earlierTable = `{"format-version":2,"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1","location":"s3://b/t","last-sequence-number":1,` +
	`"last-updated-ms":1600,"last-column-id":1,"current-schema-id":0,"schemas":[{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"}]}],` +
	`"default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[]}],"last-partition-id":999,"default-sort-order-id":0,"sort-orders":[{"order-id":0,"fields":[]}],` +
	`"properties":{"a":"1"},"current-snapshot-id":7,"snapshots":[{"snapshot-id":7,"sequence-number":1,"timestamp-ms":1500,"manifest-list":"s3://b/t/7.avro","summary":{"operation":"append","total-records":"5"}}],` +
	`"refs":{"main":{"snapshot-id":7,"type":"branch"}}}`

// laterTable differs from earlierTable in every part that a difference can report.
var laterTable = strings.NewReplacer(
	`"a":"1"`, `"b":"2"`, `"format-version":2`, `"format-version":3,"next-row-id":0`,
	`"fields":[{"id":1,"name":"id","required":true,"type":"long"}]`, `"fields":[{"id":1,"name":"key","required":true,"type":"long"},{"id":2,"name":"x","required":false,"type":"string"}]`,
	`"spec-id":0,"fields":[]`, `"spec-id":0,"fields":[{"source-id":1,"field-id":1000,"name":"key","transform":"identity"}]`,
	`"last-column-id":1`, `"last-column-id":2`, `"last-partition-id":999`, `"last-partition-id":1000`,
	`"refs":{`, `"refs":{"eod":{"snapshot-id":7,"type":"tag"},`,
).Replace(earlierTable)

// fakeVersions answers like a catalog with one table, which has two versions.
type fakeVersions struct{ *fake }

func (f fakeVersions) version(text string) (catalog.TableVersion, error) {
	document, err := metadata.Parse([]byte(text))
	return catalog.TableVersion{Location: "s3://b/t/metadata/1.metadata.json", Document: document}, err
}

func (f fakeVersions) LoadVersion(_ context.Context, ident moorage.Identifier, name catalog.VersionName) (catalog.TableVersion, error) {
	if err := f.call("LoadVersion " + ident.Warehouse + "." + ident.String() + " " + name.String()); err != nil {
		return catalog.TableVersion{}, err
	}
	return f.version(earlierTable)
}

func (f fakeVersions) Diff(_ context.Context, ident moorage.Identifier, from, to catalog.VersionName) (found catalog.Difference, err error) {
	if err := f.call("Diff " + ident.Warehouse + "." + ident.String() + " " + from.String() + " " + to.String()); err != nil {
		return found, err
	}
	if found.From, err = f.version(earlierTable); err == nil {
		found.To, err = f.version(laterTable)
	}
	if err == nil {
		found.Difference, err = metadata.Diff(found.From.Document, found.To.Document)
	}
	return found, err
}

func (f fakeVersions) Rollback(_ context.Context, ident moorage.Identifier, asked catalog.RollbackRequest) (done catalog.RolledBack, err error) {
	if err := f.call("Rollback " + ident.Warehouse + "." + ident.String() + " " + asked.To.String()); err != nil {
		return done, err
	}
	done.Was, err = f.version(earlierTable)
	if done.Table = done.Was; err == nil {
		done.Rollback, err = metadata.RollbackToVersion(done.Was.Document, done.Was.Document, metadata.MainBranch, metadata.RollbackRefs)
	}
	return done, err
}

const earlierView = `{"view-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1","format-version":1,"location":"s3://b/v",` +
	`"schemas":[{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"}]}],"current-version-id":1,` +
	`"versions":[{"version-id":1,"schema-id":0,"timestamp-ms":1500,"summary":{},"default-namespace":["a"],"representations":[{"type":"sql","sql":"select 1","dialect":"spark"}]}],` +
	`"version-log":[{"version-id":1,"timestamp-ms":1500}],"properties":{"a":"1"}}`

// laterView differs from earlierView in every part that a difference can report.
var laterView = strings.NewReplacer(
	`"a":"1"`, `"b":"2"`, "s3://b/v", "s3://b/w", `"default-namespace":["a"]`, `"default-namespace":["b"],"default-catalog":"c"`,
	`"fields":[`, `"fields":[{"id":2,"name":"x","required":false,"type":"string"},`, `"sql":"select 1","dialect":"spark"`, `"sql":"select 1","dialect":"trino"`,
).Replace(earlierView)

func (f fakeVersions) viewVersion(text string) (catalog.ViewVersion, error) {
	document, err := metadata.ParseView([]byte(text))
	return catalog.ViewVersion{Location: "s3://b/v/metadata/1.metadata.json", Document: document}, err
}

func (f fakeVersions) LoadViewVersion(_ context.Context, ident moorage.Identifier, name catalog.VersionName) (catalog.ViewVersion, error) {
	if err := f.call("LoadViewVersion " + ident.Warehouse + "." + ident.String() + " " + name.String()); err != nil {
		return catalog.ViewVersion{}, err
	}
	return f.viewVersion(earlierView)
}

func (f fakeVersions) DiffViews(_ context.Context, ident moorage.Identifier, from, to catalog.VersionName) (found catalog.ViewDifference, err error) {
	if err := f.call("DiffViews " + ident.Warehouse + "." + ident.String() + " " + from.String() + " " + to.String()); err != nil {
		return found, err
	}
	if found.From, err = f.viewVersion(earlierView); err == nil {
		found.To, err = f.viewVersion(laterView)
	}
	if err == nil {
		found.ViewDifference, err = metadata.DiffViews(found.From.Document, found.To.Document)
	}
	return found, err
}

func (f fakeVersions) RollbackView(_ context.Context, ident moorage.Identifier, asked catalog.RollbackRequest) (done catalog.RolledBackView, err error) {
	if err := f.call("RollbackView " + ident.Warehouse + "." + ident.String() + " " + asked.To.String() + " " + asked.From); err != nil {
		return done, err
	}
	done.Was, err = f.viewVersion(earlierView)
	if done.View = done.Was; err == nil {
		done.Rollback, err = metadata.RollbackViewToID(done.Was.Document, 1)
	}
	return done, err
}

func (f fakeVersions) Rows(_ context.Context, ident moorage.Identifier, asked catalog.RowsRequest) (read catalog.FirstRows, err error) {
	read.SnapshotID, read.Width, read.Rows = 7, 2, []json.RawMessage{json.RawMessage(`[1,{"a":null}]`)}
	read.Columns = []rows.Column{{ID: 1, Name: "id", Type: "long"}, {ID: 2, Name: "s", Type: "struct<a: int>"}}
	of := "ref " + asked.Ref
	if asked.Snapshot != nil {
		of += fmt.Sprint(" snapshot ", *asked.Snapshot)
	}
	return read, f.call(fmt.Sprintf("Rows %s.%s %s limit %d %v", ident.Warehouse, ident, of, asked.Limit, asked.Columns))
}

// The operations on versions call the catalog with the values in the request, and answer as the
// file describes. A difference contains every part.
func TestVersions(t *testing.T) {
	t.Parallel()
	const of = "warehouse=w&namespace=a%1Fb&table=t"
	const view = "warehouse=w&namespace=a%1Fb&view=v"
	for _, tt := range []struct{ method, target, body, call, answer string }{
		{"GET", "/metadata?" + of, "", "LoadVersion w.a.b.t now", `"table-uuid"`},
		{"GET", "/metadata?version=now~3&" + of, "", "LoadVersion w.a.b.t now~3", `"table-uuid"`},
		{"GET", "/diff?" + of, "", "Diff w.a.b.t now~1 now", `"format-version":[2,3]`},
		{"GET", "/diff?from=2h&to=7.metadata.json&" + of, "", "Diff w.a.b.t 2h 7.metadata.json", `"removed":{"a":"1"}`},
		{"GET", "/rows?" + of, "", "Rows w.a.b.t ref  limit 20 []", `"rows":[[1,{"a":null}]]`},
		{"GET", "/rows?ref=eod&limit=3&columns=a,b&" + of, "", "Rows w.a.b.t ref eod limit 3 [a b]", `"columns-in-all":2`},
		{"GET", "/rows?snapshot=-7&columns=a,b%1Fc&" + of, "", "Rows w.a.b.t ref  snapshot -7 limit 20 [a,b c]", `"complete":false`},
		{"POST", "/rollback?" + of, `{"to":"eod","ref":"audit","parts":["all"]}`, "Rollback w.a.b.t eod", `"updates":[]`},
		{"GET", "/metadata?version=now~3&" + view, "", "LoadViewVersion w.a.b.v now~3", `"view-uuid"`},
		{"GET", "/diff?" + view, "", "DiffViews w.a.b.v now~1 now", `"sql":{"spark":["select 1",null],"trino":[null,"select 1"]}`},
		{"GET", "/diff?from=2h&" + view, "", "DiffViews w.a.b.v 2h now", `"default-namespace":[["a"],["b"]],"default-catalog":["","c"]`},
		{"POST", "/rollback?" + view, `{"to":"1","previous-metadata-location":"s3://x"}`, "RollbackView w.a.b.v 1 s3://x", `"updates":[]`},
	} {
		f := &fake{}
		got := send(newServer(t, configOf(f)), tt.method, base+tt.target, tt.body)
		if got.Code != http.StatusOK || !strings.Contains(got.Body.String(), tt.answer) || len(f.calls) != 1 || f.calls[0] != tt.call {
			t.Errorf("%s %s: %d %s, called %q; want %s and %s", tt.method, tt.target, got.Code, got.Body, f.calls, tt.call, tt.answer)
		}
	}
	for _, tt := range []struct{ method, target, body string }{
		{"GET", "/metadata", ""}, {"GET", "/metadata?warehouse=w&namespace=a", ""}, {"GET", "/metadata?version=&" + of, ""},
		{"GET", "/metadata?version=now~x&" + of, ""}, {"GET", "/metadata?version=a%2Fb.metadata.json&" + of, ""},
		{"GET", "/diff?from=now~-1&" + of, ""}, {"GET", "/diff?warehouse=w&namespace=&table=t", ""},
		{"GET", "/rows", ""}, {"GET", "/rows?limit=x&" + of, ""}, {"GET", "/rows?ref=a&snapshot=1&" + of, ""},
		{"GET", "/rows?snapshot=main&" + of, ""},
		{"POST", "/rollback?" + of, `{}`}, {"POST", "/rollback?" + of, `{"to":"now","parts":["rows"]}`}, {"POST", "/rollback", `{"to":"now"}`},
		{"POST", "/rollback?" + of, `{"to":7}`},
		{"GET", "/metadata?view=v&" + of, ""}, {"GET", "/diff?view=v&" + of, ""}, {"GET", "/diff?warehouse=w&namespace=a&view=", ""},
		{"POST", "/rollback?view=v&" + of, `{"to":"now"}`}, {"GET", "/rows?" + view, ""},
	} {
		wantFailure(t, send(newServer(t, configOf(&fake{})), tt.method, base+tt.target, tt.body), http.StatusBadRequest, "BadRequestException")
	}
}
