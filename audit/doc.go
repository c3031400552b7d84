// Package audit records each caller's requests and the decisions about them, one JSON object a
// line. It also records issued tokens, created and withdrawn keys, and the number of refused
// credentials.
//
// # What it promises
//
//   - A line never holds a secret: no field takes one, and callers pass names and ids only.
//   - A line is one line. Text of clients is quoted as JSON, and truncated if it is long.
//   - No caller waits for the disk: Note puts a line into a buffer, which a worker writes.
//   - The audit log never fills a disk: files rotate at a size, and the log stops writing while the
//     disk is nearly full (Config.Free). Trouble then reports it.
//   - No loss is silent. Lines that the buffer had no room for are counted, and a line in the log
//     has their number. A strict log loses no line: Room refuses requests instead.
//
// # What it must not know
//
// It knows no store, no HTTP and no tokens. Package access has the words for privileges.
package audit
