// Package torture kills the real server under load and looks at what is left.
//
// A round of TestKill starts `moorage serve` on the data of the round before, lets 16 writers
// work over HTTP, kills the process with SIGKILL at a moment that the seed decides, has
// `moorage check` look at what the crash left, starts the server again and compares what it
// serves with what the writers were answered:
//
//   - every acknowledged commit is in its table's history exactly once;
//   - every commit that was refused is in no history;
//   - a commit whose answer never came is there once or not at all;
//   - creates, drops and renames that were acknowledged have happened;
//   - views, which all writers create, replace and drop, hold every acknowledged version once, and one is gone if and only if it was
//     dropped (package internal/viewtest);
//   - `moorage check` finds nothing wrong, right after the kill and at the end.
//
// TestTransfers does the same while clients move amounts between tables by transactions (package internal/transfertest),
// half of them with an Idempotency-Key and sent up to three times, at once or one after the other; some clients do not wait for their
// answers. The server is killed within milliseconds of a transaction's begin. After the next start, requests whose answers are missing are sent again with
// their keys; then every transfer must be in all its tables or in none, as it was answered, and of those that did not happen no
// record and no file may be left.
//
// The tests are `go test ./interop/torture`, with -kills for the number of rounds (5) and
// -seed to repeat one. MOORAGE_BINARY names a binary to use instead of building one.
package torture
