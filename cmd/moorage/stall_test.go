package main

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlowReaderGetsItAll reads each part of an answer just within the timeout. The whole answer
// takes many times as long.
func TestSlowReaderGetsItAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		defer client.Close()
		answer := make([]byte, 10*writePartBytes+1)
		read := make(chan int)
		go func() {
			part, total := make([]byte, writePartBytes), 0
			for total < len(answer) {
				time.Sleep(writeStallTimeout - time.Second)
				n, err := io.ReadAtLeast(client, part, min(len(part), len(answer)-total))
				total += n
				if err != nil {
					break
				}
			}
			read <- total
		}()
		n, err := (&conn{Conn: server}).Write(answer)
		if total := <-read; err != nil || n != len(answer) || total != len(answer) {
			t.Errorf("wrote %d, %v, read %d of %d", n, err, total, len(answer))
		}
	})
}

func TestReaderThatStopsIsCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		defer client.Close()
		go func() { _, _ = io.ReadFull(client, make([]byte, writePartBytes+1)) }()
		begin := time.Now()
		n, err := (&conn{Conn: server}).Write(make([]byte, 3*writePartBytes))
		took := time.Since(begin)
		if !errors.Is(err, os.ErrDeadlineExceeded) || n != writePartBytes+1 ||
			took < writeStallTimeout || took > writeStallTimeout+writeStallSlack {
			t.Errorf("wrote %d, %v after %s", n, err, took)
		}
	})
}

// TestEachAnswerHasTheWholeTimeout writes answers with pauses of many lengths between them. The
// client of the last answer stops reading, and must get no less time than that of the first.
func TestEachAnswerHasTheWholeTimeout(t *testing.T) {
	t.Parallel()
	for pause := time.Duration(0); pause <= 2*writeStallTimeout; pause += time.Second {
		synctest.Test(t, func(t *testing.T) {
			server, client := net.Pipe()
			defer client.Close()
			go func() { _, _ = io.ReadFull(client, make([]byte, 1)) }()
			c := &conn{Conn: server}
			if _, err := c.Write([]byte("1")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(pause)
			begin := time.Now()
			_, err := c.Write([]byte("2"))
			took := time.Since(begin)
			if !errors.Is(err, os.ErrDeadlineExceeded) || took < writeStallTimeout || took > writeStallTimeout+writeStallSlack {
				t.Errorf("after a pause of %s: %v after %s", pause, err, took)
			}
		})
	}
}

// refusedLinger is how long net/http keeps a connection open after it has refused a body. A client
// that sends for longer may not see the answer.
const refusedLinger = 500 * time.Millisecond

// TestRefusedBodyIsAnswered sends far more than the server accepts before it reads the answer, as
// clients do. It repeats what took too long, because the machine itself may be slow.
func TestRefusedBodyIsAnswered(t *testing.T) {
	t.Parallel()
	server := startServe(t, "--store", "memory", "--data", t.TempDir())
	body := `{"namespace":["` + strings.Repeat("n", 80<<20) + `"]}`
	for deadline := time.Now().Add(patience); ; {
		began := time.Now()
		code, answer, err := server.send(t, "POST", "/v1/namespaces", body)
		if err != nil && time.Since(began) >= refusedLinger && time.Now().Before(deadline) {
			continue
		}
		if err != nil || code != http.StatusRequestEntityTooLarge {
			t.Errorf("got %d %s, %v", code, answer, err)
		}
		return
	}
}

// TestCloseWrite closes a connection for writing. The peer reads the end of the data, and the other
// direction stays open.
func TestCloseWrite(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := boundListener(listener, 1, nil).Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if err := server.(*conn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(client); err != nil || len(got) > 0 {
		t.Errorf("client read %q, %v", got, err)
	}
	if _, err := client.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(server, make([]byte, 1)); err != nil {
		t.Error(err)
	}
}
