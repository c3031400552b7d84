package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// dialFrom is like dial, from the given address of this machine.
func (s *served) dialFrom(t *testing.T, from, send string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.uri, "http://"))
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

const asksConfig = "GET /v1/config HTTP/1.1\r\nHost: localhost\r\n\r\n"

// statusOf reads one answer from conn, and returns its status. It returns 0 if the connection has
// ended.
func statusOf(conn net.Conn) int {
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body) // the rest of the answer does not matter
	return answer.StatusCode
}

// TestConnectionsOfOneAddress checks that connections from one address never keep others out,
// whether they are idle, have sent nothing, or have sent a part of a request. Idle connections of
// the address are closed first.
func TestConnectionsOfOneAddress(t *testing.T) {
	t.Parallel()
	const limit = 64
	for name, send := range map[string]string{
		"idle": asksConfig, "new": "", "slow header": "GET /v1/config HTTP/1.1\r\nHost: loc", "slow body": busy,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startServe(t, "--store", "memory", "--data", t.TempDir(), "--connection-limit", fmt.Sprint(limit))
			for range 4 * limit {
				conn := server.dialFrom(t, "127.0.0.2", send)
				if send == asksConfig {
					statusOf(conn)
				}
			}
			for i := range limit / 8 {
				if status := statusOf(server.dialFrom(t, "127.0.0.3", asksConfig)); status != http.StatusOK {
					t.Errorf("request %d of another address: %d", i, status)
				}
			}
		})
	}
}

// TestIdleConnectionsOfManyAddresses fills the limit from many addresses. A new connection must
// then replace the connection that has been idle longest.
func TestIdleConnectionsOfManyAddresses(t *testing.T) {
	t.Parallel()
	const limit = 64
	server := startServe(t, "--store", "memory", "--data", t.TempDir(), "--connection-limit", fmt.Sprint(limit))
	conns := make([]net.Conn, limit)
	for i := range conns {
		conns[i] = server.dialFrom(t, fmt.Sprintf("127.0.1.%d", i+1), asksConfig)
		if status := statusOf(conns[i]); status != http.StatusOK {
			t.Fatalf("connection %d: %d", i, status)
		}
	}
	for i, conn := range conns[1:] { // so that the first has certainly been idle longest
		_, _ = io.WriteString(conn, asksConfig)
		if status := statusOf(conn); status != http.StatusOK {
			t.Fatalf("connection %d, again: %d", i+1, status)
		}
	}
	if status := statusOf(server.dialFrom(t, "127.0.2.1", asksConfig)); status != http.StatusOK {
		t.Errorf("one more: %d", status)
	}
	for i, want := range map[int]int{0: 0, 1: http.StatusOK, limit - 1: http.StatusOK} {
		_, _ = io.WriteString(conns[i], asksConfig) // the answer shows whether it is still open
		if status := statusOf(conns[i]); status != want {
			t.Errorf("connection %d is answered %d afterwards, want %d", i, status, want)
		}
	}
}

// TestConnectionsOfOneProxy checks that 2,000 connections from one proxy are all served, including
// idle ones.
func TestConnectionsOfOneProxy(t *testing.T) {
	t.Parallel()
	server, _ := startProcess(t, "--store", "memory", "--data", t.TempDir(), "--connection-limit", "2048",
		"--trusted-proxy", "127.0.0.2")
	conns := make([]net.Conn, 2000)
	for i := range conns {
		conns[i] = server.dialFrom(t, "127.0.0.2", asksConfig)
		if status := statusOf(conns[i]); status != http.StatusOK {
			t.Fatalf("connection %d: %d", i, status)
		}
	}
	for i, conn := range conns {
		if _, err := io.WriteString(conn, asksConfig); err != nil {
			t.Fatal(err)
		}
		if status := statusOf(conn); status != http.StatusOK {
			t.Fatalf("connection %d is answered %d afterwards", i, status)
		}
	}
}
