package management

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"moorage"
	"moorage/access"
	"moorage/catalog"
)

// fakeMirrors records its calls.
type fakeMirrors struct{ *fake }

func (f fakeMirrors) Load(_ context.Context, kind access.Kind, ident moorage.Identifier) (string, error) {
	return "https://old", f.call(fmt.Sprint("Load ", kind, " ", ident))
}

func (f fakeMirrors) Put(_ context.Context, kind access.Kind, ident moorage.Identifier, source, location string) error {
	return f.call(fmt.Sprint("Put ", kind, " ", ident, " ", source, " ", location))
}

func (f fakeMirrors) Register(_ context.Context, kind access.Kind, ident moorage.Identifier, location string, requires catalog.Requires) error {
	return f.call(fmt.Sprint("Register ", kind, " ", ident, " ", location, " ", requires != nil))
}

func (f fakeMirrors) End(_ context.Context, kind access.Kind, ident moorage.Identifier, location string) error {
	return f.call(fmt.Sprint("End ", kind, " ", ident, " ", location))
}

func (f fakeMirrors) Check(_ context.Context, kind access.Kind, ident moorage.Identifier, request catalog.CheckRequest) (catalog.Checked, error) {
	return catalog.Checked{Fitness: catalog.NameTaken, Why: "because"}, f.call(fmt.Sprint("Check ", kind, " ", ident, " ", request))
}

func (f fakeMirrors) Files(_ context.Context, warehouse, folder, after string) ([]catalog.MetadataFile, string, error) {
	return []catalog.MetadataFile{{Location: folder + "/v1.metadata.json"}}, "next", f.call(fmt.Sprintf("Files %s %s %q", warehouse, folder, after))
}

// The operations on mirrors call the catalog with the values in the request.
func TestMirrorOperations(t *testing.T) {
	t.Parallel()
	const table = "?warehouse=w&namespace=sales&table=t"
	for name, tt := range map[string]struct {
		method, path, body string
		status             int
		call, answer       string
	}{
		"load":          {"GET", "/mirror" + table, "", 200, "Load table sales.t", `{"source":"https://old"}`},
		"put":           {"PUT", "/mirror" + table, `{"source":"s","metadata-location":"l"}`, 200, "Put table sales.t s l", `{"source":"s"}`},
		"put a view":    {"PUT", "/mirror?warehouse=w&namespace=a&view=v", `{"source":"s","metadata-location":"l"}`, 200, "Put view a.v s l", ""},
		"writable":      {"PUT", "/mirror" + table, `{"writable":true,"metadata-location":"l"}`, 200, "Register table sales.t l true", "{}"},
		"both":          {"PUT", "/mirror" + table, `{"writable":true,"source":"s","metadata-location":"l"}`, 400, "", "is no mirror"},
		"no source":     {"PUT", "/mirror" + table, `{"metadata-location":"l"}`, 400, "", "A mirror has a source"},
		"a long source": {"PUT", "/mirror" + table, `{"metadata-location":"l","source":"` + strings.Repeat("x", 1025) + `"}`, 400, "", "at most 1024"},
		"no location":   {"PUT", "/mirror" + table, `{"source":"s"}`, 400, "", `member \"metadata-location\" is missing`},
		"a namespace":   {"PUT", "/mirror?warehouse=w&namespace=a", `{"source":"s","metadata-location":"l"}`, 400, "", "name one"},
		"end":           {"POST", "/mirror/end" + table, `{"metadata-location":"l"}`, 200, "End table sales.t l", "{}"},
		"end, a source": {"POST", "/mirror/end" + table, `{"metadata-location":"l","source":"s"}`, 200, "End table sales.t l", "{}"},
		"check":         {"POST", "/mirror/check" + table, `{"metadata-location":"l"}`, 200, "Check table sales.t {l false}", `{"fitness":"name-taken","why":"because"}`},
		"check new":     {"POST", "/mirror/check" + table, `{"metadata-location":"l","new-namespace":true}`, 200, "Check table sales.t {l true}", ""},
		"files":         {"GET", "/metadata-files?warehouse=w&location=s3://lake/x", "", 200, `Files w s3://lake/x ""`, `"location":"s3://lake/x/v1.metadata.json"`},
		"no folder":     {"GET", "/metadata-files?warehouse=w", "", 400, "", "Name a warehouse and a location"},
	} {
		f := &fake{}
		w := send(newServer(t, configOf(f)), tt.method, base+tt.path, tt.body)
		calls := strings.Join(f.calls, "; ")
		if w.Code != tt.status || !strings.Contains(calls, tt.call) || tt.call == "" && calls != "" || !strings.Contains(w.Body.String(), tt.answer) {
			t.Errorf("%s: %d %s, called %q", name, w.Code, w.Body, calls)
		}
	}
	if w := send(newServer(t, configOf(&fake{})), "GET", base+"/metadata-files?warehouse=w&location=a", ""); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
