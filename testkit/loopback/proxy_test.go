package loopback

import (
	"io"
	"net"
	"testing"
	"time"
)

// newEcho starts an echo server behind a proxy.
func newEcho(t *testing.T) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn) // the copy ends with the connection
			}()
		}
	}()
	proxy, err := NewProxy(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { proxy.Close() })
	return proxy
}

func dial(t *testing.T, proxy *Proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", proxy.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// echo sends a byte and waits for it.
func echo(conn net.Conn, timeout time.Duration) error {
	if _, err := conn.Write([]byte{1}); err != nil {
		return err
	}
	if err := conn.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, make([]byte, 1))
	return err
}

const (
	patience = time.Minute
	silence  = 50 * time.Millisecond
)

func TestCut(t *testing.T) {
	t.Parallel()
	proxy := newEcho(t)
	conn := dial(t, proxy)
	if err := echo(conn, patience); err != nil {
		t.Fatal(err)
	}
	proxy.Cut()
	if err := echo(conn, patience); err == nil {
		t.Error("a connection outlived the cut")
	}
	if err := echo(dial(t, proxy), patience); err == nil {
		t.Error("a connection was made during the cut")
	}
	proxy.Restore()
	if err := echo(dial(t, proxy), patience); err != nil {
		t.Errorf("after Restore: %v", err)
	}
}

func TestStall(t *testing.T) {
	t.Parallel()
	proxy := newEcho(t)
	conn := dial(t, proxy)
	if err := echo(conn, patience); err != nil {
		t.Fatal(err)
	}
	proxy.Stall()
	if err := echo(conn, silence); err == nil {
		t.Error("a byte came through")
	}
	proxy.Restore()
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Errorf("the byte that was held back: %v", err)
	}
}

func TestMute(t *testing.T) {
	t.Parallel()
	proxy := newEcho(t)
	conn := dial(t, proxy)
	if err := echo(conn, patience); err != nil {
		t.Fatal(err)
	}
	proxy.Mute()
	if err := echo(conn, silence); err == nil {
		t.Error("an answer came through")
	}
	proxy.Cut()
	proxy.Restore()
	if err := echo(conn, patience); err == nil {
		t.Error("what was held back outlived the cut")
	}
	if err := echo(dial(t, proxy), patience); err != nil {
		t.Errorf("after Restore: %v", err)
	}
}

// While a server is dead, no connection can get its port.
func TestFreePort(t *testing.T) {
	for range 100 {
		port, err := FreePort()
		if err != nil || port < portMin || port >= portEnd {
			t.Fatalf("FreePort = %d, %v", port, err)
		}
	}
	taken, err := FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", taken)
	if err != nil {
		t.Fatalf("nobody can listen at %s: %v", taken, err)
	}
	listener.Close()
}
