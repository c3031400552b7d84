package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"moorage/testkit/openid"
)

// browser is a client that keeps cookies and follows redirects, like a browser.
type browser struct {
	t *testing.T
	*http.Client
	uri string // of the server
}

func newBrowser(t *testing.T, uri string) *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t, &http.Client{Jar: jar}, uri}
}

// open requests an address, and returns the response and its text.
func (b *browser) open(address string) (*http.Response, string) {
	b.t.Helper()
	answer, err := b.Get(address)
	return b.read(answer, err)
}

// send sends a form of the console.
func (b *browser) send(path string, form url.Values) (*http.Response, string) {
	b.t.Helper()
	answer, err := b.PostForm(b.uri+"/console"+path, form)
	return b.read(answer, err)
}

func (b *browser) read(answer *http.Response, err error) (*http.Response, string) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer, string(text)
}

// signIn signs in with a provider and returns the page at the end.
func (b *browser) signIn(provider string) (*http.Response, string) {
	b.t.Helper()
	answer, text := b.send("/login/provider", url.Values{"provider": {provider}, "back": {"/console/principals"}})
	next, isSent := strings.CutPrefix(answer.Header.Get("Refresh"), "0; url=")
	if !isSent {
		b.t.Fatalf("%s %v\n%s", answer.Status, answer.Header, text)
	}
	return b.open(next)
}

// TestConsoleSignIn signs in to the console of a server at a provider. The visitor has the rights
// of the principal in the provider's token. A token that the server does not accept starts no
// session, and withdrawn sessions end.
func TestConsoleSignIn(t *testing.T) {
	t.Parallel()
	corp, strict := openid.New(t), openid.New(t)
	strict.Change = func(kind string, claims map[string]any) { // its access tokens are for another service
		if kind == "access" {
			claims["aud"] = "other"
		}
	}
	data := filepath.Join(t.TempDir(), "data")
	if enabled := runToEnd(t, "access", "enable", "--data", data); enabled.code != 0 {
		t.Fatalf("access enable: %+v", enabled)
	}
	const client = ",audience=" + openid.Audience + ",console-client-id=" + openid.ClientID
	s := startServe(t, "--data", data, "--issuer", "corp="+corp.URL+client, "--issuer", "strict="+strict.URL+client,
		"--issuer", "machines=http://127.0.0.1:9/x,audience=moorage", "--admin", "corp:ann")

	b := newBrowser(t, s.uri)
	answer, text := b.open(s.uri + "/console/principals")
	if answer.Request.URL.Path != "/console/login" || !strings.Contains(text, "<bdi>corp</bdi>") || strings.Contains(text, "machines") {
		t.Fatalf("a visitor without a session gets %s\n%s", answer.Request.URL, text)
	}
	answer, text = b.signIn("corp")
	if answer.Request.URL.Path != "/console/principals" || answer.StatusCode != http.StatusOK || !strings.Contains(text, "corp:ann") {
		t.Fatalf("after the sign-in: %s %s\n%s", answer.Status, answer.Request.URL, text)
	}

	other := newBrowser(t, s.uri)
	answer, text = other.signIn("strict")
	if answer.StatusCode != http.StatusUnauthorized || !strings.Contains(text, "does not accept the token of strict") {
		t.Errorf("a token for another service: %s\n%s", answer.Status, text)
	}
	// The same subject at another provider is a different principal.
	strict.Change = func(string, map[string]any) {}
	answer, text = other.signIn("strict")
	if answer.StatusCode != http.StatusOK || !strings.Contains(text, "strict:ann") || !strings.Contains(text, "you need admin on server") {
		t.Errorf("the subject of another provider: %s\n%s", answer.Status, text)
	}

	if answer, text = b.send("/logout", nil); answer.Request.URL.Path != "/console/login" {
		t.Errorf("after the end of the session: %s\n%s", answer.Request.URL, text)
	}
	if answer, _ = b.open(s.uri + "/console/principals"); answer.Request.URL.Path != "/console/login" {
		t.Errorf("the session has not ended: %s", answer.Request.URL)
	}
}

// TestConsoleSignInByIDToken signs in at a provider whose access tokens are not JWTs.
func TestConsoleSignInByIDToken(t *testing.T) {
	t.Parallel()
	corp := openid.New(t)
	corp.Change = func(kind string, claims map[string]any) {
		if kind == "access" {
			claims["aud"] = "opaque"
		}
	}
	data := filepath.Join(t.TempDir(), "data")
	if enabled := runToEnd(t, "access", "enable", "--data", data); enabled.code != 0 {
		t.Fatalf("access enable: %+v", enabled)
	}
	s := startServe(t, "--data", data, "--admin", "corp:ann", "--issuer", "corp="+corp.URL+",audience="+openid.ClientID+
		",console-client-id="+openid.ClientID+",console-token=id")
	if answer, text := newBrowser(t, s.uri).signIn("corp"); answer.StatusCode != http.StatusOK || !strings.Contains(text, "corp:ann") {
		t.Errorf("%s\n%s", answer.Status, text)
	}
}
