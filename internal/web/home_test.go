package web

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

// If a client uses the base URI of another catalog, the message contains the right one. Other
// unknown paths are only refused.
func TestWrongBase(t *testing.T) {
	t.Parallel()
	s := New(Config{})
	const right = "; the base URI of this catalog is http://example.com"
	for path, want := range map[string]string{
		"/": right, "/api/catalog/v1/config": right, "/catalog/v1/config?warehouse=w": right, "/iceberg/v1/namespaces": right,
		"/polaris/v1/config": right, "/api/2.1/unity-catalog/iceberg/v1/config": right, "/v1/v1/config": right,
		"/v2/config": "", "/v1/nothing": "", "/catalogs/v1": "", "/api/other/v1": "",
	} {
		got := wantFailure(t, get(s, path), http.StatusNotFound, "NoSuchRouteException")
		plain, _, _ := strings.Cut(path, "?")
		if wanted := "No such route: GET " + plain + want; got.Message != wanted {
			t.Errorf("%s: %q, want %q", path, got.Message, wanted)
		}
	}
}

// A browser gets a page at the root. No other page may frame it, and it runs no scripts. Other
// clients get the failure.
func TestHome(t *testing.T) {
	t.Parallel()
	s := New(Config{Home: func(_ context.Context, uri string) []byte { return []byte("<p>" + uri) }})
	got := get(s, "/", "Accept", "text/html,application/xhtml+xml;q=0.9")
	if got.Code != http.StatusOK || got.Body.String() != "<p>http://example.com" || got.Header().Get("Content-Type") != "text/html; charset=utf-8" ||
		got.Header().Get("Content-Security-Policy") != "default-src 'none'; frame-ancestors 'none'" {
		t.Errorf("%d %s %v", got.Code, got.Body, got.Header())
	}
	for _, accept := range []string{"", "*/*", "application/json"} {
		wantFailure(t, get(s, "/", "Accept", accept), http.StatusNotFound, "NoSuchRouteException")
	}
	wantFailure(t, get(New(Config{}), "/", "Accept", "text/html"), http.StatusNotFound, "NoSuchRouteException")
}
