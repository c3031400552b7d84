package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"moorage"
)

// fakeProviders is one provider, corp. It gives token for the code "good" and its state.
type fakeProviders struct {
	token    string
	redirect string // of the last sign-in
}

func (f *fakeProviders) Names() []string { return []string{"corp", "other"} }

func (f *fakeProviders) Begin(_ context.Context, provider, redirect string) (SignIn, string, error) {
	if provider == "away" {
		return SignIn{}, "", &moorage.Error{Kind: moorage.KindUnavailable, Message: "It is away"}
	}
	f.redirect = redirect
	return SignIn{provider, redirect, "state", "nonce", "verifier"}, "https://idp.example/authorize?state=state&of=" + provider, nil
}

func (f *fakeProviders) Finish(_ context.Context, begun SignIn, returned url.Values) (string, error) {
	isGood := returned.Get("code") == "good" && returned.Get("state") == begun.State && begun.Verifier == "verifier" && begun.Nonce == "nonce"
	if !isGood {
		return "", moorage.Errorf(moorage.KindNotAuthorized, "It does not belong together")
	}
	return f.token, nil
}

// newSignIns returns a server at which visitors can sign in with corp.
func newSignIns() (*guarded, *fakeProviders) {
	providers := &fakeProviders{token: tokenOf("corp:bob")}
	s := newGuardedWith(func(c *Config) { c.Providers = providers })
	return s, providers
}

// beginSignIn sends the form of the login page.
func (s *guarded) beginSignIn(back string, pairs ...string) *httptest.ResponseRecorder {
	form := url.Values{fieldProvider: {"corp"}, fieldBack: {back}}
	r := httptest.NewRequest(http.MethodPost, "/console/login/provider", strings.NewReader(form.Encode()))
	return s.sendFrom("127.0.0.1:5000", r, pairs...)
}

// comeBack opens the address to which the provider sends the browser.
func (s *guarded) comeBack(provider, query, cookie string, pairs ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/console/login/at/"+provider+"?"+query, nil)
	return s.sendFrom("127.0.0.1:5000", r, append(pairs, "Cookie", cookie)...)
}

// setBy returns the cookies that an answer sets, by name.
func setBy(w *httptest.ResponseRecorder) map[string]*http.Cookie {
	found := map[string]*http.Cookie{}
	for _, cookie := range w.Result().Cookies() {
		found[cookie.Name] = cookie
	}
	return found
}

const goodReturn = "code=good&state=state"

// TestSignIn signs in with a provider: the browser goes there with a cookie that ends after ten
// minutes, comes back, and has a session with the token.
func TestSignIn(t *testing.T) {
	t.Parallel()
	s, providers := newSignIns()
	if page := s.sendFrom("127.0.0.1:5000", httptest.NewRequest(http.MethodGet, "/console/login", nil)).Body.String(); !strings.Contains(page, "Sign in with <bdi>corp</bdi>") {
		t.Errorf("the form has no provider:\n%s", page)
	}
	w := s.beginSignIn("/console/changes")
	if w.Code != http.StatusOK || w.Header().Get("Refresh") != "0; url=https://idp.example/authorize?state=state&of=corp" ||
		w.Header().Get("Cache-Control") != "no-store" || !strings.Contains(w.Body.String(), `href="https://idp.example/authorize?state=state&amp;of=corp"`) {
		t.Fatalf("%d %v\n%s", w.Code, w.Header(), w.Body)
	}
	if providers.redirect != "http://localhost:8181/console/login/at/corp" {
		t.Errorf("the provider sends the browser to %s", providers.redirect)
	}
	begun := setBy(w)["moorage-login"]
	if begun == nil || begun.MaxAge != 600 || !begun.HttpOnly || begun.SameSite != http.SameSiteLaxMode || strings.Contains(begun.Value, "verifier") {
		t.Fatalf("the cookie is %v", begun)
	}
	w = s.comeBack("corp", goodReturn, cookieOf(w))
	set := setBy(w)
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/console/changes" || set["moorage"] == nil || set["moorage-login"].MaxAge >= 0 {
		t.Fatalf("%d %v\n%s", w.Code, w.Header(), w.Body)
	}
	page := s.open("moorage=" + set["moorage"].Value)
	if page.Code != http.StatusOK || !strings.Contains(page.Body.String(), "corp:bob") {
		t.Errorf("%d\n%s", page.Code, page.Body)
	}
	if last := s.api.asked[len(s.api.asked)-1]; last.header.Get("Authorization") != "Bearer "+tokenOf("corp:bob") {
		t.Errorf("the page asks with %v", last.header)
	}
	head := httptest.NewRequest(http.MethodHead, "/console/login/at/corp?"+goodReturn, nil)
	if w := s.sendFrom("127.0.0.1:5000", head, "Cookie", "moorage-login="+begun.Value); w.Header().Get("Set-Cookie") != "" {
		t.Errorf("HEAD begins a session: %v", w.Header())
	}
}

// TestSignInAttacks comes back from a provider in ways in which no session must begin. Each leads
// to the form again.
func TestSignInAttacks(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		provider, query string
		spoil           func(s *guarded, cookie string) string
	}{
		"no cookie: a stranger sends the browser here": {query: goodReturn, spoil: func(*guarded, string) string { return "" }},
		"state of another sign-in":                     {query: "code=good&state=stolen"},
		"no state":                                     {query: "code=good"},
		"a foreign code":                               {query: "code=stolen&state=state"},
		"an error of the provider":                     {query: "error=access_denied&state=state"},
		"mix-up: another provider answers":             {provider: "other", query: goodReturn},
		"a provider that does not exist":               {provider: "%22%3E%3Cscript%3E", query: goodReturn},
		"after ten minutes":                            {query: goodReturn, spoil: func(s *guarded, c string) string { s.now = s.now.Add(signInLife); return c }},
		"a cookie that was changed":                    {query: goodReturn, spoil: func(_ *guarded, c string) string { return c[:len(c)-4] + "AAAA" }},
		"a cookie that was cut":                        {query: goodReturn, spoil: func(_ *guarded, c string) string { return c[:20] }},
		"a cookie of another deployment":               {query: goodReturn, spoil: func(s *guarded, c string) string { s.key = []byte(strings.Repeat("z", 32)); return c }},
		"a session as the cookie of a sign-in": {query: goodReturn, spoil: func(s *guarded, _ string) string {
			return "moorage-login=" + strings.TrimPrefix(cookieOf(s.login(goodKey)), "moorage=")
		}},
		"the cookie of a loopback address over TLS": {query: goodReturn, spoil: func(_ *guarded, c string) string { return "__Host-" + c }},
		"a token that the API does not accept":      {query: goodReturn, spoil: func(s *guarded, c string) string { s.providers.token = tokenOf("corp:eve"); return c }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, providers := newSignIns()
			s.providers = providers
			cookie := cookieOf(s.beginSignIn("/console/changes"))
			if row.spoil != nil {
				cookie = row.spoil(s, cookie)
			}
			if row.provider == "" {
				row.provider = "corp"
			}
			w := s.comeBack(row.provider, row.query, cookie)
			if set := setBy(w)["moorage"]; w.Code != http.StatusUnauthorized || set != nil || strings.Contains(w.Body.String(), "<script>") {
				t.Errorf("%d %v\n%s", w.Code, w.Header(), w.Body)
			}
			for _, each := range []string{"code=", "state="} {
				if strings.Contains(w.Body.String(), each) {
					t.Errorf("the page repeats the address:\n%s", w.Body)
				}
			}
			if !strings.Contains(w.Body.String(), `role="alert"`) || !strings.Contains(w.Body.String(), `type="password"`) {
				t.Errorf("it does not say why:\n%s", w.Body)
			}
		})
	}
}

// TestSignInIsNoSession uses the cookie of a sign-in that has begun as a session.
func TestSignInIsNoSession(t *testing.T) {
	t.Parallel()
	s, _ := newSignIns()
	begun := strings.TrimPrefix(cookieOf(s.beginSignIn("")), "moorage-login=")
	if w := s.open("moorage=" + begun); w.Code != http.StatusSeeOther {
		t.Errorf("%d", w.Code)
	}
}

// TestSignInCSRF: a page of another origin begins no sign-in, and a page on the network none in the
// clear.
func TestSignInCSRF(t *testing.T) {
	t.Parallel()
	s, _ := newSignIns()
	for name, pairs := range map[string][]string{
		"another site":   {"Sec-Fetch-Site", "cross-site"},
		"another origin": {"Sec-Fetch-Site", "same-site"},
		"an old browser": {"Origin", "https://evil.example"},
		"in the clear":   {"Host", "catalog.example.com"},
	} {
		if w := s.beginSignIn("", pairs...); w.Code != http.StatusForbidden || w.Header().Get("Set-Cookie") != "" || w.Header().Get("Refresh") != "" {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
	}
	get := httptest.NewRequest(http.MethodGet, "/console/login/provider?provider=corp", nil)
	if w := s.sendFrom("127.0.0.1:5000", get); w.Code != http.StatusNotFound || w.Header().Get("Set-Cookie") != "" {
		t.Errorf("GET begins a sign-in: %d %v", w.Code, w.Header())
	}
}

// TestSignInFixation signs in with a session in the browser that somebody else has put there. The
// new session has nothing of it, and the former one is not the visitor's.
func TestSignInFixation(t *testing.T) {
	t.Parallel()
	s, _ := newSignIns()
	planted := cookieOf(s.login(goodKey))
	begun := cookieOf(s.beginSignIn("/console/changes", "Cookie", planted))
	w := s.comeBack("corp", goodReturn, planted+"; "+begun)
	made := setBy(w)["moorage"]
	if made == nil || "moorage="+made.Value == planted {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	if page := s.open("moorage=" + made.Value).Body.String(); strings.Contains(page, "key:ann") || !strings.Contains(page, "corp:bob") {
		t.Errorf("the session is not the visitor's own:\n%s", page)
	}
	if page := s.open(planted).Body.String(); strings.Contains(page, "corp:bob") {
		t.Errorf("the planted session has become the visitor's:\n%s", page)
	}
	// Over TLS the names of both cookies keep pages of subdomains from setting them.
	secure := httptest.NewRequest(http.MethodPost, "https://catalog.example/console/login/provider", strings.NewReader("provider=corp"))
	if set := setBy(s.sendFrom("192.0.2.1:5000", secure, "Host", "catalog.example"))["__Host-moorage-login"]; set == nil || !set.Secure || set.Path != "/" || set.Domain != "" {
		t.Errorf("over TLS the cookie is %v", set)
	}
}

// TestOpenRedirect signs in from addresses of other servers: the browser goes to the console's
// first page.
func TestOpenRedirect(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"https://evil.example/console/changes", "//evil.example/console/changes", `/\evil.example/console/changes`,
		"https:evil.example", "javascript:alert(1)", "/console/../../evil", "/console//evil.example", "/consolation",
		"/console/login/at/corp?code=1", "/console/login", "\n/console/changes", "http://localhost:8181/console/changes",
	} {
		s, _ := newSignIns()
		byProvider := s.comeBack("corp", goodReturn, cookieOf(s.beginSignIn(address)))
		form := url.Values{"credential": {goodKey}, fieldBack: {address}}.Encode()
		byKey := s.sendFrom("127.0.0.1:5000", httptest.NewRequest(http.MethodPost, "/console/login", strings.NewReader(form)))
		for _, w := range []*httptest.ResponseRecorder{byProvider, byKey} {
			if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/console" {
				t.Errorf("%q: %d %v", address, w.Code, w.Header())
			}
		}
	}
}

// TestSessionsOfNodes: all nodes of a deployment accept a session, because they share its key. A
// server of another deployment does not.
func TestSessionsOfNodes(t *testing.T) {
	t.Parallel()
	first, _ := newSignIns()
	second, _ := newSignIns()
	other, _ := newSignIns()
	other.key = []byte(strings.Repeat("o", 32))
	session := cookieOf(first.login(goodKey))
	if w := second.open(session); w.Code != http.StatusOK {
		t.Errorf("another node: %d", w.Code)
	}
	if w := other.open(session); w.Code != http.StatusSeeOther {
		t.Errorf("another deployment: %d", w.Code)
	}
	begun := cookieOf(first.beginSignIn("/console/changes"))
	if w := second.comeBack("corp", goodReturn, begun); w.Code != http.StatusSeeOther {
		t.Errorf("a sign-in that ends at another node: %d\n%s", w.Code, w.Body)
	}
}

// TestSignInEnds: a session of a provider's token ends with the token, or after eight hours, or
// when the API no longer accepts it.
func TestSignInEnds(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		life  time.Duration
		after func(s *guarded)
		code  int
	}{
		"while its token is good":  {time.Hour, func(s *guarded) { s.now = s.now.Add(59 * time.Minute) }, http.StatusOK},
		"after its token":          {time.Hour, func(s *guarded) { s.now = s.now.Add(time.Hour) }, http.StatusSeeOther},
		"just before eight hours":  {12 * time.Hour, func(s *guarded) { s.now = s.now.Add(sessionLife - 1) }, http.StatusOK},
		"after eight hours":        {12 * time.Hour, func(s *guarded) { s.now = s.now.Add(sessionLife) }, http.StatusSeeOther},
		"after a new key is drawn": {time.Hour, func(s *guarded) { s.key = []byte(strings.Repeat("n", 32)) }, http.StatusSeeOther},
		"a revoked token":          {time.Hour, func(s *guarded) { s.accepted = nil }, http.StatusSeeOther},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, providers := newSignIns()
			providers.token = tokenUntil("corp:bob", now.Add(row.life))
			s.accepted = []string{providers.token}
			w := s.comeBack("corp", goodReturn, cookieOf(s.beginSignIn("/console/changes")))
			session := setBy(w)["moorage"]
			if session == nil {
				t.Fatalf("%d %v\n%s", w.Code, w.Header(), w.Body)
			}
			row.after(s)
			if w := s.open("moorage=" + session.Value); w.Code != row.code {
				t.Errorf("%d, want %d", w.Code, row.code)
			}
		})
	}
}

// TestSignInIsAway begins a sign-in at a provider that does not answer.
func TestSignInIsAway(t *testing.T) {
	t.Parallel()
	s, _ := newSignIns()
	r := httptest.NewRequest(http.MethodPost, "/console/login/provider", strings.NewReader("provider=away&back=%2Fconsole%2Fchanges"))
	w := s.sendFrom("127.0.0.1:5000", r)
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "It is away") || !strings.Contains(w.Body.String(), "/console/changes") || w.Header().Get("Refresh") != "" {
		t.Errorf("%d %v\n%s", w.Code, w.Header(), w.Body)
	}
}
