// Package cluster runs several real servers over one PostgreSQL database and disturbs them.
//
// TestHistory lets 48 clients, spread over three servers, change and read the same few tables.
// Meanwhile a script that the seed decides disturbs them. It kills servers and the database with
// SIGKILL. It pauses servers for longer than a lease lives, and cuts and holds up their connections
// to the database. Afterwards these must hold:
//
//   - there is an order of all calls in which one client alone could have been answered so (package
//     testkit/histories);
//   - every acknowledged commit is in its table's history once, and no refused one is;
//   - every table has exactly one name;
//   - `moorage doctor --deep` finds nothing.
//
// TestTransfers lets clients move amounts between tables by transactions (package
// testkit/transfers), under faults of the same sorts. Half of the transactions have an
// Idempotency-Key and are sent to several servers. Every transfer must be in all its tables or in
// none. A client that saw one in one table must see it in all others. What dead coordinators leave
// must be in the log of transactions.
//
// TestViews lets clients make, replace and drop the same few views through different servers, under
// faults of the same sorts. Every acknowledged version must be in its view's log once, in an order
// that all answers agree with.
//
// TestTakeover kills a server while clients work through it, and measures how long others wait for
// the locks that it held. TestTakeoverByAddress starts it again at its address. TestPausedServer
// pauses a server until others have taken its locks, and lets it go on.
//
// TestFailover does what TestHistory does while the database is killed and its synchronous standby
// takes over.
//
// TestRevokes revokes a privilege through one server and asks for it through all as soon as that is
// acknowledged, while the table changes and servers are killed. No request may be let in that began
// after the acknowledgement.
//
// TestMaintenanceTakeover kills the server that plans maintenance, and the one that deletes files.
// The other one goes on. TestWorkIsHandedOutOnce asks two servers for work at the same moment.
//
// TestStoreAway, TestCommitUnknown and TestStopWithoutStore look at one server whose database is
// away. They look at what it answers, and that it ends when it gets the signal to stop.
//
// The tests are `go test ./interop/cluster`. -duration is the length of the history (60 s),
// -transfers that of the transfers (20 s), -views that of the views (15 s). -revokes is how often a
// privilege is revoked (100). -seed repeats the choices. MOORAGE_BINARY names a binary to use
// instead of building one.
package cluster
