// Package cluster runs several real servers over one PostgreSQL database and disturbs them.
//
// TestHistory lets 48 clients, spread over three servers, change and read the same few tables, while a
// script that the seed decides kills servers and the database with SIGKILL, pauses servers for longer than
// a lease lives, and cuts and holds up their connections to the database. Afterwards there must be an order of all calls in
// which one client alone could have been answered so (package internal/historytest), every acknowledged commit must be in
// its table's history once and no refused one, no table may have two names or none, and `moorage check` must find nothing.
//
// TestTransfers lets clients move amounts between tables by transactions (package internal/transfertest), half of them with an
// Idempotency-Key and sent to several servers, under faults of the same sorts. Every transfer must be in all its tables or in none, whoever saw
// one in one table must see it in all others, and what dead coordinators leave must be in the log of transactions.
//
// TestViews lets clients make, replace and drop the same few views through different servers, under faults of the same sorts. Every
// acknowledged version must be in its view's log once, in an order that all answers agree with.
//
// TestTakeover kills a server while clients work through it and measures how long others wait for the locks that it held;
// TestTakeoverByAddress starts it again at its address. TestPausedServer pauses a server until others have taken its locks, and lets
// it go on.
//
// TestFailover does what TestHistory does while the database is killed and its synchronous standby takes over.
//
// TestStoreAway, TestCommitUnknown and TestStopWithoutStore look at one server whose database is away: what it answers, and that
// it ends when it is told to.
//
// The tests are `go test ./interop/cluster`, with -duration for the length of the history (60 s), -transfers for
// that of the transfers (20 s), -views for that of the views (15 s), and -seed to repeat the choices. MOORAGE_BINARY names a binary to use instead of building one.
package cluster
