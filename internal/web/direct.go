package web

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
)

// directRoute is a route that nearly all requests take. The server itself matches a request's path
// with it. The router would be slower: for each request it walks its tree and creates a map of the
// parameters.
type directRoute struct {
	method string
	parts  []string // between the slashes; a parameter is in braces
	handle http.HandlerFunc
}

// HandleOften is like Handle, but faster. It is for a route that nearly all requests take.
func (s *Server) HandleOften(operation, method, path string, h Handler) {
	handle := s.add(operation, method, path, s.authenticated(h))
	s.direct = append(s.direct, directRoute{method, partsOf(path), handle})
}

func partsOf(path string) []string { return strings.Split(strings.TrimPrefix(path, "/"), "/") }

func isParameter(part string) bool { return strings.HasPrefix(part, "{") }

// learn remembers the literal segments of a route's path. The router prefers a literal segment to a
// parameter. So findDirect leaves a path to the router if the value of a parameter is one of these
// segments.
func (s *Server) learn(path string) {
	for _, part := range partsOf(path) {
		if !isParameter(part) {
			s.words[part] = true
		}
	}
}

// findDirect returns the handler of the direct route that the router would choose for path, and
// adds its parameters to params. If the router must decide, findDirect returns nil and leaves
// params unchanged.
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

// leads reports whether path matches parts, with a value for each parameter. It adds the values to
// params.
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
