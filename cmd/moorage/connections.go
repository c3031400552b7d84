package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"moorage/internal/web"
)

// connectionsReserve is how many connections are taken beyond --connection-limit: each is told that there is no room, unless it asks
// for health or metrics, and ends. Further ones wait in the system's queue.
const connectionsReserve = 64

// boundedListener bounds how many connections are open. It is safe for concurrent use.
type boundedListener struct {
	net.Listener

	limit  int64
	open   atomic.Int64
	places chan struct{} // a value for each connection, up to limit and connectionsReserve
	closed chan struct{}
	once   sync.Once // closes closed
}

func boundListener(listener net.Listener, limit int64) *boundedListener {
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
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &boundedConn{Conn: conn, listener: l, isBeyond: l.open.Add(1) > l.limit}, nil
}

// Close ends Accept too.
func (l *boundedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// boundedConn gives its place back when it is closed.
type boundedConn struct {
	net.Conn

	listener *boundedListener
	isBeyond bool // the limit
	once     sync.Once
}

// Close implements net.Conn.
func (c *boundedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.listener.open.Add(-1)
		<-c.listener.places
	})
	return err
}

// CloseWrite ends what is sent, as stallingConn does.
func (c *boundedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// connectionContext is http.Server.ConnContext: on a connection beyond the limit only probes are answered.
func connectionContext(ctx context.Context, conn net.Conn) context.Context {
	if stalling, ok := conn.(stallingConn); ok {
		if bounded, ok := stalling.Conn.(*boundedConn); ok && bounded.isBeyond {
			return web.WithProbesOnly(ctx)
		}
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
