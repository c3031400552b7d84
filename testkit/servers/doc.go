// Package servers runs the real server in separate processes and sends it requests over HTTP. It
// is for tests that kill, pause and stop the server.
//
// Build builds the binary, Start starts a process, NewClient makes a client. The client
// distinguishes acknowledged, refused and unknown outcomes. It must not know what the tests
// conclude from them.
//
// A ViewEvent is what a client knows about one call that creates, replaces or drops a view.
// JudgeViews compares all of them:
//
//   - every acknowledged version is in its view, once, and every refused version in none;
//   - all seen lists of a view's versions belong to one list, which only grows;
//   - a view that was dropped is gone, and a view that is gone was dropped.
package servers
