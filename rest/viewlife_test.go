package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"moorage/rest"
)

// viewAnswer has the parts of an answer with a view that the tests check.
type viewAnswer struct {
	MetadataLocation string `json:"metadata-location"`
	Metadata         struct {
		UUID       string            `json:"view-uuid"`
		Location   string            `json:"location"`
		Current    int               `json:"current-version-id"`
		Properties map[string]string `json:"properties"`
		Versions   []struct {
			ID              int               `json:"version-id"`
			TimestampMS     int64             `json:"timestamp-ms"`
			SchemaID        int               `json:"schema-id"`
			Summary         map[string]string `json:"summary"`
			Namespace       []string          `json:"default-namespace"`
			Representations []struct {
				SQL string `json:"sql"`
			} `json:"representations"`
		} `json:"versions"`
	} `json:"metadata"`
}

func viewOf(t *testing.T, answer *httptest.ResponseRecorder) (view viewAnswer) {
	t.Helper()
	if err := json.Unmarshal(answer.Body.Bytes(), &view); err != nil || answer.Code != 200 {
		t.Fatalf("%d %v in %.500s", answer.Code, err, answer.Body)
	}
	return view
}

// query returns the text of the current version.
func (v viewAnswer) query() string {
	for _, version := range v.Metadata.Versions {
		if version.ID == v.Metadata.Current {
			return version.Representations[0].SQL
		}
	}
	return ""
}

// replaceWith returns a change that makes sql the query of a view, in a version with the given
// number.
func replaceWith(number int, sql string) string {
	return fmt.Sprintf(`{"updates":[{"action":"add-view-version","view-version":{"version-id":%d,"timestamp-ms":1700000000001,"schema-id":0,"summary":{},"default-namespace":["ns"],`+
		`"representations":[{"type":"sql","sql":%q,"dialect":"spark"}]}},{"action":"set-current-view-version","view-version-id":-1}]}`, number, sql)
}

// The answer to a change of a view equals that of the next load: on this server, on another that
// has loaded the view before, and on one that has just started. A change without effect is answered
// with the existing version.
func TestChangesOfViewsAnswerTheNextLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill()
	const path = pathViews + "/v"
	seen := []string{}
	another := rest.NewServer(rest.TestConfig{Catalog: w.restarted()})
	step := func(method, path, body, loadPath string) viewAnswer {
		t.Helper()
		answer := w.must(method, path, body)
		for _, server := range []http.Handler{w, another, rest.NewServer(rest.TestConfig{Catalog: w.restarted()})} {
			if load := sendTo(t, server, "GET", loadPath, ""); load.Body.String() != answer.Body.String() {
				t.Errorf("%s %s %s answers\n%s\nthe load after it\n%s", method, path, body, answer.Body, load.Body)
			}
		}
		view := viewOf(t, answer)
		seen = append(seen, view.MetadataLocation)
		return view
	}
	made := step("POST", pathViews, viewJSON("v"), path)
	if version := made.Metadata.Versions[0]; version.ID != 1 || version.TimestampMS != 1700000000000 || version.Summary["engine-name"] != "test" || !slices.Equal(version.Namespace, []string{"ns"}) ||
		made.Metadata.Current != 1 || made.query() != "select id, data from t" || len(made.Metadata.Versions) != 1 {
		t.Errorf("made as %+v", made)
	}
	replaced := step("POST", path, replaceWith(2, "select 2"), path)
	if replaced.query() != "select 2" || len(replaced.Metadata.Versions) != 2 || replaced.Metadata.UUID != made.Metadata.UUID || replaced.Metadata.Location != made.Metadata.Location {
		t.Errorf("replaced as %+v", replaced)
	}
	back := step("POST", path, `{"updates":[{"action":"set-current-view-version","view-version-id":1}]}`, path)
	if back.query() != made.query() || len(back.Metadata.Versions) != 2 {
		t.Errorf("set back as %+v", back)
	}
	moved := step("POST", path, `{"updates":[{"action":"set-location","location":"`+w.uri("elsewhere/v")+`"}]}`, path)
	if moved.Metadata.Location != w.uri("elsewhere/v") || !strings.HasPrefix(moved.MetadataLocation, w.uri("elsewhere/v/metadata/")) {
		t.Errorf("moved as %+v", moved)
	}
	placed := step("POST", path, `{"updates":[{"action":"set-properties","updates":{"write.metadata.path":"`+w.uri("placed")+`"}}]}`, path)
	if !strings.HasPrefix(placed.MetadataLocation, w.uri("placed/")) {
		t.Errorf("metadata is at %s", placed.MetadataLocation)
	}
	if sorted := slices.Compact(slices.Sorted(slices.Values(seen))); len(sorted) != len(seen) {
		t.Errorf("a metadata file was written twice: %q", seen)
	}
	for _, body := range []string{`{"updates":[]}`, `{"updates":null}`, `{"updates":[{"action":"set-current-view-version","view-version-id":1}]}`} {
		if same := step("POST", path, body, path); same.MetadataLocation != placed.MetadataLocation {
			t.Errorf("%s: a new version at %s", body, same.MetadataLocation)
		}
	}
	w.must("POST", pathRenameView, rename(identifier("ns", "v"), identifier("empty", "w")))
	if old := sendTo(t, another, "GET", path, ""); old.Code != 404 {
		t.Errorf("under its old name: %d", old.Code)
	}
	if renamed := viewOf(t, w.get("/v1/namespaces/empty/views/w")); renamed.MetadataLocation != placed.MetadataLocation {
		t.Errorf("renamed from %s to %s", placed.MetadataLocation, renamed.MetadataLocation)
	}
	w.must("DELETE", "/v1/namespaces/empty/views/w", "")
	registered := step("POST", pathRegisterView, fmt.Sprintf(`{"name":"v","metadata-location":%q}`, placed.MetadataLocation), path)
	if registered.Metadata.UUID != made.Metadata.UUID || registered.MetadataLocation != placed.MetadataLocation {
		t.Errorf("registered as %+v", registered)
	}
	w.wantClean()
}

// Concurrent replaces are all applied, one after another.
func TestReplacesThatRace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill()
	uuid := w.viewUUID()
	const clients, rounds = 4, 5
	var running sync.WaitGroup
	for client := range clients {
		running.Go(func() {
			for round := range rounds {
				body := strings.Replace(replaceWith(2, fmt.Sprintf("select %d, %d", client, round)), "{", `{"requirements":[`+assertViewUUID(uuid)+`],`, 1)
				if answer := w.do("POST", pathView, body); answer.Code != 200 {
					t.Errorf("%d %s", answer.Code, answer.Body)
				}
			}
		})
	}
	running.Wait()
	var log struct {
		Metadata struct {
			Log []struct {
				ID int `json:"version-id"`
			} `json:"version-log"`
		} `json:"metadata"`
	}
	answer := w.get(pathView)
	if err := json.Unmarshal(answer.Body.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	if current := viewOf(t, answer).Metadata.Current; current != 1+clients*rounds {
		t.Errorf("the current version is %d, want %d", current, 1+clients*rounds)
	}
	for i, entry := range log.Metadata.Log {
		if want := 1 + clients*rounds - len(log.Metadata.Log) + 1 + i; entry.ID != want {
			t.Errorf("entry %d of the log is version %d, want %d", i, entry.ID, want)
		}
	}
	w.wantClean()
}

// If several requests want a name at the same time, exactly one table or view gets it.
func TestRaceForAName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill()
	location := viewOf(t, w.must("POST", pathViews, viewJSON("dropped"))).MetadataLocation
	w.must("DELETE", pathViews+"/dropped", "")
	for round := range 5 {
		name := fmt.Sprint("name", round)
		requests := [][2]string{
			{pathTables, `{"name":"` + name + `","schema":` + schemaJSON + `}`},
			{pathViews, viewJSON(name)},
			{pathRename, rename(identifier("ns", "t"), identifier("ns", name))},
			{pathRenameView, rename(identifier("ns", "view"), identifier("ns", name))},
			{pathRegisterView, fmt.Sprintf(`{"name":%q,"metadata-location":%q}`, name, location)},
		}
		codes := make([]int, len(requests))
		var running sync.WaitGroup
		for i, request := range requests {
			running.Go(func() { codes[i] = w.do("POST", request[0], request[1]).Code })
		}
		running.Wait()
		won := slices.IndexFunc(codes, func(code int) bool { return code < 300 })
		if won < 0 {
			t.Fatalf("nobody got %s: %d", name, codes)
		}
		for i, code := range codes {
			if i != won && code != 409 {
				t.Errorf("%s is answered %d beside %d", requests[i][0], code, codes)
			}
		}
		w.wantClean()
		switch won { // restore the state that the next round needs
		case 2:
			w.must("POST", pathRename, rename(identifier("ns", name), identifier("ns", "t")))
		case 3:
			w.must("POST", pathRenameView, rename(identifier("ns", name), identifier("ns", "view")))
		case 4:
			w.must("DELETE", pathViews+"/"+name, "")
		}
	}
}

// A table is not found as a view, nor a view as a table, and neither appears in the list of the
// other kind.
func TestTablesAreNoViews(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill()
	for path, want := range map[string]int{
		pathTable: 204, pathView: 204, pathViews + "/t": 404, pathTables + "/view": 404, pathViews + "/missing": 404, "/v1/namespaces/missing/views/view": 404,
	} {
		if answer := w.do("HEAD", path, ""); answer.Code != want || answer.Body.Len() > 0 {
			t.Errorf("%s: %d and %d bytes, want %d", path, answer.Code, answer.Body.Len(), want)
		}
	}
	if tables, views := w.page(pathTables).names(), w.page(pathViews).names(); !slices.Equal(tables, []string{"t", "u"}) || !slices.Equal(views, []string{"view", "view2"}) {
		t.Errorf("listed are the tables %q and the views %q", tables, views)
	}
	// Once an object is dropped, its name is free for the other kind. Its location is not, because
	// the object can come back.
	for i, row := range []struct{ path, list, create, back string }{
		{pathView, pathTables, `{"name":"view","schema":` + schemaJSON + `}`, pathRegisterView},
		{pathTables + "/u", pathViews, viewJSON("u"), pathRegister},
	} {
		last := w.metadataLocation(row.path)
		w.must("DELETE", row.path, "")
		w.must("POST", row.list, row.create)
		for _, register := range []string{pathRegister, pathRegisterView} {
			answer := w.do("POST", register, fmt.Sprintf(`{"name":"back%d","metadata-location":%q}`, i, last))
			isRefused := answer.Code >= 400 && answer.Code <= 409
			if isRefused == (register == row.back) {
				t.Errorf("%s %s: %d %s", register, last, answer.Code, answer.Body)
			}
		}
		w.wantClean()
	}
}
