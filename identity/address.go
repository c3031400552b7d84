package identity

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// addressOf returns the IP address that sent r. Behind trusted proxies, that is the last address in
// X-Forwarded-For that is not a trusted proxy.
func (a *Authenticator) addressOf(r *http.Request) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	address := peer.Addr().Unmap()
	if len(a.config.TrustedProxies) == 0 {
		return address.String()
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !a.isProxy(address) {
			break
		}
		before, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			break
		}
		address = before.Unmap()
	}
	return address.String()
}

func (a *Authenticator) isProxy(address netip.Addr) bool {
	return slices.ContainsFunc(a.config.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(address) })
}
