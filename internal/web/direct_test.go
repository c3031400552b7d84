package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/go-chi/chi/v5"
)

// directRoutes are routes that could be confused with each other.
var directRoutes = []struct {
	method, path string
	often        bool
}{
	{"GET", "/v1/{prefix}/namespaces/{namespace}/tables/{table}", true},
	{"GET", "/v1/namespaces/{namespace}/tables/{table}", true},
	{"POST", "/v1/{prefix}/namespaces/{namespace}/tables/{table}", true},
	{"POST", "/v1/namespaces/{namespace}/tables/{table}", true},
	{"GET", "/v1/{prefix}/namespaces/{namespace}", false},
	{"GET", "/v1/namespaces/{namespace}", false},
	{"GET", "/v1/namespaces/{namespace}/views/{view}", false},
	{"POST", "/v1/{prefix}/namespaces/{namespace}/tables/{table}/unregister", false},
	{"POST", "/v1/namespaces/{namespace}/tables/{table}/unregister", false},
	{"POST", "/v1/namespaces/{namespace}/tables/{table}/metrics", false},
	{"POST", "/v1/namespaces/{namespace}/register", false},
	{"POST", "/v1/tables/rename", false},
	{"POST", "/v1/{prefix}/tables/rename", false},
	{"GET", "/v1/config", false},
	{"DELETE", "/v1/namespaces/{namespace}/tables/{table}", false},
}

// newRoutedServer returns a server whose handlers answer with their route and its parameters.
func newRoutedServer(direct bool) *Server {
	s := New(Config{})
	for _, route := range directRoutes {
		answer := func(w http.ResponseWriter, r *http.Request) error {
			params := chi.RouteContext(r.Context()).URLParams
			_, err := fmt.Fprintf(w, "%s %s %q %q", route.method, route.path, params.Keys, params.Values)
			return err
		}
		if route.often && direct {
			s.HandleOften(route.path, route.method, route.path, answer)
		} else {
			s.Handle(route.path, route.method, route.path, answer)
		}
	}
	return s
}

// FuzzDirect checks that the direct routes lead to the same handlers and parameters as the router
// alone.
func FuzzDirect(f *testing.F) {
	for _, path := range []string{
		"/v1/p/namespaces/ns/tables/t", "/v1/namespaces/ns/tables/t", "/v1/namespaces/namespaces/tables/tables/unregister",
		"/v1/namespaces/namespaces/x/tables/t", "/v1//namespaces/ns/tables/t", "/v1/p/namespaces//tables/t",
		"/v1/namespaces/ns/tables/", "/v1/namespaces/ns/tables/t/", "/v1/namespaces/a%2Fb/tables/t%1F", "/v1/namespaces/ns/tables",
		"/v1/namespaces/tables/tables/tables", "/v1/p/namespaces/ns/tables/metrics", "//v1/namespaces/ns/tables/t", "/v1/config",
		"/v1/namespaces/{namespace}/tables/{table}", "/v1/views/namespaces/views/tables/rename", "", "/", "v1/namespaces/ns/tables/t",
	} {
		for _, method := range []string{"GET", "POST", "HEAD", "DELETE", "get"} {
			f.Add(method, path)
		}
	}
	direct, router := newRoutedServer(true), newRoutedServer(false)
	f.Fuzz(func(t *testing.T, method, path string) {
		answer := func(s *Server) string {
			request := httptest.NewRequest("GET", "/", nil)
			request.Method, request.URL = method, &url.URL{Path: path, RawPath: path}
			request.Header.Set("X-Request-Id", "one")
			recorder := httptest.NewRecorder()
			s.ServeHTTP(recorder, request)
			return fmt.Sprintf("%d %v %s", recorder.Code, recorder.Header(), recorder.Body)
		}
		if got, want := answer(direct), answer(router); got != want {
			t.Errorf("%s %q is answered %s, want %s", method, path, got, want)
		}
	})
}
