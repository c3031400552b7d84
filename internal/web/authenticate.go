package web

import (
	"net/http"

	"moorage"
)

// authenticated returns h with authentication before it. A request that another node forwarded is
// already authenticated.
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

// CallerOf returns the sender of r. For a forwarded request, the sender comes from the other node.
func CallerOf(r *http.Request) moorage.Caller {
	if arrival, forwarded := moorage.ArrivalOf(r.Context()); forwarded {
		return arrival.Caller
	}
	if caller, found := moorage.CallerOf(r.Context()); found {
		return caller
	}
	caller := moorage.Anonymous()
	caller.Client = moorage.Cut(r.UserAgent(), moorage.ClientBytesMax)
	return caller
}
