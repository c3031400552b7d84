// Package locks says who may work on what, now. A lock has a path in a tree and one of four
// modes; a Manager grants all the locks of one operation in one call.
//
// # What it promises, and what not
//
// Locks order work and save waste. They never make a commit correct: that is the store's conditional
// write. A lock may be lost at any moment, and the manager GrantAll, which excludes nobody, must leave every
// result right; it may only cost more lost races. Hence readers take no locks, and a commit of one table takes none.
//
// # The tree
//
//	/{warehouse}                  level 1: a warehouse
//	/{warehouse}/{ns}/{ns}…       level 2: a namespace
//	/{warehouse}/{ns}…/#{0..f}    level 3: one of the 16 shards of a namespace's registry
//	/{warehouse}/@{pointer id}    level 4: a metadata pointer; or @!{key}, the attempts of one mutation
//
// Segments are typed: names are escaped, so that a namespace called "#3" is not a shard.
//
// # The modes
//
// R reads the subtree below a path, W writes it. RA and WA stand on the ancestors of what is
// read and written, so that whoever wants a whole subtree meets those who work inside it:
//
//	held \ wanted   RA    R     WA    W
//	RA              yes   yes   yes   no
//	R               yes   yes   no    no
//	WA              yes   no    yes   no
//	W               no    no    no    no
//
// It follows that W(p) excludes every R and W on p, its ancestors and its descendants, that
// R(p) excludes every W on them, and that nothing else excludes anything.
//
// A request may ask for several modes on one path. The least mode that includes them all is taken: R
// includes RA, WA includes RA, W includes every mode. R and WA meet when an operation reads a
// subtree and writes a part of it. Neither includes the other (WA alone would let somebody else write elsewhere in the
// subtree that is being read), so W is taken. A fifth mode would admit readers of the part that is not
// written; no operation of the catalog needs it.
//
// # The order, and why there is no deadlock
//
// One Acquire takes everything that an operation needs. It takes the locks in the byte order of their paths,
// in which an ancestor comes before its descendants, and waits for one at a time. So of all operations that
// wait, the one that waits for the greatest path holds nothing that is greater, and whoever holds that path waits for
// nothing, or for something greater still, which nobody does: somebody can always go on. The argument does
// not depend on the modes. It does depend on three rules: no second Acquire while holding, no upgrade, no re-entry.
//
// A manager is fair: whoever asks for a lock that excludes somebody already waiting for it waits behind
// them, so a stream of readers does not keep a writer out.
//
// # Managers
//
//	Local        one process
//	Distributed  a node of a cluster: a Local, and behind it a store of leases, which is the port Leases
//	Coalesced    a Distributed that takes what its operations have in common once
//	GrantAll     tests
//
// # Nodes of a cluster
//
// An operation first takes its locks from the node's Local, in the order above, and then leases on all of them from the store, in
// one call, all or none. If one is blocked it holds no lease while it waits, polls after 5 to 200 ms, and has a ticket in the store's queue.
// Three facts exclude a deadlock:
//
//   - Who waits in the Local waits for operations of the same node, which by the argument above can go on, or wait for leases.
//   - Who waits for leases holds none. It waits for operations that hold all that they need, and for tickets that are older than its own.
//   - Tickets have one order. The oldest waits for holders only.
//
// In a Coalesced the leases in the modes that do not exclude themselves (RA, WA, R) are shares: one for all operations of the node. The
// facts hold there because of three more rules:
//
//   - While an operation waits it uses no share. What nobody uses is given up as soon as another node's ticket wants it, at the latest after the
//     0.2 s that it takes to hear of that; and what is wanted nobody joins.
//   - Who finds a share that another operation is trying to take follows it, instead of asking too. It leads nobody then, so followers form no circle.
//   - Who has a ticket in the store's queue follows nobody. Its leader might be newer, and wait for somebody who waits for that ticket.
//
// # Losing leases
//
// A node renews its session about once a second. Takers pass over a session that was silent for 3 s, by the store's
// clock: they take the leases of it that stand in their way, and nothing else. A session that was silent for 15 s is
// ended by any node; they sweep every 5 s. How long others must wait before they pass over a session stands in the
// store with it, so that nodes whose heartbeats are rarer share a store with these.
//
// A node learns with its next heartbeat what was taken from it. It counts the 15 s for itself, from the moment in which
// it sent the last heartbeat that was answered. In both cases the contexts of the holds end with ErrLost, it is
// logged and told to the Observer, and the next operation opens another session if that is over. So a node that was
// stopped, or cut off, may go on for a while with locks that others have. That is harmless, see above.
//
// A node that starts ends the session of the process that listened on its address before it, if it is certain that this
// was the one (Announce).
package locks
