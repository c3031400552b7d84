// Package cluster sends commits that compete between nodes to one of them, the owner of their table
// or view. It is off unless nodes have peer listeners. It does not change the result of a commit:
// the store's conditional write decides, wherever the commit runs.
//
// # Which node forwards
//
// A node forwards commits of a pointer only if it has lost a compare-and-set race on that pointer
// in the last 30 s (Heat). In all other cases forwarding would only cost time. Loads are never
// forwarded.
//
// # Which node owns
//
// The members are the lock sessions of nodes with a peer address. A view has the members at one
// moment, and a number. The store increments the number whenever a member joins or leaves. A node
// reads the view once a second, and ignores a view that is older than its present one (Membership).
// The owner of a pointer is the member with the greatest hash of its address and the pointer's id
// (View.Owner). So two nodes with the same view agree on every owner. When a member joins, only the
// pointers that it takes over change their owner. When a member leaves, only its own pointers
// change their owner.
//
// The views of two nodes may differ for a moment. In that case, both execute commits of one
// pointer, which compete as they would without owners. A forwarded request is always executed by
// the node that receives it. So there is at most one hop, and no loop.
//
// # What is transferred
//
// The request is sent unchanged: method, path, query, headers and body. The answer is returned
// unchanged. The forwarding node adds X-Request-Id and the three headers below. The public port
// drops every header that begins with Moorage- (DropHeaders), so only a node can send them. Peers
// authenticate each other with certificates of one authority (NewTLS).
//
//	Moorage-Forwarded  the peer address of the node that forwards
//	Moorage-Caller     the whole caller; the owner authorizes the request
//	Moorage-Key        the internal idempotency key, for a commit without a client's key
//
// # Failure
//
// The forwarding node executes the commit itself in three cases: the owner does not answer, it
// answers that it did nothing (421, 429, 503), or it does not know the outcome (other 5xx). If an
// answer was lost, the commit may have succeeded. So every forwarded commit has a key, the client's
// or an internal one. Both nodes use that key, so the commit happens once. If an owner did not
// answer or did not know the outcome, the node does not forward to it for 6 s.
//
// # What nodes remember
//
// Some answers combine information that each node remembers. The node that receives such a request
// sends it to all other members (AskAll), with the caller, and joins the answers. A node that does
// not answer within a few seconds is named in the joined answer.
//
// The package does not know about the catalog, SQL, or how requests are read.
package cluster
