// Package loopback helps tests with connections on this machine: a proxy that can cut and stall
// connections, ports for servers that are killed and restarted, and certificates for nodes that
// call each other.
//
// It must not know the meaning of the bytes.
package loopback
