// Package cluster runs several real servers over one PostgreSQL database and disturbs them.
//
// TestHistory lets 48 clients, spread over three servers, change and read the same few tables.
// Meanwhile a script, which the seed determines, disturbs the servers. It kills servers and the
// database with SIGKILL. It pauses servers for longer than a lease lives, and cuts and holds up
// their connections to the database. Afterwards these must hold:
//
//   - a single client that made all calls in some order could have got the same answers (package
//     testkit/histories);
//   - every acknowledged commit is in its table's history once, and no refused one is;
//   - every table has exactly one name;
//   - `moorage doctor --deep` finds nothing.
//
// TestTransfers lets clients move amounts between tables by transactions (package
// testkit/transfers), under faults of the same sorts. Half of the transactions have an
// Idempotency-Key and are sent to several servers. Every transfer must be in all its tables or in
// none. A client that saw a transfer in one table must see it in all others. Whatever dead
// coordinators leave must be in the log of transactions.
//
// TestViews lets clients make, replace and drop the same few views through different servers, under
// faults of the same sorts. Every acknowledged version must be in its view's log once, and the
// order of the log must agree with all answers.
//
// TestTakeover kills a server while clients work through it, and measures how long others wait for
// the locks that it held. TestTakeoverByAddress starts it again at its address. TestPausedServer
// pauses a server until others have taken its locks, and lets it go on.
//
// TestFailover does what TestHistory does while the database is killed and its synchronous standby
// takes over.
//
// TestRevokes revokes a privilege through one server. As soon as that is acknowledged, it sends
// requests that need the privilege through all servers. Meanwhile the table changes and servers are
// killed. A request that began after the acknowledgement must be refused.
//
// TestMaintenanceTakeover kills the server that plans maintenance, and the one that deletes files.
// The other one goes on. TestWorkIsHandedOutOnce asks two servers for work at the same moment.
//
// TestStoreAway, TestCommitUnknown and TestStopWithoutStore watch one server whose database is
// away. They check what it answers, and that it ends when it gets the signal to stop.
//
// The tests are `go test ./interop/cluster`. -duration is the length of the history (60 s),
// -transfers that of the transfers (20 s), -views that of the views (15 s). -revokes is how often a
// privilege is revoked (100). -seed repeats the choices. MOORAGE_BINARY names a binary to use
// instead of building one.
package cluster
