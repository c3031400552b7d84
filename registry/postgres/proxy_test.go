package postgres

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"

	"moorage/testkit/pgserver"
)

// Message is one message of PostgreSQL's protocol on its way through a Proxy.
type Message struct {
	Conn       int  // the number of the connection, counted from 1
	FromServer bool // otherwise the message is from the client
	// Type is the message's first byte. It is zero for a client's first message, which has no type.
	Type byte
	Body []byte // the bytes after the length
}

// Verdict is the decision about a message.
type Verdict uint8

// The verdicts.
const (
	Forward Verdict = iota // the message is forwarded
	Cut                    // the message is dropped, and the connection is cut in both directions
)

// messageBytesMax bounds a message; a longer one shows a bug of the proxy.
const messageBytesMax = 1 << 28

// Proxy is a proxy between clients and a server. It recognises the boundaries of messages, and can
// hold messages, or cut a connection between any two. It does not support TLS. It is safe for
// concurrent use.
type Proxy struct {
	listener net.Listener
	target   url.URL        // of the server
	accepts  sync.WaitGroup // for the goroutine that accepts connections
	pumps    sync.WaitGroup // two for each connection

	mu    sync.Mutex // guards the fields below; leaf
	watch func(Message) Verdict
	conns int
	open  map[net.Conn]bool // of the clients
	// ending is the number of connections that were cut or closed but not ended by the server yet.
	// settled is signalled when it reaches zero.
	ending  int
	settled *sync.Cond
}

// NewProxy returns a proxy in front of a server. Close ends it.
func NewProxy(server *pgserver.Server) (*Proxy, error) {
	target, err := url.Parse(server.DSN())
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, target: *target, open: map[net.Conn]bool{}}
	p.settled = sync.NewCond(&p.mu)
	p.Watch(nil)
	p.accepts.Go(p.accept)
	return p, nil
}

// DSN returns a connection string of the server that leads through p.
func (p *Proxy) DSN() string {
	dsn := p.target
	dsn.Host = p.listener.Addr().String()
	return dsn.String()
}

// Watch makes the function watch decide about each message from now on; nil forwards all messages.
// While a call has not returned, the message is held, with all that follow in the same direction of
// its connection.
func (p *Proxy) Watch(watch func(Message) Verdict) {
	if watch == nil {
		watch = func(Message) Verdict { return Forward }
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watch = watch
}

// CutAll cuts all connections.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for client := range p.open {
		p.endLocked(client)
	}
}

// Refuse refuses new connections from now on.
func (p *Proxy) Refuse() error { return p.listener.Close() }

// Settled waits until the server has ended all connections that were cut or closed. Then the server
// has carried out or rolled back everything that it received.
func (p *Proxy) Settled() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.ending > 0 {
		p.settled.Wait()
	}
}

// end closes the client's side of a connection. From now on, the server's side counts as ending.
func (p *Proxy) end(client net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLocked(client)
}

// endLocked is like end; mu must be held. The goroutine that reads from client notices it.
func (p *Proxy) endLocked(client net.Conn) {
	if p.open[client] {
		delete(p.open, client)
		p.ending++
		_ = client.Close()
	}
}

// Close cuts all connections and waits until the server has ended them. No call of the watch
// function may be running.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	if errors.Is(err, net.ErrClosed) { // after Refuse
		err = nil
	}
	p.accepts.Wait() // so that no connection arrives after CutAll
	p.CutAll()
	p.pumps.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target.Host)
		if err != nil {
			_ = client.Close() // like an unreachable server
			continue
		}
		p.mu.Lock()
		p.conns++
		number := p.conns
		p.open[client] = true
		p.mu.Unlock()
		there := server.(*net.TCPConn)
		p.pumps.Go(func() { p.fromClient(number, client, there) })
		p.pumps.Go(func() { p.fromServer(number, client, there) })
	}
}

// fromClient forwards what the client sends until the connection ends or is cut. The server then
// reads the end of the connection after the forwarded messages.
func (p *Proxy) fromClient(number int, client net.Conn, server *net.TCPConn) {
	reader := bufio.NewReader(client)
	for first := true; ; first = false {
		m, raw, err := readMessage(reader, !first)
		m.Conn = number
		if err != nil || p.decide(m) == Cut {
			break
		}
		if _, err := server.Write(raw); err != nil {
			break
		}
	}
	p.end(client)
	_ = server.CloseWrite()
}

// fromServer forwards messages from the server. When the client is gone, it keeps reading until the
// server has ended the connection.
func (p *Proxy) fromServer(number int, client net.Conn, server *net.TCPConn) {
	reader := bufio.NewReader(server)
	for {
		m, raw, err := readMessage(reader, true)
		m.Conn, m.FromServer = number, true
		if err != nil || p.decide(m) == Cut {
			break
		}
		if _, err := client.Write(raw); err != nil {
			break
		}
	}
	p.end(client)
	_ = server.CloseWrite()
	_, _ = io.Copy(io.Discard, reader)
	_ = server.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ending--; p.ending == 0 {
		p.settled.Broadcast()
	}
}

func (p *Proxy) decide(m Message) Verdict {
	p.mu.Lock()
	watch := p.watch
	p.mu.Unlock()
	return watch(m)
}

// readMessage returns a message, and its raw bytes.
func readMessage(reader io.Reader, typed bool) (m Message, raw []byte, err error) {
	header := make([]byte, 4, 5)
	if typed {
		header = header[:5]
	}
	if _, err := io.ReadFull(reader, header); err != nil {
		return m, nil, err
	}
	length := binary.BigEndian.Uint32(header[len(header)-4:])
	if length < 4 || length > messageBytesMax {
		return m, nil, errors.New("pgserver: not a message")
	}
	raw = append(header, make([]byte, length-4)...)
	if _, err := io.ReadFull(reader, raw[len(header):]); err != nil {
		return m, nil, err
	}
	if typed {
		m.Type = raw[0]
	}
	m.Body = raw[len(header):]
	return m, raw, nil
}
