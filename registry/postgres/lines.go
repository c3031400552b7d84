package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

// lines holds the network connections of a store, so that they can be cut. Without lines, a pool
// waits for the server when it closes a connection, and a call waits for its answer. If the server
// hangs, both waits are longer than a process may take to end. It is safe for concurrent use.
type lines struct {
	mu   sync.Mutex // guards the fields below; no lock is taken under it
	open map[*line]bool
	cut  bool
}

// line is one connection.
type line struct {
	net.Conn
	lines *lines
}

func newLines() *lines { return &lines{open: make(map[*line]bool)} }

// dial wraps a dial function so that l knows its connections.
func (l *lines) dial(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		made := &line{conn, l}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.cut {
			return nil, errors.Join(errors.New("postgres: the store is closed"), conn.Close())
		}
		l.open[made] = true
		return made, nil
	}
}

// cutAll closes all connections without notifying the server, and refuses new connections. Requests
// without an answer may still happen.
func (l *lines) cutAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for line := range l.open {
		_ = line.Conn.Close() // no caller could use an error
	}
}

// Close closes the connection.
func (l *line) Close() error {
	l.lines.mu.Lock()
	defer l.lines.mu.Unlock()
	delete(l.lines.open, l)
	return l.Conn.Close()
}

// lineOf returns the line below conn, or nil if conn was not made by lines.
func lineOf(conn net.Conn) *line {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	made, _ := conn.(*line)
	return made
}
