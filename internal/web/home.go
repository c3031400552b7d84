package web

import (
	"net/http"
	"slices"
	"strings"
)

// operationHome is the operation of the page at the root, which browsers open.
const operationHome = "home"

// wrongBases returns path prefixes that other catalogs use before /v1. A client that was configured
// for such a catalog sends its requests there.
func wrongBases() []string {
	return []string{
		"/api/catalog/", "/catalog/", "/iceberg/", "/polaris/", "/api/2.1/unity-catalog/iceberg/", "/v1/v1/",
	}
}

// noRouteMessage returns the message for a request whose path has no route. If the client seems to
// use a wrong base URI, the message contains the right one.
func noRouteMessage(r *http.Request) string {
	path := r.URL.EscapedPath()
	message := "No such route: " + r.Method + " " + path
	isWrong := func(base string) bool { return strings.HasPrefix(path, base) }
	if path != "/" && !slices.ContainsFunc(wrongBases(), isWrong) {
		return message
	}
	return message + "; the base URI of this catalog is " + baseURI(r)
}

// baseURI returns the address that the client of r used for the server.
func baseURI(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// routeHome adds the page at the root.
func (s *Server) routeHome() {
	others := s.authenticated(s.noRoute)
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		s.HandleOpen(operationHome, method, "/", func(w http.ResponseWriter, r *http.Request) error {
			hasPage := s.config.Home != nil || s.config.HomePath != ""
			if !hasPage || !strings.Contains(r.Header.Get("Accept"), "text/html") {
				return others(w, r)
			}
			if s.config.HomePath != "" {
				w.Header().Set("Location", s.config.HomePath)
				w.WriteHeader(http.StatusSeeOther)
				return nil
			}
			page := s.config.Home(r.Context(), baseURI(r))
			header := w.Header()
			header.Set("Content-Type", "text/html; charset=utf-8")
			header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
			header.Set("X-Content-Type-Options", "nosniff")
			header.Set("Cache-Control", "no-store")
			_, _ = w.Write(page) // if this fails, the client has disconnected
			return nil
		})
	}
}
