// Package locks coordinates the work of concurrent operations. A lock has a path in a tree and one
// of four modes. A Manager grants all the locks of one operation in one call.
//
// # What it promises
//
// Locks put operations in an order and avoid wasted work. They do not make a commit correct; the
// store's conditional write does that. A lock may be lost at any moment. With the manager GrantAll,
// which excludes no operation, every result must still be correct, though more operations may lose
// a race. Hence readers take no locks, and a commit of one table takes none.
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
// R allows its holder to read the subtree of a path, and W to write it. An operation also takes RA
// or WA on the ancestors of each path that it reads or writes. So an operation on a whole subtree
// conflicts with operations inside it:
//
//	held \ wanted   RA    R     WA    W
//	RA              yes   yes   yes   no
//	R               yes   yes   no    no
//	WA              yes   no    yes   no
//	W               no    no    no    no
//
// So W(p) excludes every R and W on p, its ancestors and its descendants. R(p) excludes every W on
// the same paths. There is no other exclusion.
//
// A request may need several modes on one path. The manager takes the weakest mode that includes
// all of them: R includes RA, WA includes RA, W includes every mode. An operation that reads a
// subtree and writes a part of it needs both R and WA on one path. Neither includes the other: WA
// alone would let another operation write elsewhere in the subtree. So W is taken. A fifth mode
// would admit readers of the unwritten part; no operation of the catalog needs it.
//
// # The order, and why there is no deadlock
//
// One Acquire takes every lock that an operation needs. It takes the locks in the byte order of
// their paths, in which an ancestor comes before its descendants (plan.go). It waits for one lock
// at a time.
//
// Among all waiting operations, consider the one that waits for the greatest path. The holder of
// that path is not waiting, because it could only be waiting for a greater path. So some operation
// can always continue. The argument does not depend on the modes. It does depend on three rules: no
// operation that holds locks calls Acquire again, upgrades a lock, or takes a lock twice.
//
// A manager is fair. An operation queues behind earlier waiters for a lock if its own lock excludes
// their locks. So a stream of readers does not keep a writer out.
//
// # Managers
//
//	Local        one process
//	Distributed  a node of a cluster: a Local in front of a store of leases, the port Leases
//	Coalesced    a Distributed whose operations share leases
//	GrantAll     tests
//
// # Nodes of a cluster
//
// An operation first takes its locks from the node's Local, in the order above. Then it takes
// leases on all these locks from the store, in one call, all or none. If a lease is blocked, the
// operation holds no lease while it waits. It polls the store every 5 to 200 ms, and has a ticket
// in the store's queue. Three facts exclude a deadlock:
//
//   - An operation that waits in the Local waits for operations of the same node. By the argument
//     above, one of these operations can continue, or is waiting for leases.
//   - An operation that waits for leases holds none. It waits for operations that hold all their
//     locks, and for tickets older than its own.
//   - All tickets are ordered by age. The oldest ticket waits only for holders.
//
// In a Coalesced, a lease in a mode that is compatible with itself (RA, WA, R) is a share: all
// operations of the node use it together. The three facts still hold because of three more rules:
//
//   - While an operation waits, it uses no share. The node gives up an unused share when it learns
//     that another node's ticket wants it, at most 0.2 s later. Operations cannot join a share that
//     another node wants.
//   - If another operation is already trying to take a share, an operation follows it instead of
//     requesting the share too. A follower leads no share, so followers form no cycle.
//   - An operation with a ticket in the store's queue does not follow. The leader of the share
//     might be newer, and wait for an operation that waits for that ticket.
//
// # Losing leases
//
// A node renews its session about once a second. If a session was silent for 3 s by the store's
// clock, an operation may take from it only the leases that block the operation. Any node ends a
// session that was silent for 15 s; nodes sweep every 5 s. The store records for each session how
// long it must be silent before others may take its leases. So nodes that send heartbeats less
// often can use the same store.
//
// With its next heartbeat, a node learns which leases were taken from it. It also measures the 15 s
// itself, from the time when it sent the last heartbeat that the store answered. In both cases, the
// contexts of the holds end with ErrLost, and the node logs the loss and reports it to the
// Observer. If the session is over, the next operation opens a new one. So a node that was paused,
// or cut off from the store, may continue for a while with locks that other nodes now hold. That is
// harmless, because locks do not make commits correct.
//
// A node that starts ends the session of the process that previously listened on its address, if it
// can be certain about that process; see Announce. A node that stops first calls Withdraw, and
// keeps its locks until its operations end.
package locks
