package main

import (
	"net"
	"time"
)

// stallingListener bounds how long a client may refuse to take an answer. A bound on the
// whole answer would cut off large loads over slow lines; none at all would let a client that
// stopped reading hold a connection, and its answer, for ever.
type stallingListener struct{ net.Listener }

// Accept returns the next connection.
func (l stallingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return stallingConn{Conn: conn, timeout: writeStallTimeout}, nil
}

// writePartBytes is how much of an answer has to be taken within the timeout.
const writePartBytes = 256 << 10

type stallingConn struct {
	net.Conn

	timeout time.Duration
}

// Write writes p in parts, each of which has the whole timeout.
func (c stallingConn) Write(p []byte) (written int, err error) {
	for {
		part := p[written:min(written+writePartBytes, len(p))]
		if err := c.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
			return written, err
		}
		n, err := c.Conn.Write(part)
		written += n
		if err != nil || written == len(p) {
			return written, err
		}
	}
}

// CloseWrite ends what is sent and goes on reading, where the connection can do that. The HTTP server asks for
// it when it refuses a body that it has not read, so that the client gets to see why.
func (c stallingConn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return nil
	}
	return half.CloseWrite()
}
