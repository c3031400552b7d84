package rest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/catalog/vending"
	"moorage/catalog/warehouses"
)

// fakeCatalog answers every call with the error in fail if that is set, and otherwise with the
// result of do if that is set. If neither is set, it answers like an empty catalog. It records the
// calls.
type fakeCatalog struct {
	leases        []catalog.Lease
	catalog.Verbs // nil: a method that is not faked panics
	fail          error
	do            func(call string) error
	table         *catalog.Table
	view          *catalog.View
	names         []string
	next          string
	rebases       []catalog.RebaseChoice // the choices of commits
	calls         []string
	pages         []moorage.Page
	idents        []moorage.Identifier
	spaces        []moorage.Namespace
	created       catalog.CreateTableRequest
	// The arguments of calls about views.
	createdView  catalog.CreateViewRequest
	replacedView catalog.ReplaceViewRequest
	registered   string
	keys         []catalog.Key
	access       vending.Delegated
	delegation   []vending.Delegation
	signed       vending.SignRequest
	staged       []string // the staged locations passed to LoadCredentials and Sign
	through      []moorage.Identifier
}

func (f *fakeCatalog) call(name string) error {
	f.calls = append(f.calls, name)
	if f.do != nil {
		return f.do(name)
	}
	return f.fail
}

func (f *fakeCatalog) For(_ moorage.Caller, key *catalog.Key, lease *catalog.Lease) catalog.Verbs {
	if lease != nil {
		f.leases = append(f.leases, *lease)
	}
	if key != nil {
		f.keys = append(f.keys, *key)
	}
	return f
}

func (f *fakeCatalog) Refuse(_ context.Context, _ gate.Verb, _ moorage.Identifier, why error) error {
	return why
}

func (f *fakeCatalog) Sees(context.Context, gate.Verb, string) (bool, error) { return true, nil }

func (f *fakeCatalog) Admit(context.Context, gate.Verb, string) error { return nil }

func (f *fakeCatalog) Delegate(context.Context, *catalog.Table, []vending.Delegation) (vending.Delegated, error) {
	return f.access, f.fail
}

func (f *fakeCatalog) LoadCredentials(_ context.Context, _ moorage.Identifier, staged string, through ...moorage.Identifier) (vending.Delegated, error) {
	f.staged, f.through = append(f.staged, staged), through
	return f.access, f.call("LoadCredentials")
}

func (f *fakeCatalog) Sign(_ context.Context, _ moorage.Identifier, staged string, request vending.SignRequest, through ...moorage.Identifier) (
	vending.Signature, error) {
	f.signed, f.staged, f.through = request, append(f.staged, staged), through
	return vending.Signature{Headers: map[string][]string{"Authorization": {"AWS4"}}}, f.call("Sign")
}

func (f *fakeCatalog) ReportMetrics(context.Context, moorage.Identifier) error { return nil }

func (f *fakeCatalog) LoadWarehouse(_ context.Context, name string) (warehouses.Warehouse, error) {
	return warehouses.Warehouse{Name: name, Delegation: f.delegation}, f.call("LoadWarehouse " + name)
}

func (f *fakeCatalog) CreateNamespace(_ context.Context, _ string, ns moorage.Namespace, properties map[string]string) (map[string]string, error) {
	f.spaces = append(f.spaces, ns)
	return properties, f.call("CreateNamespace")
}

func (f *fakeCatalog) ListNamespaces(_ context.Context, warehouse string, parent moorage.Namespace, page moorage.Page) ([]moorage.Namespace, string, error) {
	f.pages, f.spaces = append(f.pages, page), append(f.spaces, parent)
	var children []moorage.Namespace
	for _, name := range f.names {
		children = append(children, parent.Child(name))
	}
	return children, f.next, f.call("ListNamespaces " + warehouse)
}

func (f *fakeCatalog) LoadNamespace(_ context.Context, _ string, ns moorage.Namespace) (map[string]string, error) {
	f.spaces = append(f.spaces, ns)
	return nil, f.call("LoadNamespace")
}

func (f *fakeCatalog) DropNamespace(context.Context, string, moorage.Namespace) error {
	return f.call("DropNamespace")
}

func (f *fakeCatalog) UpdateNamespaceProperties(context.Context, string, moorage.Namespace, catalog.PropertiesChange) (catalog.PropertiesResult, error) {
	return catalog.PropertiesResult{}, f.call("UpdateNamespaceProperties")
}

func (f *fakeCatalog) ListTables(_ context.Context, _ string, ns moorage.Namespace, page moorage.Page) ([]string, string, error) {
	f.pages, f.spaces = append(f.pages, page), append(f.spaces, ns)
	return f.names, f.next, f.call("ListTables")
}

func (f *fakeCatalog) answer(call string, ident moorage.Identifier) (*catalog.Table, error) {
	f.idents = append(f.idents, ident)
	return f.table, f.call(call)
}

func (f *fakeCatalog) CreateTable(_ context.Context, ident moorage.Identifier, request catalog.CreateTableRequest) (*catalog.Table, error) {
	f.created = request
	return f.answer("CreateTable", ident)
}

func (f *fakeCatalog) LoadTable(_ context.Context, ident moorage.Identifier, through ...moorage.Identifier) (*catalog.Table, error) {
	f.through = through
	return f.answer("LoadTable", ident)
}

func (f *fakeCatalog) TableExists(_ context.Context, ident moorage.Identifier) error {
	_, err := f.answer("TableExists", ident)
	return err
}

func (f *fakeCatalog) Commit(_ context.Context, ident moorage.Identifier, request catalog.CommitRequest) (*catalog.Table, error) {
	f.rebases = append(f.rebases, request.Rebase)
	return f.answer("Commit", ident)
}

func (f *fakeCatalog) CommitTransaction(_ context.Context, _ string, changes []catalog.TableChange) error {
	for _, change := range changes {
		f.idents, f.rebases = append(f.idents, change.Ident), append(f.rebases, change.Rebase)
	}
	return f.call("CommitTransaction")
}

func (f *fakeCatalog) DropTable(_ context.Context, ident moorage.Identifier, _ catalog.DropOptions) error {
	_, err := f.answer("DropTable", ident)
	return err
}

func (f *fakeCatalog) RenameTable(_ context.Context, from, to moorage.Identifier) error {
	f.idents = append(f.idents, from, to)
	return f.call("RenameTable")
}

func (f *fakeCatalog) RegisterTable(_ context.Context, ident moorage.Identifier, _ catalog.RegisterRequest) (*catalog.Table, error) {
	return f.answer("RegisterTable", ident)
}

func (f *fakeCatalog) UnregisterTable(_ context.Context, ident moorage.Identifier) (*catalog.Table, error) {
	return f.answer("UnregisterTable", ident)
}

func (f *fakeCatalog) ListViews(_ context.Context, _ string, ns moorage.Namespace, page moorage.Page) ([]string, string, error) {
	f.pages, f.spaces = append(f.pages, page), append(f.spaces, ns)
	return f.names, f.next, f.call("ListViews")
}

func (f *fakeCatalog) answerView(call string, ident moorage.Identifier) (*catalog.View, error) {
	f.idents = append(f.idents, ident)
	return f.view, f.call(call)
}

func (f *fakeCatalog) CreateView(_ context.Context, ident moorage.Identifier, request catalog.CreateViewRequest) (*catalog.View, error) {
	f.createdView = request
	return f.answerView("CreateView", ident)
}

func (f *fakeCatalog) LoadView(_ context.Context, ident moorage.Identifier, through ...moorage.Identifier) (*catalog.View, error) {
	f.through = through
	return f.answerView("LoadView", ident)
}

func (f *fakeCatalog) ViewExists(_ context.Context, ident moorage.Identifier) error {
	_, err := f.answerView("ViewExists", ident)
	return err
}

func (f *fakeCatalog) ReplaceView(_ context.Context, ident moorage.Identifier, request catalog.ReplaceViewRequest) (*catalog.View, error) {
	f.replacedView = request
	return f.answerView("ReplaceView", ident)
}

func (f *fakeCatalog) DropView(_ context.Context, ident moorage.Identifier) error {
	_, err := f.answerView("DropView", ident)
	return err
}

func (f *fakeCatalog) RenameView(_ context.Context, from, to moorage.Identifier) error {
	f.idents = append(f.idents, from, to)
	return f.call("RenameView")
}

func (f *fakeCatalog) RegisterView(_ context.Context, ident moorage.Identifier, metadataLocation string) (*catalog.View, error) {
	f.registered = metadataLocation
	return f.answerView("RegisterView", ident)
}

// sample is a valid request for an operation. The lists of the commit are null, so that only
// package rest examines them.
type sample struct{ operation, method, path, body string }

const signJSON = `{"region":"us-east-1","uri":"http://s3/b/k","method":"GET","headers":{}}`

func samples() []sample {
	return []sample{
		{"getConfig", "GET", "/v1/config?warehouse=w", ""},
		{"listNamespaces", "GET", "/v1/w/namespaces", ""},
		{"createNamespace", "POST", "/v1/w/namespaces", `{"namespace":["a"]}`},
		{"loadNamespaceMetadata", "GET", "/v1/w/namespaces/a", ""},
		{"namespaceExists", "HEAD", "/v1/w/namespaces/a", ""},
		{"dropNamespace", "DELETE", "/v1/w/namespaces/a", ""},
		{"updateProperties", "POST", "/v1/w/namespaces/a/properties", `{}`},
		{"listTables", "GET", "/v1/w/namespaces/a/tables", ""},
		{"createTable", "POST", "/v1/w/namespaces/a/tables", `{"name":"t","schema":{}}`},
		{"loadTable", "GET", "/v1/w/namespaces/a/tables/t", ""},
		{"tableExists", "HEAD", "/v1/w/namespaces/a/tables/t", ""},
		{"updateTable", "POST", "/v1/w/namespaces/a/tables/t", `{"requirements":null,"updates":null}`},
		{"dropTable", "DELETE", "/v1/w/namespaces/a/tables/t", ""},
		{"unregisterTable", "POST", "/v1/w/namespaces/a/tables/t/unregister", ""},
		{"reportMetrics", "POST", "/v1/w/namespaces/a/tables/t/metrics", ScanReportJSON},
		{"loadCredentials", "GET", "/v1/w/namespaces/a/tables/t/credentials", ""},
		{"signRequest", "POST", "/v1/w/namespaces/a/tables/t/sign", signJSON},
		{"registerTable", "POST", "/v1/w/namespaces/a/register", `{"name":"t","metadata-location":"file:///m"}`},
		{"renameTable", "POST", "/v1/w/tables/rename", `{"source":{"namespace":["a"],"name":"t"},"destination":{"namespace":["a"],"name":"u"}}`},
		{"commitTransaction", "POST", "/v1/w/transactions/commit", `{"table-changes":[]}`},
		{"listViews", "GET", "/v1/w/namespaces/a/views", ""},
		{"createView", "POST", "/v1/w/namespaces/a/views", `{"name":"v","schema":{},"view-version":{}}`},
		{"loadView", "GET", "/v1/w/namespaces/a/views/v", ""},
		{"viewExists", "HEAD", "/v1/w/namespaces/a/views/v", ""},
		{"replaceView", "POST", "/v1/w/namespaces/a/views/v", `{"updates":null}`},
		{"dropView", "DELETE", "/v1/w/namespaces/a/views/v", ""},
		{"registerView", "POST", "/v1/w/namespaces/a/register-view", `{"name":"v","metadata-location":"file:///m"}`},
		{"renameView", "POST", "/v1/w/views/rename", `{"source":{"namespace":["a"],"name":"v"},"destination":{"namespace":["a"],"name":"w"}}`},
	}
}

// send sends a request to h without a network. headers are name, value, name, value…
func send(h http.Handler, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, target, reader)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// wantFailure checks that the answer is a failure in the wrapper, and returns its message.
func wantFailure(t *testing.T, w *httptest.ResponseRecorder, status int, kind string) string {
	t.Helper()
	if w.Code != status {
		t.Errorf("status is %d, want %d; body %s", w.Code, status, w.Body)
	}
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type is %q", got)
	}
	var answer struct {
		Error map[string]any `json:"error"`
	}
	decoder := json.NewDecoder(w.Body)
	if err := decoder.Decode(&answer); err != nil {
		t.Fatalf("the answer is not JSON: %v", err)
	}
	if got := answer.Error["type"]; got != kind {
		t.Errorf("type is %v, want %s; %v", got, kind, answer.Error)
	}
	if got := answer.Error["code"]; got != float64(status) {
		t.Errorf("code is %v, want %d", got, status)
	}
	message, _ := answer.Error["message"].(string)
	if message == "" {
		t.Errorf("there is no message: %v", answer.Error)
	}
	return message
}
