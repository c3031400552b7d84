// Package torture kills the real server under load and looks at what is left.
//
// A round of TestKill starts `moorage serve` on the data of the round before. It lets 16 writers
// work over HTTP and kills the process with SIGKILL at a moment that the seed decides. `moorage
// doctor --deep` then looks at what the crash left. The round starts the server again and compares
// what it serves with what the writers were answered:
//
//   - every acknowledged commit is in its table's history exactly once;
//   - every commit that was refused is in no history;
//   - a commit whose answer never came is there once or not at all;
//   - creates, drops and renames that were acknowledged have happened;
//   - views, which all writers create, replace and drop, hold every acknowledged version once, and
//     one is gone if and only if it was dropped (package testkit/servers);
//   - `moorage doctor --deep` finds nothing wrong, right after the kill and at the end.
//
// TestTransfers does the same while clients move amounts between tables by transactions (package
// testkit/transfers). Half of the transactions have an Idempotency-Key and are sent up to three
// times, at once or one after the other. Some clients do not wait for their answers. The server is
// killed within milliseconds of a transaction's begin.
//
// After the next start the clients send requests without an answer again, with their keys. Then
// every transfer must be in all its tables or in none, as it was answered. Transfers that did not
// happen must leave no record and no file.
//
// TestAppends does it while clients of iceberg-go, which never try again, append rows to the same
// tables, and the server puts late appends on top of the head. None may be refused. After each
// life the rows are read from the files: each acknowledged one is there once, and each snapshot
// stands on the one before it.
//
// The tests are `go test ./interop/torture`, with -kills for the number of rounds (5) and -seed to
// repeat one. MOORAGE_BINARY names a binary to use instead of building one.
package torture
