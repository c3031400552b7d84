package identity

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moorage"
	"moorage/testkit/openid"
)

const redirect = "https://catalog.example/console/login/corp"

// newSignIns returns an Authenticator with a provider at which users can sign in.
func newSignIns(t *testing.T, change func(p *openid.Provider, c *IssuerConfig)) (*fixture, *openid.Provider) {
	var provider *openid.Provider
	f := newFixture(t, func(c *Config) {
		provider = openid.New(t)
		issuer := IssuerConfig{
			Alias: "corp", URL: provider.URL, Audience: openid.Audience, Subject: "sub",
			SignIn: SignInClient{ID: openid.ClientID},
		}
		if change != nil {
			change(provider, &issuer)
		}
		c.Issuers = append(c.Issuers, issuer)
		c.Issuers[0].Alias = "other"
	})
	provider.Now = f.clock.Now
	return f, provider
}

// signIn signs a user in, like a browser. tamper changes the state between the two steps.
func (f *fixture) signIn(p *openid.Provider, tamper func(begun *SignIn, back url.Values)) (string, error) {
	f.t.Helper()
	begun, address, err := f.BeginSignIn(f.t.Context(), "corp", redirect)
	if err != nil {
		return "", err
	}
	back := p.Authorize(f.t, address)
	if tamper != nil {
		tamper(&begun, back)
	}
	return f.FinishSignIn(f.t.Context(), begun, back)
}

// TestSignIn signs a user in with a public client, with a client with a secret, and with the ID
// token as the result. The token authenticates the user.
func TestSignIn(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(p *openid.Provider, c *IssuerConfig){
		"public client": nil,
		"secret in the header": func(p *openid.Provider, c *IssuerConfig) {
			p.Secret, c.SignIn.SecretFile = "s3cret", secret
		},
		"secret in the form": func(p *openid.Provider, c *IssuerConfig) {
			p.Secret, c.SignIn.SecretFile = "s3cret", secret
			p.Discovery = map[string]any{"token_endpoint_auth_methods_supported": []string{"client_secret_post"}}
		},
		"ID token": func(p *openid.Provider, c *IssuerConfig) {
			c.SignIn.Token, c.Audience = TokenID, openid.ClientID
			p.Change = func(kind string, claims map[string]any) {
				if kind == "access" {
					claims["aud"] = "opaque"
				}
			}
		},
		"keys by a setting": func(p *openid.Provider, c *IssuerConfig) { c.KeySet = p.URL + "/keys" },
		"no iss in answers": func(p *openid.Provider, _ *IssuerConfig) {
			p.Discovery = map[string]any{"authorization_response_iss_parameter_supported": false}
			p.Alter = func(back url.Values) { back.Del("iss") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, p := newSignIns(t, change)
			token, err := f.signIn(p, nil)
			if err != nil {
				t.Fatal(err)
			}
			if caller, err := f.ask("Bearer " + token); err != nil || caller.Name != "corp:ann" {
				t.Errorf("%v %v (%s)", caller, err, f.lastReason())
			}
		})
	}
}

// TestSignInAttacks tampers with a sign-in. None of the attempts leads to a token, and each gives
// the user a message.
func TestSignInAttacks(t *testing.T) {
	t.Parallel()
	id := func(name string, value any) func(p *openid.Provider, c *IssuerConfig) {
		return func(p *openid.Provider, _ *IssuerConfig) {
			p.Change = func(kind string, claims map[string]any) {
				if kind == "id" {
					claims[name] = value
				}
			}
		}
	}
	for name, row := range map[string]struct {
		change func(p *openid.Provider, c *IssuerConfig)
		tamper func(begun *SignIn, back url.Values)
		want   string
	}{
		"state of another sign-in": {tamper: func(_ *SignIn, back url.Values) { back.Set("state", "x") }, want: "does not belong"},
		"no state":                 {tamper: func(_ *SignIn, back url.Values) { back.Del("state") }, want: "does not belong"},
		"no state on both sides": {
			tamper: func(begun *SignIn, back url.Values) { begun.State = ""; back.Del("state") }, want: "does not belong",
		},
		"iss of another issuer":      {tamper: func(_ *SignIn, back url.Values) { back.Set("iss", "https://evil.example") }, want: "is not of"},
		"iss is missing":             {tamper: func(_ *SignIn, back url.Values) { back.Del("iss") }, want: "is not of"},
		"an error":                   {tamper: func(_ *SignIn, back url.Values) { back.Set("error", "access_denied") }, want: "access_denied"},
		"no code":                    {tamper: func(_ *SignIn, back url.Values) { back.Del("code") }, want: "without a code"},
		"a foreign code":             {tamper: func(_ *SignIn, back url.Values) { back.Set("code", "x") }, want: "invalid_grant"},
		"another verifier":           {tamper: func(begun *SignIn, _ url.Values) { begun.Verifier = strings.Repeat("v", 43) }, want: "invalid_grant"},
		"another address":            {tamper: func(begun *SignIn, _ url.Values) { begun.Redirect = "https://evil.example/" }, want: "invalid_grant"},
		"nonce of another one":       {tamper: func(begun *SignIn, _ url.Values) { begun.Nonce = "other" }, want: "(nonce)"},
		"no nonce":                   {change: id("nonce", nil), want: "(nonce)"},
		"ID token of another issuer": {change: id("iss", "https://evil.example"), want: "(unknown issuer)"},
		"ID token for another":       {change: id("aud", "other"), want: "(audience)"},
		"ID token of another party":  {change: id("azp", "other"), want: "(audience)"},
		"expired ID token":           {change: id("exp", 1), want: "(expired)"},
		"wrong secret":               {change: func(p *openid.Provider, _ *IssuerConfig) { p.Secret = "x" }, want: "invalid_client"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, p := newSignIns(t, row.change)
			token, err := f.signIn(p, row.tamper)
			if token != "" || moorage.KindOf(err) != moorage.KindNotAuthorized || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %q, %v, want an error with %q", token, err, row.want)
			}
		})
	}
}

// TestSignInReplay sends the same answer of the issuer twice. The code works only once.
func TestSignInReplay(t *testing.T) {
	t.Parallel()
	f, p := newSignIns(t, nil)
	begun, address, err := f.BeginSignIn(t.Context(), "corp", redirect)
	if err != nil {
		t.Fatal(err)
	}
	back := p.Authorize(t, address)
	if _, err := f.FinishSignIn(t.Context(), begun, back); err != nil {
		t.Fatal(err)
	}
	if token, err := f.FinishSignIn(t.Context(), begun, back); token != "" || moorage.KindOf(err) != moorage.KindNotAuthorized {
		t.Errorf("a replay gives %q, %v", token, err)
	}
}

// TestSignInMixUp begins a sign-in at one issuer and ends it at another. The second issuer's code
// is not sent to the first issuer.
func TestSignInMixUp(t *testing.T) {
	t.Parallel()
	evil := openid.New(t)
	f, honest := newSignIns(t, nil)
	begun, address, err := f.BeginSignIn(t.Context(), "corp", redirect)
	if err != nil {
		t.Fatal(err)
	}
	back := evil.Authorize(t, strings.Replace(address, honest.URL, evil.URL, 1))
	if token, err := f.FinishSignIn(t.Context(), begun, back); token != "" || !strings.Contains(err.Error(), "is not of") {
		t.Errorf("got %q, %v", token, err)
	}
}

// TestIDTokenIsNoCredential: without console-token=id, the ID token of a sign-in does not
// authenticate, even if its audience is correct.
func TestIDTokenIsNoCredential(t *testing.T) {
	t.Parallel()
	f, p := newSignIns(t, func(p *openid.Provider, c *IssuerConfig) { c.Audience = openid.ClientID })
	var idToken string
	client := p.Client()
	client.Transport = recording{client.Transport, &idToken}
	for _, each := range f.issuers {
		if each.config.Alias == "corp" {
			each.fetcher.client = client
		}
	}
	if _, err := f.signIn(p, nil); err != nil {
		t.Fatal(err)
	}
	_, err := f.ask("Bearer " + idToken)
	wantReason(t, f, err, reasonKind)
}

// TestSignInIssuerIsAway begins and ends sign-ins while the issuer does not answer, or has
// addresses that must not be used.
func TestSignInIssuerIsAway(t *testing.T) {
	t.Parallel()
	f, p := newSignIns(t, nil)
	begun, address, err := f.BeginSignIn(t.Context(), "corp", redirect)
	if err != nil {
		t.Fatal(err)
	}
	back := p.Authorize(t, address)
	p.Close()
	if _, err := f.FinishSignIn(t.Context(), begun, back); moorage.KindOf(err) != moorage.KindUnavailable {
		t.Errorf("the end: %v", err)
	}
	f, p = newSignIns(t, nil)
	p.Close()
	if _, _, err := f.BeginSignIn(t.Context(), "corp", redirect); moorage.KindOf(err) != moorage.KindUnavailable {
		t.Errorf("the beginning: %v", err)
	}
	for _, member := range []string{"authorization_endpoint", "token_endpoint"} {
		f, _ = newSignIns(t, func(p *openid.Provider, _ *IssuerConfig) {
			p.Discovery = map[string]any{member: "http://idp.example/x"}
		})
		if _, _, err := f.BeginSignIn(t.Context(), "corp", redirect); moorage.KindOf(err) != moorage.KindUnavailable {
			t.Errorf("plain HTTP as the %s: %v", member, err)
		}
	}
	f, p = newSignIns(t, func(p *openid.Provider, _ *IssuerConfig) {
		p.Discovery = map[string]any{
			"authorization_endpoint": p.URL + "/authorize?p=policy", "token_endpoint": p.URL + "/token?p=policy",
			"jwks_uri": p.URL + "/keys?p=policy",
		}
	})
	if _, address, err = f.BeginSignIn(t.Context(), "corp", redirect); err != nil || !strings.Contains(address, "?p=policy&client_id=") {
		t.Errorf("endpoints with a query: %s, %v", address, err)
	}
	if _, err := f.signIn(p, nil); err != nil {
		t.Errorf("endpoints with a query: %v", err)
	}
	for _, alias := range []string{"other", "none", ""} {
		if _, _, err := f.BeginSignIn(t.Context(), alias, redirect); moorage.KindOf(err) != moorage.KindNotFound {
			t.Errorf("an issuer %q without a client: %v", alias, err)
		}
	}
	if aliases := f.SignInIssuers(); len(aliases) != 1 || aliases[0] != "corp" {
		t.Errorf("people can sign in at %v", aliases)
	}
}

// TestSignInDocumentHangs: the keys of an issuer do not wait for a document that only sign-ins
// need.
func TestSignInDocumentHangs(t *testing.T) {
	t.Parallel()
	p := openid.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	defer hanging.Close()
	f, err := newFetcher(IssuerConfig{URL: hanging.URL, KeySet: p.URL + "/keys", SignIn: SignInClient{ID: openid.ClientID}}, patience)
	if err != nil {
		t.Fatal(err)
	}
	if set, found, err := f.fetch(ctx); set == nil || found != nil || err == nil {
		t.Errorf("got %v, %v, %v, want the keys and the error of the document", set, found, err)
	}
}

// TestSignInFaultsAreLogged: a user learns only that the sign-in is impossible, and the log has the
// reason. Tokens are still accepted.
func TestSignInFaultsAreLogged(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(p *openid.Provider, c *IssuerConfig){
		"the discovery document of an issuer cannot be fetched": func(p *openid.Provider, c *IssuerConfig) {
			c.KeySet, p.Discovery = p.URL+"/keys", map[string]any{"issuer": "https://other.example"}
		},
		"read console-client-secret-file": func(_ *openid.Provider, c *IssuerConfig) { c.SignIn.SecretFile = "/none" },
		"must begin with https://": func(p *openid.Provider, _ *IssuerConfig) {
			p.Discovery = map[string]any{"token_endpoint": "http://idp.example/x"}
		},
	} {
		f, _ := newSignIns(t, change)
		log := new(strings.Builder)
		at, err := f.signInIssuer("corp")
		if err != nil {
			t.Fatal(err)
		}
		at.logger = slog.New(slog.NewTextHandler(log, nil))
		if _, _, err := f.BeginSignIn(t.Context(), "corp", redirect); moorage.KindOf(err) != moorage.KindUnavailable {
			t.Errorf("%s: %v", want, err)
		}
		if !strings.Contains(log.String(), want) || !strings.Contains(log.String(), "people cannot sign in") || at.keys() == nil {
			t.Errorf("the log lacks %q: %s", want, log)
		}
	}
}

// TestSignInSettings reads the settings of the console's client.
func TestSignInSettings(t *testing.T) {
	t.Parallel()
	const begin = "corp=https://idp.example,audience=a,"
	c, err := ParseIssuer(begin + "console-client-id=a,console-client-secret-file=/s,console-scopes=openid+api://x/y,console-token=id")
	if err != nil || c.SignIn.ID != "a" || c.SignIn.SecretFile != "/s" || len(c.SignIn.Scopes) != 2 || c.SignIn.Token != TokenID {
		t.Errorf("%+v %v", c.SignIn, err)
	}
	for settings, want := range map[string]string{
		"console-scopes=openid":                     "needs console-client-id",
		"console-token=id":                          "needs console-client-id",
		"console-client-secret-file=/s":             "needs console-client-id",
		"console-client-id=a,console-scopes=email":  "openid is missing",
		"console-client-id=a,console-token=refresh": "neither access nor id",
		"console-client-id=b,console-token=id":      "set audience",
	} {
		if _, err := ParseIssuer(begin + settings); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", settings, err, want)
		}
	}
}

// recording keeps the ID token of the last answer.
type recording struct {
	under   http.RoundTripper
	idToken *string
}

func (r recording) RoundTrip(asked *http.Request) (*http.Response, error) {
	answer, err := r.under.RoundTrip(asked)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(content))
	var tokens struct {
		IDToken string `json:"id_token"`
	}
	if json.Unmarshal(content, &tokens) == nil && tokens.IDToken != "" {
		*r.idToken = tokens.IDToken
	}
	return answer, err
}
