package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"moorage/identity"
	"moorage/internal/worker"
	"moorage/testkit/scale"
)

// dial opens a connection and sends the text in send.
func (s *served) dial(t *testing.T, send string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.uri, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, send); err != nil {
		t.Fatal(err)
	}
	return conn
}

// ask opens a connection, sends a whole request, and reads the answer. The connection stays open.
func (s *served) ask(t *testing.T, method, path string) (net.Conn, *http.Response) {
	t.Helper()
	conn := s.dial(t, fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\n\r\n", method, path))
	request := &http.Request{Method: method}
	response, err := http.ReadResponse(bufio.NewReader(conn), request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	return conn, response
}

// busy is the beginning of a request whose body does not arrive.
const busy = "POST /v1/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n" +
	"Expect: 100-continue\r\n\r\n"

// A request on a connection beyond the limit is refused with the advice to retry, unless it is a
// health check. The connections come from a proxy, because a proxy has no share. Another address
// has one, which refused connections that are still open would use up on a slow machine.
func TestConnectionLimit(t *testing.T) {
	t.Parallel()
	server := startServe(t, "--store", "memory", "--data", t.TempDir(), "--connection-limit", "2", "--trusted-proxy", "127.0.0.1")
	first, second := server.dial(t, busy), server.dial(t, busy)
	for _, conn := range []net.Conn{first, second} {
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100") {
			t.Fatalf("a request whose body is waited for: %q, %v", line, err)
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		for _, method := range []string{"GET", "HEAD"} {
			if _, answer := server.ask(t, method, path); answer.StatusCode != http.StatusOK || !answer.Close {
				t.Errorf("%s %s beyond the limit: %s, closes %t", method, path, answer.Status, answer.Close)
			}
		}
	}
	if _, answer := server.ask(t, "GET", "/v1/config"); answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") == "" || !answer.Close {
		t.Errorf("a request beyond the limit: %s, closes %t", answer.Status, answer.Close)
	}
	first.Close()
	for deadline := time.Now().Add(patience); ; {
		conn, answer := server.ask(t, "GET", "/v1/config")
		if answer.StatusCode == http.StatusOK {
			break
		}
		conn.Close()
		if time.Now().After(deadline) {
			t.Fatalf("no room after a connection has ended: %s", answer.Status)
		}
	}
	second.Close() // its request would delay the end of the server
	if code := server.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// If the reserve is full too, a connection waits for a place. The connections come from a proxy.
// Another address has a share, beyond which all but a few of its connections are closed at once.
func TestConnectionsBeyondTheReserve(t *testing.T) {
	t.Parallel()
	server := startServe(t, "--store", "memory", "--data", t.TempDir(), "--connection-limit", "1", "--trusted-proxy", "127.0.0.1")
	conns := make([]net.Conn, 1+connectionsReserve)
	for i := range conns {
		conns[i] = server.dial(t, "GET /v1/config HTTP/1.1\r\nHost: loc")
	}
	waits := server.dial(t, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	for _, conn := range conns {
		conn.Close()
	}
	if answer, err := http.ReadResponse(bufio.NewReader(waits), nil); err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("one that waited: %v, %v", answer, err)
	}
}

// A listener without any free place can be closed.
func TestFullListenerCloses(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	bounded := boundListener(listener, 1, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}) // no address has a share
	server := served{uri: "http://" + listener.Addr().String()}
	for range 1 + connectionsReserve {
		server.dial(t, "")
		conn, err := bounded.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		noteState(conn, http.StateActive)
	}
	ended := make(chan error)
	go func() {
		_, err := bounded.Accept()
		ended <- err
	}()
	if err := bounded.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept: %v, want %v", err, net.ErrClosed)
	}
}

// residentBytes returns the resident memory of a process.
func residentBytes(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	text, _, _ := strings.Cut(rest, " kB")
	kib, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// connectionsBytesMax is the maximum memory for 2,000 connections that do nothing, or little.
const connectionsBytesMax = 100 << 20

// TestIdleConnectionsCostLittle opens 2,000 connections to a process. Some are idle, some have sent
// a part of a header, and on some the body does not arrive.
func TestIdleConnectionsCostLittle(t *testing.T) {
	t.Parallel()
	server, process := startProcess(t, "--store", "memory", "--data", t.TempDir())
	server.ask(t, "GET", "/metrics")
	before := residentBytes(t, process.Process.Pid)
	const each = 500
	var closed atomic.Int64
	watch := func(conn net.Conn) {
		go func() { // ends when the test closes the connection
			_, _ = conn.Read(make([]byte, 1)) // nothing is sent
			closed.Add(1)
		}()
	}
	for range each {
		conn, _ := server.ask(t, "GET", "/v1/config")
		watch(conn) // it stays idle
	}
	for range each {
		watch(server.dial(t, "POST /v1/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048576\r\n\r\n{"))
		watch(server.dial(t, "POST /v1/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 67108864\r\n\r\n"+strings.Repeat(" ", 8<<10)))
	}
	wanted := fmt.Sprintf("moorage_http_requests_in_flight %d", 2*each+1)
	awaitText(t, func() string { return metricsOf(t, server) }, wanted) // the server waits for the bodies
	// The server waits for a header only for readHeaderTimeout, so the half headers come last.
	ends := time.Now().Add(readHeaderTimeout * 3 / 4)
	for range each {
		watch(server.dial(t, "GET /v1/config HTTP/1.1\r\nHost: loc"))
	}
	server.ask(t, "GET", "/metrics") // the server has accepted the earlier connections
	bound, cost := int64(connectionsBytesMax)*scale.MemoryFactor, int64(0)
	// The memory of the burst goes back to the system when it is over.
	for isOver := false; !isOver; isOver = cost <= bound || time.Now().After(ends) {
		worker.Sleep(t.Context(), 100*time.Millisecond)
		cost = residentBytes(t, process.Process.Pid) - before
	}
	t.Logf("%d connections: %d MiB", 4*each, cost>>20)
	if count := closed.Load(); count > 0 {
		t.Errorf("%d connections were closed before the memory was measured", count)
	}
	if cost > bound {
		t.Errorf("%d connections that do little cost %d bytes, want at most %d", 4*each, cost, bound)
	}
}

// countedKeys has one API key, and counts its lookups.
type countedKeys struct {
	identity.Records
	key     identity.APIKey
	lookups atomic.Int64
}

func (c *countedKeys) Epoch(context.Context) (uint64, error) { return 1, nil }

func (c *countedKeys) APIKey(context.Context, string) (identity.APIKey, bool, error) {
	c.lookups.Add(1)
	return c.key, true, nil
}

// The requests on one connection share one check of their key.
func TestConnectionKeepsItsKey(t *testing.T) {
	t.Parallel()
	drawn, err := identity.NewAPIKey(rand.Reader, "")
	if err != nil {
		t.Fatal(err)
	}
	keys := &countedKeys{key: identity.APIKey{Principal: "key:etl", Epoch: 1, Secrets: []identity.KeySecret{
		{SHA256: drawn.SHA256, Generation: 1, Ends: time.Now().Add(time.Hour)},
	}}}
	authenticator, err := identity.New(identity.Config{Records: keys})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := newServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := authenticator.Authenticate(r); err != nil {
			t.Error(err)
		}
	}))
	go func() { _ = server.Serve(boundListener(listener, 10, nil)) }()
	t.Cleanup(func() { _ = server.Close() })
	for connection := range int64(2) {
		client := &http.Client{Transport: new(http.Transport)}
		for range 3 {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String(), nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Authorization", "Bearer "+drawn.Text)
			answer, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
		}
		client.CloseIdleConnections()
		if got := keys.lookups.Load(); got != connection+1 {
			t.Errorf("after %d connections the key was looked up %d times", connection+1, got)
		}
	}
}
