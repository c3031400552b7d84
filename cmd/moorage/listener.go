package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"moorage/internal/web"
)

// Bounds of the HTTP server. There is none on the time that writing an answer takes as a whole,
// because a load may be large; conn bounds each part of it.
const (
	// readHeaderTimeout is more than any client needs that means to send a request.
	readHeaderTimeout = 10 * time.Second
	// idleTimeout is longer than common clients keep an idle connection. So they close it, and no
	// request meets a connection that just ended.
	idleTimeout = 3 * time.Minute
	// writeStallTimeout is how long a client may at least not take the next writePartBytes of an
	// answer, and writeStallSlack how much longer at most. Within the slack the deadline stays as
	// it is, so most answers need not set one.
	writeStallTimeout = time.Minute
	writeStallSlack   = 5 * time.Second
	writePartBytes    = 256 << 10
	// connectionsReserve is how many connections the server takes beyond --connection-limit. It
	// tells each that there is no room, unless it asks for health or metrics, and ends it. Further
	// ones wait in the system's queue.
	connectionsReserve = 64
)

// boundedListener bounds how many connections are open. It is safe for concurrent use.
type boundedListener struct {
	net.Listener

	limit  int
	open   atomic.Int64
	places chan struct{} // a value for each connection, up to limit and connectionsReserve
	closed chan struct{}
	once   sync.Once // closes closed
}

func boundListener(listener net.Listener, limit int) *boundedListener {
	return &boundedListener{
		Listener: listener,
		limit:    limit,
		places:   make(chan struct{}, limit+connectionsReserve),
		closed:   make(chan struct{}),
	}
}

// Accept returns the next connection, when there is a place for it.
func (l *boundedListener) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	accepted, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &conn{Conn: accepted, listener: l, isBeyond: int(l.open.Add(1)) > l.limit}, nil
}

// Close ends Accept too.
func (l *boundedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// conn bounds how long a client may refuse to take an answer, and gives its place back when it is
// closed. A bound on the whole answer would cut off large loads over slow lines. Without a bound, a
// client that stopped reading would hold a connection, and its answer, for ever.
type conn struct {
	net.Conn

	listener *boundedListener
	isBeyond bool // the limit
	once     sync.Once
	deadline time.Time // of writes, as Write has set it; only Write uses it
}

// Close implements net.Conn.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.listener.open.Add(-1)
		<-c.listener.places
	})
	return err
}

// Write writes p in parts. Each part has the whole timeout. Unlike that of other connections, it is
// for one goroutine at a time, as net/http calls it.
func (c *conn) Write(p []byte) (written int, err error) {
	for {
		part := p[written:min(written+writePartBytes, len(p))]
		if err := c.postpone(time.Now()); err != nil {
			return written, err
		}
		n, err := c.Conn.Write(part)
		written += n
		if err != nil || written == len(p) {
			return written, err
		}
	}
}

// postpone moves the deadline of writes if it is less than writeStallTimeout away.
func (c *conn) postpone(now time.Time) error {
	if c.deadline.Sub(now) >= writeStallTimeout {
		return nil
	}
	c.deadline = now.Add(writeStallTimeout + writeStallSlack)
	return c.SetWriteDeadline(c.deadline)
}

// CloseWrite ends what is sent and goes on reading. The HTTP server asks for it when it refuses a
// body that it has not read, so that the client gets to see why.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// connectionContext is http.Server.ConnContext: on a connection beyond the limit only probes are
// answered.
func connectionContext(ctx context.Context, accepted net.Conn) context.Context {
	if encrypted, ok := accepted.(*tls.Conn); ok {
		accepted = encrypted.NetConn()
	}
	if c, ok := accepted.(*conn); ok && c.isBeyond {
		return web.WithProbesOnly(ctx)
	}
	return ctx
}

// meterConnections adds the number of open connections to metrics.
func meterConnections(metrics prometheus.Registerer, listener *boundedListener) {
	metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "moorage_http_connections",
		Help: "Connections that are open; above --connection-limit a new one is told to come back.",
	}, func() float64 { return float64(listener.open.Load()) }))
}

// newServer returns the HTTP server of handler. The handler bounds how slowly a body may come.
func newServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		ConnContext:       connectionContext,
	}
}
