package transfer

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"moorage/management/client"
)

// oldREST is a REST catalog with a prefix, tokens that end, nested namespaces and pages of one. It
// cannot answer each seventh request. It returns the requests that it got.
func oldREST(t *testing.T) (uri string, calls func() int64) {
	t.Helper()
	var count, tokens atomic.Int64
	answer := func(w http.ResponseWriter, value any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(value); err != nil {
			t.Error(err)
		}
	}
	page := func(r *http.Request, member string, all ...any) map[string]any {
		at := 0
		_, _ = fmt.Sscan(r.URL.Query().Get("pageToken"), &at)
		if len(all) == 0 {
			return map[string]any{member: []any{}, "next-page-token": nil}
		}
		answered := map[string]any{member: all[at : at+1], "next-page-token": nil}
		if at+1 < len(all) {
			answered["next-page-token"] = fmt.Sprint(at + 1)
		}
		return answered
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/cat/v1/oauth/tokens" {
			if r.FormValue("client_id") != "me" || r.FormValue("client_secret") != "s:1" || r.FormValue("scope") != "all" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			answer(w, map[string]any{"access_token": fmt.Sprint("token", tokens.Add(1)), "expires_in": 100})
			return
		}
		if r.Header.Get("X-Tenant") != "blue" || !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer token") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if count.Add(1)%7 == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		ident := func(name string, levels ...string) any { return map[string]any{"namespace": levels, "name": name} }
		const root = "/cat/v1/main%7Cwh/namespaces"
		parent := r.URL.Query().Get("parent")
		switch path := strings.ReplaceAll(r.URL.EscapedPath(), "+", "%20"); {
		case path == "/cat/v1/config" && r.URL.Query().Get("warehouse") == "wh":
			answer(w, map[string]any{"defaults": map[string]string{}, "overrides": map[string]string{"prefix": "main|wh"}})
		case path == root && parent == "":
			answer(w, page(r, "namespaces", []string{"a b"}, []string{"c"}))
		case path == root && parent == "a b":
			answer(w, page(r, "namespaces", []string{"a b", "d/e"}))
		case path == root:
			answer(w, page(r, "namespaces"))
		case path == root+"/a%20b/tables":
			answer(w, page(r, "identifiers", ident("t1", "a b"), ident("t 2", "a b")))
		case path == root+"/a%20b%1Fd%2Fe/tables":
			answer(w, page(r, "identifiers", ident("t3", "a b", "d/e")))
		case path == root+"/c/tables":
			answer(w, page(r, "identifiers"))
		case path == root+"/a%20b/tables/t%202":
			answer(w, map[string]any{"metadata-location": "f2", "metadata": json.RawMessage(
				`{"format-version":2,"table-uuid":"u2","location":"l2","current-snapshot-id":-1,"current-schema-id":3,"last-sequence-number":0}`)})
		case path == root+"/c":
			answer(w, map[string]any{"namespace": []string{"c"}, "properties": map[string]string{"k": "v"}})
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/cat/v1/", count.Load
}

// TestRESTSource reads a catalog with a prefix, nested namespaces and names to escape, over pages,
// with an OAuth2 credential whose tokens end, through answers of 503.
func TestRESTSource(t *testing.T) {
	t.Parallel()
	uri, calls := oldREST(t)
	clock := time.Unix(0, 0)
	c, err := OpenREST(t.Context(), Access{
		URI: uri, Warehouse: "wh", Credential: "me:s:1", Scope: "all", Header: http.Header{"X-Tenant": {"blue"}},
		Now: func() time.Time { return clock },
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	err = c.List(t.Context(), func(o Object) error {
		names = append(names, o.String())
		clock = clock.Add(time.Minute)
		return nil
	})
	if want := `"a b".t1, "a b"."t 2", "a b"."d/e".t3`; err != nil || !sameNames(names, want) {
		t.Errorf("the list is %s, %v", strings.Join(names, ", "), err)
	}
	loaded, err := c.Load(t.Context(), Object{Namespace: []string{"a b"}, Name: "t 2"})
	if err != nil || loaded.MetadataLocation != "f2" || loaded.Facts.UUID != "u2" || loaded.Facts.Snapshot != 0 || loaded.Facts.Schema != 3 {
		t.Errorf("loaded %+v, %+v, %v", loaded, loaded.Facts, err)
	}
	if _, err := c.Load(t.Context(), Object{Namespace: []string{"c"}, Name: "none"}); err != ErrGone {
		t.Errorf("a missing table: %v", err)
	}
	if c.CanDetach(loaded) {
		t.Error("a catalog that cannot unregister can let go of a table")
	}
	if properties, err := c.Properties(t.Context(), []string{"c"}); err != nil || properties["k"] != "v" {
		t.Errorf("the properties are %v, %v", properties, err)
	}
	if calls() < 14 {
		t.Errorf("there were %d requests: none was repeated", calls())
	}
	if name := c.Name(); !strings.HasSuffix(name, "/cat main|wh") {
		t.Errorf("its name is %s", name)
	}
}

// sameNames compares names with a list of them, whatever a name's quotes are.
func sameNames(names []string, want string) bool {
	return strings.ReplaceAll(strings.Join(names, ", "), `"`, "") == strings.ReplaceAll(want, `"`, "")
}

// TestNewestFiles chooses the greatest version, and of two the one that was written last.
func TestNewestFiles(t *testing.T) {
	t.Parallel()
	newest := make(newestFiles)
	for i, location := range []string{
		"file:/w/a/t/metadata/v1.metadata.json", "file:/w/a/t/metadata/v10.metadata.json", "file:/w/a/t/metadata/v9.metadata.json",
		"file:/w/a/b/u/metadata/00002-x.metadata.json", "file:/w/a/b/u/metadata/00002-a.metadata.json",
		"file:/w/a/b/u/metadata/00001-z.gz.metadata.json", "file:/w/a/t/data/v99.metadata.json",
	} {
		newest.add(metadataFile(location, time.Unix(int64(i), 0)))
	}
	var got []string
	err := newest.visit("file:///w/", func(o Object) error {
		got = append(got, o.String()+" "+o.MetadataLocation[strings.LastIndexByte(o.MetadataLocation, '/')+1:])
		return nil
	})
	if want := "a.b.u 00002-a.metadata.json, a.t v10.metadata.json"; err != nil || strings.Join(got, ", ") != want {
		t.Errorf("the tables are %s, %v", strings.Join(got, ", "), err)
	}
	if err := newest.visit("file:///w/a", func(Object) error { return nil }); err == nil {
		t.Error("a table without a namespace was taken")
	}
}

// TestReadList reads both forms of a list, and names the line of a fault.
func TestReadList(t *testing.T) {
	t.Parallel()
	levels := func(text string) ([]string, error) { return strings.Split(text, "."), nil }
	for text, want := range map[string]string{
		"a.b,t,table,f1\na,v,view,f2\n":                      "[a.b.t f1 false, a.v f2 true]",
		"name,metadata-location,namespace\n":                 "line 1: a table has",
		"namespace,name,metadata-location\n\"a\",\"t\",f1\n": "[a.t f1 false]",
		"a,t,stream,f1\n":                                    "line 1: kind is table or view",
		"a,t,table\n":                                        "line 1: a table has a namespace",
		`{"namespace":["a"],"name":"t","metadata-location":"f1"}` + "\n\n" + `{"namespace":["a"],"name":"v","kind":"view","metadata-location":"f2"}`: "[a.t f1 false, a.v f2 true]",
		`{"namespace":["a"],"name":"t"}`: "line 1: a table has",
		"{\n":                            "line 1:",
		"":                               "[]",
	} {
		l, err := ReadList("x", strings.NewReader(text), levels)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			var all []string
			_ = l.List(t.Context(), func(o Object) error {
				all = append(all, fmt.Sprint(o, " ", o.MetadataLocation, " ", o.View))
				return nil
			})
			got = "[" + strings.Join(all, ", ") + "]"
		}
		if !strings.Contains(got, want) {
			t.Errorf("%q is read as %s, want %s", text, got, want)
		}
	}
}

func metadataFile(location string, at time.Time) client.MetadataFile {
	return client.MetadataFile{Location: location, Modified: at}
}
