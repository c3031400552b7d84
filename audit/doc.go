// Package audit writes down who asked for what, and how that was decided: one JSON object a line.
// It also writes that tokens were issued, that keys were made and withdrawn, and how often
// credentials were refused.
//
// # What it promises
//
//   - A line never holds a secret: no field takes one, and callers pass names and ids only.
//   - A line is one line. Text of clients is quoted as JSON, and cut where it is long.
//   - Nobody waits for the disk: Note puts a line into a buffer, which a worker writes.
//   - The audit log never fills a disk: files rotate at a size, and the log stops writing while the
//     disk is nearly full (Config.Free). Trouble then says so.
//   - Nothing is lost in silence. What the buffer had no room for is counted, and a line in the log
//     says how much that was. A strict log loses nothing: Room refuses requests instead.
//
// # What it must not know
//
// It knows no store, no HTTP and no tokens. Package access has the words for privileges.
package audit
