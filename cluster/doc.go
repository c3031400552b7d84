// Package cluster sends commits that race between nodes to one of them, the owner of their table or
// view. It is off unless nodes have peer listeners. It changes no outcome: the store's conditional
// write decides every commit, wherever it runs.
//
// # Which node forwards
//
// A node forwards commits of a pointer only if it has lost a compare-and-set race on that pointer
// in the last 30 s (Heat). In all other cases a hop would be pure cost. Loads are never forwarded.
//
// # Which node owns
//
// The members are the sessions of the nodes' locks that have a peer address. The store raises a
// number whenever one joins or leaves. A node reads both once a second, and ignores a view that is
// older than its present one (Membership). The owner of a pointer is the member with the greatest
// hash of its address and the pointer's id (View.Owner). So two nodes with one view agree. When a
// member joins or leaves, only its own pointers move.
//
// Views may differ for a moment. Then two nodes execute commits of one pointer, which race as they
// do without owners. A forwarded request is always executed where it arrives. So there is one hop
// at most, and no loop.
//
// # What is transferred
//
// The request is sent unchanged: method, path, query, headers and body. The answer is returned
// unchanged. X-Request-Id and three more headers are added. The public port drops every header that
// begins with Moorage- (DropHeaders), so only a node can send them. Peers are authenticated by
// certificates of one authority, in both directions (NewTLS).
//
//	Moorage-Forwarded  the peer address of the node that forwards
//	Moorage-Caller     the whole caller; the owner authorizes the request
//	Moorage-Key        the internal idempotency key, for a commit without a client's key
//
// # Failure
//
// The node that forwards executes the commit itself in three cases. The owner does not answer, it
// answers that it did nothing (421, 429, 503), or it does not know the outcome (other 5xx). A lost
// answer may have been a success. So every forwarded commit has a key, the client's or an internal
// one. Both nodes use that key, and the commit happens once. An owner that did not answer, or did
// not know, is passed over for 6 s.
//
// It must not know the catalog, SQL, or how requests are read.
package cluster
