package web

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener whose connections are in memory, so that they use the clock of a synctest
// bubble.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error {
	close(l.closed)
	return nil
}

func (l *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// sendSlowly sends a request whose body has the given number of bytes. After a pause it sends rate
// bytes a second. It returns the answer, and how long the request took.
func sendSlowly(t *testing.T, handler http.Handler, bytes, rate int, pause time.Duration) (*http.Response, time.Duration) {
	t.Helper()
	listener := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	client, served := net.Pipe()
	defer client.Close()
	listener.conns <- served
	began := time.Now()
	var sender sync.WaitGroup
	sender.Go(func() {
		body := createBody("a", bytes)
		fmt.Fprintf(client, "POST /v1/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", len(body))
		time.Sleep(pause)
		for body != "" {
			part := body[:min(rate, len(body))]
			if _, err := io.WriteString(client, part); err != nil {
				return // the server hung up
			}
			body = body[len(part):]
			time.Sleep(time.Second)
		}
	})
	answer, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	took := time.Since(began)
	client.Close()
	sender.Wait()
	time.Sleep(time.Second) // time of the bubble: net/http lets a connection linger
	return answer, took
}

// A body may arrive slowly, but must not stop or trickle.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		bytes, rate int
		pause       time.Duration
		status      int
		most        time.Duration
	}{
		{"slow and honest", 2 << 20, bodyRateLeast, 0, 200, 130 * time.Second},
		{"fast after a pause", 2 << 20, 1 << 20, bodyPatience - time.Second, 200, bodyPatience + 3*time.Second},
		{"small and slow", 10 << 10, 600, 0, 200, bodyPatience},
		{"stands still", 2 << 20, 1 << 20, time.Hour, 400, bodyPatience},
		{"trickles", 2 << 20, 1 << 10, 0, 400, bodyPatience + 3*time.Second},
		{"behind the pace of its length", 60 << 20, 20 << 10, 0, 400, bodyPatience + 5*time.Second},
		{"takes for ever", 60 << 20, 150 << 10, 0, 400, bodyTimeMax},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			handler := newHolding(Config{}, nil)
			synctest.Test(t, func(t *testing.T) {
				answer, took := sendSlowly(t, handler, tt.bytes, tt.rate, tt.pause)
				if answer.StatusCode != tt.status || took > tt.most {
					t.Errorf("%s after %s, want %d within %s", answer.Status, took, tt.status, tt.most)
				}
				if closes := answer.Close; closes != (tt.status == 400) {
					t.Errorf("it closes the connection: %t", closes)
				}
			})
		})
	}
}

// A body that no handler reads does not hold its connection longer than a body that a handler
// reads.
func TestBodyThatNobodyReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		listener := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		server := &http.Server{Handler: newHolding(Config{}, nil)}
		go func() { _ = server.Serve(listener) }()
		defer server.Close()
		client, served := net.Pipe()
		defer client.Close()
		listener.conns <- served
		began := time.Now()
		go func() {
			_, _ = io.WriteString(client, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nx")
		}()
		if _, err := io.Copy(io.Discard, client); err != nil || time.Since(began) > bodyPatience+time.Second {
			t.Errorf("the connection ended after %s: %v", time.Since(began), err)
		}
		time.Sleep(time.Second)
	})
}

// claim sends the header of a request that declares a body of the given length, and then sent, the
// beginning of the body.
func claim(t *testing.T, server *httptest.Server, bytes int, sent string) {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := fmt.Fprintf(conn, "POST /v1/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", bytes, sent); err != nil {
		t.Fatal(err)
	}
}

// Clients that declare long bodies but send little do not keep others out of the room.
func TestClaimedBodiesHoldWhatTheySent(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(newHolding(Config{}, nil))
	t.Cleanup(server.Close)
	for range 8 {
		claim(t, server, BodyBytesMaxDefault, strings.Repeat(" ", 100<<10))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a request without room gets 429 after roomWait
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/v1/namespaces", strings.NewReader(createBody("a", 2<<20)))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("a commit of 2 MiB beside them: %s", answer.Status)
	}
}

// Not parallel, because it measures the memory of the process.
func TestClaimsCostLittle(t *testing.T) {
	began := make(chan struct{})
	handler := newHolding(Config{}, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	const claims = 500
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range claims {
		claim(t, server, 1<<20, "{")
		<-began
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	// The measured memory includes that of the clients, which are in the same process.
	if each := int64(after.HeapInuse+after.StackInuse-before.HeapInuse-before.StackInuse) / claims; each > 64<<10 {
		t.Errorf("a client that sent a byte of 1 MiB costs %d bytes", each)
	}
}
