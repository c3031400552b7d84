// Package torture kills the real server under load and looks at what is left.
//
// A round starts `moorage serve` on the data of the round before, lets 16 writers
// work over HTTP, kills the process with SIGKILL at a moment that the seed decides, has
// `moorage check` look at what the crash left, starts the server again and compares what it
// serves with what the writers were answered:
//
//   - every acknowledged commit is in its table's history exactly once;
//   - every commit that was refused is in no history;
//   - a commit whose answer never came is there once or not at all;
//   - creates, drops and renames that were acknowledged have happened;
//   - `moorage check` finds nothing wrong, right after the kill and at the end.
//
// The tests are `go test ./interop/torture`, with -kills for the number of rounds (5) and
// -seed to repeat one. MOORAGE_BINARY names a binary to use instead of building one.
package torture
