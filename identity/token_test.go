package identity

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"moorage"
)

func raw64(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// unsigned returns a token with the given header and body, and an empty signature.
func unsigned(header, body string) string { return raw64(header) + "." + raw64(body) + "." }

func TestIssuerTokenIsAccepted(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	for name, token := range map[string]string{
		"RS256":            f.issuer.sign(rsaSigner()),
		"ES256":            f.issuer.sign(ecSigner()),
		"audiences":        f.issuer.sign(ecSigner(), "aud", []string{"other", "moorage"}),
		"expired just now": f.issuer.sign(ecSigner(), "exp", f.clock.Now().Unix()-59),
		"clock ahead":      f.issuer.sign(ecSigner(), "iat", f.clock.Now().Unix()+59, "nbf", f.clock.Now().Unix()+60),
		"fractions":        f.issuer.sign(ecSigner(), "exp", float64(f.clock.Now().Unix())+0.5),
	} {
		caller, err := f.ask("Bearer " + token)
		if err != nil || caller.Name != "corp:ann" || caller.Source != moorage.SourceIssuer ||
			!reflect.DeepEqual(caller.Roles, []string{"corp/analysts", "corp/writers"}) || caller.Ends.IsZero() {
			t.Errorf("%s: got %+v, error %v, reason %s", name, caller, err, f.lastReason())
		}
	}
	if got := f.issuer.fetches.Load(); got != 1 {
		t.Errorf("the keys were fetched %d times", got)
	}
}

// brokenTokens returns tokens that must not be accepted, with the reason for the log.
func brokenTokens(f *fixture) map[string]struct{ token, reason string } {
	good := f.issuer.sign(ecSigner())
	parts := strings.Split(good, ".")
	now := f.clock.Now().Unix()
	body := must(json.Marshal(f.issuer.claims()))
	der := must(x509.MarshalPKIXPublicKey(rsaKey().Public()))
	hmac := must(jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: der}, nil))
	hs := must(must(hmac.Sign(body)).CompactSerialize())
	rsa1 := rsaSigner()
	rsa1.algorithm = jose.RS512
	ps := rsaSigner()
	ps.algorithm = jose.PS256 // the key is for RS256
	noKid := ecSigner()
	noKid.kid = ""
	stranger := newEdKey("stranger")
	posing := newEdKey("ec")
	flipped := []byte(parts[2])
	flipped[0] = 'A' + 'B' - min(max(flipped[0], 'A'), 'B') // another letter of the alphabet
	type row = struct{ token, reason string }
	rows := map[string]row{
		"alg none":             {unsigned(`{"alg":"none"}`, string(body)), reasonAlgorithm},
		"alg None":             {unsigned(`{"alg":"None"}`, string(body)), reasonAlgorithm},
		"alg missing":          {unsigned(`{}`, string(body)), reasonAlgorithm},
		"alg empty":            {unsigned(`{"alg":""}`, string(body)), reasonAlgorithm},
		"alg a number":         {unsigned(`{"alg":7}`, string(body)), reasonAlgorithm},
		"HS256 by public key":  {hs, reasonAlgorithm},
		"RS512":                {signed(rsa1, body, nil), reasonAlgorithm},
		"other alg of the key": {signed(ps, body, nil), reasonAlgorithm},
		"kid of another type":  {signed(posing, body, nil), reasonAlgorithm},
		"no kid":               {signed(noKid, body, nil), reasonNoKeyID},
		"kid empty":            {raw64(`{"alg":"ES256","kid":""}`) + "." + parts[1] + "." + parts[2], reasonMalformed},
		"kid a list":           {raw64(`{"alg":"ES256","kid":["ec"]}`) + "." + parts[1] + "." + parts[2], reasonMalformed},
		"kid a path":           {raw64(`{"alg":"ES256","kid":"../../etc/passwd"}`) + "." + parts[1] + "." + parts[2], reasonKey},
		"unknown kid":          {signed(stranger, body, nil), reasonKey},
		"own key in header":    {signed(stranger, body, map[jose.HeaderKey]any{"jwk": jose.JSONWebKey{Key: stranger.private.Public()}}), reasonKey},
		"key elsewhere":        {signed(stranger, body, map[jose.HeaderKey]any{"jku": f.issuer.URL + "/mine"}), reasonKey},
		"crit":                 {signed(ecSigner(), body, map[jose.HeaderKey]any{"crit": []string{"b64"}, "b64": true}), reasonCritical},
		"signature changed":    {parts[0] + "." + parts[1] + "." + string(flipped), reasonSignature},
		"body changed":         {parts[0] + "." + raw64(strings.Replace(string(body), "ann", "bob", 1)) + "." + parts[2], reasonSignature},
		"header changed":       {raw64(`{"kid":"ec","alg":"ES256"}`) + "." + parts[1] + "." + parts[2], reasonSignature},
		"no signature":         {parts[0] + "." + parts[1] + ".", reasonSignature},
		"two parts":            {parts[0] + "." + parts[1], reasonMalformed},
		"four parts":           {good + "." + parts[2], reasonMalformed},
		"five parts (JWE)":     {good + ".a.b", reasonMalformed},
		"two signatures":       {string(must(json.Marshal(map[string]any{"payload": parts[1], "signatures": []any{1, 2}}))), reasonMalformed},
		"padding":              {parts[0] + "=." + parts[1] + "." + parts[2], reasonMalformed},
		"new line":             {parts[0] + "\n." + parts[1] + "." + parts[2], reasonMalformed},
		"header not JSON":      {raw64("ES256") + "." + parts[1] + "." + parts[2], reasonMalformed},
		"body not an object":   {signed(ecSigner(), []byte(`[1]`), nil), reasonMalformed},
		"body null":            {signed(ecSigner(), []byte(`null`), nil), reasonMalformed},
		"longer than allowed":  {f.issuer.sign(ecSigner(), "x", strings.Repeat("x", tokenBytesMax)), reasonTooLong},
		"expired":              {f.issuer.sign(ecSigner(), "iat", now-900, "exp", now-60), reasonExpired},
		"no exp":               {f.issuer.sign(ecSigner(), "exp", nil), reasonClaims},
		"exp a text":           {f.issuer.sign(ecSigner(), "exp", fmt.Sprint(now+60)), reasonClaims},
		"exp null":             {signed(ecSigner(), []byte(strings.Replace(string(body), fmt.Sprint(now+600), "null", 1)), nil), reasonClaims},
		"exp beyond time":      {f.issuer.sign(ecSigner(), "exp", 1e30), reasonClaims},
		"lives a week":         {f.issuer.sign(ecSigner(), "exp", now+7*86400), reasonLifetime},
		"lives a week, no iat": {f.issuer.sign(ecSigner(), "iat", nil, "exp", now+7*86400), reasonLifetime},
		"from the future":      {f.issuer.sign(ecSigner(), "iat", now+70), reasonNotYet},
		"not before":           {f.issuer.sign(ecSigner(), "nbf", now+70), reasonNotYet},
		"no iss":               {f.issuer.sign(ecSigner(), "iss", nil), reasonClaims},
		"other iss":            {f.issuer.sign(ecSigner(), "iss", f.issuer.URL+"/"), reasonIssuer},
		"iss a list":           {f.issuer.sign(ecSigner(), "iss", []string{f.issuer.URL}), reasonClaims},
		"iss in other case":    {f.issuer.sign(ecSigner(), "iss", nil, "ISS", f.issuer.URL), reasonClaims},
		"iss ours":             {f.issuer.sign(ecSigner(), "iss", ownIssuer+"store1"), reasonAlgorithm},
		"no aud":               {f.issuer.sign(ecSigner(), "aud", nil), reasonAudience},
		"other aud":            {f.issuer.sign(ecSigner(), "aud", "moorage2"), reasonAudience},
		"aud an object":        {f.issuer.sign(ecSigner(), "aud", map[string]any{"moorage": 1}), reasonAudience},
		"no sub":               {f.issuer.sign(ecSigner(), "sub", nil), reasonClaims},
		"sub empty":            {f.issuer.sign(ecSigner(), "sub", ""), reasonClaims},
		"sub a number":         {f.issuer.sign(ecSigner(), "sub", 7), reasonClaims},
		"sub with a line":      {f.issuer.sign(ecSigner(), "sub", "ann\nbob"), reasonName},
		"sub hidden":           {f.issuer.sign(ecSigner(), "sub", "ann\u200b"), reasonName},
		"sub endless":          {f.issuer.sign(ecSigner(), "sub", strings.Repeat("a", nameBytesMax)), reasonName},
		"ID token of Keycloak": {f.issuer.sign(ecSigner(), "typ", "ID"), reasonKind},
		"ID token":             {f.issuer.sign(ecSigner(), "nonce", "n"), reasonKind},
		"roles an object":      {f.issuer.sign(ecSigner(), "realm_access", map[string]any{"roles": map[string]any{}}), reasonClaims},
		"too many roles":       {f.issuer.sign(ecSigner(), "realm_access", map[string]any{"roles": manyRoles(rolesMax + 1)}), reasonRoles},
		"roles elsewhere":      {f.issuer.sign(ecSigner(), "_claim_names", map[string]any{"realm_access": "src1"}), reasonRoles},
	}
	return rows
}

func manyRoles(count int) []string {
	roles := make([]string, count)
	for i := range roles {
		roles[i] = fmt.Sprint("role", i)
	}
	return roles
}

func TestBrokenTokens(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	rows := brokenTokens(f)
	if len(rows) < 40 {
		t.Errorf("%d rows", len(rows))
	}
	count := 0
	for name, row := range rows {
		if count++; count%40 == 0 {
			f.clock.Advance(time.Second) // resets the count of failures, and keeps the tokens
		}
		caller, err := f.ask("Bearer " + row.token)
		if err == nil {
			t.Fatalf("%s: it was accepted as %+v", name, caller)
		}
		if moorage.KindOf(err) != moorage.KindNotAuthorized || f.lastReason() != row.reason {
			t.Errorf("%s: got %v for the reason %q, want %q", name, err, f.lastReason(), row.reason)
		}
		told := textRefused
		if row.reason == reasonExpired { // its signature was correct
			told = "The credentials expired at 2026-07-01T11:59:00Z: get new ones"
		}
		if text := moorage.MessageOf(err); text != told {
			t.Errorf("%s: the client is told %q", name, text)
		}
	}
}

// A token is checked in full, even if another one with the same body was accepted before.
func TestVerifiedTokenEnds(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	token := f.issuer.sign(ecSigner(), "exp", f.clock.Now().Unix()+30)
	if _, err := f.ask("Bearer " + token); err != nil {
		t.Fatal(err)
	}
	f.clock.Advance(30*time.Second + leeway)
	_, err := f.ask("Bearer " + token)
	wantReason(t, f, err, reasonExpired)
}

func TestKubernetesRole(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *Config) { c.Issuers[0].Alias, c.Issuers[0].Roles = "k8s", "" })
	caller, err := f.ask("Bearer " + f.issuer.sign(ecSigner(), "sub", "system:serviceaccount:jobs:spark", "kubernetes.io",
		map[string]any{"namespace": "jobs"}))
	if err != nil || caller.Name != "k8s:system:serviceaccount:jobs:spark" || !reflect.DeepEqual(caller.Roles, []string{"k8s/ns/jobs"}) {
		t.Errorf("got %+v, error %v", caller, err)
	}
	if caller, err = f.ask("Bearer " + f.issuer.sign(ecSigner(), "sub", "system:serviceaccount:jobs:spark")); err != nil || caller.Roles != nil {
		t.Errorf("without the claim: got %+v, error %v", caller, err)
	}
}

func TestRolesPrefixAndSubject(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *Config) {
		c.Issuers[0].RolesPrefix, c.Issuers[0].Roles, c.Issuers[0].Subject = "lake-", "https://x/groups", "user.name"
	})
	caller, err := f.ask("Bearer " + f.issuer.sign(ecSigner(), "https://x/groups", []string{"lake-rw", "other", "lake-", "lake-rw"},
		"user", map[string]any{"name": "Ann"}))
	if err != nil || caller.Name != "corp:Ann" || !reflect.DeepEqual(caller.Roles, []string{"corp/rw"}) {
		t.Errorf("got %+v, error %v", caller, err)
	}
}

func FuzzToken(f *testing.F) {
	clock := newClock()
	good := signed(ecSigner(), []byte(`{"iss":"moorage:x","sub":"a","aud":["m"],"exp":1,"iat":1.5,"a":{"b":["c"]}}`), nil)
	for _, token := range []string{good, unsigned(`{"alg":"none"}`, `{"sub":"a"}`), "a.b.c", "..", strings.Repeat("e", 100)} {
		f.Add(token)
	}
	a, err := New(Config{
		Issuers: []IssuerConfig{{Alias: "corp", URL: "https://idp.invalid", Audience: "m", KeySet: "testdata/none"}},
		Records: newRecords(), FetchTimeout: patience, Now: clock.Now,
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if read, err := parseToken(text); err == nil {
			_, _ = read.claims.checkTimes(clock.Now(), lifetimeMax, leeway)
			_, _ = read.claims.texts("a.b")
		}
		_, _ = a.unsignedSubject(text)
		made := &verified{}
		if read, err := parseToken(text); err == nil && !strings.Contains(text, "aWRwLmludmFsaWQ") {
			if caller, err := a.verify(t.Context(), read, "", made); err == nil {
				t.Errorf("%q was accepted as %+v", text, caller)
			}
		}
	})
}
