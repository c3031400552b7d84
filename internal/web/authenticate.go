package web

import (
	"net/http"

	"moorage"
)

// authenticated returns h behind the question who sends the request. Another node that forwarded it
// has asked already.
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

// CallerOf returns who sent r. If another node forwarded it, that node says so.
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
