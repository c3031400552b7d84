package identity

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"moorage"
)

// A key that the issuer adds is valid at once. A withdrawn key is valid until the keys are renewed,
// even for a token that was verified before.
func TestKeysRotate(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	old := f.issuer.sign(ecSigner())
	if _, err := f.ask("Bearer " + old); err != nil {
		t.Fatal(err)
	}
	added := newEdKey("added")
	f.issuer.publish(ecSigner(), added)
	f.clock.Advance(renewPause)
	if _, err := f.ask("Bearer " + f.issuer.sign(added)); err != nil {
		t.Errorf("a new key: %v", err)
	}
	f.issuer.publish(added)
	if _, err := f.ask("Bearer " + old); err != nil {
		t.Errorf("before the keys are renewed: %v", err)
	}
	f.clock.Advance(renewInterval)
	f.renewOnce()
	_, err := f.ask("Bearer " + f.issuer.sign(ecSigner()))
	wantReason(t, f, err, reasonKey)
	fresh := f.issuer.sign(ecSigner(), "exp", f.clock.Now().Unix()+600)
	if _, err := f.ask("Bearer " + fresh); err == nil {
		t.Error("a withdrawn key is accepted")
	}
}

// renewOnce renews the keys, as the background worker would.
func (f *fixture) renewOnce() {
	for _, each := range f.issuers {
		if each.isStale(renewInterval) {
			each.renew(f.t.Context())
		}
	}
}

// A verified token is checked again when the issuer's keys change.
func TestVerifiedTokenDiesWithItsKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	token := f.issuer.sign(ecSigner())
	if _, err := f.ask("Bearer " + token); err != nil {
		t.Fatal(err)
	}
	f.issuer.publish(rsaSigner())
	f.clock.Advance(renewPause)
	for _, each := range f.issuers {
		each.renew(t.Context())
	}
	_, err := f.ask("Bearer " + token)
	wantReason(t, f, err, reasonKey)
}

// Forged key ids cause at most one fetch in 30 seconds, and the correct key is still accepted.
func TestForgedKeyIDs(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	good := f.issuer.sign(ecSigner())
	if _, err := f.ask("Bearer " + good); err != nil {
		t.Fatal(err)
	}
	f.clock.Advance(renewPause)
	before := f.issuer.fetches.Load()
	const count, workers = 10_000, 8
	forged := make([]string, 64)
	for i := range forged {
		forged[i] = f.issuer.sign(newEdKey("forged" + string(rune('A'+i))))
	}
	var sending sync.WaitGroup
	for worker := range workers {
		sending.Go(func() {
			for i := range count / workers {
				n := worker*count/workers + i
				// From many addresses, so that the limit per address does not help.
				address := "192.0." + string(rune('0'+n%10)) + "." + string(rune('0'+n/10%10)) + ":1"
				if _, err := f.askFrom(address, "Bearer "+forged[n%len(forged)]); err == nil {
					t.Error("a forged token was accepted")
				}
			}
		})
	}
	sending.Wait()
	if got := f.issuer.fetches.Load() - before; got != 1 {
		t.Errorf("the keys were fetched %d times in a second", got)
	}
	for range 29 {
		f.clock.Advance(time.Second)
		_, _ = f.askFrom("192.0.2.77:1", "Bearer "+forged[0])
	}
	if got := f.issuer.fetches.Load() - before; got != 1 {
		t.Errorf("the keys were fetched %d times in 30 seconds", got)
	}
	f.clock.Advance(time.Second)
	_, _ = f.askFrom("192.0.2.77:1", "Bearer "+forged[0])
	if got := f.issuer.fetches.Load() - before; got != 2 {
		t.Errorf("the keys were fetched %d times in 31 seconds, want 2", got)
	}
	if _, err := f.ask("Bearer " + good); err != nil {
		t.Error(err)
	}
}

// While the issuer is unavailable, its keys are valid for a day. Without keys, a request is not
// refused but told to retry.
func TestIssuerAway(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	away := func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(502); return true }
	f.issuer.does(away)
	ask := func() moorage.Kind {
		_, err := f.ask("Bearer " + f.issuer.sign(ecSigner()))
		return moorage.KindOf(err)
	}
	if got := ask(); got != moorage.KindUnavailable {
		t.Fatalf("without keys: %v", got)
	}
	f.issuer.does(nil)
	if got := ask(); got != moorage.KindUnavailable {
		t.Errorf("within the pause: %v", got)
	}
	f.clock.Advance(renewPause)
	if _, err := f.ask("Bearer " + f.issuer.sign(ecSigner())); err != nil {
		t.Fatalf("when it is back: %v", err)
	}
	f.issuer.does(away)
	f.clock.Advance(keysServe)
	f.renewOnce()
	if _, err := f.ask("Bearer " + f.issuer.sign(ecSigner())); err != nil {
		t.Errorf("a day later: %v", err)
	}
	f.clock.Advance(time.Second)
	if got := ask(); got != moorage.KindUnavailable {
		t.Errorf("more than a day later: %v", got)
	}
}

// A slow issuer delays only requests that need it, with a single fetch.
func TestIssuerSlow(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	known := f.issuer.sign(ecSigner())
	if _, err := f.ask("Bearer " + known); err != nil {
		t.Fatal(err)
	}
	added := newEdKey("added")
	f.issuer.publish(ecSigner(), added)
	f.clock.Advance(renewPause)
	entered, release := make(chan struct{}, 8), make(chan struct{})
	f.issuer.does(func(http.ResponseWriter, *http.Request) bool {
		entered <- struct{}{}
		<-release
		return false
	})
	token := f.issuer.sign(added)
	var waiting sync.WaitGroup
	for range 5 {
		waiting.Go(func() {
			if _, err := f.ask("Bearer " + token); err != nil {
				t.Errorf("after the wait: %v", err)
			}
		})
	}
	<-entered
	if _, err := f.ask("Bearer " + known); err != nil {
		t.Errorf("a known token: %v", err)
	}
	if _, err := f.ask("Bearer " + f.issuer.sign(rsaSigner(), "sub", "bob")); err != nil {
		t.Errorf("another token by a key of the present set: %v", err)
	}
	close(release)
	waiting.Wait()
	if got := f.issuer.fetches.Load(); got != 2 {
		t.Errorf("%d fetches", got)
	}
}

// An issuer's answer is checked. An invalid answer is not used.
func TestIssuerLies(t *testing.T) {
	t.Parallel()
	elsewhere := newTestIssuer(t, newClock())
	set := func(keys ...any) string { return string(must(json.Marshal(map[string]any{"keys": keys}))) }
	answer := func(path, body string) func(*testIssuer) {
		return func(i *testIssuer) {
			i.does(func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != path {
					return false
				}
				_, _ = w.Write([]byte(body))
				return true
			})
		}
	}
	redirect := func(path, target string) func(*testIssuer) {
		return func(i *testIssuer) {
			i.does(func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == path {
					http.Redirect(w, r, target, http.StatusFound)
				}
				return r.URL.Path == path
			})
		}
	}
	for name, lie := range map[string]func(*testIssuer){
		"another issuer":       func(i *testIssuer) { i.discovery = map[string]string{"issuer": "https://idp.invalid"} },
		"plain HTTP elsewhere": func(i *testIssuer) { i.discovery = map[string]string{"jwks_uri": "http://idp.invalid/keys"} },
		"a file":               func(i *testIssuer) { i.discovery = map[string]string{"jwks_uri": "/etc/passwd"} },
		"no keys":              func(i *testIssuer) { i.discovery = map[string]string{"jwks_uri": ""} },
		"redirect":             redirect(discoveryPath, elsewhere.URL+discoveryPath),
		"redirect of keys":     redirect("/keys", elsewhere.URL+"/keys"),
		"endless redirect":     redirect("/keys", "/keys"),
		"not JSON":             answer(discoveryPath, "<html>"),
		"keys not JSON":        answer("/keys", "<html>"),
		"endless":              answer("/keys", `{"keys":["`+strings.Repeat("x", fetchBytesMax)+`"]}`),
		"empty":                answer("/keys", set()),
		"only secrets":         answer("/keys", set(map[string]string{"kty": "oct", "k": "AAAA", "kid": "ec"})),
		"for encryption":       answer("/keys", set(map[string]string{"kty": "OKP", "crv": "Ed25519", "use": "enc", "kid": "ec", "x": strings.Repeat("A", 43)})),
		"unknown type":         answer("/keys", set(map[string]string{"kty": "new", "kid": "ec"})),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			elsewhere.publish(ecSigner())
			lie(f.issuer)
			if _, err := f.ask("Bearer " + f.issuer.sign(ecSigner())); moorage.KindOf(err) != moorage.KindUnavailable {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Unusable keys in a set do not prevent the use of the others.
func TestKeySetWithOthers(t *testing.T) {
	t.Parallel()
	good := `{"kty":"OKP","crv":"Ed25519","kid":"a","x":"` + strings.Repeat("A", 42) + `E"}`
	for name, row := range map[string]struct {
		others string
		want   int
	}{
		"alone": {"", 1}, "malformed": {`,7,{"kty":"RSA"},{"kty":"EC","crv":"P-256"}`, 1}, "short RSA": {`,{"kty":"RSA","n":"AQAB","e":"AQAB"}`, 1},
	} {
		set, err := parseKeySet([]byte(`{"keys":[`+good+row.others+`]}`), algorithms())
		if err != nil || len(set.keys) != row.want {
			t.Errorf("%s: got %v, error %v", name, set, err)
		}
	}
}

// Kubernetes' key sets and tokens can come from files. The token of a pod is sent to the API
// server.
func TestKeySetFromFileAndTokenFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	shown := filepath.Join(folder, "token")
	if err := os.WriteFile(shown, []byte("pod\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, func(c *Config) { c.Issuers[0].TokenFile = shown })
	var bearers []string
	f.issuer.does(func(_ http.ResponseWriter, r *http.Request) bool {
		bearers = append(bearers, r.Header.Get("Authorization"))
		return false
	})
	if _, err := f.ask("Bearer " + f.issuer.sign(ecSigner())); err != nil {
		t.Fatal(err)
	}
	if strings.Join(bearers, ",") != "Bearer pod,Bearer pod" {
		t.Errorf("shown were %q", bearers)
	}

	file := filepath.Join(folder, "keys.json")
	if err := os.WriteFile(file, must(json.Marshal(f.issuer.keys)), 0o600); err != nil {
		t.Fatal(err)
	}
	other := newFixture(t, func(c *Config) { c.Issuers[0].URL, c.Issuers[0].KeySet = "https://idp.invalid", file })
	if _, err := other.ask("Bearer " + f.issuer.sign(ecSigner(), "iss", "https://idp.invalid")); err != nil {
		t.Error(err)
	}
}

func TestParseIssuer(t *testing.T) {
	t.Parallel()
	got, err := ParseIssuer("corp=https://idp/realms/lake,audience=moorage,roles=realm_access.roles,algorithms=RS256+ES256")
	if err != nil || got.Alias != "corp" || got.URL != "https://idp/realms/lake" || got.Audience != "moorage" || got.Subject != "sub" ||
		got.Roles != "realm_access.roles" || len(got.algorithms()) != 2 {
		t.Errorf("got %+v, error %v", got, err)
	}
	for _, bad := range []string{
		"", "corp", "corp=", "=https://idp,audience=a", "Corp=https://idp,audience=a", "key=https://idp,audience=a", "cert=https://idp,audience=a",
		"system=https://idp,audience=a", "anonymous=https://idp,audience=a", "moorage=https://idp,audience=a", "1a=https://idp,audience=a",
		"corp=https://idp", "corp=http://idp,audience=a", "corp=idp,audience=a", "corp=https://user@idp,audience=a", "corp=https://idp?x,audience=a",
		"corp=https://idp,audience=a,audience=b", "corp=https://idp,audience=a,other=b", "corp=https://idp,audience=a,algorithms=HS256",
		"corp=https://idp,audience=a,algorithms=none", "corp=https://idp,audience=a,jwks=http://idp/keys", "corp=https://idp,audience=", "corp=https://idp,",
	} {
		if got, err := ParseIssuer(bad); err == nil {
			t.Errorf("%q was read as %+v", bad, got)
		}
	}
	if _, err := ParseIssuer("dev=http://127.0.0.1:9000,audience=a"); err != nil {
		t.Error(err)
	}
}

// The background worker fetches the keys at the start, and ends.
func TestStartFetches(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	fetched := make(chan struct{}, 1)
	f.issuer.does(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/keys" {
			select {
			case fetched <- struct{}{}:
			default:
			}
		}
		return false
	})
	f.Start()
	defer f.Stop()
	<-fetched
	f.Stop()
	f.Stop()
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	one := IssuerConfig{Alias: "a", URL: "https://idp", Audience: "m"}
	other := IssuerConfig{Alias: "b", URL: "https://idp", Audience: "m"}
	alias := IssuerConfig{Alias: "a", URL: "https://other", Audience: "m"}
	missing := IssuerConfig{Alias: "c", URL: "https://idp", Audience: "m", CA: "testdata/none"}
	for name, config := range map[string]Config{
		"nothing": {}, "one URL": {Issuers: []IssuerConfig{one, other}}, "one alias": {Issuers: []IssuerConfig{one, alias}},
		"no such CA": {Issuers: []IssuerConfig{missing}}, "zero": {Issuers: []IssuerConfig{{}}},
	} {
		if _, err := New(config); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
