// Package servers runs the real server in separate processes, and sends it requests over HTTP. It
// is for tests that kill, pause and stop servers.
//
// Build builds the binary, Start starts a process, and NewClient returns a client. The client
// distinguishes acknowledged, refused and unknown outcomes. The package does not know what the
// tests conclude from the outcomes.
//
// A ViewEvent records a client's knowledge about one call that creates, replaces or drops a view.
// JudgeViews compares all events, and checks that
//
//   - every acknowledged version occurs once in its view, and no refused version occurs in a view;
//   - all lists of a view's versions that clients saw are prefixes of one list;
//   - a dropped view is gone, and only dropped views are gone.
package servers
