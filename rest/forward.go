package rest

import (
	"net/http"

	"moorage"
	"moorage/catalog"
	"moorage/cluster"
	"moorage/internal/web"
)

// forwarded is mutate for a commit to the table or view that the path names in the parameter param.
// Another node may answer it. If this one does, key is what binds it to what the other may have
// done: nil if that is nothing.
func (s *server) forwarded(w http.ResponseWriter, r *http.Request, param string, body []byte, key *catalog.Key) (
	*catalog.Key, bool) {
	if s.config.Router == nil || param == "" {
		return key, false
	}
	ident, err := pathIdentifier(r, param)
	if err != nil {
		return key, false
	}
	internal, answered := s.config.Router.Forward(w, r, cluster.Commit{
		Ident: ident, Caller: web.CallerOf(r), Body: body, HasKey: key != nil,
	})
	if internal != "" {
		key = internalKey(r, internal, body)
	}
	return key, answered
}

// requestKey returns the key of r: that of the client, called id, or the internal one with which
// another node forwarded it; nil if it has none.
func requestKey(r *http.Request, id string, body []byte) *catalog.Key {
	if id != "" {
		return bindKey(r, id, body)
	}
	if arrival, found := moorage.ArrivalOf(r.Context()); found && arrival.Key != "" {
		return internalKey(r, arrival.Key, body)
	}
	return nil
}

// internalKey returns a key that a node drew.
func internalKey(r *http.Request, id string, body []byte) *catalog.Key {
	key := bindKey(r, id, body)
	key.Internal = true
	return key
}
