package locks

import (
	"context"
	"time"
)

// Lease is a lock as a store of leases sees it. It is an alias of an unnamed type, because Leases
// uses only types of the standard library: a backend implements Leases without importing this
// package.
type Lease = struct {
	ID   int64  // drawn by the session, greater than 0, unique within it
	Path string // Path.String: printable ASCII without spaces, of any length
	Mode uint8  // a Mode. Two modes exclude one another exactly when all bits of W are in one of them or the other
}

// Session is a life of a node as a store of leases sees it. Like Lease it is an alias of an unnamed
// type. Text that is empty is not known.
type Session = struct {
	Name    string // never used before
	Version string // the build that the node runs
	Address string // where the node listens, for people and other nodes; see Announce
	Host    string // certainly one machine and one network in it; see Announce
	// Silence is how long the session may be silent before takers pass it over. 0: as long as the
	// taker says.
	Silence time.Duration
}

// Leases is the port to what the nodes of a cluster share: who holds and who waits for what. It has
// no queue and calls nobody back; nodes ask. The contract is tested in package postgres, which also
// runs it on leasestest.Memory, the reference model. All methods are safe for concurrent use. Each
// is one round trip if nothing is in its way.
//
// # Sessions
//
// A session is one life of a node. It holds leases and leaves wants. It is silent since its Open or
// its last Renew, by the store's clock, which is the only clock that is read; durations are
// parameters. A session ends by End or Reap and takes everything it had with it; its name never
// comes back. Leases of one session do not exclude one another: a node orders its own operations.
//
// # Wants
//
// A Try with a ticket that is blocked leaves wants: the ticket stands in a queue with the leases
// that it asked for. A ticket is as old as its first want, and no two are equally old. A Try
// respects the wants of other sessions' older tickets as if they were leases. So the oldest ticket
// waits for holders only, and a stream of newcomers passes nobody by.
//
// # Errors
//
// An error says that the store could not be asked or did not answer. The call may have happened,
// and may yet happen. Renew repairs what that leaves behind. A session that has ended is not an
// error: then alive is false.
//
// Nothing here needs to be durable: a store that forgets a lease or a session is as good as one in
// which it was lost.
type Leases interface {
	// Open begins a session. Its name must be new.
	Open(ctx context.Context, session Session) error

	// Announce says where the node of session listens, and ends every other session of the same
	// address on the same host, if both are known. It returns how many it ended. Only one process
	// at a time can listen there, so a node that does may end them: their nodes have ended, or do
	// not serve any longer. alive is false, and nothing changes, if session has ended.
	Announce(ctx context.Context, session, address, host string) (ended int, alive bool, err error)

	// Renew says that session is not silent, and which leases and tickets it still knows. It takes
	// from the session what the session holds or waits for with an id that is not in known, and has
	// had for at least orphaned: that must come from a Try whose answer was lost. Renew returns the
	// ids in known, in their order, with which the session has no lease and no want (any longer).
	Renew(ctx context.Context, session string, known []int64, orphaned time.Duration) (lost []int64, alive bool,
		err error)

	// Try takes all of leases or none, at one moment. They are sorted by path, each path once, at
	// least one. Leases of other sessions that exclude one of them block it, and so do respected
	// wants.
	//
	// Sessions do not block that are silent for longer than their own Silence, or than silence if
	// they have none. Try ignores their wants. If all of leases can be had, it takes from them the
	// leases that stood in the way.
	//
	// blocked is the index of the first lease that could not be had, -1 if all were taken. A ticket
	// greater than 0, drawn like ids, leaves wants for all of leases when blocked, in addition to
	// those that it has. When not blocked it leaves none.
	Try(ctx context.Context, session string, ticket int64, leases []Lease, silence time.Duration) (blocked int,
		alive bool, err error)

	// Release gives back the leases of session with the given ids, and removes the wants of its
	// tickets with the given ids. Unknown ids and sessions are ignored.
	Release(ctx context.Context, session string, ids []int64) error

	// Wanted returns the ids of the leases of session, in ascending order, that exclude a want of
	// another session. The wants of silent sessions do not count, as in Try.
	Wanted(ctx context.Context, session string, silence time.Duration) (ids []int64, err error)

	// Reap ends every session that is silent for longer than ttl and returns how many it ended. A
	// session whose last sign is later than now, because the store's clock was set back, counts as
	// silent since now. Else it would live until the clock has caught up.
	Reap(ctx context.Context, ttl time.Duration) (ended int, err error)

	// End ends a session. An unknown one is ignored.
	End(ctx context.Context, session string) error
}
