package identity

import (
	"context"
	"crypto/subtle"
	"sync/atomic"
	"time"

	"moorage"
)

// connection holds the credential that was last accepted on a client's connection, because clients
// send the same credential with each request. It is safe for concurrent use.
type connection struct {
	last atomic.Pointer[acceptedHeader]
}

// acceptedHeader is the Authorization header of an accepted request, with the result.
type acceptedHeader struct {
	header string
	accepted
}

// accepted is a credential that was accepted.
type accepted struct {
	caller moorage.Caller
	// epoch is the epoch of the policy that accepted the credential. While that is the store's
	// present epoch, the credential is valid until the time in the field until. It is 0 if the
	// credential must be checked again for each request.
	epoch uint64
	until time.Time
}

type connectionKey struct{}

// WithConnection returns a context for all requests of one connection. On such a connection, a
// credential that belongs to a key of the store is checked once. It is checked again after a change
// of the store's policy, or when it has expired. Each request still asks the store for the present
// epoch of the policy, if another process can change it.
func WithConnection(ctx context.Context) context.Context {
	return context.WithValue(ctx, connectionKey{}, new(connection))
}

// authorizeOn returns the caller of a request. header is its Authorization header, which is checked
// only if the connection of ctx requires that.
func (a *Authenticator) authorizeOn(ctx context.Context, header, address string) (moorage.Caller, error) {
	on, _ := ctx.Value(connectionKey{}).(*connection)
	if on == nil || a.config.Records == nil {
		found, err := a.authorize(ctx, header, address)
		return found.caller, err
	}
	if last := on.last.Load(); last != nil && isEqual(last.header, header) {
		epoch, err := a.config.Records.Epoch(ctx)
		if err != nil {
			return moorage.Caller{}, unavailable("look up the access policy", err)
		}
		if epoch == last.epoch && a.config.Now().Before(last.until) {
			return last.caller, nil
		}
	}
	found, err := a.authorize(ctx, header, address)
	if err == nil && found.epoch != 0 {
		on.last.Store(&acceptedHeader{header, found})
	}
	return found.caller, err
}

// isEqual compares two headers. The time that it takes does not depend on where they differ,
// because a proxy may send requests of several clients on one connection.
func isEqual(known, header string) bool {
	return subtle.ConstantTimeCompare([]byte(known), []byte(header)) == 1
}
