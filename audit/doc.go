// Package audit records each caller's requests and the decisions about them, one JSON object per
// line. It also records issued tokens, created and withdrawn keys, and the number of refused
// credentials.
//
// # What it promises
//
//   - A line never contains a secret: no field is for secrets, and callers pass only names and ids.
//   - A record is always a single line. Text from clients is quoted as JSON, and truncated if it is
//     long.
//   - No caller waits for the disk: Note puts a line into a buffer, and a worker writes the buffer.
//   - The audit log never fills a disk. Files rotate at a maximum size. While the disk is nearly
//     full (Config.Free), the log stops writing, and Trouble reports that.
//   - No loss is silent. If the buffer has no room, lines are dropped and counted, and a line in
//     the log reports their number. A strict log drops no lines: instead, Room refuses requests.
//
// # What it must not know
//
// It does not know about stores, HTTP or tokens. The words for privileges come from package access.
package audit
