// Package cluster sends commits that race between nodes to one of them, the owner of their table or
// view. It is off unless nodes have peer listeners. It changes no outcome: the store's conditional
// write decides every commit, wherever it is carried out.
//
// # Who forwards
//
// Only a node that has lost a compare-and-set race on a pointer in the last 30 s (Heat) forwards
// commits of that pointer. Everywhere else a hop would be pure cost. Loads are never forwarded.
//
// # Who owns
//
// The members are the sessions of the nodes' locks that have a peer address. The store raises a
// number whenever one joins or leaves. A node reads both once a second, and ignores a view that is
// older than the one it has (Membership). The owner of a pointer is the member with the greatest
// hash of its address and the pointer's id (View.Owner). So two nodes with one view agree. When a
// member joins or leaves, only its own pointers move.
//
// Views may differ for a moment. Then two nodes carry out commits of one pointer, which race as
// they do without owners. A forwarded request is always carried out where it arrives. So there is
// one hop at most, and no loop.
//
// # What travels
//
// The request as it came: method, path, query, headers and body. The answer comes back as it is.
// Three headers travel in addition, and X-Request-Id. The public port drops every header that
// begins with Moorage- (DropHeaders); nobody but a node can send them. Peers are authenticated by
// certificates of one authority, in both directions (NewTLS).
//
//	Moorage-Forwarded  the peer address of the node that forwards
//	Moorage-Caller     the whole caller; the owner decides what that caller may do
//	Moorage-Key        the internal idempotency key, for a commit without a key of the client's
//
// # Failure
//
// The node that forwards carries the commit out itself if the owner does not answer, answers that
// it did nothing (421, 429, 503), or does not know the outcome (other 5xx). An answer that was lost
// may have been a success. So every forwarded commit has a key, the client's or an internal one.
// Both nodes use that key, and the commit happens once. An owner that did not answer, or did not
// know, is passed over for 6 s.
//
// It must not know the catalog, SQL, or how requests are read.
package cluster
