package management

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/check"
	"moorage/internal/web"
	"moorage/maintenance/policy"
	"moorage/maintenance/purge"
	"moorage/recovery"
	"moorage/registry"
	"moorage/testkit/answers"
	"moorage/txlog"
)

// fake answers every call with the error in fail, or with a fixed value if fail is nil. It records
// the calls.
type fake struct {
	mu    sync.Mutex // guards calls and pages
	calls []string
	pages []moorage.Page
	fail  error
	next  string
}

func (f *fake) call(name string, pages ...moorage.Page) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, name)
	f.pages = append(f.pages, pages...)
	return f.fail
}

func (f *fake) Check(context.Context) (check.Report, error) {
	return check.Report{Warehouses: 1, Namespaces: 2, Tables: 3, Views: 4, Problems: []string{}, Unread: []string{}}, f.call("Check")
}

func (f *fake) Unfinished(_ context.Context, after string, limit int) ([]recovery.Unfinished, string, error) {
	began := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	transaction := txlog.Transaction{
		ID: registry.ID{0xa1}, Warehouse: "w", Participants: []txlog.Participant{{Ident: moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t"}}},
		Files: []string{"f1", "f2"}, Began: began, Deadline: began.Add(time.Minute), Principal: "ann",
	}
	return []recovery.Unfinished{{
		Entry:   txlog.Entry{Transaction: transaction, State: registry.StatePending},
		Blocker: &recovery.Blocker{Since: began, Attempts: 50, LastError: "no disk"},
	}}, f.next, f.call("Unfinished", moorage.Page{After: after, Limit: limit})
}

func (f *fake) Blocked(_ context.Context, after string, limit int) ([]purge.Blocked, string, error) {
	return []purge.Blocked{{ID: "b2", Unreadable: errors.New("damaged")}}, f.next, f.call("Blocked", moorage.Page{After: after, Limit: limit})
}

func (f *fake) ListWaiting(_ context.Context, after string, limit int) ([]purge.Waiting, string, error) {
	return []purge.Waiting{{
		ID: "b3", Table: moorage.Identifier{Warehouse: "w", Namespace: moorage.Namespace{"a"}, Name: "t"},
		Begins: time.Date(2026, 11, 28, 10, 0, 0, 0, time.UTC), Bytes: 4711,
	}}, f.next, f.call("Waiting", moorage.Page{After: after, Limit: limit})
}

func (f *fake) Retry(_ context.Context, id string) (recovery.Retried, error) {
	return recovery.Retried{Kind: recovery.KindTransaction, Reason: errors.New("no disk")}, f.call("Retry " + id)
}

func (f *fake) Abort(_ context.Context, id string) (recovery.Aborted, error) {
	return recovery.Aborted{Was: registry.StatePending, Forgotten: true, Left: []string{"f1"}}, f.call("Abort " + id)
}

// newServer returns a server, and checks that every answer is as openapi.yaml describes it.
func newServer(t *testing.T, config Config) http.Handler {
	t.Helper()
	server := web.New(web.Config{})
	if config.Access == nil {
		config.Access = func(moorage.Caller) Access { return &fakeAccess{fake: &fake{}} }
	}
	if config.Warehouses == nil {
		config.Warehouses = func(caller moorage.Caller) Warehouses { return fakeWarehouses{&fake{}, caller} }
	}
	f, ok := config.Recovery.(*fake)
	if !ok {
		f = &fake{}
	}
	if config.Versions == nil {
		config.Versions = func(moorage.Caller, *catalog.Key, *catalog.Lease) Versions { return fakeVersions{f} }
	}
	if config.Jobs == nil {
		care := fakeCare{f}
		config.Scopes = func(moorage.Caller) policy.Scopes { return care }
		config.Policies, config.Steering, config.Jobs = care, care, fakeJobs{f}
	}
	config.Check = config.Recovery.(interface {
		Check(ctx context.Context) (check.Report, error)
	}).Check
	if config.History == nil {
		config.History = fakeHistory{}
	}
	if config.Leases == nil {
		config.Leases, config.FindTable = fakeLeases{f}, fakeLeases{f}.find
	}
	Mount(server, config)
	return readDescription(t).Watch(t, server)
}

// send sends h a request from this machine, without a network. headers are name, value, name,
// value…
func send(h http.Handler, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, newRequest(method, target, body, headers...))
	return w
}

// newRequest returns a request with headers, each a name and a value.
func newRequest(method, target, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:4711"
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// wantFailure checks the status and the type of a failure. The server of newServer has already
// checked its shape.
func wantFailure(t *testing.T, w *httptest.ResponseRecorder, status int, kind string) {
	t.Helper()
	if w.Code != status || !strings.Contains(w.Body.String(), `"type":"`+kind+`"`) {
		t.Errorf("%d %s, want %d %s", w.Code, w.Body, status, kind)
	}
}

// description is the content of openapi.yaml.
type description struct {
	*answers.Judge
	file map[string]any
}

// judge returns the Judge of openapi.yaml, which all tests share.
var judge = sync.OnceValues(func() (*answers.Judge, error) { return answers.Management(openAPI) })

func readDescription(t *testing.T) description {
	t.Helper()
	j, err := judge()
	if err != nil {
		t.Fatal(err)
	}
	return description{j, j.File()}
}

var parameter = regexp.MustCompile(`\{(\w+)\}`)

// target returns the path of an operation with the examples of the file as parameters.
func (d description) target(path string) string {
	parameters := d.file["components"].(map[string]any)["parameters"].(map[string]any)
	return base + parameter.ReplaceAllStringFunc(path, func(braced string) string {
		example := parameters[strings.Trim(braced, "{}")].(map[string]any)["example"].(string)
		return url.PathEscape(example)
	})
}

// fault returns an error if an answer is not as the file describes it.
func (d description) fault(r *http.Request, w *httptest.ResponseRecorder) error {
	return d.Fault(answers.Answer{
		Method: r.Method, Path: r.URL.EscapedPath(), Status: w.Code, Header: w.Header(), Body: w.Body.Bytes(),
	})
}

// Every route is described, and every described operation has a route.
func TestRoutesAreDescribed(t *testing.T) {
	t.Parallel()
	d := readDescription(t)
	var want, got []string
	for _, op := range (&server{}).operations() {
		want = append(want, op.id+" "+op.method+" "+base+op.path)
	}
	for path, item := range d.file["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			got = append(got, fmt.Sprint(op.(map[string]any)["operationId"], " ", strings.ToUpper(method), " ", path))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("described are\n%s\nrouted are\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Every operation can answer the example requests of the file, and can return every kind of
// failure.
func TestExamples(t *testing.T) {
	t.Parallel()
	d := readDescription(t)
	for _, op := range (&server{}).operations() {
		described := d.Operation(op.method, base+op.path)
		body := ""
		if request, ok := described["requestBody"].(map[string]any); ok {
			example := request["content"].(map[string]any)["application/json"].(map[string]any)["example"]
			text, err := json.Marshal(example)
			if err != nil {
				t.Fatal(err)
			}
			body = string(text)
		}
		target := d.target(op.path)
		if op.id == "listGrants" {
			target += "?grantee=analysts"
		}
		if strings.Contains(op.path, "/maintenance/policies/") || op.id == "loadMaintenance" {
			target += "?object=server"
		}
		switch op.id {
		case "loadObject":
			target += "?warehouse=default&path=sales%1Forders"
		case "listObjects", "listDropped", "loadProtection", "putProtection":
			target += "?warehouse=default"
		case "listRefusals":
			target += "?warehouse=default"
		case "searchObjects":
			target += "?q=orders"
		}
		switch op.id {
		case "loadMirror", "putMirror", "endMirror", "checkRegister":
			target += "?warehouse=default&namespace=sales&table=orders"
		case "listMetadataFiles":
			target += "?warehouse=default&location=s3://lake/sales"
		}
		if strings.HasSuffix(op.id, "Labels") {
			target += "?warehouse=default&namespace=sales&table=orders"
		}
		if op.id == "releaseLeases" {
			target += "?holder=spark"
		}
		if slices.Contains([]string{"loadMetadata", "diffVersions", "readRows", "rollbackTable", "loadHealth", "listManifests", "loadHistory"}, op.id) {
			target += "?warehouse=w&namespace=a&table=t"
		}
		f := &fake{}
		h := newServer(t, configOf(f))
		if w := send(h, op.method, target, body); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", op.id, w.Code, w.Body)
		}
		for _, kind := range moorage.Kinds() {
			f.fail = moorage.Errorf(kind, "the words")
			if w := send(h, op.method, target, body); len(f.calls) > 0 && w.Code != web.FailureOf(kind).Status {
				t.Errorf("%s: %s is answered with %d", op.id, kind, w.Code)
			}
		}
	}
}

// referencePage is the page that TestReference compares with the file.
const referencePage = "../docs/reference/management.md"

var update = flag.Bool("update", false, "rewrite generated pages")

// TestReference compares the page of the API with the file. With -update, it rewrites the page.
func TestReference(t *testing.T) {
	t.Parallel()
	page := "# Management API\n\n<!-- Generated: go test ./management -run TestReference -update -->\n\n" +
		"The operations for operators. Most commands use this API: that of a server with `--uri`, or otherwise that of their\n" +
		"own process.\n" +
		"`GET /management/v1/openapi.yaml` describes requests and answers.\n\n" +
		"* Lists are paged, with 100 on a page, or `pageSize`, up to 1,000. `next-page-token` is the `pageToken` for the next\n" +
		"  page.\n" +
		"* A change accepts an `Idempotency-Key`. For 30 minutes, the node that made the change gives a repeated request the\n" +
		"  same answer.\n" +
		"* A failure has the form in [Errors](errors.md). It also has `request-id`, which is in the server's log, and `help`.\n\n" +
		"| operation | what it does |\n|---|---|\n"
	d := readDescription(t)
	for _, op := range (&server{}).operations() {
		described := d.Operation(op.method, base+op.path)
		summary := described["summary"].(string)
		page += fmt.Sprintf("| `%s %s%s` | %s |\n", op.method, base, op.path, summary)
	}
	if *update {
		if err := os.WriteFile(referencePage, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != page {
		t.Errorf("%s is not as the file is (rewrite it with -update); want\n%s", referencePage, page)
	}
}

// No member of the file is null by accident: in {description: One, two} the word two is a member.
func TestNoStrayMembers(t *testing.T) {
	t.Parallel()
	var visit func(at string, value any)
	visit = func(at string, value any) {
		switch value := value.(type) {
		case nil:
			t.Errorf("%s is null: quote the text that has a comma", at)
		case []any:
			for i, item := range value {
				visit(fmt.Sprint(at, "/", i), item)
			}
		case map[string]any:
			for name, item := range value {
				if name != "example" { // an example may contain null
					visit(at+"/"+name, item)
				}
			}
		}
	}
	visit("", readDescription(t).file)
}

// The server answers with its description exactly as it is in the file.
func TestDescription(t *testing.T) {
	t.Parallel()
	w := send(newServer(t, Config{Recovery: &fake{}, Purges: &fake{}}), "GET", "/management/v1/openapi.yaml", "")
	if got, err := io.ReadAll(w.Body); err != nil || !bytes.Equal(got, openAPI) {
		t.Errorf("%d, %d bytes, want %d", w.Code, len(got), len(openAPI))
	}
}
