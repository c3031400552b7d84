// Package audit records each caller's requests and the decisions about them, one JSON object a
// line. It also records issued tokens, created and withdrawn keys, and the number of refused
// credentials.
//
// # What it promises
//
//   - A line never holds a secret: no field takes one, and callers pass names and ids only.
//   - A line is one line. Text of clients is quoted as JSON, and truncated if it is long.
//   - No caller waits for the disk: Note puts a line into a buffer, and a worker writes the buffer.
//   - The audit log never fills a disk. Files rotate at a maximum size. While the disk is nearly
//     full (Config.Free), the log stops writing, and Trouble reports that.
//   - No loss is silent. If the buffer has no room, lines are dropped and counted, and a line in
//     the log has their number. A strict log drops no lines: instead, Room refuses requests.
//
// # What it must not know
//
// It knows no store, no HTTP and no tokens. The words for privileges come from package access.
package audit
