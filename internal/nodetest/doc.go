// Package nodetest runs the real server in processes of its own and talks to it over HTTP. It is
// for tests that kill, pause and stop the server.
//
// Build makes the binary, Start starts a process, NewClient makes a client. The client
// distinguishes what was acknowledged, what was refused, and what may or may not have happened. It
// must not know what the tests conclude from that.
package nodetest
