package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/go-chi/chi/v5"

	"moorage"
)

// get sends a GET to h without a network. headers are name, value, name, value…
func get(h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// wantFailure checks that the answer is a failure in the wrapper, and returns the wrapped error.
func wantFailure(t *testing.T, w *httptest.ResponseRecorder, status int, kind string) errorModel {
	t.Helper()
	var answer errorAnswer
	decoder := json.NewDecoder(bytes.NewReader(w.Body.Bytes()))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&answer); err != nil || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("the answer is no failure: %v, %s", err, w.Body)
	}
	if got := answer.Error; w.Code != status || got.Code != status || got.Type != kind || got.Message == "" {
		t.Errorf("%d %s, want %d %s", w.Code, w.Body, status, kind)
	}
	return answer.Error
}

// Below the prefix of Explain, failures contain the request's id and advice. Other failures do not.
func TestExplain(t *testing.T) {
	t.Parallel()
	s := New(Config{})
	s.Explain("/own/")
	for _, kind := range moorage.Kinds() {
		for _, path := range []string{"/own/", "/other/"} {
			route := path + strings.ReplaceAll(kind.String(), " ", "-")
			s.Handle("fail", http.MethodGet, route, func(http.ResponseWriter, *http.Request) error {
				return moorage.Errorf(kind, "the words")
			})
			f := FailureOf(kind)
			got := wantFailure(t, get(s, route, "X-Request-Id", "id-1"), f.Status, f.Type)
			explained := got.RequestID == "id-1" && strings.HasSuffix(got.Help, ".")
			if silent := got.RequestID == "" && got.Help == ""; explained != (path == "/own/") || silent == explained {
				t.Errorf("%s: %+v", route, got)
			}
		}
	}
	if got := wantFailure(t, get(s, "/own/nowhere"), http.StatusNotFound, "NoSuchRouteException"); got.Help == "" {
		t.Errorf("a path that does not exist: %+v", got)
	}
}

func TestEveryKindHasItsAnswer(t *testing.T) {
	t.Parallel()
	for _, kind := range moorage.Kinds() {
		if _, ok := failures[kind]; !ok {
			t.Errorf("kind %s has no answer", kind)
		}
	}
	if len(failures) != len(moorage.Kinds()) {
		t.Errorf("%d answers for %d kinds", len(failures), len(moorage.Kinds()))
	}
}

// A long message that quotes a request is cut, but never within a character.
func TestLongMessages(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ message, want string }{
		{strings.Repeat("x", messageBytesMax), strings.Repeat("x", messageBytesMax)},
		{strings.Repeat("x", messageBytesMax+1), strings.Repeat("x", messageBytesMax) + "…"},
		{"x" + strings.Repeat("é", messageBytesMax), "x" + strings.Repeat("é", messageBytesMax/2-1) + "…"},
		{strings.Repeat("\x80", messageBytesMax+1), "…"},
	} {
		if got := shortened(row.message); got != row.want {
			t.Errorf("%.20q… becomes %d bytes, want %d", row.message, len(got), len(row.want))
		}
	}
}

// A panic after the first byte of an answer cuts the connection.
func TestPanicBehindAnswer(t *testing.T) {
	t.Parallel()
	s := New(Config{})
	s.Handle("torn", "GET", "/torn", func(w http.ResponseWriter, _ *http.Request) error {
		_, _ = w.Write([]byte("half"))
		panic("boom")
	})
	s.Handle("late", "GET", "/late", func(w http.ResponseWriter, _ *http.Request) error {
		_, _ = w.Write([]byte("half"))
		return errors.New("too late")
	})
	for _, path := range []string{"/torn", "/late"} {
		func() {
			defer func() {
				if reason := recover(); reason != http.ErrAbortHandler {
					t.Errorf("%s: panicked with %v", path, reason)
				}
			}()
			get(s, path)
			t.Errorf("%s: the answer looks whole", path)
		}()
	}
	wantInFlight(t, s, 0)
}

// Probes use the address of a pod as the host, which no setting lists. Their answers reveal nothing
// about the catalog.
func TestProbesOfAnyHost(t *testing.T) {
	t.Parallel()
	h := New(Config{Hosts: []string{"catalog.example"}})
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host = "10.244.3.7:8181"
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// Slashes at the end and in a row lead to the same operation with the same names; %2F stays a name.
func TestExtraSlashes(t *testing.T) {
	t.Parallel()
	h := New(Config{})
	var called string
	h.Handle("load", "GET", "/v1/namespaces/{namespace}/tables/{table}", func(w http.ResponseWriter, r *http.Request) error {
		called = chi.URLParam(r, "namespace") + " " + chi.URLParam(r, "table") + " " + r.URL.Path
		return AnswerNothing(w)
	})
	for path, want := range map[string]string{
		"//v1/namespaces/a/tables/t":    "a t /v1/namespaces/a/tables/t",
		"/v1//namespaces/a///tables/t/": "a t /v1/namespaces/a/tables/t",
		"/v1/namespaces/a/tables/%2F":   "a %2F /v1/namespaces/a/tables//",
		"/v1/namespaces/a/tables/%2F/":  "a %2F /v1/namespaces/a/tables//",
		"/v1/namespaces/a/tables/":      "",
		"//":                            "",
		"/v1/namespaces//tables/t":      " t /v1/namespaces//tables/t",
	} {
		called = ""
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
		if called != want {
			t.Errorf("%s: called with %q, want %q", path, called, want)
		}
	}
}

// A server that trusts every caller answers only requests whose host is one of its own names.
func TestHosts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		hosts []string
		host  string
		mine  bool
	}{
		{nil, "evil.example", true},
		{[]string{}, "", true}, // HTTP/1.0
		{[]string{}, "localhost", true},
		{[]string{}, "LocalHost:8181", true},
		{[]string{}, "localhost.:8181", true},
		{[]string{}, "127.0.0.1", true},
		{[]string{}, "127.1.2.3:80", true},
		{[]string{}, "[::1]:8181", true},
		{[]string{}, "[::1]", true},
		{[]string{}, "[::ffff:127.0.0.1]:8181", true},
		{[]string{}, "evil.example:8181", false},
		{[]string{}, "localhost.evil.example", false},
		{[]string{}, "127.0.0.1.evil.example:8181", false},
		{[]string{}, "192.0.2.7:8181", false},
		{[]string{}, "0.0.0.0:8181", false},
		{[]string{}, "[::]:8181", false},
		{[]string{}, ":8181", false},
		{[]string{"catalog.example"}, "Catalog.Example:443", true},
		{[]string{"catalog.example"}, "catalog.example.", true},
		{[]string{"catalog.example:443"}, "catalog.example:443", true},
		{[]string{"catalog.example:443"}, "catalog.example:80", false},
		{[]string{"catalog.example"}, "localhost", true},
		{[]string{"catalog.example"}, "evil.example", false},
	} {
		h := New(Config{Hosts: tt.hosts})
		h.Handle("config", "GET", "/v1/config", func(w http.ResponseWriter, _ *http.Request) error { return AnswerNothing(w) })
		for _, path := range []string{"/v1/config", "/nowhere"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Host = tt.host
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if refused := w.Code == http.StatusMisdirectedRequest; refused == tt.mine {
				t.Errorf("%q of a server called %q, %s: %d, want it to be answered: %t", tt.host, tt.hosts, path, w.Code, tt.mine)
			} else if refused {
				wantFailure(t, w, http.StatusMisdirectedRequest, "MisdirectedRequestException")
			}
		}
	}
}

func wantInFlight(t *testing.T, s *Server, want float64) {
	t.Helper()
	var metric dto.Metric
	if err := s.metrics.inFlight.Write(&metric); err != nil {
		t.Fatal(err)
	}
	if got := metric.GetGauge().GetValue(); got != want {
		t.Errorf("%v requests are in flight, want %v", got, want)
	}
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	h := New(Config{})
	seen := map[string]bool{}
	for _, given := range []string{"", "", "has space", "tab\tin", "quote\"d", "back\\slash", "ünïcode", "ABCDEFG234-17", "a<b", strings.Repeat("x", 129)} {
		id := get(h, "/healthz", "X-Request-Id", given).Header().Get("X-Request-Id")
		if id == given || id == "" || seen[id] {
			t.Errorf("given %q, answered %q", given, id)
		}
		seen[id] = true
	}
	for _, given := range []string{"a", "7f3e-44", "trace/1:2;3", strings.Repeat("x", 128)} {
		if id := get(h, "/healthz", "X-Request-Id", given).Header().Get("X-Request-Id"); id != given {
			t.Errorf("given %q, answered %q", given, id)
		}
	}
	twice := get(h, "/healthz", "X-Request-Id", "a", "X-Request-Id", "b").Header().Get("X-Request-Id")
	if twice == "a" || twice == "b" {
		t.Errorf("given twice, answered %q", twice)
	}
}

// The status decides whether a failure is final: 4xx is, except for statuses about authentication
// and about the rate of requests.
func TestFinalKinds(t *testing.T) {
	t.Parallel()
	for kind, wire := range failures {
		final := wire.Status >= 400 && wire.Status < 500 && !slices.Contains([]int{401, 403, 419, 429}, wire.Status)
		if kind.Final() != final {
			t.Errorf("%s is answered with %d and is final: %t", kind, wire.Status, kind.Final())
		}
	}
}

func TestAcceptsGzip(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		header string
		want   bool
	}{
		{"", false}, {"gzip", true}, {"GZIP", true}, {"x-gzip", true}, {"gzip, deflate, br", true}, {"br;q=1.0, gzip;q=0.8, *;q=0.1", true},
		{"deflate", false}, {"identity", false}, {"gzip;q=0", false}, {"gzip; q=0.0", false}, {"gzip;q=0.001", true}, {"*", true}, {"*;q=0", false},
		{"gzip;q=0, *", false}, {"identity, gzip;q=0.5", false}, {"identity;q=0.5, gzip", true}, {"identity;q=0, *", true}, {"gzip;q=x", false},
		{"gzip;q=2", false}, {"gzip;q=-1", false}, {"gzip ; Q=1", true}, {"gzip;level=9", true}, {"gzip;q=NaN", false}, {",,gzip", true}, {"gzipped", false},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		if row.header != "" {
			r.Header.Set("Accept-Encoding", row.header)
		}
		if got := AcceptsGzip(r); got != row.want {
			t.Errorf("%q: %v, want %v", row.header, got, row.want)
		}
	}
}

// FuzzPageToken checks that every token is either refused, or equal to the token that Seal returns
// for its name.
func FuzzPageToken(f *testing.F) {
	list := Pager{list: listHash([]string{"tables", "w", "a"}), Limit: 1}
	for _, name := range []string{"x", "é", "a/b"} {
		f.Add(*list.Seal(name))
	}
	for _, token := range []string{"", "AQ", "AQAAAAAAAAAA", "=", "null"} {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		name, err := list.open(token)
		if err != nil {
			if moorage.KindOf(err) != moorage.KindBadRequest {
				t.Fatalf("%q: %v", token, err)
			}
			return
		}
		if again := list.Seal(name); again == nil || *again != token {
			t.Fatalf("%q opens to %q, which seals to %v", token, name, again)
		}
	})
}
