package cluster_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/warehouses"
	"moorage/cluster"
	"moorage/internal/web"
	"moorage/ledger"
	"moorage/locks"
	"moorage/registry"
	memoryregistry "moorage/registry/memory"
	"moorage/rest"
	"moorage/storage"
	memorystorage "moorage/storage/memory"
	"moorage/testkit"
	"moorage/testkit/loopback"
	"moorage/testkit/registrytest"
)

// world has the resources that the nodes of a test share.
type world struct {
	store     registry.Store
	files     *memorystorage.Store
	locks     locks.Manager
	authority *loopback.Authority
	owner     string // the only member
}

func newWorld(t testing.TB) *world {
	return &world{
		store: memoryregistry.New(rand.Reader), files: memorystorage.New(), locks: locks.NewLocal(locks.LocalConfig{}),
		authority: loopback.NewAuthority(t),
	}
}

// realNode is a catalog with its REST API and its router.
type realNode struct {
	catalog *catalog.Catalog
	heat    *cluster.Heat
	handler http.Handler // of the public port
	results chan cluster.Result
}

// start starts a node. Its peer listener uses the handler wrapped with around.
func (w *world) start(t testing.TB, around func(http.Handler) http.Handler) *realNode {
	t.Helper()
	certificate, key := w.authority.Sign(t)
	answering, calling, err := cluster.NewTLS(certificate, key, w.authority.PEM)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &realNode{heat: cluster.NewHeat(testkit.NewClock().Now), results: make(chan cluster.Result, 1000)}
	n.catalog, err = catalog.New(catalog.Config{
		Deps: registrytest.LedgerDeps(ledger.Config{Store: w.store}), Locks: w.locks,
		OpenStorage: func(place storage.Place) (storage.Store, error) { return w.files.Within(place.Roots) },
	})
	if err != nil {
		t.Fatal(err)
	}
	router := cluster.NewRouter(cluster.RouterConfig{
		View:    func() cluster.View { return cluster.NewView(1, []cluster.Member{{Session: "s", Address: w.owner}}) },
		Address: listener.Addr().String(), TLS: calling, Heat: n.heat,
		PointerOf: func(ident moorage.Identifier) (cluster.Pointer, bool) {
			id, known := n.catalog.Pointers().Named(ident)
			return cluster.Pointer(id), known
		},
		Observe: func(result cluster.Result) {
			select {
			case n.results <- result:
			default:
			}
		},
	})
	router.BePatient()
	server := web.New(web.Config{})
	rest.Mount(server, rest.Config{Catalog: n.catalog, IdempotencyLifetime: 30 * time.Minute, Router: router})
	n.handler = cluster.DropHeaders(server)
	peers := &http.Server{Handler: cluster.Arrive(around(server)), TLSConfig: answering, Protocols: cluster.Protocols()}
	go peers.ServeTLS(listener, "", "") // returns when the server ends
	t.Cleanup(func() {
		router.Close()
		peers.Close()
	})
	w.owner = listener.Addr().String() // the last node that starts owns everything
	return n
}

const (
	namespacesPath = "/v1/namespaces"
	tablesPath     = namespacesPath + "/harbour/tables"
	tablePath      = tablesPath + "/ships"
)

func (n *realNode) post(t testing.TB, path, body string, headers ...string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	recorder := httptest.NewRecorder()
	n.handler.ServeHTTP(recorder, r)
	return recorder.Code, recorder.Body.String()
}

// wantResult checks the result of a commit that has been answered.
func (n *realNode) wantResult(t testing.TB, want cluster.Result) {
	t.Helper()
	select {
	case got := <-n.results:
		if got != want {
			t.Errorf("the commit was %s, want %s", got, want)
		}
	default:
		t.Errorf("the commit was not forwarded, want %s", want)
	}
}

// makeTable makes a warehouse with a table, and makes it hot for n.
func (n *realNode) makeTable(t testing.TB) {
	t.Helper()
	c := n.catalog.As(moorage.Anonymous())
	spec := warehouses.Spec{Name: moorage.DefaultWarehouse, Location: "file:///warehouse"}
	if _, err := c.Warehouses().Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	for _, step := range [][2]string{
		{namespacesPath, `{"namespace":["harbour"]}`},
		{tablesPath, `{"name":"ships","schema":{"type":"struct","fields":[{"id":1,"name":"id","required":false,"type":"long"}]}}`},
	} {
		if code, body := n.post(t, step[0], step[1]); code != http.StatusOK {
			t.Fatal(code, body)
		}
	}
	n.warm(t, "ships")
}

// warm makes the node know a name, and makes its pointer hot.
func (n *realNode) warm(t testing.TB, name string) {
	t.Helper()
	c := n.catalog.As(moorage.Anonymous())
	ident := moorage.Identifier{Warehouse: moorage.DefaultWarehouse, Namespace: moorage.Namespace{"harbour"}, Name: name}
	if err := c.TableExists(t.Context(), ident); err != nil {
		t.Fatal(err)
	}
	id, known := n.catalog.Pointers().Named(ident)
	if !known {
		t.Fatal("the node does not know the name")
	}
	n.heat.Lost(cluster.Pointer(id))
}

// changes returns the number of changes in the store.
func (w *world) changes(t testing.TB) int {
	t.Helper()
	changes, err := w.store.Changes(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return len(changes)
}

// losing carries out requests, but loses the answers.
func losing(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithoutCancel(r.Context())))
		panic(http.ErrAbortHandler)
	})
}

func straight(handler http.Handler) http.Handler { return handler }

const setOwner = `{"requirements":[],"updates":[{"action":"set-properties","updates":{"owner":"ann"}}]}`

// append1 adds the first snapshot to a table.
const append1 = `{"requirements":[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}],"updates":[
	{"action":"add-snapshot","snapshot":{"snapshot-id":1,"sequence-number":1,"timestamp-ms":%d,
	"manifest-list":"file:///warehouse/l","summary":{"operation":"append"},"schema-id":0}},
	{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":1}]}`

// An owner dies after it has executed a commit and before it answers. The node executes the commit
// too, with the same key. The commit happens once, and the client gets a success.
func TestOwnerGoneAfterCommit(t *testing.T) {
	t.Parallel()
	appended := fmt.Sprintf(append1, time.Now().UnixMilli())
	for name, row := range map[string]struct {
		body string
		key  []string
	}{
		"property":                 {setOwner, nil},
		"property, key of client":  {setOwner, []string{"Idempotency-Key", "0198c6a2-9d6c-7c3e-8f7a-3f2f6b1a9d01"}},
		"append":                   {appended, nil},
		"append, key of client":    {appended, []string{"Idempotency-Key", "0198c6a2-9d6c-7c3e-8f7a-3f2f6b1a9d02"}},
		"refused":                  {strings.Replace(appended, "null", "7", 1), nil},
		"refused, key of client":   {strings.Replace(appended, "null", "7", 1), []string{"Idempotency-Key", "0198c6a2-9d6c-7c3e-8f7a-3f2f6b1a9d03"}},
		"sets the same once more":  {`{"requirements":[],"updates":[]}`, nil},
		"cannot be read by anyone": {`{"requirements":[]}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alone := newWorld(t)
			single := alone.start(t, straight)
			single.makeTable(t)
			before := alone.changes(t)
			wantCode, _ := single.post(t, tablePath, row.body, row.key...)
			want := alone.changes(t) - before

			w := newWorld(t)
			node := w.start(t, straight)
			w.start(t, losing)
			node.makeTable(t)
			before = w.changes(t)
			code, body := node.post(t, tablePath, row.body, row.key...)
			if got := w.changes(t) - before; code != wantCode || got != want {
				t.Errorf("%d and %d changes, want %d and %d as alone: %s", code, got, wantCode, want, body)
			}
			if wantCode != http.StatusBadRequest {
				node.wantResult(t, cluster.Lost)
			}
		})
	}
}

// A client without a key loses the answer together with its node, and sends its commit again. The
// internal key of the first request must not hide that it succeeded.
func TestReplayAfterInternalKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.start(t, straight)
	w.start(t, straight)
	node.makeTable(t)
	before := w.changes(t)
	body := fmt.Sprintf(append1, time.Now().UnixMilli())
	for range 2 {
		if code, answer := node.post(t, tablePath, body); code != http.StatusOK {
			t.Errorf("%d %s", code, answer)
		}
		node.wantResult(t, cluster.Answered)
	}
	if got := w.changes(t) - before; got != 1 {
		t.Errorf("%d changes, want 1", got)
	}
}

// A replace of a view is forwarded like a commit of a table, and happens once if the answer is
// lost.
func TestForwardView(t *testing.T) {
	t.Parallel()
	const version = `{"version-id":%d,"timestamp-ms":1,"schema-id":0,"summary":{},"default-namespace":["harbour"],` +
		`"representations":[{"type":"sql","sql":"select %d","dialect":"spark"}]}`
	w := newWorld(t)
	node := w.start(t, straight)
	w.start(t, losing)
	node.makeTable(t)
	const viewsPath = namespacesPath + "/harbour/views"
	view := fmt.Sprintf(`{"name":"fleet","schema":{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":false,`+
		`"type":"long"}]},"properties":{},"view-version":`+version+`}`, 1, 1)
	if code, body := node.post(t, viewsPath, view); code != http.StatusOK {
		t.Fatal(code, body)
	}
	ident := moorage.Identifier{Warehouse: moorage.DefaultWarehouse, Namespace: moorage.Namespace{"harbour"}, Name: "fleet"}
	if err := node.catalog.As(moorage.Anonymous()).ViewExists(t.Context(), ident); err != nil {
		t.Fatal(err)
	}
	id, known := node.catalog.Pointers().Named(ident)
	if !known {
		t.Fatal("the node does not know the view")
	}
	node.heat.Lost(cluster.Pointer(id))
	before := w.changes(t)
	replace := fmt.Sprintf(`{"updates":[{"action":"add-view-version","view-version":`+version+`},`+
		`{"action":"set-current-view-version","view-version-id":-1}]}`, 2, 2)
	if code, body := node.post(t, viewsPath+"/fleet", replace); code != http.StatusOK || !strings.Contains(body, "select 2") {
		t.Errorf("%d %s", code, body)
	}
	node.wantResult(t, cluster.Lost)
	if got := w.changes(t) - before; got != 1 {
		t.Errorf("%d changes, want 1", got)
	}
}

// A rename keeps the owner, because the owner depends only on the pointer.
func TestRenameKeepsOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.start(t, straight)
	node.makeTable(t)
	named := func(name string) cluster.Pointer {
		t.Helper()
		node.warm(t, name)
		id, _ := node.catalog.Pointers().Named(moorage.Identifier{
			Warehouse: moorage.DefaultWarehouse, Namespace: moorage.Namespace{"harbour"}, Name: name,
		})
		return cluster.Pointer(id)
	}
	before := named("ships")
	const rename = `{"source":{"namespace":["harbour"],"name":"ships"},"destination":{"namespace":["harbour"],"name":"boats"}}`
	if code, body := node.post(t, "/v1/tables/rename", rename); code != http.StatusNoContent {
		t.Fatal(code, body)
	}
	if after := named("boats"); after != before {
		t.Errorf("pointer %x became %x", before, after)
	}
}

// Among all requests that change something, only commits are forwarded.
func TestForwardsOnlyCommits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := w.start(t, straight)
	w.start(t, straight)
	node.makeTable(t)
	for _, row := range []struct {
		path, body string
		want       int
	}{
		{tablePath, setOwner, 1},
		{tablesPath, `{"name":"ships","schema":{"type":"struct","fields":[]}}`, 0},
		{"/v1/transactions/commit", `{"table-changes":[{"identifier":{"namespace":["harbour"],"name":"ships"},` + setOwner[1:] + `]}`, 0},
		{tablePath + "/metrics", `{}`, 0},
		{"/v1/tables/rename", `{"source":{"namespace":["harbour"],"name":"ships"},"destination":{"namespace":["harbour"],"name":"x"}}`, 0},
	} {
		code, body := node.post(t, row.path, row.body)
		if got := len(node.results); got != row.want {
			t.Errorf("%s: %d %s, forwarded %d, want %d", row.path, code, body, got, row.want)
		}
		for len(node.results) > 0 {
			<-node.results
		}
	}
}

// BenchmarkForward measures a commit of a property that this node executes, and one that it
// forwards to another node over loopback. Both nodes share a catalog in memory.
func BenchmarkForward(b *testing.B) {
	for _, forwarded := range []bool{false, true} {
		b.Run(map[bool]string{false: "local", true: "forwarded"}[forwarded], func(b *testing.B) {
			w := newWorld(b)
			node := w.start(b, straight)
			if forwarded {
				w.start(b, straight)
			}
			node.makeTable(b)
			warmed := time.Now()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if time.Since(warmed) > cluster.HeatLasts/2 {
					node.warm(b, "ships")
					warmed = time.Now()
				}
				body := strings.Replace(setOwner, "ann", fmt.Sprint(i), 1)
				if code, answer := node.post(b, tablePath, body); code != http.StatusOK {
					b.Fatal(code, answer)
				}
			}
		})
	}
}
