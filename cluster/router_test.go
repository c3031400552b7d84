package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"moorage"
	"moorage/testkit/loopback"
)

// A forwarded request arrives as it was sent, with the caller, the request's id and a key. The
// client gets the owner's answer unchanged.
func TestForwardWholeRequest(t *testing.T) {
	t.Parallel()
	one, owner := pair(t)
	owner.execute = func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["X-Many"] = []string{"1", "2"}
		w.Header().Set("ETag", `"7"`)
		w.WriteHeader(http.StatusConflict)
		io.WriteString(w, `{"error":{}}`)
	}
	const path = "/v1/w/namespaces/a%1Fb%2Fc/tables/%73hips/../ships"
	answer, text := one.post(t, path+"?x=%20+&y", "the body", "X-Request-Id", "r-1", "X-Moorage-Mine", "kept",
		"Accept-Encoding", "gzip", "Connection", "X-Hop", "X-Hop", "1", "Moorage-Caller", "forged",
		"Authorization", "Bearer secret", "Cookie", "secret")
	if answer.StatusCode != http.StatusConflict || text != `{"error":{}}` || answer.Header.Get("ETag") != `"7"` ||
		!reflect.DeepEqual(answer.Header["X-Many"], []string{"1", "2"}) {
		t.Errorf("the client got %d %v %q", answer.StatusCode, answer.Header, text)
	}
	got := owner.last(t)
	if one.executed.Load() != 0 || got.method != "POST" || got.uri != path+"?x=%20+&y" || got.body != "the body" {
		t.Errorf("the owner got %+v", got)
	}
	if !reflect.DeepEqual(got.arrival.Caller, caller) || got.arrival.From != one.address || got.arrival.Key == "" || got.requestID != "r-1" {
		t.Errorf("the owner was told %+v and request %q", got.arrival, got.requestID)
	}
	for name, want := range map[string]string{
		"X-Moorage-Mine": "kept", "Accept-Encoding": "gzip", "X-Hop": "", "Connection": "", "Moorage-Caller": "",
		"Authorization": "", "Cookie": "",
	} {
		if given := got.header.Get(name); given != want {
			t.Errorf("header %s: got %q, want %q", name, given, want)
		}
	}
	if one.count(Answered).Load() != 1 {
		t.Error("not counted as answered")
	}
}

// A request with a client's key is forwarded with only that key.
func TestForwardKeepsClientKey(t *testing.T) {
	t.Parallel()
	one, owner := pair(t)
	one.post(t, ships, "", "Idempotency-Key", "k")
	if got := owner.last(t); got.header.Get("Idempotency-Key") != "k" || got.arrival.Key != "" {
		t.Errorf("got %+v", got)
	}
}

// Every field of a caller is forwarded, even one that is added to the type later.
func TestCallerTravelsWhole(t *testing.T) {
	t.Parallel()
	var full moorage.Caller
	fields := reflect.ValueOf(&full).Elem()
	for i := range fields.NumField() {
		switch field := fields.Field(i); field.Kind() {
		case reflect.String:
			field.SetString(fmt.Sprintf("field %d \x00\n\"ü\"", i))
		case reflect.Bool:
			field.SetBool(true)
		case reflect.Slice:
			field.Set(reflect.MakeSlice(field.Type(), 2, 2))
		case reflect.Uint64:
			field.SetUint(1<<64 - 1)
		case reflect.Struct:
			field.Set(reflect.ValueOf(time.Date(2026, 7, 1, 12, 0, 0, 7, time.UTC)))
		default:
			t.Fatalf("Caller.%s: say here how it travels", fields.Type().Field(i).Name)
		}
	}
	header, err := encodeCaller(full)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decodeCaller(header); err != nil || !reflect.DeepEqual(got, full) {
		t.Errorf("got %+v, error %v, want %+v", got, err, full)
	}
	for _, bad := range []string{"", "%", "e30=", "eyJOYW1lIjoiYSIsIkxpbWl0ZWQiOnRydWV9"} { // {}, and a member Limited
		if got, err := decodeCaller(bad); err == nil {
			t.Errorf("%q was read as %+v", bad, got)
		}
	}
	if _, err := encodeCaller(moorage.Caller{Name: strings.Repeat("a", callerBytesMax)}); err == nil {
		t.Error("a caller of more than the bound was encoded")
	}
}

// Only a node that lost a race forwards, and only if the owner is another node.
func TestForwardsOnlyHeat(t *testing.T) {
	t.Parallel()
	authority := loopback.NewAuthority(t)
	for name, row := range map[string]struct {
		path    string
		prepare func(one, other *testNode)
		want    int64 // forwarded
	}{
		"hot":             {ships, func(one, _ *testNode) { one.heat.Lost(hotPointer) }, 1},
		"cold":            {ships, func(*testNode, *testNode) {}, 0},
		"another is hot":  {ships, func(one, _ *testNode) { one.heat.Lost(pointer(1)) }, 0},
		"unknown name":    {"/v1/tables/boats", func(one, _ *testNode) { one.heat.Lost(hotPointer) }, 0},
		"no view":         {ships, func(one, _ *testNode) { one.heat.Lost(hotPointer); one.view.Store(&View{}) }, 0},
		"owner":           {ships, func(one, _ *testNode) { one.heat.Lost(hotPointer); one.setView(2, one) }, 0},
		"another version": {ships, func(one, other *testNode) { one.heat.Lost(hotPointer); one.seesVersion(other, "v2") }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := newClock()
			one, other := newNode(t, authority, clock.Now), newNode(t, authority, clock.Now)
			one.setView(1, other)
			row.prepare(one, other)
			one.post(t, row.path, "")
			if other.executed.Load() != row.want || one.executed.Load() != 1-row.want {
				t.Errorf("carried out here %d, there %d, want %d there", one.executed.Load(), other.executed.Load(), row.want)
			}
		})
	}
}

func (n *testNode) seesVersion(other *testNode, version string) {
	view := NewView(2, []Member{{Session: "s", Address: other.address, Version: version}})
	n.view.Store(&view)
}

// Each of two nodes considers the other, or itself, the owner. There is at most one hop, and one of
// them executes the request, once.
func TestOppositeViews(t *testing.T) {
	t.Parallel()
	authority, clock := loopback.NewAuthority(t), newClock()
	one, two := newNode(t, authority, clock.Now), newNode(t, authority, clock.Now)
	for _, node := range []*testNode{one, two} {
		node.heat.Lost(hotPointer)
	}
	for name, row := range map[string]struct {
		one, two *testNode // the owner in each node's view
		hops     int64
	}{"each the other": {two, one, 1}, "each itself": {one, two, 0}} {
		one.setView(1, row.one)
		two.setView(1, row.two)
		for _, at := range []*testNode{one, two} {
			before := one.executed.Load() + two.executed.Load()
			hops := one.count(Answered).Load() + two.count(Answered).Load()
			answer, _ := at.post(t, ships, "")
			if answer.StatusCode != http.StatusOK || one.executed.Load()+two.executed.Load() != before+1 {
				t.Errorf("%s: %d, carried out %d times", name, answer.StatusCode, one.executed.Load()+two.executed.Load()-before)
			}
			if got := one.count(Answered).Load() + two.count(Answered).Load() - hops; got != row.hops {
				t.Errorf("%s: %d hops, want %d", name, got, row.hops)
			}
		}
	}
}

// Any node answers, even one that is never the owner.
func TestAnyNodeAnswers(t *testing.T) {
	t.Parallel()
	one, owner := pair(t)
	for _, node := range []*testNode{one, owner} {
		if answer, text := node.post(t, ships, ""); answer.StatusCode != http.StatusOK || text != "done by "+owner.address {
			t.Errorf("%s: %d %s", node.address, answer.StatusCode, text)
		}
	}
}

// If an owner is not there, this node executes the request at once, without a key. It does not
// forward to the owner for 6 s.
func TestOwnerIsAway(t *testing.T) {
	t.Parallel()
	clock := newClock()
	one := newNode(t, loopback.NewAuthority(t), clock.Now)
	address, err := loopback.FreeAddress() // nothing listens there
	if err != nil {
		t.Fatal(err)
	}
	one.setView(1, &testNode{address: address})
	one.heat.Lost(hotPointer)
	for _, want := range []struct {
		pass                 time.Duration
		unreachable, skipped int64
	}{{0, 1, 0}, {0, 1, 1}, {PassedOver - 1, 1, 2}, {1, 2, 2}} {
		clock.Advance(want.pass)
		answer, _ := one.post(t, ships, "")
		if got := one.last(t); answer.StatusCode != http.StatusOK || got.key != "" {
			t.Errorf("%d, key %q, want it carried out without one", answer.StatusCode, got.key)
		}
		if one.count(Unreachable).Load() != want.unreachable || one.count(Skipped).Load() != want.skipped {
			t.Errorf("unreachable %d, skipped %d, want %+v", one.count(Unreachable).Load(), one.count(Skipped).Load(), want)
		}
	}
}

// If an owner answers that it did nothing, this node executes the request. It continues to forward
// to that owner.
func TestOwnerRefuses(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusMisdirectedRequest} {
		one, owner := pair(t)
		owner.execute = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
		for range 2 {
			if answer, _ := one.post(t, ships, ""); answer.StatusCode != http.StatusOK || one.last(t).key != "" {
				t.Errorf("%d after %d of the owner", answer.StatusCode, status)
			}
		}
		if owner.executed.Load() != 2 || one.count(Refused).Load() != 2 {
			t.Errorf("%d: asked %d times, refused %d", status, owner.executed.Load(), one.count(Refused).Load())
		}
	}
}

// The connection is lost after the owner has executed the request, so the outcome is unknown. This
// node executes the request under the same key. It then does not forward to the owner for a while.
func TestAnswerIsLost(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]http.HandlerFunc{
		"outcome unknown":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"before the answer": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"within the answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "a part")
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
	} {
		one, owner := pair(t)
		owner.execute = lose
		if answer, text := one.post(t, ships, ""); answer.StatusCode != http.StatusOK || text != "done by "+one.address {
			t.Errorf("%s: %d %s", name, answer.StatusCode, text)
		}
		if here, there := one.last(t), owner.last(t); here.key == "" || here.key != there.arrival.Key {
			t.Errorf("%s: key %q here, %q there", name, here.key, there.arrival.Key)
		}
		one.post(t, ships, "")
		if owner.executed.Load() != 1 || one.count(Lost).Load() != 1 || one.count(Skipped).Load() != 1 {
			t.Errorf("%s: the owner was asked %d times", name, owner.executed.Load())
		}
	}
}

// An answer longer than the kept part arrives completely. A partial answer never looks complete.
func TestLongAnswer(t *testing.T) {
	t.Parallel()
	one, owner := pair(t)
	long := bytes.Repeat([]byte("0123456789abcdef"), answerBytesKept/8)
	owner.execute = func(w http.ResponseWriter, _ *http.Request) { w.Write(long) }
	if _, text := one.post(t, ships, ""); text != string(long) {
		t.Errorf("got %d bytes, want %d", len(text), len(long))
	}
	owner.execute = func(w http.ResponseWriter, _ *http.Request) {
		w.Write(long)
		panic(http.ErrAbortHandler)
	}
	answer, err := http.Post(one.public.URL+ships, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if n, err := io.Copy(io.Discard, answer.Body); err == nil {
		t.Errorf("an answer that broke off looks whole, with %d bytes", n)
	}
}

// If a client disconnects, its request ends, and the owner does not count as dead.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	one, owner := pair(t)
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan struct{})
	owner.execute = func(_ http.ResponseWriter, r *http.Request) {
		leave()
		<-r.Context().Done()
		close(gone)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, one.public.URL+ships, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := http.DefaultClient.Do(r); err == nil {
		t.Error("the client got an answer")
	}
	<-gone
	owner.execute = func(http.ResponseWriter, *http.Request) {}
	for owner.executed.Load() < 2 {
		one.post(t, ships, "")
		if one.count(Skipped).Load() > 0 {
			t.Fatal("the owner is passed over")
		}
	}
}

// The peer listener accepts only peers with a certificate of the authority, and nodes call only
// such peers.
func TestPeersNeedCertificates(t *testing.T) {
	t.Parallel()
	one, owner := pair(t)
	stranger := newNode(t, loopback.NewAuthority(t), newClock().Now)
	stranger.setView(1, owner)
	stranger.heat.Lost(hotPointer)
	one.setView(1, stranger)
	for _, node := range []*testNode{one, stranger} {
		node.post(t, ships, "")
		if node.executed.Load() != 1 || node.count(Answered).Load() != 0 {
			t.Errorf("%s was answered across authorities", node.address)
		}
	}
	if owner.executed.Load() != 0 {
		t.Error("the owner believed a stranger")
	}
	for name, config := range map[string]*tls.Config{
		"no certificate": {InsecureSkipVerify: true, NextProtos: []string{"h2"}},
		"old TLS":        {InsecureSkipVerify: true, NextProtos: []string{"h2"}, MaxVersion: tls.VersionTLS12},
	} {
		connection, err := tls.Dial("tcp", owner.address, config)
		if err == nil { // with TLS 1.3, a client is refused after its handshake has ended
			_, err = connection.Read(make([]byte, 1))
			connection.Close()
		}
		if err == nil || err == io.EOF {
			t.Errorf("%s: let in, %v", name, err)
		}
	}
	plain, err := http.Get("http://" + owner.address + ships)
	if err == nil {
		plain.Body.Close()
		if plain.StatusCode != http.StatusBadRequest {
			t.Errorf("plain HTTP: %d", plain.StatusCode)
		}
	}
}

// On the public port, headers that only nodes may send are ignored.
func TestPublicPortDropsHeaders(t *testing.T) {
	t.Parallel()
	one, owner := pair(t)
	forged, err := encodeCaller(moorage.Caller{Name: "admin"})
	if err != nil {
		t.Fatal(err)
	}
	for _, prefix := range []string{"Moorage-", "moorage-", "MOORAGE-"} {
		one.post(t, ships, "", prefix+"Forwarded", "x", prefix+"Caller", forged, prefix+"Key", "k", prefix+"Later", "y")
		got := owner.last(t) // it was forwarded despite the header
		if !reflect.DeepEqual(got.arrival.Caller, caller) || got.arrival.From != one.address || got.arrival.Key == "k" {
			t.Errorf("%s: the owner was told %+v", prefix, got.arrival)
		}
		for name := range got.header {
			if strings.HasPrefix(name, "Moorage-") {
				t.Errorf("%s: the owner got %s", prefix, name)
			}
		}
		owner.post(t, ships, "", prefix+"Forwarded", "x", prefix+"Caller", forged, prefix+"Key", "k")
		if got := owner.last(t); got.forwarded {
			t.Errorf("%s: a client passes for a node: %+v", prefix, got.arrival)
		}
	}
}

// The peer listener refuses requests that are not forwarded, even from a peer.
func TestPeerListenerTakesForwardedOnly(t *testing.T) {
	t.Parallel()
	good, err := encodeCaller(caller)
	if err != nil {
		t.Fatal(err)
	}
	handler := Arrive(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for name, row := range map[string]struct {
		method, from, caller string
		want                 int
	}{
		"good":       {"POST", "a:1", good, http.StatusOK},
		"a question": {"GET", "a:1", good, http.StatusOK}, // a request of AskAll
		"a delete":   {"DELETE", "a:1", good, http.StatusMisdirectedRequest},
		"no node":    {"POST", "", good, http.StatusMisdirectedRequest},
		"no caller":  {"POST", "a:1", "", http.StatusMisdirectedRequest},
		"nobody":     {"POST", "a:1", "e30=", http.StatusMisdirectedRequest},
	} {
		r := httptest.NewRequest(row.method, ships, nil)
		r.Header.Set(headerForwarded, row.from)
		r.Header.Set(headerCaller, row.caller)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != row.want {
			t.Errorf("%s: %d, want %d", name, w.Code, row.want)
		}
	}
}

// Only certificates that are also for servers count as node certificates.
func TestCertificatesOfClientsAreNotThoseOfNodes(t *testing.T) {
	t.Parallel()
	authority := loopback.NewAuthority(t)
	for name, tt := range map[string]struct {
		uses []x509.ExtKeyUsage
		node bool
	}{
		"node":     {[]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, true},
		"client":   {[]x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, false},
		"anything": {nil, false},
	} {
		nodeCert, nodeKey := authority.Sign(t)
		answering, _, err := NewTLS(nodeCert, nodeKey, authority.PEM)
		if err != nil {
			t.Fatal(err)
		}
		certificate, key := authority.SignFor(t, tt.uses...)
		_, calling, err := NewTLS(certificate, key, authority.PEM)
		if err != nil {
			t.Fatal(err)
		}
		calling.ServerName = "localhost"
		here, there := net.Pipe()
		server, client := tls.Server(here, answering), tls.Client(there, calling)
		done := make(chan error, 1)
		go func() { done <- server.Handshake() }()
		_ = client.Handshake() // with TLS 1.3, the client learns that later; the server decides
		go func() { _, _ = io.Copy(io.Discard, client) }()
		if err := <-done; (err == nil) != tt.node {
			t.Errorf("%s: %v", name, err)
		}
		_ = there.Close()
	}
}
