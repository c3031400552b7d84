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
// The driver asks the server to cancel a connection's work when it gives the connection up. A
// commit that waits for a synchronous standby then stops waiting, and everybody sees it, though the
// standby does not have it. If that standby is promoted, what was seen, or acknowledged after a
// look, is gone. A commit that is not cancelled stays unseen until the standby has it. So only
// connections that do not write may be cancelled, and connections for leases, which wait for no
// standby.
//
// A request to cancel goes to the address of the connection, and this one has none.
type uncancelled struct {
	net.Conn
	allowed atomic.Bool
}

// RemoteAddr returns an address to which dialUncancelled does not connect. After allowCancel it
// returns the address of the server.
func (u *uncancelled) RemoteAddr() net.Addr {
	if u.allowed.Load() {
		return u.Conn.RemoteAddr()
	}
	return nowhere{}
}

// allowCancel lets the driver cancel the statements of a connection that dialUncancelled made. Do
// not call it behind a proxy: connections of the server change hands there, so a late request could
// meet the statement of another client.
func allowCancel(conn net.Conn) {
	if made := lineOf(conn); made != nil {
		conn = made.Conn
	}
	if made, ok := conn.(*uncancelled); ok {
		made.allowed.Store(true)
	}
}

// nowhere is an address of nothing.
type nowhere struct{}

// Network returns a network that does not exist.
func (nowhere) Network() string { return "nowhere" }

// String returns an address that does not exist.
func (nowhere) String() string { return "nowhere" }

// dialUncancelled wraps a way to make connections.
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
