// Package locks coordinates the work of concurrent operations. A lock has a path in a tree and one
// of four modes. A Manager grants all the locks of one operation in one call.
//
// # What it promises
//
// Locks order work and save waste. They never make a commit correct: the store's conditional write
// does. A lock may be lost at any moment. With the manager GrantAll, which excludes no operation,
// every result must still be right, though more races may be lost. Hence readers take no locks, and
// a commit of one table takes none.
//
// # The tree
//
//	/{warehouse}                  level 1: a warehouse
//	/{warehouse}/{ns}/{ns}…       level 2: a namespace
//	/{warehouse}/{ns}…/#{0..f}    level 3: one of the 16 shards of a namespace's registry
//	/{warehouse}/@{pointer id}    level 4: a metadata pointer; or @!{key}, attempts of one mutation
//
// Segments are typed: names are escaped, so that a namespace called "#3" is not a shard.
//
// # The modes
//
// R reads the subtree below a path, W writes it. RA and WA are taken on the ancestors of what is
// read and written. So an operation that wants a whole subtree conflicts with operations inside it:
//
//	held \ wanted   RA    R     WA    W
//	RA              yes   yes   yes   no
//	R               yes   yes   no    no
//	WA              yes   no    yes   no
//	W               no    no    no    no
//
// So W(p) excludes every R and W on p, its ancestors and its descendants. R(p) excludes every W on
// them. There is no other exclusion.
//
// A request may need several modes on one path. The manager takes the least mode that includes them
// all: R includes RA, WA includes RA, W includes every mode. R and WA meet when an operation reads
// a subtree and writes a part of it. They do not include each other: WA alone would let another
// operation write elsewhere in the subtree that is being read. So W is taken. A fifth mode would
// admit readers of the part that is not written; no operation of the catalog needs it.
//
// # The order, and why there is no deadlock
//
// One Acquire takes every lock that an operation needs. It takes the locks in the byte order of
// their paths, in which an ancestor comes before its descendants, and waits for one at a time.
//
// Of all waiting operations, consider the one that waits for the greatest path. The holder of that
// path does not wait, because it could only wait for a greater path. So some operation can always
// go on. The argument does not depend on the modes. It does depend on three rules: no second
// Acquire while holding, no upgrade, no re-entry.
//
// A manager is fair. An operation queues behind earlier waiters for a lock if its own lock excludes
// theirs. So a stream of readers does not keep a writer out.
//
// # Managers
//
//	Local        one process
//	Distributed  a node of a cluster: a Local in front of a store of leases, the port Leases
//	Coalesced    a Distributed that takes leases common to its operations once
//	GrantAll     tests
//
// # Nodes of a cluster
//
// An operation first takes its locks from the node's Local, in the order above. Then it takes
// leases on all of them from the store, in one call, all or none. If one is blocked, the operation
// holds no lease while it waits. It polls after 5 to 200 ms, and has a ticket in the store's queue.
// Three facts exclude a deadlock:
//
//   - An operation that waits in the Local waits for operations of the same node. By the argument
//     above one of these can go on, or waits for leases.
//   - An operation that waits for leases holds none. It waits for operations that hold all that
//     they need, and for tickets older than its own.
//   - Tickets have one order. The oldest waits for holders only.
//
// In a Coalesced, leases in the modes that do not exclude themselves (RA, WA, R) are shares: one
// for all operations of the node. The facts hold there because of three more rules:
//
//   - While an operation waits it uses no share. The node gives up an unused share as soon as
//     another node's ticket wants it, at most 0.2 s later, when it learns of the ticket. Operations
//     cannot join a share that another node wants.
//   - If another operation is already trying to take a share, an operation follows it instead of
//     requesting the share too. A follower leads no share, so followers form no cycle.
//   - An operation with a ticket in the store's queue does not follow. Its leader might be newer,
//     and wait for an operation that waits for that ticket.
//
// # Losing leases
//
// A node renews its session about once a second. If a session was silent for 3 s, by the store's
// clock, an operation takes from it only the leases that block the operation. Any node ends a
// session that was silent for 15 s; nodes sweep every 5 s. The store keeps with each session how
// long others must wait before they pass over it. So nodes with rarer heartbeats can share a store
// with these.
//
// A node learns with its next heartbeat which leases were taken from it. It also counts the 15 s
// itself, from when it sent the last heartbeat that was answered. In both cases the contexts of the
// holds end with ErrLost, and the node logs it and reports it to the Observer. If the session is
// over, the next operation opens another. So a node that was stopped, or cut off, may go on for a
// while with locks that others have. That is harmless, because locks do not make commits correct.
//
// A node that starts ends the session of the process that listened on its address before it, if it
// is certain that this was the one (Announce). A node that stops first withdraws, and keeps its
// locks until its operations end.
package locks
