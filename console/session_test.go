package console

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"moorage/internal/web"
	"moorage/management/client"
)

// guarded is a server whose API wants credentials.
type guarded struct {
	*web.Server
	api *fakeAPI
	now time.Time
	key []byte

	isFromProxy func(r *http.Request) bool
	accepted    []string // tokens that the API accepts besides the one for goodKey
	providers   *fakeProviders
}

const goodKey = "moor_good"

// tokenOf returns a token of a caller. Only its claims matter.
func tokenOf(caller string) string { return tokenUntil(caller, time.Unix(4102444800, 0)) }

// tokenUntil returns a token of a caller that ends at a time.
func tokenUntil(caller string, ends time.Time) string {
	claims := fmt.Sprintf(`{"sub":%q,"exp":%d}`, caller, ends.Unix())
	return "x." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".y"
}

// newGuarded returns a server that gives the holder of goodKey a token for an hour.
func newGuarded() *guarded { return newGuardedWith(func(*Config) {}) }

func newGuardedWith(change func(c *Config)) *guarded {
	made := &guarded{
		now: now, key: []byte(strings.Repeat("k", 32)), isFromProxy: func(*http.Request) bool { return false },
		accepted: []string{tokenOf("corp:bob")},
	}
	answers := answersOf("ships")
	config := Config{
		Version: "v1", Authenticates: true, Now: func() time.Time { return made.now },
		SessionKey:  func(context.Context) ([]byte, error) { return made.key, nil },
		IsFromProxy: func(r *http.Request) bool { return made.isFromProxy(r) },
	}
	change(&config)
	made.Server, made.api = newServerWith(config, answers)
	made.api.admit = func(r *http.Request, body string) any {
		refused := &client.Error{Code: http.StatusUnauthorized, Type: "NotAuthorizedException", Message: "Unknown"}
		form, _ := url.ParseQuery(body)
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		isGood := token == tokenOf("key:ann") || slices.Contains(made.accepted, token)
		switch {
		case r.URL.Path == "/v1/oauth/tokens" && (form.Get("client_secret") == goodKey || isGood):
			return map[string]any{"access_token": tokenOf("key:ann"), "expires_in": 3600}
		case !isGood:
			return refused
		}
		return nil
	}
	return made
}

// login sends the form with a credential.
func (s *guarded) login(credential string, pairs ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/console/login",
		strings.NewReader(url.Values{"credential": {credential}, fieldBack: {"/console/changes"}}.Encode()))
	return s.sendFrom("127.0.0.1:5000", r, pairs...)
}

// sendFrom sends a request of a browser at an address.
func (s *guarded) sendFrom(remote string, r *http.Request, pairs ...string) *httptest.ResponseRecorder {
	r.RemoteAddr, r.Host = remote, "localhost:8181"
	if r.Method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] == "Host" {
			r.Host = pairs[i+1]
			continue
		}
		r.Header.Set(pairs[i], pairs[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// open asks for a page with a cookie.
func (s *guarded) open(cookie string) *httptest.ResponseRecorder {
	return s.sendFrom("127.0.0.1:5000", httptest.NewRequest(http.MethodGet, "/console/changes", nil), "Cookie", cookie)
}

// cookieOf returns the cookie that an answer sets, as a browser sends it back.
func cookieOf(w *httptest.ResponseRecorder) string {
	return strings.Split(w.Header().Get("Set-Cookie"), ";")[0]
}

// TestLogin signs in with a key and with a token of an issuer: the browser gets an encrypted
// cookie, and pages ask the API with the token. A wrong key gets the form again.
func TestLogin(t *testing.T) {
	t.Parallel()
	for credential, caller := range map[string]string{" " + goodKey + "\n": "key:ann", tokenOf("corp:bob"): "corp:bob"} {
		s := newGuarded()
		w := s.login(credential)
		set := w.Header().Get("Set-Cookie")
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/console/changes" {
			t.Fatalf("%d %v\n%s", w.Code, w.Header(), w.Body)
		}
		if !strings.HasPrefix(set, "moorage=") || !strings.Contains(set, "HttpOnly") || !strings.Contains(set, "SameSite=Lax") ||
			strings.Contains(set, "key:ann") || strings.Contains(set, tokenOf(caller)) {
			t.Errorf("the cookie is %s", set)
		}
		page := s.open(cookieOf(w))
		if page.Code != http.StatusOK || !strings.Contains(page.Body.String(), caller) || !strings.Contains(page.Body.String(), "Sign out") {
			t.Errorf("%d\n%s", page.Code, page.Body)
		}
		if last := s.api.asked[len(s.api.asked)-1]; last.header.Get("Authorization") != "Bearer "+tokenOf(caller) {
			t.Errorf("the page asks with %v", last.header)
		}
	}
	s := newGuarded()
	for _, credential := range []string{"moor_bad", "", tokenOf("corp:eve")} {
		if w := s.login(credential); w.Code != http.StatusUnauthorized || w.Header().Get("Set-Cookie") != "" || !strings.Contains(w.Body.String(), "does not know this key") {
			t.Errorf("%q: %d %v\n%s", credential, w.Code, w.Header(), w.Body)
		}
	}
	if w := s.login(goodKey, "Sec-Fetch-Site", "cross-site"); w.Code != http.StatusForbidden || w.Header().Get("Set-Cookie") != "" {
		t.Errorf("a page of another site signs in: %d", w.Code)
	}
}

// TestLoginUnproven signs in with a token that the API did not check, because it refused the
// request before. There is no session, and the page explains what happened. If the API refuses the
// question itself, it has accepted the token.
func TestLoginUnproven(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]int{
		400: http.StatusSeeOther, 403: http.StatusSeeOther, 404: http.StatusSeeOther, 406: http.StatusSeeOther,
		413: 413, 421: 421, 429: 429, 500: 500, 503: 503,
	} {
		s := newGuarded()
		admit := s.api.admit
		s.api.admit = func(r *http.Request, body string) any {
			if r.URL.Path == "/management/v1/access" {
				return &client.Error{Code: code, Type: "X", Message: "because"}
			}
			return admit(r, body)
		}
		w := s.login(tokenOf("corp:bob"))
		if hasCookie := w.Header().Get("Set-Cookie") != ""; w.Code != want || hasCookie != (want == http.StatusSeeOther) {
			t.Errorf("%d: %d %v\n%s", code, w.Code, w.Header(), w.Body)
		}
	}
}

// TestSessionEnds asks for a page with cookies that are not good, or no longer: each leads to the
// form.
func TestSessionEnds(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(s *guarded, cookie string) string{
		"none":            func(*guarded, string) string { return "" },
		"another key":     func(s *guarded, c string) string { s.key = []byte(strings.Repeat("z", 32)); return c },
		"changed":         func(_ *guarded, c string) string { return c[:len(c)-4] + "AAAA" },
		"cut":             func(_ *guarded, c string) string { return c[:20] },
		"of another name": func(_ *guarded, c string) string { return "__Host-" + c },
		"after its end":   func(s *guarded, c string) string { s.now = s.now.Add(sessionLife); return c },
		"expired token":   func(s *guarded, c string) string { s.now = s.now.Add(time.Hour); return c },
		"a withdrawn key": func(s *guarded, c string) string {
			s.api.admit = func(*http.Request, string) any {
				return &client.Error{Code: 401, Type: "NotAuthorizedException", Message: "Withdrawn"}
			}
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newGuarded()
			cookie := spoil(s, cookieOf(s.login(goodKey)))
			w := s.open(cookie)
			if want := "/console/login?back=%2Fconsole%2Fchanges"; w.Code != http.StatusSeeOther || w.Header().Get("Location") != want {
				t.Errorf("%d %v\n%s", w.Code, w.Header(), w.Body)
			}
		})
	}
}

// TestSessionIsRenewed asks for a new token after half of the life of the present one. The session
// ends eight hours after it began.
func TestSessionIsRenewed(t *testing.T) {
	t.Parallel()
	s := newGuarded()
	cookie := cookieOf(s.login(goodKey))
	for range 13 {
		s.now = s.now.Add(35 * time.Minute)
		w := s.open(cookie)
		if w.Code != http.StatusOK || w.Header().Get("Set-Cookie") == "" {
			t.Fatalf("after %s: %d %v", s.now.Sub(now), w.Code, w.Header())
		}
		cookie = cookieOf(w)
	}
	s.now = now.Add(sessionLife)
	if w := s.open(cookie); w.Code != http.StatusSeeOther {
		t.Errorf("after %s: %d", sessionLife, w.Code)
	}
}

// TestLoginChannel signs in only where others cannot read the key: over TLS, or on the server's own
// machine.
func TestLoginChannel(t *testing.T) {
	t.Parallel()
	form := func() *http.Request {
		return httptest.NewRequest(http.MethodPost, "/console/login", strings.NewReader("credential="+goodKey))
	}
	s, proxied := newGuarded(), newGuarded()
	proxied.isFromProxy = func(r *http.Request) bool { return strings.HasPrefix(r.RemoteAddr, "127.0.0.9:") }
	for _, host := range []string{"localhost", "LOCALHOST:80", "127.0.0.1:8181", "[::1]:8181", "127.9.9.9"} {
		if w := proxied.sendFrom("127.0.0.1:5000", form(), "Host", host); w.Code != http.StatusSeeOther {
			t.Errorf("on the server's machine, by the name %s: %d\n%s", host, w.Code, w.Body)
		}
	}
	for name, w := range map[string]*httptest.ResponseRecorder{
		"another machine":          s.sendFrom("192.0.2.1:5000", form()),
		"a proxy":                  s.sendFrom("127.0.0.1:5000", form(), "X-Forwarded-For", "192.0.2.1"),
		"a proxy with a host":      s.sendFrom("127.0.0.1:5000", form(), "X-Forwarded-Host", "catalog.example.com"),
		"a proxy with a real IP":   s.sendFrom("127.0.0.1:5000", form(), "X-Real-IP", "192.0.2.1"),
		"a proxy that hides":       s.sendFrom("127.0.0.1:5000", form(), "Host", "catalog.example.com"),
		"a trusted proxy":          proxied.sendFrom("127.0.0.9:5000", form()),
		"a name that is no number": s.sendFrom("127.0.0.1:5000", form(), "Host", "127.0.0.1.example.com"),
	} {
		if w.Code != http.StatusForbidden || w.Header().Get("Set-Cookie") != "" {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
	}
	page := s.sendFrom("192.0.2.1:5000", httptest.NewRequest(http.MethodGet, "/console/login", nil))
	if !strings.Contains(page.Body.String(), "needs TLS") || strings.Contains(page.Body.String(), `type="password"`) {
		t.Errorf("the form is shown:\n%s", page.Body)
	}
	encrypted := form()
	encrypted.TLS = &tls.ConnectionState{}
	set := s.sendFrom("192.0.2.1:5000", encrypted).Header().Get("Set-Cookie")
	if !strings.HasPrefix(set, "__Host-moorage=") || !strings.Contains(set, "Secure") || !strings.Contains(set, "Path=/;") || strings.Contains(set, "Domain") {
		t.Errorf("over TLS the cookie is %s", set)
	}
}

// TestLogout deletes the cookie.
func TestLogout(t *testing.T) {
	t.Parallel()
	s := newGuarded()
	w := s.sendFrom("127.0.0.1:5000", httptest.NewRequest(http.MethodPost, "/console/logout", nil), "Cookie", cookieOf(s.login(goodKey)))
	if set := w.Header().Get("Set-Cookie"); w.Code != http.StatusSeeOther || !strings.HasPrefix(set, "moorage=;") || !strings.Contains(set, "Max-Age=0") {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}
