package web

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// IsDirect reports whether r comes from a program on this machine, and no header shows that a proxy
// passed it on. It cannot detect a proxy on this machine that adds no header.
func IsDirect(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && peer.Addr().Unmap().IsLoopback() && len(ProxyHeaders(r.Header)) == 0
}

// ProxyHeaders returns the headers that proxies add: Forwarded, Via, X-Real-IP and X-Forwarded-*.
// It takes them out of the header from, without copying their values.
func ProxyHeaders(from http.Header) http.Header {
	found := http.Header{}
	for name, values := range from {
		if slices.Contains([]string{"Forwarded", "Via", "X-Real-Ip"}, name) || strings.HasPrefix(name, "X-Forwarded-") {
			found[name] = values
		}
	}
	return found
}

func hostWithoutPort(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}
