// Package cluster runs several real servers over one PostgreSQL database and disturbs them.
//
// TestHistory lets 48 clients, spread over three servers, change and read the same few tables.
// Meanwhile a script, which the seed determines, disturbs the servers. It kills servers and the
// database with SIGKILL. It pauses servers for longer than the lifetime of a lease. It cuts and
// delays their connections to the database. Afterwards these must hold:
//
//   - a single client that made all calls in some order could have got the same answers (package
//     testkit/histories);
//   - every acknowledged commit is in its table's history once, and no refused commit is in a
//     history;
//   - every table has exactly one name;
//   - `moorage doctor --deep` finds nothing.
//
// TestTransfers lets clients move amounts between tables with transactions (package
// testkit/transfers), under the same kinds of faults. Half of the transactions have an
// Idempotency-Key and are sent to several servers. Every transfer must be in all its tables or in
// none. A client that saw a transfer in one table must see it in all others. If a coordinator died
// and left unfinished work, the transaction log must contain it.
//
// TestViews lets clients create, replace and drop the same few views through different servers,
// under the same kinds of faults. Every acknowledged version must be in its view's log once, and
// the order of the log must agree with all answers.
//
// TestFeed lets writers change tables while servers are killed, and reads the feed of changes with
// `moorage changes --follow`, which is killed too. The program must see every acknowledged change
// once and in order. If changes that it has not read are deleted, it must be told where to
// continue. On every server, a request that waits for a change must be answered soon after the
// change.
//
// TestTakeover kills a server while clients work through it, and measures how long clients of other
// servers wait for the locks that it held. TestTakeoverByAddress also starts the killed server
// again at its address. TestPausedServer pauses a server until other servers have taken its locks,
// and then resumes it.
//
// TestFailover is like TestHistory, but kills the database, whose synchronous standby then takes
// over.
//
// TestRevokes revokes a privilege through one server. As soon as the server acknowledges that, the
// test sends requests that need the privilege through all servers. Meanwhile other clients change
// the table, and the test kills servers. A request that began after the acknowledgement must be
// refused.
//
// TestMaintenanceTakeover kills the server that plans maintenance, and later the server that
// deletes files. Each time the other server must continue the work. TestWorkIsHandedOutOnce asks
// two servers for work at the same moment.
//
// TestStoreAway, TestCommitUnknown and TestStopWithoutStore check one server whose database is not
// reachable. They check its answers, and that it ends when it gets the signal to stop.
//
// The tests are `go test ./interop/cluster`. -duration sets how long TestHistory runs its clients
// (30 s). -transfers is the same for TestTransfers (12 s), -views for TestViews (10 s), and -feed
// for TestFeed (5 s). -revokes is the number of revocations in TestRevokes (100). -seed repeats the
// random choices of a run. MOORAGE_BINARY names a binary to test instead of a new build.
package cluster
