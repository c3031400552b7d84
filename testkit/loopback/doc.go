// Package loopback supports tests that use connections on this machine: a proxy that can cut and
// stall connections, ports for servers that are killed and restarted, and certificates for nodes
// that call each other.
//
// The package does not know the meaning of the bytes on connections.
package loopback
