package web

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"moorage"
)

// challenge is an error that describes how a client can authenticate.
type challenge struct{ error }

func (challenge) Challenge() string { return `Bearer realm="test"` }

// Every request is authenticated first, except requests for health and for open routes.
func TestAuthentication(t *testing.T) {
	t.Parallel()
	s := New(Config{Authenticate: func(r *http.Request) (moorage.Caller, error) {
		switch r.Header.Get("Authorization") {
		case "good":
			return moorage.Caller{Name: "ann"}, nil
		case "later":
			return moorage.Caller{}, moorage.Errorf(moorage.KindUnavailable, "later")
		case "many":
			return moorage.Caller{}, moorage.Errorf(moorage.KindTooManyRequests, "many")
		}
		return moorage.Caller{}, &moorage.Error{
			Kind: moorage.KindNotAuthorized, Message: "Invalid credentials", Err: challenge{errors.New("why: secret")},
		}
	}})
	name := func(w http.ResponseWriter, r *http.Request) error {
		_, err := io.WriteString(w, CallerOf(r).Name)
		return err
	}
	s.Handle("closed", http.MethodPost, "/closed", name)
	s.HandleOften("often", http.MethodPost, "/often", name)
	s.HandleOpen("open", http.MethodPost, "/open", name)
	for _, row := range []struct {
		method, path, shown string
		status              int
	}{
		{"GET", "/healthz", "", 200}, {"GET", "/readyz", "", 200}, {"POST", "/open", "bad", 200},
		{"GET", "/metrics", "", 401}, {"GET", "/metrics", "good", 200},
		{"POST", "/closed", "", 401}, {"POST", "/closed", "bad", 401}, {"POST", "/closed", "good", 200},
		{"POST", "/often", "bad", 401}, {"POST", "/often", "good", 200},
		{"GET", "/closed", "bad", 401}, {"GET", "/closed", "good", 405},
		{"GET", "/none", "", 401}, {"GET", "/none", "good", 404}, {"HEAD", "/none", "", 401}, {"DELETE", "/none", "bad", 401},
		{"POST", "/closed", "later", 503}, {"POST", "/closed", "many", 429},
	} {
		r := httptest.NewRequest(row.method, row.path, nil)
		if row.shown != "" {
			r.Header.Set("Authorization", row.shown)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != row.status {
			t.Errorf("%s %s with %q: %d, want %d", row.method, row.path, row.shown, w.Code, row.status)
		}
		if got := w.Header().Get("WWW-Authenticate"); (got == `Bearer realm="test"`) != (row.status == 401) {
			t.Errorf("%s %s with %q: WWW-Authenticate %q", row.method, row.path, row.shown, got)
		}
		if got := w.Header().Get("Retry-After"); (got != "") != (row.status == 503 || row.status == 429) {
			t.Errorf("%s %s with %q: Retry-After %q", row.method, row.path, row.shown, got)
		}
		if row.status == 401 && row.method != "HEAD" &&
			w.Body.String() != `{"error":{"message":"Invalid credentials","type":"NotAuthorizedException","code":401}}` {
			t.Errorf("the body is %s", w.Body)
		}
		if row.method == "HEAD" && w.Body.Len() > 0 {
			t.Errorf("HEAD has the body %s", w.Body)
		}
		if want := map[string]string{"/closed": "ann", "/often": "ann", "/open": "anonymous"}[row.path]; row.status == 200 && want != "" && w.Body.String() != want {
			t.Errorf("%s: the caller is %s, want %s", row.path, w.Body, want)
		}
	}
}

// The caller of a forwarded request is the caller that the forwarding node reports.
func TestForwardedIsAuthenticated(t *testing.T) {
	t.Parallel()
	s := New(Config{Authenticate: func(*http.Request) (moorage.Caller, error) {
		return moorage.Caller{}, moorage.Errorf(moorage.KindNotAuthorized, "no")
	}})
	s.Handle("closed", http.MethodPost, "/closed", func(w http.ResponseWriter, r *http.Request) error {
		_, err := io.WriteString(w, CallerOf(r).Name)
		return err
	})
	r := httptest.NewRequest("POST", "/closed", nil)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r.WithContext(moorage.WithArrival(r.Context(), moorage.Arrival{From: "n1", Caller: moorage.Caller{Name: "bob"}})))
	if w.Code != 200 || w.Body.String() != "bob" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// A page from another origin cannot set the header Authorization, so a request with that header is
// safe. A request with only a certificate may come from such a page.
func TestForeignPageWithAuthentication(t *testing.T) {
	t.Parallel()
	s := New(Config{Authenticate: func(*http.Request) (moorage.Caller, error) { return moorage.Caller{Name: "ann"}, nil }})
	s.Handle("closed", http.MethodPost, "/closed", func(http.ResponseWriter, *http.Request) error { return nil })
	for shown, want := range map[string]int{"": 403, "good": 200} {
		r := httptest.NewRequest("POST", "/closed", nil)
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		if shown != "" {
			r.Header.Set("Authorization", shown)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("with %q: %d, want %d", shown, w.Code, want)
		}
	}
}
