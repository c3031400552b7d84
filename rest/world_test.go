package rest_test

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/check"
	"moorage/internal/web"
	"moorage/ledger"
	"moorage/locks"
	"moorage/maintenance/purge"
	"moorage/management"
	"moorage/recovery"
	"moorage/registry"
	memoryregistry "moorage/registry/memory"
	"moorage/rest"
	"moorage/storage"
	filestorage "moorage/storage/file"
	memorystorage "moorage/storage/memory"
	"moorage/testkit/answers"
	"moorage/testkit/registrytest"
)

// world is a server with a real catalog, whose records are in memory, and whose files are in a
// folder.
type world struct {
	http.Handler
	t         testing.TB
	store     registry.Store
	catalog   *catalog.Catalog
	config    catalog.Config // of catalog
	server    *web.Server    // the Handler
	warehouse string         // the folder of the default warehouse
}

// newWorld returns a world with the warehouse "default" in a new folder. change may set other parts
// of the server's configuration.
func newWorld(t testing.TB, change ...func(*rest.TestConfig)) *world {
	t.Helper()
	// Not TempDir, whose name contains that of the test, which may have characters that a URI must
	// escape.
	folder, err := os.MkdirTemp("", "moorage-rest-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	w := &world{t: t, warehouse: filepath.Join(folder, "warehouse")}
	if err := os.Mkdir(w.warehouse, 0o755); err != nil {
		t.Fatal(err)
	}
	w.start(func(place storage.Place) (storage.Store, error) { return filestorage.New(place.Roots) }, change)
	return w
}

// newMemoryWorld is like newWorld, with files in memory. It is faster, and dump has only records.
func newMemoryWorld(t testing.TB, change ...func(*rest.TestConfig)) *world {
	t.Helper()
	w := &world{t: t, warehouse: "/warehouse"}
	files := memorystorage.New()
	w.start(func(place storage.Place) (storage.Store, error) { return files.Within(place.Roots) }, change)
	return w
}

func (w *world) start(open func(storage.Place) (storage.Store, error), change []func(*rest.TestConfig)) {
	w.t.Helper()
	if w.store == nil {
		w.store = memoryregistry.New(rand.Reader)
	}
	w.config = catalog.Config{Deps: registrytest.LedgerDeps(ledger.Config{Store: w.store}), Locks: locks.NewLocal(locks.LocalConfig{}), OpenStorage: open}
	made, err := catalog.New(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.catalog = made.As(moorage.Anonymous())
	if _, err := w.catalog.Warehouses().Create(w.t.Context(), warehouses.Spec{Name: moorage.DefaultWarehouse, Location: w.uri("")}); err != nil {
		w.t.Fatal(err)
	}
	config := rest.TestConfig{Catalog: w.catalog}
	for _, f := range change {
		f(&config)
	}
	server := rest.NewServer(config)
	w.Handler, w.server = server, server.Server
	if _, isBenchmark := w.t.(*testing.B); !isBenchmark {
		w.Handler = answers.Watched(w.t, server)
	}
}

// restarted returns another catalog with the same records and files.
func (w *world) restarted() *catalog.Catalog {
	w.t.Helper()
	c, err := catalog.New(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	return c.As(moorage.Anonymous())
}

// uri returns the URI of a path below the warehouse.
func (w *world) uri(path string) string { return "file://" + filepath.Join(w.warehouse, path) }

// do sends a request and returns the answer.
func (w *world) do(method, path, body string) *httptest.ResponseRecorder {
	return sendTo(w.t, w, method, path, body)
}

// sendTo sends server a request.
func sendTo(t testing.TB, server http.Handler, method, path, body string) *httptest.ResponseRecorder {
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, "/", reader)
	r.URL = parseURL(t, path)
	answer := httptest.NewRecorder()
	server.ServeHTTP(answer, r)
	return answer
}

// must is like do, for a request that must succeed.
func (w *world) must(method, path, body string) *httptest.ResponseRecorder {
	w.t.Helper()
	answer := w.do(method, path, body)
	if answer.Code > 299 {
		w.t.Fatalf("%s %s %s: %d %s", method, path, body, answer.Code, answer.Body)
	}
	return answer
}

const (
	schemaJSON = `{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"data","required":false,"type":"string"}]}`
	snapshotID = 3051729675574597004
)

// versionJSON is the version of a view.
const versionJSON = `{"version-id":1,"timestamp-ms":1700000000000,"schema-id":0,"summary":{"engine-name":"test"},"default-namespace":["ns"],` +
	`"representations":[{"type":"sql","sql":"select id, data from t","dialect":"spark"}]}`

// viewJSON returns a request that creates a view called name. The name must need no escapes.
func viewJSON(name string) string {
	return `{"name":"` + name + `","schema":` + schemaJSON + `,"view-version":` + versionJSON + `}`
}

// fill creates the namespaces ns, ns.child and empty. It also creates the tables ns.t, with one
// snapshot, and ns.u, and the views ns.view and ns.view2. It returns the table-uuid of ns.t.
func (w *world) fill() (uuid string) {
	w.t.Helper()
	for _, ns := range []string{`["ns"]`, `["ns","child"]`, `["empty"]`} {
		w.must("POST", "/v1/namespaces", `{"namespace":`+ns+`,"properties":{"k":"v"}}`)
	}
	for _, name := range []string{"t", "u"} {
		w.must("POST", "/v1/namespaces/ns/tables", `{"name":"`+name+`","schema":`+schemaJSON+`}`)
	}
	for _, name := range []string{"view", "view2"} {
		w.must("POST", pathViews, viewJSON(name))
	}
	answer := w.must("POST", "/v1/namespaces/ns/tables/t", fmt.Sprintf(`{"requirements":[],"updates":[
		{"action":"add-snapshot","snapshot":{"snapshot-id":%d,"sequence-number":1,"timestamp-ms":1700000000000,"manifest-list":%q,"summary":{"operation":"append"},"schema-id":0}},
		{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":%d}]}`, snapshotID, w.uri("ns/t/metadata/snap-1.avro"), snapshotID))
	var commit struct {
		Metadata struct {
			UUID string `json:"table-uuid"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &commit); err != nil {
		w.t.Fatal(err)
	}
	return commit.Metadata.UUID
}

// viewUUID returns the view-uuid of ns.view.
func (w *world) viewUUID() string {
	w.t.Helper()
	var view struct {
		Metadata struct {
			UUID string `json:"view-uuid"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(w.must("GET", pathView, "").Body.Bytes(), &view); err != nil {
		w.t.Fatal(err)
	}
	return view.Metadata.UUID
}

// dump returns everything that a request could have changed: all records, and all folders and files
// in and around the warehouse, with their contents.
func (w *world) dump() string {
	w.t.Helper()
	var text strings.Builder
	for _, table := range registry.Tables() {
		records, err := w.store.List(w.t.Context(), table, "", "", registry.ListLimitMax)
		if err != nil {
			w.t.Fatal(err)
		}
		if len(records) == registry.ListLimitMax {
			w.t.Fatalf("there may be more than %d records of a kind", len(records))
		}
		for _, r := range records {
			fmt.Fprintf(&text, "%s %s %s %s\n", r.Key, r.ETag, r.State, r.Value)
		}
	}
	err := filepath.WalkDir(filepath.Dir(w.warehouse), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fmt.Fprintln(&text, path, entry.Type())
		if !entry.Type().IsRegular() {
			return nil
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(&text, "  %x\n", sha256.Sum256(content))
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return text.String()
}

// checker returns the checker of the store of w.
func (w *world) checker() *check.Checker {
	return check.New(check.Config{Deps: registrytest.LedgerDeps(ledger.Config{Store: w.store, Now: w.config.Now}), Files: w.catalog.Documents()})
}

// mountManagement adds the management API of w, without maintenance.
func (w *world) mountManagement() {
	w.t.Helper()
	purges, err := purge.New(purge.Config{Deps: registrytest.LedgerDeps(ledger.Config{Store: w.store}), Tables: w.catalog.Documents()})
	if err != nil {
		w.t.Fatal(err)
	}
	care := careOf(w.store, w.catalog)
	management.Mount(w.server, management.Config{
		Check: w.checker().Check, Steering: care, Jobs: care.Jobs, Purges: purges, Recovery: recovery.New(recovery.Config{
			Deps: registrytest.LedgerDeps(ledger.Config{Store: w.store}), Locks: w.config.Locks, DeleteSurplus: w.catalog.DeleteSurplus, RetryPurge: purges.Retry,
		}),
	})
}

// wantClean checks that all records and files are consistent.
func (w *world) wantClean() {
	w.t.Helper()
	report, err := w.checker().Check(w.t.Context())
	if err != nil || len(report.Problems)+len(report.Unread) > 0 {
		w.t.Errorf("check: %v %q %q", err, report.Problems, report.Unread)
	}
}

// failure is an answer that is not a success.
type failure struct {
	Error struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Code    int    `json:"code"`
	} `json:"error"`
}

var _ rest.Catalog = (*catalog.Catalog)(nil)

// metadataLocation returns the metadata location of the table or view at path.
func (w *world) metadataLocation(path string) string {
	w.t.Helper()
	return metadataLocationOf(w.t, w.must("GET", path, ""))
}

// metadataLocationOf returns the metadata location in an answer with a table or view.
func metadataLocationOf(t testing.TB, answer *httptest.ResponseRecorder) string {
	t.Helper()
	var table struct {
		Location string `json:"metadata-location"`
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &table); err != nil {
		t.Fatal(err)
	}
	return table.Location
}

func (w *world) readFile(uri string) []byte {
	w.t.Helper()
	content, err := os.ReadFile(strings.TrimPrefix(uri, "file://"))
	if err != nil {
		w.t.Fatal(err)
	}
	return content
}
