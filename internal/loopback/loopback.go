// Package loopback tells addresses of this machine from others. It asks no name server.
package loopback

import (
	"net"
	"net/netip"
	"strings"
)

// Is reports whether host, with or without a port, is localhost or a loopback address. IPv6
// addresses can have brackets. No other name counts, because the address of a name may change.
func Is(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if addr, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return addr.Unmap().IsLoopback()
	}
	return strings.EqualFold(strings.TrimSuffix(host, "."), "localhost")
}
