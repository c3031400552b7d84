package rest

import (
	"net/http"

	"moorage"
	"moorage/catalog"
	"moorage/cluster"
	"moorage/internal/web"
)

// forwarded lets another node answer a commit to the table or view in the path parameter param. If
// this node must answer but the other node may already have made the commit, forwarded returns the
// key of the request. With this key, the commit is made only once. The key is nil if the other node
// did nothing.
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

// requestKey returns the key of r: the client's key, called id, or the internal key that another
// node added when it forwarded r. It returns nil if r has no key.
func requestKey(r *http.Request, id string, body []byte) *catalog.Key {
	if id != "" {
		return bindKey(r, id, body)
	}
	if arrival, found := moorage.ArrivalOf(r.Context()); found && arrival.Key != "" {
		return internalKey(r, arrival.Key, body)
	}
	return nil
}

// internalKey returns the key of r if another node drew it when it forwarded r.
func internalKey(r *http.Request, id string, body []byte) *catalog.Key {
	key := bindKey(r, id, body)
	key.Internal = true
	return key
}
