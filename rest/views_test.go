package rest

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/internal/web"
	"moorage/metadata"
)

const viewPath = "/v1/w/namespaces/a/views/v"

// sampleView returns a view with the given number of versions. The last is the current one.
func sampleView(t testing.TB, versions int) *catalog.View {
	t.Helper()
	var list, log []string
	for i := 1; i <= versions; i++ {
		list = append(list, fmt.Sprintf(`{"version-id":%d,"timestamp-ms":%d,"schema-id":0,"summary":{"engine-name":"x"},"default-namespace":["a"],`+
			`"representations":[{"type":"sql","sql":"select x, y from a.t where x > %d","dialect":"spark"}]}`, i, 1700000000000+i, i))
		log = append(log, fmt.Sprintf(`{"timestamp-ms":%d,"version-id":%d}`, 1700000000000+i, i))
	}
	text := fmt.Sprintf(`{ "view-uuid":"fa6506c3-7681-40c8-86dc-e36561f83385","format-version":1,"location":"file:///warehouse/a/v","x-owner":1.50,`+
		`"schemas":[{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"x","required":false,"type":"long"}]}],"current-version-id":%d,`+
		`"properties":{"comment":"caf\u00e9"},"versions":[%s],"version-log":[%s]}`, versions, strings.Join(list, ","), strings.Join(log, ","))
	document, err := metadata.ParseView([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &catalog.View{
		Identifier:       moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "v"},
		MetadataLocation: fmt.Sprintf("file:///warehouse/a/v/metadata/%05d-\"<é>.gz.metadata.json", versions),
		Document:         document,
	}
}

// answersView reports whether an operation answers with a version of a view.
func answersView(operation string) bool {
	switch operation {
	case "createView", "loadView", "replaceView", "registerView":
		return true
	}
	return false
}

// Every operation that answers with a view sends the bytes of its document, with its location and
// the caller's configuration, and without an ETag.
func TestAnswersOfViews(t *testing.T) {
	t.Parallel()
	view := sampleView(t, 3)
	h := NewServer(TestConfig{Catalog: &fakeCatalog{view: view}})
	asked := 0
	for _, s := range samples() {
		if !answersView(s.operation) {
			continue
		}
		asked++
		for _, config := range []map[string]string{nil, {}, {"token": "x", "client.\"q\"": "<y>"}} {
			view.Config = config
			w := send(h, s.method, s.path, s.body, "If-None-Match", "*")
			answer := takeApart(t, w.Body.Bytes())
			if w.Code != 200 || *answer.Location != view.MetadataLocation || !bytes.Equal(answer.Metadata, view.Document.Raw()) ||
				answer.Config == nil || len(answer.Config) != len(config) || answer.Config["client.\"q\""] != config["client.\"q\""] {
				t.Errorf("%s answers %d %s", s.operation, w.Code, w.Body)
			}
			header := w.Header()
			if header.Get("Content-Length") != strconv.Itoa(w.Body.Len()) || header.Get("Vary") != "Accept-Encoding" || header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: %d bytes with %v", s.operation, w.Body.Len(), header)
			}
		}
	}
	if asked != 4 {
		t.Errorf("%d operations answer a view", asked)
	}
}

// A compressed answer has the same content as a plain one, whatever was requested before, even a
// table.
func TestCompressedView(t *testing.T) {
	t.Parallel()
	fake := &fakeCatalog{view: sampleView(t, 20), table: sampleTable(t, 20)}
	h := NewServer(TestConfig{Catalog: fake})
	gzipped := func(path string) *httptest.ResponseRecorder {
		return send(h, "GET", path, "", "Accept-Encoding", "gzip")
	}
	gzipped(tablePath)
	for i, config := range []map[string]string{nil, {"token": "abc"}, {"token": strings.Repeat("long ", 40_000)}, nil} {
		fake.view.Config = config
		want, got := send(h, "GET", viewPath, ""), gzipped(viewPath)
		if got.Header().Get("Content-Encoding") != "gzip" || got.Header().Get("Content-Length") != strconv.Itoa(got.Body.Len()) {
			t.Errorf("%d: header %v, %d bytes", i, got.Header(), got.Body.Len())
		}
		if text := gunzip(t, got.Body); !bytes.Equal(text, want.Body.Bytes()) {
			t.Errorf("%d: compressed and plain differ: %.300s", i, text)
		}
	}
	fake.view = sampleView(t, 21)
	if answer := takeApart(t, gunzip(t, gzipped(viewPath).Body)); !bytes.Equal(answer.Metadata, fake.view.Document.Raw()) {
		t.Errorf("the new version is answered as %.300s", answer.Metadata)
	}
	fake.view = sampleView(t, 1)
	if w := gzipped(viewPath); w.Header().Get("Content-Encoding") != "" || len(fake.view.Document.Raw()) >= web.CompressBytesMin {
		t.Errorf("a view of %d bytes is answered with %v", len(fake.view.Document.Raw()), w.Header())
	}
}

func TestCompressedViewsAreKept(t *testing.T) {
	t.Parallel()
	s := NewServer(TestConfig{Catalog: &fakeCatalog{}})
	view := sampleView(t, 1)
	first, err := s.deflatedText(t.Context(), keyOfView(view), []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := s.deflatedText(t.Context(), keyOfView(view), []byte("one")); again != first {
		t.Error("compressed twice")
	}
	if other, _ := s.deflatedText(t.Context(), keyOfView(sampleView(t, 1)), []byte("two")); other == first {
		t.Error("two views share an entry")
	}
}

// The catalog is called with the values in the request.
func TestRequestsOfViews(t *testing.T) {
	t.Parallel()
	fake := &fakeCatalog{view: sampleView(t, 1)}
	h := NewServer(TestConfig{Catalog: fake})
	send(h, "POST", "/v1/w/namespaces/a%1Fb/views", `{"name":"v","schema":{"x":1.50},"view-version":{ "y":"\u00e9"},"location":"file:///l","properties":{"k":"v"}}`)
	created := fake.createdView
	if string(created.Schema) != `{"x":1.50}` || string(created.Version) != `{ "y":"\u00e9"}` || created.Location != "file:///l" || len(created.Properties) != 1 || created.Properties["k"] != "v" {
		t.Errorf("asked to create %q %q %+v", created.Schema, created.Version, created)
	}
	for _, body := range []string{`{"name":"v","schema":{},"view-version":{}}`, `{"name":"v","schema":{},"view-version":{},"location":null,"properties":null,"other":[]}`} {
		fake.createdView = catalog.CreateViewRequest{Location: "x", Properties: map[string]string{"x": "y"}}
		send(h, "POST", "/v1/w/namespaces/a/views", body)
		if created := fake.createdView; created.Location != "" || len(created.Properties) != 0 {
			t.Errorf("%s: asked to create %+v", body, created)
		}
	}
	const requirement, updates = `{"type":"assert-view-uuid","uuid":"x"}`, `{"action":"set-properties","updates":{"a":"b"}},{"action":"set-current-view-version","view-version-id":-1}`
	for body, want := range map[string][2]int{
		`{"updates":null}`:                                          {0, 0},
		`{"updates":[],"requirements":null}`:                        {0, 0},
		`{"updates":[` + updates + `]}`:                             {0, 2},
		`{"requirements":[` + requirement + `],"updates":[],"x":1}`: {1, 0},
		`{"identifier":{"namespace":["a"],"name":"v"},"requirements":[` + requirement + `],"updates":[` + updates + `]}`: {1, 2},
		`{"identifier":null,"requirements":[],"updates":[` + updates + `]}`:                                              {0, 2},
	} {
		fake.replacedView = catalog.ReplaceViewRequest{}
		w := send(h, "POST", viewPath, body)
		replaced := fake.replacedView
		if got := [2]int{len(replaced.Requirements), len(replaced.Updates)}; w.Code != 200 || got != want {
			t.Errorf("%s: %d, asked for %d requirements and updates, want %d", body, w.Code, got, want)
		}
	}
	send(h, "POST", "/v1/w/namespaces/a/register-view", `{"name":"w","metadata-location":"file:///m","overwrite":true}`)
	if fake.registered != "file:///m" {
		t.Errorf("asked to register %q", fake.registered)
	}
	fake.idents = nil
	send(h, "POST", "/v1/w/views/rename", `{"source":{"namespace":["a","b"],"name":"v"},"destination":{"namespace":["c"],"name":"v/w"}}`)
	if got := fmt.Sprint(fake.idents); got != "[a.b.v c.v/w]" || fake.idents[0].Warehouse != "w" || fake.idents[1].Warehouse != "w" {
		t.Errorf("asked to rename %v", fake.idents)
	}
}

// A faulty request is refused with the fault, and does not reach the catalog.
func TestRefusedRequestsOfViews(t *testing.T) {
	t.Parallel()
	const views, register, rename = "/v1/w/namespaces/a/views", "/v1/w/namespaces/a/register-view", "/v1/w/views/rename"
	for _, row := range []struct{ path, body, want string }{
		{views, `{"schema":{},"view-version":{}}`, `Cannot parse create view request: member "name" is missing`},
		{views, `{"name":"v","view-version":{}}`, `Cannot parse create view request: member "schema" is missing`},
		{views, `{"name":"v","schema":{}}`, `Cannot parse create view request: member "view-version" is missing`},
		{views, `{"name":"v","schema":{},"view-version":[]}`, `Cannot parse create view request: member "view-version" must be an object, not an array`},
		{views, `{"name":"v","schema":{},"view-version":{},"location":5}`, `Cannot parse create view request: member "location" must be a string, not a number`},
		{views, `{"name":"v","schema":{},"view-version":{},"properties":{"a":1}}`, `Cannot parse create view request: member "properties" must be an object with strings as values`},
		{viewPath, `{"requirements":[]}`, `Cannot parse commit view request: member "updates" is missing`},
		{viewPath, `{"updates":{}}`, `Cannot parse commit view request: member "updates" must be an array, not an object`},
		{viewPath, `{"updates":[],"requirements":{}}`, `Cannot parse commit view request: member "requirements" must be an array, not an object`},
		{viewPath, `{"identifier":{"namespace":["a"],"name":"w"},"updates":[]}`, `Cannot parse commit view request: it names view a.w, but the path names a.v`},
		{viewPath, `{"updates":[{"action":"add-snapshot"}]}`, `Unrecognized view update: add-snapshot`},
		{viewPath, `{"updates":[],"requirements":[{"type":"assert-peace"}]}`, `Unrecognized update requirement: assert-peace`},
		{register, `{"name":"v"}`, `Cannot parse register view request: member "metadata-location" is missing`},
		{register, `{"name":"v","metadata-location":""}`, `Cannot parse register view request: member "metadata-location" must not be empty`},
		{rename, `{"source":{"namespace":["a"],"name":"v"}}`, `Cannot parse rename view request: member "destination" is missing`},
	} {
		fake := &fakeCatalog{}
		if got := wantFailure(t, send(NewServer(TestConfig{Catalog: fake}), "POST", row.path, row.body), 400, "BadRequestException"); got != row.want {
			t.Errorf("%s %s: message is %q, want %q", row.path, row.body, got, row.want)
		}
		if len(fake.calls) != 0 {
			t.Errorf("%s %s: calls of the catalog: %v", row.path, row.body, fake.calls)
		}
	}
}
