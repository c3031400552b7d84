package main

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// A deadline that a handler sets applies to writes in addition to the timeout of each part. The
// zero time removes it.
func TestWriteDeadlines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, row := range []struct{ due, want time.Duration }{
			{0, writeStallTimeout + writeStallSlack},
			{time.Second, time.Second},
			{time.Hour, writeStallTimeout + writeStallSlack},
			{0, writeStallTimeout + writeStallSlack},
		} {
			client, served := net.Pipe()
			c := &conn{Conn: served}
			began := time.Now()
			var due time.Time
			if row.due > 0 {
				due = began.Add(row.due)
			}
			if err := c.SetWriteDeadline(due); err != nil {
				t.Fatal(err)
			}
			_, err := c.Write([]byte("x"))
			if took := time.Since(began); !errors.Is(err, os.ErrDeadlineExceeded) || took != row.want {
				t.Errorf("due in %s: ended after %s with %v, want %s", row.due, took, err, row.want)
			}
			client.Close()
			served.Close()
		}
	})
}
