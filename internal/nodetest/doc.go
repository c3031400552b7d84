// Package nodetest runs the real server in separate processes and sends it requests over HTTP. It
// is for tests that kill, pause and stop the server.
//
// Build builds the binary, Start starts a process, NewClient makes a client. The client
// distinguishes acknowledged, refused and unknown outcomes. It must not know what the tests
// conclude from them.
package nodetest
