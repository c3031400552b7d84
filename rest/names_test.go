package rest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"moorage/catalog/warehouses"
	"moorage/rest"
)

// oddNames returns valid names that are easily misinterpreted on their way from a body to a path, a
// query, a folder, and back.
func oddNames() []string {
	return []string{
		"a/b", "/", "//", ".", "..", "../..", "./a", "a/../b", "%", "100%", "%2F", "%252F", "%00", "%1F", "+", "a+b", " ", "a b", " a ", "a\\b", "\\", "?", "a?b#c", "#", "a;b&c=d", "a,b", "a:b", "file:///etc",
		`"<>|*`, "'", "\u007f\n\t", "\r\n", "\u0001", "é", "e\u0301", "😀", "漢字", "\u202ename", "\u200b", "\ufeff", "tables", "rename", "namespaces", "metadata", "null", "CON", "~", "$HOME", "-",
		strings.Repeat("n", 1024), strings.Repeat("é", 512),
	}
}

// spellings returns the forms in which clients put a name into a path: that of Java and PyIceberg,
// that of Go and browsers, and one with every byte escaped.
func spellings(name string) []string {
	var all strings.Builder
	for i := range len(name) {
		fmt.Fprintf(&all, "%%%02X", name[i])
	}
	// The server reads an unescaped plus sign in a path as a space, so a plus sign must be escaped.
	return []string{url.QueryEscape(name), strings.ReplaceAll(url.PathEscape(name), "+", "%2B"), all.String()}
}

// wire sends requests over a connection, with paths exactly as given.
type wire struct {
	t      *testing.T
	server *httptest.Server
}

// call sends a request and returns the status. If into is not nil, call decodes the body into it.
func (w wire) call(method, path, body string, into any) int {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), method, w.server.URL, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	request.URL.Opaque = path
	answer, err := w.server.Client().Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if answer.StatusCode >= 500 {
		w.t.Errorf("%s %s: %d %s", method, path, answer.StatusCode, content)
	}
	if into != nil {
		if err := json.Unmarshal(content, into); err != nil {
			w.t.Errorf("%s %s: %d %v in %s", method, path, answer.StatusCode, err, content)
		}
	}
	return answer.StatusCode
}

// want is like call, for a request that must get the given status.
func (w wire) want(status int, method, path, body string, into any) {
	w.t.Helper()
	if got := w.call(method, path, body, into); got != status {
		w.t.Errorf("%s %.200q %.200q: %d, want %d", method, path, body, got, status)
	}
}

// Odd names work like others. An object whose name is in a body is listed with that name. It can be
// loaded, changed, renamed, registered and dropped by path, in every spelling. Its files stay
// inside the warehouse.
func TestOddNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := httptest.NewServer(w)
	defer server.Close()
	for _, name := range oddNames() {
		t.Run(fmt.Sprintf("%.20q", name), func(t *testing.T) {
			oddNameLife(t, wire{t, server}, w.warehouse, name)
		})
	}
	if all := w.page(pathNamespaces); len(all.Namespaces) > 0 {
		t.Errorf("left over: %q", all.Namespaces)
	}
	w.wantClean()
}

// loaded has the parts of the answer to a load that the test checks.
type loaded struct {
	MetadataLocation string `json:"metadata-location"`
	Metadata         struct {
		Location   string            `json:"location"`
		Properties map[string]string `json:"properties"`
	} `json:"metadata"`
}

func oddNameLife(t *testing.T, w wire, warehouse, name string) {
	levels, table := quote(t, []string{name, name}), quote(t, name)
	ident := `{"namespace":` + levels + `,"name":` + table + `}`
	w.want(200, "POST", pathNamespaces, `{"namespace":`+levels+`}`, nil)
	made := loaded{}
	spelled := spellings(name)
	ns := pathNamespaces + "/" + spelled[0] + "%1F" + spelled[0]
	w.want(200, "POST", ns+"/tables", `{"name":`+table+`,"schema":`+schemaJSON+`}`, &made)
	wantInside(t, warehouse, made)

	for i, escaped := range spelled {
		ns := pathNamespaces + "/" + escaped + "%1F" + escaped
		path := ns + "/tables/" + escaped
		var listed page
		w.want(200, "GET", pathNamespaces+"?parent="+spelled[i/2*2], "", &listed) // an & that is not escaped would end the parameter
		if len(listed.Namespaces) != 1 || !slices.Equal(listed.Namespaces[0], []string{name, name}) {
			t.Errorf("children of %q are %q", escaped, listed.Namespaces)
		}
		var stored struct {
			Namespace []string `json:"namespace"`
		}
		w.want(200, "GET", ns, "", &stored)
		if !slices.Equal(stored.Namespace, []string{name, name}) {
			t.Errorf("%q is the namespace %q", escaped, stored.Namespace)
		}
		w.want(204, "HEAD", ns, "", nil)
		w.want(200, "POST", ns+"/properties", `{"updates":{"k":"v"}}`, nil)
		listed = page{}
		w.want(200, "GET", ns+"/tables?pageToken=", "", &listed)
		if got := listed.names(); !slices.Equal(got, []string{name}) {
			t.Errorf("%q lists %q", escaped, got)
		}
		w.want(204, "HEAD", path, "", nil)
		value := fmt.Sprint(i)
		w.want(200, "POST", path, `{"identifier":`+ident+`,"requirements":[],"updates":[{"action":"set-properties","updates":{"i":"`+value+`"}}]}`, nil)
		var got loaded
		w.want(200, "GET", path, "", &got)
		if got.Metadata.Properties["i"] != value || got.Metadata.Location != made.Metadata.Location {
			t.Errorf("%q loads %+v, made as %+v", escaped, got, made)
		}
		w.want(204, "POST", path+"/metrics", rest.CommitReportJSON, nil)
	}

	// Rename to another name and back, unregister, and register again.
	path := ns + "/tables/" + spelled[0]
	_, first := utf8.DecodeRuneInString(name)
	otherName := "x" + name[first:]
	other := `{"namespace":` + levels + `,"name":` + quote(t, otherName) + `}`
	w.want(204, "POST", pathRename, `{"source":`+ident+`,"destination":`+other+`}`, nil)
	w.want(404, "GET", path, "", nil)
	w.want(200, "GET", ns+"/tables/"+url.QueryEscape(otherName), "", nil)
	w.want(204, "POST", pathRename, `{"source":`+other+`,"destination":`+ident+`}`, nil)
	var last loaded
	w.want(200, "POST", path+"/unregister", "", &last)
	w.want(200, "POST", ns+"/register", `{"name":`+table+`,"metadata-location":`+quote(t, last.MetadataLocation)+`}`, nil)

	w.want(409, "DELETE", ns, "", nil)
	w.want(204, "DELETE", path+"?purgeRequested=true", "", nil)
	w.want(404, "DELETE", path, "", nil)
	oddViewLife(t, w, warehouse, name)
	w.want(204, "DELETE", ns, "", nil)
	w.want(204, "DELETE", pathNamespaces+"/"+spelled[0], "", nil)
}

// oddViewLife creates, changes and drops a view called name, in a namespace whose levels have the
// same name.
func oddViewLife(t *testing.T, w wire, warehouse, name string) {
	levels, view := quote(t, []string{name, name}), quote(t, name)
	ident := `{"namespace":` + levels + `,"name":` + view + `}`
	spelled := spellings(name)
	ns := pathNamespaces + "/" + spelled[0] + "%1F" + spelled[0]
	made := loaded{}
	w.want(200, "POST", ns+"/views", `{"name":`+view+`,"schema":`+schemaJSON+`,"view-version":`+versionJSON+`}`, &made)
	wantInside(t, warehouse, made)
	for i, escaped := range spelled {
		ns := pathNamespaces + "/" + escaped + "%1F" + escaped
		var listed page
		w.want(200, "GET", ns+"/views?pageToken=", "", &listed)
		if got := listed.names(); !slices.Equal(got, []string{name}) {
			t.Errorf("%q lists %q", escaped, got)
		}
		path, value := ns+"/views/"+escaped, fmt.Sprint(i)
		w.want(204, "HEAD", path, "", nil)
		w.want(200, "POST", path, `{"identifier":`+ident+`,"updates":[{"action":"set-properties","updates":{"i":"`+value+`"}}]}`, nil)
		var got loaded
		w.want(200, "GET", path, "", &got)
		if got.Metadata.Properties["i"] != value || got.Metadata.Location != made.Metadata.Location {
			t.Errorf("%q loads %+v, made as %+v", escaped, got, made)
		}
	}
	path := ns + "/views/" + spelled[0]
	_, first := utf8.DecodeRuneInString(name)
	otherName := "x" + name[first:]
	other := `{"namespace":` + levels + `,"name":` + quote(t, otherName) + `}`
	w.want(204, "POST", pathRenameView, `{"source":`+ident+`,"destination":`+other+`}`, nil)
	w.want(404, "GET", path, "", nil)
	var last loaded
	w.want(200, "GET", ns+"/views/"+url.QueryEscape(otherName), "", &last)
	w.want(204, "DELETE", ns+"/views/"+url.QueryEscape(otherName), "", nil)
	w.want(200, "POST", ns+"/register-view", `{"name":`+view+`,"metadata-location":`+quote(t, last.MetadataLocation)+`}`, nil)
	w.want(409, "DELETE", ns, "", nil)
	w.want(204, "DELETE", path, "", nil)
	w.want(404, "DELETE", path, "", nil)
}

// wantInside checks that the metadata file of a table or view exists below the warehouse.
func wantInside(t *testing.T, warehouse string, table loaded) {
	t.Helper()
	file, isFile := strings.CutPrefix(table.MetadataLocation, "file://")
	below, err := filepath.Rel(warehouse, file)
	if !isFile || err != nil || !filepath.IsLocal(below) || filepath.Clean(file) != file {
		t.Errorf("the metadata is at %q", table.MetadataLocation)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

// Similar odd names in one namespace are different tables, or views, at different locations.
func TestOddNamesTogether(t *testing.T) {
	t.Parallel()
	for list, members := range map[string]string{pathTables: "", pathViews: `,"view-version":` + versionJSON} {
		w := newWorld(t)
		server := wire{t, httptest.NewServer(w)}
		defer server.server.Close()
		server.want(200, "POST", pathNamespaces, `{"namespace":["ns"]}`, nil)
		places := make(map[string]string)
		for _, name := range oddNames() {
			var made loaded
			server.want(200, "POST", list, `{"name":`+quote(t, name)+`,"schema":`+schemaJSON+members+`}`, &made)
			if other, taken := places[made.Metadata.Location]; taken {
				t.Errorf("%q and %q are both at %s", name, other, made.Metadata.Location)
			}
			places[made.Metadata.Location] = name
		}
		var listed page
		server.want(200, "GET", list, "", &listed)
		want := oddNames()
		slices.Sort(want)
		if got := listed.names(); !slices.Equal(got, want) {
			t.Errorf("listed are %q, want %q", got, want)
		}
		for _, name := range want {
			var got loaded
			server.want(200, "GET", list+"/"+url.QueryEscape(name), "", &got)
			if places[got.Metadata.Location] != name {
				t.Errorf("%q loads what is at %s", name, got.Metadata.Location)
			}
		}
		w.wantClean()
	}
}

// The prefix of a warehouse with an odd name leads clients to that warehouse, whether they use it
// unchanged or escape it once more.
func TestOddWarehouses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := wire{t, httptest.NewServer(w)}
	defer server.server.Close()
	for i, name := range []string{"a/b c", ".", "..", "namespaces", "config", "%2F", "+", "é😀", "?#;&="} {
		location := w.uri(fmt.Sprintf("../odd%d", i))
		if _, err := w.catalog.Warehouses().Create(t.Context(), warehouses.Spec{Name: name, Location: location}); err != nil {
			t.Fatal(err)
		}
		var config struct {
			Overrides map[string]string `json:"overrides"`
		}
		server.want(200, "GET", "/v1/config?warehouse="+url.QueryEscape(name), "", &config)
		prefix := "/v1/" + config.Overrides["prefix"]
		level := fmt.Sprint("ns", i)
		server.want(200, "POST", prefix+"/namespaces", `{"namespace":["`+level+`"]}`, nil)
		server.want(200, "POST", prefix+"/namespaces/"+level+"/tables", `{"name":"t","schema":`+schemaJSON+`}`, nil)
		var listed page
		server.want(200, "GET", prefix+"/namespaces", "", &listed)
		if got := listed.names(); !slices.Equal(got, []string{level}) {
			t.Errorf("%q at %s lists %q", name, prefix, got)
		}
		server.want(200, "GET", prefix+"/namespaces/"+level+"/tables/t", "", nil)
	}
	w.wantClean()
}

func quote(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
