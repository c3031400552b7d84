package web

import (
	"net"
	"net/http"
	"strings"

	"moorage"
)

// authenticated returns a handler that authenticates the caller and then calls h. It does not
// authenticate a request that another node forwarded, because that node has done so.
func (s *Server) authenticated(h Handler) Handler {
	if s.config.Authenticate == nil {
		return h
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		if _, forwarded := moorage.ArrivalOf(r.Context()); forwarded {
			return h(w, r)
		}
		caller, err := s.config.Authenticate(r)
		if err != nil {
			return err
		}
		return h(w, r.WithContext(moorage.WithCaller(r.Context(), caller)))
	}
}

// CallerOf returns the sender of r. If another node forwarded the request, CallerOf returns the
// sender that the node reports.
func CallerOf(r *http.Request) moorage.Caller {
	if arrival, forwarded := moorage.ArrivalOf(r.Context()); forwarded {
		return arrival.Caller
	}
	if caller, found := moorage.CallerOf(r.Context()); found {
		return caller
	}
	caller := moorage.Anonymous()
	caller.Client = moorage.ClientOf(r.Header.Get("X-Client-Version"), r.UserAgent())
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		// All anonymous callers have one name, so a change record also contains the peer's address.
		caller.Client = strings.TrimSpace(moorage.Cut(caller.Client, moorage.ClientBytesMax-len(host)-2) + " @" + host)
	}
	return caller
}
