package cluster

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"moorage"
	"moorage/testkit/loopback"
)

// testNode is a node of a test: a public port, a peer listener and a router.
type testNode struct {
	address string
	public  *httptest.Server
	router  *Router
	heat    *Heat
	view    atomic.Pointer[View]
	results sync.Map // of Result: *atomic.Int64

	// execute executes a request. By default, it answers 200 and echoes the request.
	execute  http.HandlerFunc
	executed atomic.Int64

	mu       sync.Mutex // guards the field below; leaf
	arrivals []executed
}

// executed is a request that a node executed.
type executed struct {
	method, uri, body string
	header            http.Header
	arrival           moorage.Arrival
	forwarded         bool
	requestID         string
	key               string // internal key returned by Forward
}

const testVersion = "v1"

// caller is the caller of every request in these tests.
var caller = moorage.Caller{
	Name: "ann", Via: []string{"key:trino"}, Only: []string{}, KeyID: "k", KeyGeneration: 7, Client: "spark \"3.5\" ü\n",
}

// hotPointer is the pointer for every name.
var hotPointer = pointer(42)

// newNode starts a node with a certificate of authority.
func newNode(t testing.TB, authority *loopback.Authority, now func() time.Time) *testNode {
	t.Helper()
	answering, calling, err := NewTLS(must2(t, authority))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &testNode{address: listener.Addr().String(), heat: NewHeat(now)}
	n.view.Store(&View{})
	n.execute = func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "done by "+n.address) }
	n.router = NewRouter(RouterConfig{
		View: func() View { return *n.view.Load() }, Address: n.address, Version: testVersion, TLS: calling, Heat: n.heat,
		PointerOf: func(ident moorage.Identifier) (Pointer, bool) { return hotPointer, ident.Name == "ships" },
		Observe:   func(result Result) { n.count(result).Add(1) }, Now: now,
	})
	n.router.BePatient()
	handler := http.HandlerFunc(n.serve)
	server := &http.Server{Handler: Arrive(handler), TLSConfig: answering, Protocols: Protocols()}
	go server.ServeTLS(listener, "", "") // returns when the server ends
	n.public = httptest.NewServer(DropHeaders(handler))
	t.Cleanup(func() {
		n.public.Close()
		n.router.Close()
		server.Close()
	})
	return n
}

func must2(t testing.TB, authority *loopback.Authority) (certificate, key, ca []byte) {
	certificate, key = authority.Sign(t)
	return certificate, key, authority.PEM
}

// serve handles a commit as package rest does.
func (n *testNode) serve(w http.ResponseWriter, r *http.Request) {
	r = r.WithContext(moorage.WithRequestID(r.Context(), r.Header.Get("X-Request-Id")))
	body, _ := io.ReadAll(r.Body)
	ident := moorage.Identifier{Name: r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]}
	key, answered := n.router.Forward(w, r, Commit{
		Ident: ident, Caller: caller, Body: body, HasKey: r.Header.Get("Idempotency-Key") != "",
	})
	if answered {
		return
	}
	arrival, forwarded := moorage.ArrivalOf(r.Context())
	n.mu.Lock()
	n.arrivals = append(n.arrivals, executed{
		r.Method, r.RequestURI, string(body), r.Header.Clone(), arrival, forwarded, moorage.RequestID(r.Context()), key,
	})
	n.mu.Unlock()
	n.executed.Add(1)
	n.execute(w, r)
}

func (n *testNode) count(result Result) *atomic.Int64 {
	counter, _ := n.results.LoadOrStore(result, new(atomic.Int64))
	return counter.(*atomic.Int64)
}

// setView sets the view of n to the given nodes.
func (n *testNode) setView(number int64, nodes ...*testNode) {
	var members []Member
	for _, other := range nodes {
		members = append(members, Member{Session: other.address, Address: other.address, Version: testVersion})
	}
	view := NewView(number, members)
	n.view.Store(&view)
}

// last returns the last request that n executed.
func (n *testNode) last(t testing.TB) executed {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.arrivals) == 0 {
		t.Fatal("the node carried out nothing")
	}
	return n.arrivals[len(n.arrivals)-1]
}

// post sends a request to the public port of n.
func (n *testNode) post(t testing.TB, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, n.public.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.URL.Opaque = path
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}

const ships = "/v1/namespaces/harbour/tables/ships"

// pair returns a node for which hotPointer is hot, and its owner.
func pair(t testing.TB) (one, owner *testNode) {
	t.Helper()
	// The clock stands still, so that the pointer stays hot, and an owner stays passed over.
	authority, clock := loopback.NewAuthority(t), newClock()
	one, owner = newNode(t, authority, clock.Now), newNode(t, authority, clock.Now)
	one.setView(1, owner)
	owner.setView(1, owner)
	one.heat.Lost(hotPointer)
	return one, owner
}
