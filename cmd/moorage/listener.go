package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"moorage/identity"
	"moorage/internal/cli"
	"moorage/internal/web"
)

// Limits of the HTTP server. There is no time limit for a whole answer, because a load may be
// large. Instead, conn limits the time for each part of an answer.
const (
	// readHeaderTimeout is the time for a request's header. A client that intends to send a request
	// needs less.
	readHeaderTimeout = 10 * time.Second
	// idleTimeout is longer than common clients keep an idle connection. So the client closes the
	// connection, and does not send a request while the server is closing it.
	idleTimeout = 3 * time.Minute
	// writeStallTimeout is the time for a client to receive the next writePartBytes of an answer.
	// The actual deadline can be up to writeStallSlack later. A deadline within this slack is not
	// changed, so most answers need not set one.
	writeStallTimeout = time.Minute
	writeStallSlack   = 5 * time.Second
	writePartBytes    = 256 << 10
	// connectionsReserve is the number of connections that the server accepts beyond
	// --connection-limit. On each of them the server answers one request, and then closes the
	// connection. It serves a request for health or metrics, and refuses any other because there is
	// no room. Further connections wait in the system's queue.
	connectionsReserve = 64
	// While connections are scarce, one address may have 1/addressShare of the limit, but always
	// addressShareMin connections.
	addressShare    = 8
	addressShareMin = 8
	// toldMax is the maximum number of connections of one address that are told, at the same time,
	// that the address has used its share.
	toldMax = 8
)

// boundedListener limits the number of open connections. Once three quarters of the limit are open,
// each address has a share of an eighth. If an address exceeds its share, the listener closes its
// longest idle connection, or refuses the new connection. At the limit the listener closes the
// longest idle connection of all addresses. A connection is idle while no request has begun on it.
// Proxies have no share, and their idle connections stay, because they serve many clients. It is
// safe for concurrent use.
type boundedListener struct {
	net.Listener

	limit   int
	proxies []netip.Prefix
	places  chan struct{} // has a value for each connection; its capacity is limit plus connectionsReserve
	closed  chan struct{}
	once    sync.Once // closes the channel closed

	mu    sync.Mutex // guards the fields below and some fields of each conn; no other lock is taken under it
	open  int
	conns map[netip.Addr]map[*conn]bool // open connections by address, without proxies
	idle  uint64                        // number of times that any connection became idle
}

// boundListener limits listener to limit connections. The limits for single addresses do not apply
// to proxies.
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

// Accept waits until there is a place for another connection, and returns the next one.
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

// admit counts an accepted connection, and records whether it is beyond the limits. It returns the
// connection to close: an idle one, c itself, or nil for none. If an address exceeds its share,
// only toldMax of its connections get an answer about that, because they use places that other
// addresses need.
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

// isTold reports whether toldMax connections of an address are waiting for their refusal. The
// listener's mu must be held.
func isTold(conns map[*conn]bool) bool {
	told := 0
	for c := range conns {
		if c.isBeyond {
			told++
		}
	}
	return told >= toldMax
}

// beginIdleLocked records that c is idle from now on. l.mu must be held.
func (l *boundedListener) beginIdleLocked(c *conn) {
	l.idle++
	c.idle = l.idle
}

// longestIdle returns the connection that has been idle for the longest time, among conns and
// found. It returns nil if none is idle. The listener's mu must be held.
func longestIdle(found *conn, conns map[*conn]bool) *conn {
	for c := range conns {
		if c.idle != 0 && (found == nil || c.idle < found.idle) {
			found = c
		}
	}
	return found
}

// addressOf returns the address whose share a connection uses. For a proxy, or if remote is not an
// IP address, the result is not valid.
func (l *boundedListener) addressOf(remote net.Addr) netip.Addr {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	from := tcp.AddrPort().Addr().Unmap().WithZone("")
	if slices.ContainsFunc(l.proxies, func(proxy netip.Prefix) bool { return proxy.Contains(from) }) {
		return netip.Addr{}
	}
	if from.Is6() { // the owner of one IPv6 address usually has 2^64 of them
		if prefix, err := from.Prefix(64); err == nil {
			return prefix.Addr()
		}
	}
	return from
}

// noteState implements http.Server.ConnState.
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

// count returns the number of open connections.
func (l *boundedListener) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// forget stops counting a connection.
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

// Close closes the listener, and ends a waiting Accept.
func (l *boundedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// conn is an accepted connection. It limits the time in which a client may receive nothing of an
// answer, and gives back its place when it is closed. A limit for the whole answer would cut off
// large loads over slow networks. Without any limit, a client that stops reading would hold a
// connection, and its answer, forever.
type conn struct {
	net.Conn

	listener *boundedListener
	from     netip.Addr // the result of boundedListener.addressOf
	isBeyond bool       // beyond the limit
	// The listener's mu guards the next two fields.
	idle     uint64 // value of boundedListener.idle when it became idle; 0 if it is not idle
	isClosed bool
	cancel   context.CancelFunc // ends the context of its requests; nil until there is one
	once     sync.Once

	deadlines sync.Mutex // guards the fields below; no other lock is taken under it
	deadline  time.Time  // of writes, as set by Write
	due       time.Time  // of writes, as set by SetWriteDeadline; zero if there is none
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

// Write writes p in parts. Each part has the whole timeout. Unlike the Write of other connections,
// only one goroutine may call it at a time, which is enough for net/http.
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

// SetWriteDeadline implements net.Conn. The timeout of each part also applies.
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

// CloseWrite closes the connection for writing, and leaves it open for reading. The HTTP server
// calls it when it refuses a body that it has not read, so that the client receives the reason.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// innermost returns the accepted connection, without the TLS around it.
func innermost(accepted net.Conn) net.Conn {
	if encrypted, ok := accepted.(*tls.Conn); ok {
		return encrypted.NetConn()
	}
	return accepted
}

// connectionContext implements http.Server.ConnContext. A connection beyond the limit gets answers
// only to probes. The context of its requests ends with the connection.
func connectionContext(ctx context.Context, accepted net.Conn) context.Context {
	c, ok := innermost(accepted).(*conn)
	if !ok {
		return ctx
	}
	if c.isBeyond {
		ctx = web.WithProbesOnly(ctx)
	}
	ctx, cancel := context.WithCancel(identity.WithConnection(ctx))
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	if c.cancel = cancel; c.isClosed {
		cancel()
	}
	return ctx
}

// unlessGone returns a handler that calls handler only if the answer can reach the client. While
// the server read the request, the listener may have closed the connection to make room for
// another. Then the request does not begin, and its client sends it again.
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
		Help: "Open connections. Above --connection-limit a new connection is answered with 429.",
	}, func() float64 { return float64(listener.count()) }))
}

// newServer returns the HTTP server of handler. It sets no timeout for bodies, because the handler
// limits how slowly a body may arrive.
func newServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           unlessGone(handler),
		ConnState:         noteState,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		ConnContext:       connectionContext,
	}
}

// checkListen refuses an unusable listen address before the command opens, creates or migrates
// anything. It does not keep the port open, so the system refuses connections until the server is
// ready. A refused client knows that nothing has happened, and calls another node. If another
// process takes the port in the meantime, the later call of listen fails.
func checkListen(ctx context.Context, c cli.Config) error {
	listener, err := listen(ctx, c)
	if err != nil {
		return err
	}
	if err := listener.Close(); err != nil || c.DebugListen == "" {
		return err
	}
	if listener, err = openPort(ctx, c.DebugListen, "--debug-listen"); err != nil {
		return err
	}
	return listener.Close()
}

// openPort listens on address, the value of flag. It turns common failures into one sentence.
func openPort(ctx context.Context, address, flag string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use by another process%s; choose another address with %s", address,
			holderOf(address), flag)
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return listener, nil
}

// listen opens the port for clients.
func listen(ctx context.Context, c cli.Config) (net.Listener, error) {
	listener, err := openPort(ctx, c.Listen, "--listen")
	if err != nil {
		return nil, err
	}
	// The name localhost can resolve to an address that is not loopback, because the machine's
	// configuration decides.
	addr, ok := listener.Addr().(*net.TCPAddr)
	if !ok || !addr.IP.IsLoopback() {
		if err := c.RefuseListen(fmt.Sprintf("%s, which is %s,", c.Listen, listener.Addr())); err != nil {
			return nil, errors.Join(err, listener.Close())
		}
	}
	return listener, nil
}

// serveOn answers requests from listener, with TLS if the server has a configuration for it.
func serveOn(server *http.Server, listener net.Listener) error {
	if server.TLSConfig != nil {
		return server.ServeTLS(listener, "", "")
	}
	return server.Serve(listener)
}

// shutdown lets the requests in progress end, but waits no longer than timeout.
func shutdown(server *http.Server, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return errors.Join(
			fmt.Errorf("requests were still under way after %s and were cut off", timeout),
			server.Close())
	}
	return nil
}

// probeFilter drops net/http's log lines about clients that connect to a TLS port and send nothing.
// TCP probes of load balancers do that every few seconds. Such a line can be recognized only by its
// text.
type probeFilter struct{ slog.Handler }

func (f probeFilter) Handle(ctx context.Context, record slog.Record) error {
	text := record.Message
	gone := strings.HasSuffix(text, ": EOF") || strings.HasSuffix(text, ": connection reset by peer")
	if gone && strings.HasPrefix(text, "http: TLS handshake error from ") {
		return nil
	}
	return f.Handler.Handle(ctx, record)
}
