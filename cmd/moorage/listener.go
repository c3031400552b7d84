package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
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
	// addressShare is which part of the limit one address has while connections are scarce, but at
	// least addressShareMin connections.
	addressShare    = 8
	addressShareMin = 8
	// toldMax is how many connections of an address are told at a time that it has had its share.
	toldMax = 8
)

// boundedListener bounds how many connections are open. Once three quarters of the limit are, each
// address has a share of an eighth: one that goes beyond it loses its longest idle connection, or
// finds no room. At the limit the longest idle connection of all goes. A connection is idle while
// no request has begun on it. Proxies have no share, and their idle connections stay: clients are
// behind them. It is safe for concurrent use.
type boundedListener struct {
	net.Listener

	limit   int
	proxies []netip.Prefix
	places  chan struct{} // a value for each connection, up to limit and connectionsReserve
	closed  chan struct{}
	once    sync.Once // closes closed

	mu    sync.Mutex // guards the fields below and some of each conn; leaf
	open  int
	conns map[netip.Addr]map[*conn]bool // those that are open, by where they come from; not of proxies
	idle  uint64                        // counts connections that become idle
}

// boundListener bounds listener to limit connections. Those from proxies have no share.
func boundListener(listener net.Listener, limit int, proxies []netip.Prefix) *boundedListener {
	return &boundedListener{
		Listener: listener,
		limit:    limit,
		proxies:  proxies,
		places:   make(chan struct{}, limit+connectionsReserve),
		closed:   make(chan struct{}),
		conns:    make(map[netip.Addr]map[*conn]bool),
	}
}

// Accept returns the next connection, when there is a place for it.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
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
		c := &conn{Conn: accepted, listener: l}
		goes := l.admit(c)
		if goes != nil {
			_ = goes.Close()
		}
		if goes != c {
			return c, nil
		}
	}
}

// admit counts a connection that was accepted, and says whether it is beyond the bounds. It returns
// the connection that has to go: an idle one, c itself, or nil for none. An address beyond its
// share is told so on some connections only, which take the places of others meanwhile.
func (l *boundedListener) admit(c *conn) (goes *conn) {
	c.from = l.addressOf(c.RemoteAddr())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open++
	if c.from.IsValid() {
		if l.conns[c.from] == nil {
			l.conns[c.from] = make(map[*conn]bool)
		}
		l.conns[c.from][c] = true
	}
	own := l.conns[c.from]
	switch {
	case l.open*4 > l.limit*3 && len(own) > max(l.limit/addressShare, addressShareMin):
		goes = longestIdle(nil, own)
		if goes == nil && isTold(own) {
			goes = c
		}
	case l.open > l.limit:
		for _, of := range l.conns {
			goes = longestIdle(goes, of)
		}
	default:
		l.beginIdleLocked(c)
		return nil
	}
	if goes == nil {
		c.isBeyond = true
		return nil
	}
	l.beginIdleLocked(c)
	goes.idle = 0
	return goes
}

// isTold reports whether connections of an address are being told that there is no room, as many as
// may be at a time. The listener's mu must be held.
func isTold(conns map[*conn]bool) bool {
	told := 0
	for c := range conns {
		if c.isBeyond {
			told++
		}
	}
	return told >= toldMax
}

// beginIdleLocked notes that no request has begun on c from now on. l.mu must be held.
func (l *boundedListener) beginIdleLocked(c *conn) {
	l.idle++
	c.idle = l.idle
}

// longestIdle returns that of conns, and of found, which has been idle for the longest time; nil if
// none is idle. The listener's mu must be held.
func longestIdle(found *conn, conns map[*conn]bool) *conn {
	for c := range conns {
		if c.idle != 0 && (found == nil || c.idle < found.idle) {
			found = c
		}
	}
	return found
}

// addressOf returns where a connection comes from, as shares are counted. It is not valid for a
// proxy, and for what is no IP address.
func (l *boundedListener) addressOf(remote net.Addr) netip.Addr {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	from := tcp.AddrPort().Addr().Unmap().WithZone("")
	if slices.ContainsFunc(l.proxies, func(proxy netip.Prefix) bool { return proxy.Contains(from) }) {
		return netip.Addr{}
	}
	if from.Is6() { // who has one address mostly has 2^64 of them
		if prefix, err := from.Prefix(64); err == nil {
			return prefix.Addr()
		}
	}
	return from
}

// noteState is http.Server.ConnState.
func noteState(accepted net.Conn, state http.ConnState) {
	c, ok := innermost(accepted).(*conn)
	if !ok {
		return
	}
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	switch {
	case state == http.StateIdle && !c.isClosed:
		c.listener.beginIdleLocked(c)
	case state != http.StateNew:
		c.idle = 0
	}
}

// count returns how many connections are open.
func (l *boundedListener) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// forget counts a connection no more.
func (l *boundedListener) forget(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	c.idle, c.isClosed = 0, true
	if c.cancel != nil {
		c.cancel()
	}
	if own := l.conns[c.from]; own != nil {
		if delete(own, c); len(own) == 0 {
			delete(l.conns, c.from)
		}
	}
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
	from     netip.Addr // as boundedListener.addressOf says it
	isBeyond bool       // the limit
	// The listener's mu guards these.
	idle     uint64 // when it became idle, in the order of connections; 0: it is not
	isClosed bool
	cancel   context.CancelFunc // ends the context of its requests; nil until there is one
	once     sync.Once

	deadlines sync.Mutex // guards the fields below; leaf
	deadline  time.Time  // of writes, as Write has set it
	due       time.Time  // of writes, as SetWriteDeadline has set it; zero: none
}

// Close implements net.Conn.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.listener.forget(c)
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

// SetWriteDeadline implements net.Conn. The bound of each part holds too.
func (c *conn) SetWriteDeadline(due time.Time) error {
	c.deadlines.Lock()
	defer c.deadlines.Unlock()
	c.due, c.deadline = due, time.Time{}
	return c.Conn.SetWriteDeadline(due)
}

// postpone moves the deadline of writes if it is less than writeStallTimeout away.
func (c *conn) postpone(now time.Time) error {
	c.deadlines.Lock()
	defer c.deadlines.Unlock()
	if c.deadline.Sub(now) >= writeStallTimeout {
		return nil
	}
	c.deadline = now.Add(writeStallTimeout + writeStallSlack)
	if !c.due.IsZero() && c.due.Before(c.deadline) {
		c.deadline = c.due
	}
	return c.Conn.SetWriteDeadline(c.deadline)
}

// CloseWrite ends what is sent and goes on reading. The HTTP server asks for it when it refuses a
// body that it has not read, so that the client gets to see why.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// innermost returns the connection that was accepted, without the TLS around it.
func innermost(accepted net.Conn) net.Conn {
	if encrypted, ok := accepted.(*tls.Conn); ok {
		return encrypted.NetConn()
	}
	return accepted
}

// connectionContext is http.Server.ConnContext: on a connection beyond the limit only probes are
// answered. The context of its requests ends with the connection.
func connectionContext(ctx context.Context, accepted net.Conn) context.Context {
	c, ok := innermost(accepted).(*conn)
	if !ok {
		return ctx
	}
	if c.isBeyond {
		ctx = web.WithProbesOnly(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	if c.cancel = cancel; c.isClosed {
		cancel()
	}
	return ctx
}

// unlessGone is handler for requests whose answers can arrive. One that was read while its
// connection was closed for another one is not begun: its client sends it again.
func unlessGone(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Context().Err() != nil {
			panic(http.ErrAbortHandler)
		}
		handler.ServeHTTP(w, r)
	})
}

// meterConnections adds the number of open connections to metrics.
func meterConnections(metrics prometheus.Registerer, listener *boundedListener) {
	metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "moorage_http_connections",
		Help: "Connections that are open; above --connection-limit a new one is told to come back.",
	}, func() float64 { return float64(listener.count()) }))
}

// newServer returns the HTTP server of handler. The handler bounds how slowly a body may come.
func newServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           unlessGone(handler),
		ConnState:         noteState,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		ConnContext:       connectionContext,
	}
}
