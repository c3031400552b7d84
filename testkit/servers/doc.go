// Package servers runs the real server in separate processes and sends it requests over HTTP. It
// is for tests that kill, pause and stop the server.
//
// Build builds the binary, Start starts a process, and NewClient returns a client. The client
// distinguishes acknowledged, refused and unknown outcomes. The package must not know what the
// tests conclude from the outcomes.
//
// A ViewEvent is what a client knows about one call that creates, replaces or drops a view.
// JudgeViews compares all events, and checks that
//
//   - every acknowledged version is in its view once, and no refused version is in a view;
//   - all lists of a view's versions that clients saw are prefixes of one list;
//   - a view that was dropped is gone, and a view that is gone was dropped.
package servers
