package loopback

import (
	"net"
	"sync"
)

// Proxy listens on a free port of 127.0.0.1 and forwards connections to a target. It is safe for
// concurrent use.
type Proxy struct {
	target   string
	listener net.Listener
	tasks    sync.WaitGroup

	mu     sync.Mutex // guards the fields below; no other lock is taken under it
	conns  map[net.Conn]bool
	cut    bool
	closed bool
	gates  [2]chan struct{} // one for each direction; closed while bytes may move
}

// direction is the direction in which bytes move.
type direction int

const (
	toTarget direction = iota
	fromTarget
)

// NewProxy starts a proxy to target, a host and a port. Stop it with Close.
func NewProxy(target string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: target, listener: listener, conns: map[net.Conn]bool{}}
	for d := range p.gates {
		p.gates[d] = make(chan struct{})
		close(p.gates[d])
	}
	p.tasks.Go(p.accept)
	return p, nil
}

// Addr returns the host and the port where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut breaks all connections. Until Restore it also breaks new connections at once. Bytes that were
// sent before Cut may still arrive.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	p.breakLocked()
}

// Stall holds back all bytes in both directions until Restore. Until then, neither side receives
// anything. The proxy still accepts new connections, and holds back their bytes too.
func (p *Proxy) Stall() { p.hold(toTarget, fromTarget) }

// Mute holds back the target's answers until Restore. Bytes to the target pass. A Cut loses the
// bytes that are held back.
func (p *Proxy) Mute() { p.hold(fromTarget) }

func (p *Proxy) hold(directions ...direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range directions {
		select {
		case <-p.gates[d]:
			p.gates[d] = make(chan struct{})
		default:
		}
	}
}

// Restore undoes Cut, Stall and Mute. Bytes that were held back are then delivered.
func (p *Proxy) Restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
	p.moveLocked()
}

// Close ends the proxy and its connections and waits for them.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.breakLocked()
	p.moveLocked()
	p.mu.Unlock()
	err := p.listener.Close()
	p.tasks.Wait()
	return err
}

// breakLocked closes all connections. mu must be held.
func (p *Proxy) breakLocked() {
	for conn := range p.conns {
		_ = conn.Close() // breaks the connection
	}
}

// moveLocked lets bytes move. mu must be held.
func (p *Proxy) moveLocked() {
	for _, gate := range p.gates {
		select {
		case <-gate:
		default:
			close(gate)
		}
	}
}

// gate returns the channel that is closed while bytes may move.
func (p *Proxy) gate(d direction) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gates[d]
}

// keep registers conn with the proxy, unless the proxy is cut.
func (p *Proxy) keep(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut || p.closed {
		return false
	}
	p.conns[conn] = true
	return true
}

// drop closes conn and unregisters it.
func (p *Proxy) drop(conn net.Conn) {
	_ = conn.Close() // a second close fails, which does not matter
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
}

// accept accepts connections until the proxy is closed.
func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.tasks.Go(func() { p.forward(client) })
	}
}

// forward moves bytes between client and the target until one of them ends.
func (p *Proxy) forward(client net.Conn) {
	defer p.drop(client)
	if !p.keep(client) {
		return
	}
	<-p.gate(toTarget)
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer p.drop(server)
	if !p.keep(server) {
		return
	}
	var back sync.WaitGroup
	back.Go(func() { p.copy(client, server, fromTarget) })
	p.copy(server, client, toTarget)
	back.Wait()
}

// copy moves bytes until one end is closed, and closes the other.
func (p *Proxy) copy(to, from net.Conn, d direction) {
	defer p.drop(to)
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			<-p.gate(d)
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			<-p.gate(d) // the end of the connection is held back too
			return
		}
	}
}
