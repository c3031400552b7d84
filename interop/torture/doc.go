// Package torture kills the real server under load, and checks the state that the crash leaves.
//
// Each round of TestKill starts `moorage serve` on the data of the previous round. 16 writers work
// over HTTP, and the process is killed with SIGKILL at a moment that the seed determines. `moorage
// doctor --deep` then checks the store. The round starts the server again, and compares its tables
// and views with the answers that the writers got:
//
//   - every acknowledged commit is in its table's history exactly once;
//   - no refused commit is in a history;
//   - a commit whose answer did not arrive is in its table's history once or not at all;
//   - acknowledged creates, drops and renames have happened;
//   - views, which all writers create, replace and drop, contain every acknowledged version once. A
//     view is missing if and only if it was dropped (package testkit/servers);
//   - `moorage doctor --deep` finds nothing wrong, right after the kill and at the end.
//
// TestTransfers does the same while clients move amounts between tables with transactions (package
// testkit/transfers). Half of the transactions have an Idempotency-Key and are sent up to three
// times, in parallel or one after the other. Some clients do not wait for their answers. The test
// kills the server within milliseconds after a transaction has begun.
//
// After the next start the clients repeat, with the same keys, the requests that got no answer.
// Then every transfer must be in all its tables or in none, in agreement with its answer. Transfers
// that did not happen must leave no record and no file.
//
// TestAppends does the same while clients append rows to the same tables with iceberg-go, which
// never retries. The server rebases late appends onto the current head, and must not refuse an
// append. One table consents to that for all writers; the writers of the other consent with a
// header. After each crash the test reads the rows from the files. Each acknowledged row must be
// there once, and the parent of each snapshot must be the previous snapshot.
//
// The tests are `go test ./interop/torture`, with -kills for the number of rounds (5) and -seed to
// repeat a run. MOORAGE_BINARY names a binary to test instead of a new build.
package torture
