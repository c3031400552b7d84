// Package loopback helps tests with connections on this machine: a proxy that can cut and stall
// connections, ports for servers that are killed and restarted, and certificates for nodes that
// call each other.
//
// The package must not know the meaning of the bytes on connections.
package loopback
