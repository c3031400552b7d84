// Package nodetest runs the real server in processes of its own, for tests that kill, pause and stop it, and talks to it
// over HTTP.
//
// Build makes the binary, Start starts a process, NewClient makes a client that tells apart what was
// acknowledged, what was refused, and what may or may not have happened. It must not know what the tests make of that.
package nodetest
