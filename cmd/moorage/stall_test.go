package main

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlowReaderGetsItAll reads each part just within the timeout, which the whole exceeds many times.
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
		n, err := stallingConn{Conn: server, timeout: writeStallTimeout}.Write(answer)
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
		n, err := stallingConn{Conn: server, timeout: writeStallTimeout}.Write(make([]byte, 3*writePartBytes))
		if !errors.Is(err, os.ErrDeadlineExceeded) || n != writePartBytes+1 || time.Since(begin) != writeStallTimeout {
			t.Errorf("wrote %d, %v after %s", n, err, time.Since(begin))
		}
	})
}
