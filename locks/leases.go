package locks

import (
	"context"
	"time"
)

// Lease is a lock in a store of leases. It is an alias of an unnamed type, because Leases uses only
// types of the standard library: a backend implements Leases without importing this package.
type Lease = struct {
	ID   int64  // drawn by the session, greater than 0, unique within it
	Path string // Path.String: printable ASCII without spaces, of any length
	Mode uint8  // a Mode. Two modes exclude each other if and only if their union is W
}

// Session is one life of a node in a store of leases. Like Lease, it is an alias of an unnamed
// type. Empty text means unknown.
type Session = struct {
	Name    string // never used before
	Version string // the build that the node runs
	Address string // where the node listens, for people and other nodes; see Announce
	Host    string // identifies exactly one machine and one of its networks; see Announce
	// Silence is the longest silence of the session before other sessions may take its leases. If
	// it is 0, the parameter silence of Try decides.
	Silence time.Duration
}

// Leases is the interface to the state that the nodes of a cluster share: their leases and wants.
// It has no queue and makes no callbacks, so nodes poll. The contract is tested in package
// postgres, which also runs the tests on locktest.MemoryLeases, the reference model. All methods
// are safe for concurrent use. Each is one round trip if no lease blocks it.
//
// # Sessions
//
// A session is one life of a node. It holds leases and leaves wants. Its silence is the time since
// its Open or its last Renew, by the store's clock. No other clock is read; durations are
// parameters. End or Reap ends a session, together with all its leases and wants. No later session
// has its name. Leases of one session do not exclude each other, because a node orders its own
// operations.
//
// # Wants
//
// A blocked Try with a ticket leaves wants: the ticket waits in a queue with the leases that it
// requested. A ticket is as old as its first want, and no two are equally old. A Try respects the
// wants of other sessions' older tickets as if they were leases. So the oldest ticket waits only
// for holders, and newcomers do not overtake it.
//
// # Errors
//
// An error means that the store could not be reached or did not answer. The call may have happened,
// and may still happen. A later Renew repairs the consequences. A session that has ended is not an
// error; alive is then false.
//
// Nothing in the store needs to be durable: if it forgets a lease or a session, the lease or
// session counts as lost.
type Leases interface {
	// Open begins a session. Its name must be new.
	Open(ctx context.Context, session Session) error

	// Announce records where the node of session listens, and ends every other session of the same
	// address on the same host, if both are known. It returns the number of ended sessions. Only
	// one process at a time can listen there. So the processes of the other sessions have ended, or
	// no longer serve. If session has ended, alive is false and nothing changes.
	Announce(ctx context.Context, session, address, host string) (ended int, alive bool, err error)

	// Renew records that session is alive, and which leases and tickets it still knows. known lists
	// the ids of these leases and tickets. Renew also removes the session's leases and wants that
	// are not in known and are at least as old as orphaned. They come from a Try whose answer was
	// lost. In lost, Renew returns, in their order, the ids in known for which the session has no
	// lease and no want.
	Renew(ctx context.Context, session string, known []int64, orphaned time.Duration) (lost []int64, alive bool,
		err error)

	// Try takes either all locks in leases or no lock, at one moment. leases is not empty. It is
	// sorted by path, and each path occurs once. A lease of another session that excludes one of
	// them blocks the Try. So does such a want of an older ticket of another session.
	//
	// Sessions that are silent for longer than their own Silence do not block. For a session whose
	// Silence is 0, the limit is the parameter silence. Try ignores the wants of such sessions. If
	// all of leases are available, it takes the blocking leases from them.
	//
	// blocked is the index of the first unavailable lease, or -1 if all were taken. If a Try is
	// blocked and its ticket is greater than 0, it leaves wants for all of leases. These are added
	// to the ticket's earlier wants. The session draws its tickets from the same sequence of
	// numbers as the ids of its leases. A Try that is not blocked ends all wants of its ticket.
	Try(ctx context.Context, session string, ticket int64, leases []Lease, silence time.Duration) (blocked int,
		alive bool, err error)

	// Release releases the leases of session with the given ids, and removes the wants of its
	// tickets with the given ids. Unknown ids and sessions are ignored.
	Release(ctx context.Context, session string, ids []int64) error

	// Wanted returns the ids of the leases of session, in ascending order, that exclude a want of
	// another session. The wants of silent sessions do not count, as in Try.
	Wanted(ctx context.Context, session string, silence time.Duration) (ids []int64, err error)

	// Reap ends every session that has been silent for longer than ttl, and returns their number.
	// If the store's clock was set back, a session's last sign of life may be later than now. In
	// that case its silence begins now; otherwise it would live until the clock has caught up.
	Reap(ctx context.Context, ttl time.Duration) (ended int, err error)

	// End ends a session. An unknown session is ignored.
	End(ctx context.Context, session string) error
}
