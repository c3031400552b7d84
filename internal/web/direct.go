package web

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
)

// directRoute is a route that nearly all requests take. The server compares its path itself: the
// router walks its tree, and makes a map of the names for each request.
type directRoute struct {
	method string
	parts  []string // between the slashes; a parameter's is in braces
	handle http.HandlerFunc
}

// HandleOften is Handle for a route that nearly all requests take. It has the same effect.
func (s *Server) HandleOften(operation, method, path string, h Handler) {
	handle := s.add(operation, method, path, s.authenticated(h))
	s.direct = append(s.direct, directRoute{method, partsOf(path), handle})
}

func partsOf(path string) []string { return strings.Split(strings.TrimPrefix(path, "/"), "/") }

func isParameter(part string) bool { return strings.HasPrefix(part, "{") }

// learn notes the words of a route. The router prefers a word to a parameter, so a path with one of
// them for a parameter is left to it.
func (s *Server) learn(path string) {
	for _, part := range partsOf(path) {
		if !isParameter(part) {
			s.words[part] = true
		}
	}
}

// findDirect returns the handler of the direct route that the router would lead path to, and adds
// its parameters to params; nil, and params as it was, if the router has to look.
func (s *Server) findDirect(method, path string, params *chi.RouteParams) http.HandlerFunc {
	for i := range s.direct {
		route := &s.direct[i]
		if route.method == method && s.leads(route.parts, path, params) {
			return route.handle
		}
		params.Keys, params.Values = params.Keys[:0], params.Values[:0]
	}
	return nil
}

// leads reports whether path is parts with something for each parameter, which it adds to params.
func (s *Server) leads(parts []string, path string, params *chi.RouteParams) bool {
	for _, want := range parts {
		if path == "" || path[0] != '/' {
			return false
		}
		part := path[1:]
		if end := strings.IndexByte(part, '/'); end >= 0 {
			part = part[:end]
		}
		path = path[1+len(part):]
		switch {
		case !isParameter(want):
			if part != want {
				return false
			}
		case part == "" || s.words[part]:
			return false
		default:
			params.Add(want[1:len(want)-1], part)
		}
	}
	return path == ""
}
