package postgres

import (
	"context"
	"errors"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
)

// uncancelled is a connection whose statements cannot be cancelled.
//
// The driver asks the server to cancel what a connection does when it gives the connection up. A commit that waits for a
// synchronous standby then stops waiting, and is seen by everybody, though the standby does not have it: if that is
// promoted, what was seen, or acknowledged after a look, is gone. Without being cancelled the commit stays unseen until the
// standby has it. A statement that nobody waits for any more ends by itself; all of this package are short.
//
// A request to cancel goes to the address of the connection, and this one has none.
type uncancelled struct{ net.Conn }

// RemoteAddr returns an address to which dialUncancelled does not connect.
func (uncancelled) RemoteAddr() net.Addr { return nowhere{} }

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
		return uncancelled{conn}, nil
	}
}
