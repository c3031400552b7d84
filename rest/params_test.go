package rest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"moorage"
)

// Names are decoded once, from the path exactly as the client sent it.
func TestNamesInPaths(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		path      string // after /v1
		warehouse string
		ns        []string
		name      string
	}{
		{"/namespaces/a/tables/t", "default", []string{"a"}, "t"},
		{"/w/namespaces/a/tables/t", "w", []string{"a"}, "t"},
		{"//namespaces/a/tables/t", "default", []string{"a"}, "t"},
		{"/w%2Fx/namespaces/a/tables/t", "w/x", []string{"a"}, "t"},
		{"/w+x/namespaces/a/tables/t", "w x", []string{"a"}, "t"},
		{"/%6Eamespaces/namespaces/a/tables/t", "namespaces", []string{"a"}, "t"},
		{"/w/namespaces/a%1Fb/tables/t", "w", []string{"a", "b"}, "t"},
		{"/w/namespaces/a%1fb%1Fc/tables/t", "w", []string{"a", "b", "c"}, "t"},
		{"/w/namespaces/a.b/tables/t.u", "w", []string{"a.b"}, "t.u"},
		{"/w/namespaces/a%2Fb/tables/t%2Fu", "w", []string{"a/b"}, "t/u"},
		{"/w/namespaces/a%2fb/tables/t%2fu", "w", []string{"a/b"}, "t/u"},
		{"/w/namespaces/a+b/tables/t+u", "w", []string{"a b"}, "t u"},
		{"/w/namespaces/a%20b/tables/t%20u", "w", []string{"a b"}, "t u"},
		{"/w/namespaces/a%2Bb/tables/t%2Bu", "w", []string{"a+b"}, "t+u"},
		{"/w/namespaces/100%25/tables/t%2520u", "w", []string{"100%"}, "t%20u"},
		{"/w/namespaces/%252F/tables/%2525", "w", []string{"%2F"}, "%25"},
		{"/w/namespaces/%2E%2E/tables/%2E", "w", []string{".."}, "."},
		{"/w/namespaces/../tables/..", "w", []string{".."}, ".."},
		{"/w/namespaces/%C3%A9/tables/%F0%9F%98%80", "w", []string{"é"}, "😀"},
		{"/w/namespaces/é/tables/😀", "w", []string{"é"}, "😀"},
		{"/w/namespaces/a%22b/tables/%3Ct%3E%7C%5C", "w", []string{`a"b`}, `<t>|\`},
		{`/w/namespaces/a"b%2Fc/tables/<t>`, "w", []string{`a"b/c`}, `<t>`},
		{"/w/namespaces/a&b=c;d,e:f@g!$'()*~/tables/-_", "w", []string{"a&b=c;d,e:f@g!$'()*~"}, "-_"},
		{"/w/namespaces/tables/tables/rename", "w", []string{"tables"}, "rename"},
		{"/namespaces/namespaces/tables/tables", "default", []string{"namespaces"}, "tables"},
		{"/w/namespaces/a%3Fb/tables/%23t", "w", []string{"a?b"}, "#t"},
	} {
		for _, kind := range []string{"tables", "views"} {
			last := strings.LastIndex(row.path, "/tables/")
			path := row.path[:last] + "/" + kind + row.path[last+len("/tables"):]
			t.Run(path, func(t *testing.T) {
				t.Parallel()
				fake := &fakeCatalog{table: sampleTable(t, 0), view: sampleView(t, 1)}
				w := httptest.NewRecorder()
				r := httptest.NewRequest("GET", "/", nil)
				parsed, err := url.ParseRequestURI("http://host/v1" + path)
				if err != nil {
					t.Fatal(err)
				}
				r.URL = parsed
				NewServer(TestConfig{Catalog: fake}).ServeHTTP(w, r)
				want := moorage.Identifier{Warehouse: row.warehouse, Namespace: row.ns, Name: row.name}
				call := map[string]string{"tables": "LoadTable", "views": "LoadView"}[kind]
				if w.Code != 200 || !slices.Equal(fake.calls, []string{call}) || !fake.idents[0].Equal(want) {
					t.Errorf("%d %s; got %s of %+v, want %s of %+v", w.Code, w.Body, fake.calls, fake.idents, call, want)
				}
			})
		}
	}
}

// The escapes in a path also arrive unchanged through a real server.
func TestNamesOverTheWire(t *testing.T) {
	t.Parallel()
	fake := &fakeCatalog{}
	server := httptest.NewServer(NewServer(TestConfig{Catalog: fake}))
	defer server.Close()
	for _, name := range []string{"a/b", "a b", "a+b", "100%", "%2F", ".", "..", "é😀", `"<>\`, "a?b#c", "a;b&c=d"} {
		fake.idents = nil
		for _, escaped := range []string{url.QueryEscape(name), strings.ReplaceAll(url.QueryEscape(name), "+", "%20")} {
			for _, kind := range []string{"tables", "views"} {
				r, err := http.NewRequest("HEAD", server.URL+"/v1/w/namespaces/"+escaped+"/"+kind+"/"+escaped, nil)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := http.DefaultTransport.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				answer.Body.Close()
			}
		}
		want := moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{name}, Name: name}
		arrived := slices.IndexFunc(fake.idents, func(got moorage.Identifier) bool { return !got.Equal(want) }) < 0
		if !arrived || len(fake.idents) != 4 {
			t.Errorf("%q arrived as %+v", name, fake.idents)
		}
	}
}

// A warehouse's prefix, used unchanged in a path, leads to the warehouse.
func TestPrefixLeadsToWarehouse(t *testing.T) {
	t.Parallel()
	for _, warehouse := range []string{"w", "default", "namespaces", "tables", "config", "a/b", "a b", "a+b", "100%", "%6Eamespaces", "é", ".."} {
		fake := &fakeCatalog{}
		h := NewServer(TestConfig{Catalog: fake})
		var answer configAnswer
		w := send(h, "GET", "/v1/config?warehouse="+url.QueryEscape(warehouse), "")
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatalf("%v in %s", err, w.Body)
		}
		send(h, "GET", "/v1/"+answer.Overrides["prefix"]+"/namespaces", "")
		if want := []string{"LoadWarehouse " + warehouse, "ListNamespaces " + warehouse}; !slices.Equal(fake.calls, want) {
			t.Errorf("calls are %q, want %q", fake.calls, want)
		}
	}
}

func TestConfigAnswer(t *testing.T) {
	t.Parallel()
	fake := &fakeCatalog{}
	h := NewServer(TestConfig{Catalog: fake})
	for _, path := range []string{"/v1/config", "/v1/config?warehouse=", "/v1/config?warehouse=w", "/v1/config?other=x&warehouse=w"} {
		w := send(h, "GET", path, "")
		var answer map[string]json.RawMessage
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || len(answer) != 3 || string(answer["defaults"]) != "{}" {
			t.Errorf("%s: %v %s", path, err, w.Body)
		}
		want := `{"namespace-separator":"%1F"}`
		if strings.HasSuffix(path, "=w") {
			want = `{"namespace-separator":"%1F","prefix":"w"}`
		}
		if string(answer["overrides"]) != want {
			t.Errorf("%s: overrides are %s, want %s", path, answer["overrides"], want)
		}
		for _, word := range []string{"idempotency", "oauth", "credentials"} {
			if strings.Contains(w.Body.String(), word) {
				t.Errorf("%s advertises %s: %s", path, word, w.Body)
			}
		}
	}
	fake.fail = moorage.Errorf(moorage.KindNoSuchWarehouse, "Warehouse does not exist: x")
	wantFailure(t, send(h, "GET", "/v1/config?warehouse=x", ""), 404, "NoSuchWarehouseException")
	if w := send(h, "GET", "/v1/config", ""); w.Code != 200 {
		t.Errorf("without a warehouse: %d", w.Code)
	}
}

func TestParentParameter(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		query string
		want  moorage.Namespace
	}{
		{"", nil}, {"?parent=", nil}, {"?parent=a", moorage.Namespace{"a"}}, {"?parent=a%1Fb", moorage.Namespace{"a", "b"}},
		{"?parent=a.b", moorage.Namespace{"a.b"}}, {"?parent=a+b", moorage.Namespace{"a b"}}, {"?parent=a%2Fb%1F%2B", moorage.Namespace{"a/b", "+"}},
	} {
		fake := &fakeCatalog{}
		w := send(NewServer(TestConfig{Catalog: fake}), "GET", "/v1/namespaces"+row.query, "")
		if w.Code != 200 || len(fake.spaces) != 1 || !fake.spaces[0].Equal(row.want) {
			t.Errorf("%q: %d, parent %q, want %q", row.query, w.Code, fake.spaces, row.want)
		}
	}
}

func TestPurgeRequested(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]int{
		"": 204, "?purgeRequested=true": 204, "?purgeRequested=False": 204, "?purgeRequested=TRUE": 204, "?purgeRequested": 400,
		"?purgeRequested=": 400, "?purgeRequested=1": 400, "?purgeRequested=yes": 400, "?purgeRequested=true&purgeRequested=true": 400,
	} {
		if w := send(NewServer(TestConfig{Catalog: &fakeCatalog{}}), "DELETE", tablePath+query, ""); w.Code != want {
			t.Errorf("%q: %d, want %d", query, w.Code, want)
		}
	}
}

// FuzzPath checks that, whatever a path contains, the answer is not a failure of the server. A name
// that reaches the catalog must be valid, and give the same name again if it is put into a path.
func FuzzPath(f *testing.F) {
	for _, path := range []string{
		"/v1/w/namespaces/a%1Fb/tables/t", "/v1/namespaces/a+b", "/v1/%2F/namespaces/%00", "/v1/w/namespaces/a%zz/tables/%", "/v1/w/namespaces/%ff/tables/..",
		"/v1/w/namespaces//tables/", "/v1/config", "/%", "//", "", "/v1/tables/rename", `/v1/"/namespaces/<a>%2F`,
		"/v1/w/namespaces/a%1Fb/views/v", "/v1/namespaces/views/views/views", "/v1/w/namespaces/a/views/%00", "/v1/views/rename",
	} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		fake := &fakeCatalog{}
		r := httptest.NewRequest("HEAD", "/", nil)
		// net/http would not accept some of these paths, but a URL can contain them.
		r.URL = &url.URL{RawPath: path}
		if decoded, err := url.PathUnescape(path); err == nil {
			r.URL.Path = decoded
		}
		w := httptest.NewRecorder()
		NewServer(TestConfig{Catalog: fake}).ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Fatalf("%q answers %d", path, w.Code)
		}
		for _, ident := range fake.idents {
			if err := ident.Validate(); err != nil {
				t.Fatalf("%q reaches the catalog as %+v: %v", path, ident, err)
			}
			again := &fakeCatalog{}
			list := map[string]string{"TableExists": "/tables/", "ViewExists": "/views/"}[fake.calls[0]]
			joined := url.QueryEscape(strings.Join(ident.Namespace, moorage.LevelSeparator))
			send(NewServer(TestConfig{Catalog: again}), "HEAD", "/v1/"+escapePrefix(ident.Warehouse)+"/namespaces/"+joined+list+url.QueryEscape(ident.Name), "")
			if len(again.idents) != 1 || !again.idents[0].Equal(ident) {
				t.Fatalf("%q: %+v leads to %+v", path, ident, again.idents)
			}
		}
	})
}

// FuzzQuery checks that, whatever a query string contains, the answer is a success or a client
// error, and the values that reach the catalog are within their limits.
func FuzzQuery(f *testing.F) {
	for _, query := range []string{
		"", "parent=a%1Fb&pageToken=&pageSize=7", "parent=%1F", "parent=a;b", "pageSize=0", "pageToken=x&pageToken=y", "snapshots=refs", "snapshots=all&x=%zz",
		"purgeRequested=True", "purgeRequested=1", "warehouse=w", "warehouse=%00", "&&==&", "%70arent=a", "pageToken", "referenced-by=a%1Fv%2Ca%1Fw",
	} {
		f.Add(query)
	}
	table, view := sampleTable(f, 1), sampleView(f, 1)
	f.Fuzz(func(t *testing.T, query string) {
		for _, s := range samples() {
			fake := &fakeCatalog{names: []string{"x"}, next: "x", table: table, view: view}
			r := httptest.NewRequest(s.method, s.path, strings.NewReader(s.body))
			r.URL.RawQuery = query
			w := httptest.NewRecorder()
			NewServer(TestConfig{Catalog: fake}).ServeHTTP(w, r)
			if w.Code != 200 && w.Code != 204 && w.Code != 400 {
				t.Errorf("%s?%q answers %d %s", s.operation, query, w.Code, w.Body)
			}
			for _, page := range fake.pages {
				if page.Limit < 0 || page.Limit > pageSizes.Max || page.After != "" && moorage.ValidateName("name", page.After) != nil {
					t.Errorf("%s?%q asks for %+v", s.operation, query, page)
				}
			}
			for _, ns := range fake.spaces {
				if len(ns) > 0 && ns.Validate() != nil {
					t.Errorf("%s?%q asks for the namespace %q", s.operation, query, ns)
				}
			}
		}
	})
}
