package rest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"moorage/internal/web"
)

// Probes may use HEAD, which gets the same answer as GET, without a body.
func TestProbesByHead(t *testing.T) {
	t.Parallel()
	for _, ready := range []error{nil, errors.New("the store is away")} {
		server := httptest.NewServer(NewServer(TestConfig{Catalog: &fakeCatalog{}, Ready: func(context.Context) error { return ready }}))
		defer server.Close()
		for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
			got := map[string]*http.Response{}
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := server.Client().Do(request)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(answer.Body)
				if answer.Body.Close(); err != nil || method == http.MethodHead && len(body) > 0 {
					t.Errorf("%s %s: body %q, %v", method, path, body, err)
				}
				got[method] = answer
			}
			want, head := got[http.MethodGet], got[http.MethodHead]
			if head.StatusCode != want.StatusCode || head.Header.Get("Content-Type") != want.Header.Get("Content-Type") {
				t.Errorf("HEAD %s: %s %v, want %s %v", path, head.Status, head.Header, want.Status, want.Header)
			}
		}
	}
}

// On a connection beyond the limit, only probes are answered.
func TestProbesOnly(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(NewServer(TestConfig{Catalog: &fakeCatalog{}}))
	server.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context { return web.WithProbesOnly(ctx) }
	server.Start()
	defer server.Close()
	for path, status := range map[string]int{
		"/healthz": 200, "/readyz": 200, "/metrics": 200, "/v1/config": 429, "/v1/w/namespaces": 429, "/management/v1/doctor": 429, "/nowhere": 429,
	} {
		answer, err := server.Client().Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil || answer.StatusCode != status || !answer.Close {
			t.Errorf("%s: %s, closes %t; want %d", path, answer.Status, answer.Close, status)
		}
	}
}
