package postgres

import (
	"context"
	"errors"
	"net"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"
)

// uncancelled is a connection whose statements cannot be cancelled, unless allowCancel was called.
//
// When the driver abandons a connection, it sends the server a request to cancel the connection's
// work. If that work is a commit that waits for a synchronous standby, the commit stops waiting and
// becomes visible, although the standby does not have it. If that standby is promoted, changes are
// lost that clients have already seen, or that were even acknowledged. A commit that is not
// cancelled stays invisible until the standby has it. So only two kinds of connections may be
// cancelled: connections that do not write, and connections for leases, which do not wait for a
// standby.
//
// The driver sends a cancel request to the remote address of the connection. An uncancelled
// connection does not have such an address.
type uncancelled struct {
	net.Conn
	allowed atomic.Bool
}

// RemoteAddr returns an address to which functions of dialUncancelled refuse to connect. After
// allowCancel it returns the address of the server.
func (u *uncancelled) RemoteAddr() net.Addr {
	if u.allowed.Load() {
		return u.Conn.RemoteAddr()
	}
	return nowhere{}
}

// allowCancel lets the driver cancel the statements of a connection made by dialUncancelled. Do not
// call it behind a proxy: there a connection of the server serves several clients, so a late
// request could cancel another client's statement.
func allowCancel(conn net.Conn) {
	if made := lineOf(conn); made != nil {
		conn = made.Conn
	}
	if made, ok := conn.(*uncancelled); ok {
		made.allowed.Store(true)
	}
}

// nowhere is an address that does not exist.
type nowhere struct{}

// Network returns a network that does not exist.
func (nowhere) Network() string { return "nowhere" }

// String returns an address that does not exist.
func (nowhere) String() string { return "nowhere" }

// dialUncancelled wraps a dial function so that its connections are uncancelled.
func dialUncancelled(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if network == (nowhere{}).Network() {
			return nil, errors.New("postgres: statements are not cancelled")
		}
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &uncancelled{Conn: conn}, nil
	}
}
