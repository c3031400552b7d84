package identity

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"moorage"
)

func wantOAuth(t *testing.T, name string, err error, status int, code string) {
	t.Helper()
	refused, ok := errors.AsType[*OAuthError](err)
	if !ok || refused.Status != status || refused.Code != code || refused.Description == "" {
		t.Errorf("%s: got %v, want %d %s", name, err, status, code)
	}
}

// Every client gets a token for its key, in whatever form the client sends the key.
func TestClientCredentials(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	key := f.key("key:etl")
	secret := key.Text[len(keyPrefix)+keyIDBytes+1:][:keySecretBytes]
	grant := []string{"grant_type", grantCredentials}
	for name, row := range map[string]struct {
		header string
		form   []string
	}{
		"Java, id and secret":    {"", append(grant, "client_id", key.ID, "client_secret", secret, "scope", "catalog")},
		"Java, whole key":        {"", append(grant, "client_secret", key.Text, "scope", "catalog")},
		"Java, with a bearer":    {"Bearer old", append(grant, "client_secret", key.Text, "scope", "catalog")},
		"PyIceberg, oauth2":      {basic(key.ID + ":" + secret), append(grant, "scope", "catalog")},
		"DuckDB":                 {basic(key.ID + ":" + key.Text), append(grant, "scope", "PRINCIPAL_ROLE:ALL")},
		"header and form":        {basic(key.ID + ":" + secret), append(grant, "client_id", key.ID, "client_secret", secret)},
		"no scope, other fields": {basic(":" + key.Text), append(grant, "audience", "x", "resource", "y")},
	} {
		answer, err := f.post(row.header, row.form...)
		if err != nil || answer.TokenType != "bearer" || answer.ExpiresIn != 3600 || answer.IssuedType != typeAccess || answer.Scope == "" {
			t.Errorf("%s: got %+v, error %v", name, answer, err)
			continue
		}
		caller, err := f.ask("Bearer " + answer.AccessToken)
		if err != nil || caller.Name != "key:etl" || caller.KeyID != key.ID || caller.KeyGeneration != 1 || caller.Source != moorage.SourceToken ||
			!caller.Ends.Equal(f.clock.Now().Add(time.Hour)) || caller.Only != nil {
			t.Errorf("%s: got %+v, error %v", name, caller, err)
		}
	}
	if last := f.issued[len(f.issued)-1]; last.Caller.Name != "key:etl" || last.Grant != grantCredentials || last.ID == "" || last.Caller.Address == "" {
		t.Errorf("noted was %+v", last)
	}
}

func TestTokenEndpointRefuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.records.roles["key:etl"] = []string{"writers"}
	key, other := f.key("key:etl"), f.key("key:other")
	token := f.tokenOf(key)
	foreign := f.issuer.sign(ecSigner())
	exchange := func(pairs ...string) []string { return append([]string{"grant_type", grantExchange}, pairs...) }
	credentials := func(pairs ...string) []string { return append([]string{"grant_type", grantCredentials}, pairs...) }
	for name, row := range map[string]struct {
		header string
		form   []string
		status int
		code   string
	}{
		"no grant":          {"", []string{"client_secret", key.Text}, 400, codeRequest},
		"password":          {"", []string{"grant_type", "password"}, 400, codeUnsupported},
		"refresh_token":     {"", []string{"grant_type", "refresh_token"}, 400, codeUnsupported},
		"twice":             {"", credentials("client_secret", key.Text, "client_secret", key.Text), 400, codeRequest},
		"no secret":         {"", credentials("client_id", key.ID), 400, codeRequest},
		"bearer alone":      {"Bearer " + token, credentials(), 400, codeRequest},
		"wrong secret":      {"", credentials("client_id", other.ID, "client_secret", key.Text), 401, codeClient},
		"no key":            {"", credentials("client_id", "root", "client_secret", "s3cr3t"), 401, codeClient},
		"Basic, wrong":      {basic("root:s3cr3t"), credentials(), 401, codeClient},
		"Basic, not base64": {"Basic !", credentials(), 401, codeClient},
		"two credentials":   {basic(":" + key.Text), credentials("client_secret", other.Text), 400, codeRequest},
		"role not held":     {"", credentials("client_secret", key.Text, "scope", "PRINCIPAL_ROLE:admins"), 400, codeScope},
		"one role not held": {"", credentials("client_secret", key.Text, "scope", "PRINCIPAL_ROLE:writers PRINCIPAL_ROLE:admins"), 400, codeScope},
		"no subject":        {"Bearer " + token, exchange("subject_token_type", typeAccess), 400, codeRequest},
		"no subject type":   {"Bearer " + token, exchange("subject_token", token), 400, codeRequest},
		"SAML":              {"Bearer " + token, exchange("subject_token", token, "subject_token_type", "urn:ietf:params:oauth:token-type:saml2"), 400, codeRequest},
		"wants SAML":        {"Bearer " + token, exchange("subject_token", token, "subject_token_type", typeAccess, "requested_token_type", "x"), 400, codeRequest},
		"no bearer":         {"", exchange("subject_token", token, "subject_token_type", typeAccess), 401, codeClient},
		"foreign subject":   {"Bearer " + foreign, exchange("subject_token", foreign, "subject_token_type", typeAccess), 400, codeGrant},
		"foreign bearer":    {"Bearer " + foreign, exchange("subject_token", token, "subject_token_type", typeAccess), 400, codeGrant},
		"bearer of another": {"Bearer " + f.tokenOf(other), exchange("subject_token", token, "subject_token_type", typeAccess), 400, codeGrant},
		"Basic of another":  {basic(":" + other.Text), exchange("subject_token", token, "subject_token_type", typeAccess), 400, codeGrant},
		"key as subject":    {"Bearer " + key.Text, exchange("subject_token", key.Text, "subject_token_type", typeAccess), 400, codeGrant},
		"unsigned subject":  {"Bearer " + token, exchange("subject_token", unsigned(`{"alg":"none"}`, `{"sub":"ann"}`), "subject_token_type", typeJWT), 400, codeGrant},
		"changed subject":   {"Bearer " + token, exchange("subject_token", token[:len(token)-2], "subject_token_type", typeAccess), 400, codeGrant},
		"actor's type":      {"Bearer " + token, exchange("subject_token", token, "subject_token_type", typeJWT, "actor_token", token), 400, codeRequest},
		"no impersonate":    {"Bearer " + token, exchange("subject_token", unsigned(`{"alg":"none"}`, `{"sub":"ann"}`), "subject_token_type", typeJWT, "actor_token", token, "actor_token_type", typeAccess), 400, codeUnallowed},
	} {
		_, err := f.post(row.header, row.form...)
		wantOAuth(t, name, err, row.status, row.code)
		f.clock.Advance(time.Second / 20)
	}
	_, err := f.postBody("", "?client_secret="+key.Text, "grant_type="+grantCredentials)
	wantOAuth(t, "in the query", err, 400, codeRequest)
	_, err = f.postBody("", "", "grant_type=%zz")
	wantOAuth(t, "not a form", err, 400, codeRequest)
	off := newFixture(t, func(c *Config) { c.Records = nil })
	_, err = off.post("", "grant_type", grantCredentials, "client_secret", key.Text)
	wantOAuth(t, "without keys", err, 400, codeUnsupported)
	for i := range failuresMax + 1 {
		_, err = f.post("", "grant_type", grantCredentials, "client_secret", "x")
		if i == failuresMax {
			wantOAuth(t, "too many", err, http.StatusTooManyRequests, codeRequest)
		}
	}
	if _, err = f.post("", "grant_type", grantCredentials, "client_secret", key.Text); err != nil {
		t.Errorf("a right secret: %v", err)
	}
}

// A scope limits a token. A limited token can never get more rights.
func TestScopes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.records.roles["key:etl"] = []string{"readers", "writers"}
	key, narrow := f.key("key:etl"), f.key("key:etl", "readers")
	only := func(key NewKey, scope string) ([]string, string, error) {
		answer, err := f.post("", "grant_type", grantCredentials, "client_secret", key.Text, "scope", scope)
		if err != nil {
			return nil, "", err
		}
		caller, err := f.ask("Bearer " + answer.AccessToken)
		return caller.Only, answer.AccessToken, err
	}
	for _, row := range []struct {
		key   NewKey
		scope string
		want  []string
	}{
		{key, "", nil}, {key, "catalog", nil}, {key, "sign", nil}, {key, "PRINCIPAL_ROLE:ALL", nil}, {key, "anything else", nil},
		{key, "PRINCIPAL_ROLE:writers", []string{"writers"}}, {key, "PRINCIPAL_ROLE:writers catalog PRINCIPAL_ROLE:readers", []string{"readers", "writers"}},
		{narrow, "catalog", []string{"readers"}}, {narrow, "PRINCIPAL_ROLE:ALL", []string{"readers"}},
	} {
		if got, _, err := only(row.key, row.scope); err != nil || !reflect.DeepEqual(got, row.want) {
			t.Errorf("%q: got %#v, error %v", row.scope, got, err)
		}
	}
	_, _, err := only(narrow, "PRINCIPAL_ROLE:writers")
	wantOAuth(t, "a role that the key is without", err, 400, codeScope)

	_, token, err := only(key, "PRINCIPAL_ROLE:readers")
	if err != nil {
		t.Fatal(err)
	}
	renew := func(scope string) (TokenAnswer, error) {
		return f.post("Bearer "+token, "grant_type", grantExchange, "subject_token", token, "subject_token_type", typeAccess, "scope", scope)
	}
	answer, err := renew("catalog")
	if caller, asked := f.ask("Bearer " + answer.AccessToken); err != nil || asked != nil || !reflect.DeepEqual(caller.Only, []string{"readers"}) {
		t.Errorf("renewed: got %+v, errors %v %v", caller, err, asked)
	}
	_, err = renew("PRINCIPAL_ROLE:writers")
	wantOAuth(t, "renewed with another role", err, 400, codeScope)
}

// Java renews its token with an exchange shortly before it expires. After 12 hours, or if the
// client slept, it uses its credential.
func TestRenewal(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	key := f.key("key:etl")
	token := f.tokenOf(key)
	renew := func(header string) error {
		answer, err := f.post(header, "grant_type", grantExchange, "subject_token", token, "subject_token_type", typeAccess, "scope", "catalog")
		if err == nil {
			token = answer.AccessToken
		}
		return err
	}
	renewals := 0
	for ; renewals < 20; renewals++ {
		f.clock.Advance(55 * time.Minute)
		if err := renew("Bearer " + token); err != nil {
			wantOAuth(t, "in the end", err, 400, codeGrant)
			break
		}
		if _, err := f.ask("Bearer " + token); err != nil {
			t.Fatal(err)
		}
	}
	if renewals != 13 {
		t.Errorf("renewed %d times", renewals)
	}
	if err := renew(basic(key.Text)); err != nil { // as Java sends a credential without an id
		t.Fatalf("by the credential: %v", err)
	}
	f.clock.Advance(3 * time.Hour)
	_, err := f.ask("Bearer " + token)
	wantReason(t, f, err, reasonExpired)
	wantOAuth(t, "after a sleep, by the token", renew("Bearer "+token), 400, codeGrant)
	if err := renew(basic(key.ID + ":" + key.Text)); err != nil {
		t.Errorf("after a sleep, by the credential: %v", err)
	}
	if caller, err := f.ask("Bearer " + token); err != nil || caller.Name != "key:etl" {
		t.Errorf("got %+v, error %v", caller, err)
	}
}

// Trino requests tokens in the name of its users: it sends its own token, and an unsigned JWT.
func TestEngineAsksForUsers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *Config) { c.Admins = []string{"corp:root"} })
	engine, other := f.key("key:trino"), f.key("key:other")
	f.records.speaks = map[string]string{"key:trino": "corp", "key:other": "elsewhere"}
	actor := f.tokenOf(engine)
	subjectOf := func(user string) string { // as Trino builds it
		body := must(json.Marshal(map[string]any{"sub": user, "iss": "476", "iat": f.clock.Now().Unix(), "user": user, "source": "trino-cli"}))
		return unsigned(`{"alg":"none"}`, string(body))
	}
	ask := func(bearer, actor, subject string) (TokenAnswer, error) {
		return f.post(bearer, "grant_type", grantExchange, "scope", "catalog", "subject_token", subject, "subject_token_type", typeJWT,
			"actor_token", actor, "actor_token_type", typeAccess)
	}
	for name, row := range map[string]struct{ bearer, actor string }{
		"token": {"Bearer " + actor, actor}, "key as token": {"Bearer " + engine.Text, engine.Text}, "actor alone": {"", actor},
	} {
		answer, err := ask(row.bearer, row.actor, subjectOf("ann"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		caller, err := f.ask("Bearer " + answer.AccessToken)
		if err != nil || caller.Name != "corp:ann" || !reflect.DeepEqual(caller.Via, []string{"key:trino"}) || !caller.IsActing() ||
			caller.KeyID != engine.ID || caller.Roles != nil {
			t.Errorf("%s: got %+v, error %v", name, caller, err)
		}
	}
	users, err := ask("Bearer "+actor, actor, subjectOf("ann"))
	if err != nil {
		t.Fatal(err)
	}
	token := users.AccessToken
	for name, row := range map[string]struct {
		bearer, actor, subject string
		status                 int
		code                   string
	}{
		"an admin":             {"Bearer " + actor, actor, subjectOf("root"), 400, codeUnallowed},
		"no name":              {"Bearer " + actor, actor, subjectOf(""), 400, codeGrant},
		"a hidden name":        {"Bearer " + actor, actor, subjectOf("ann\u200b"), 400, codeGrant},
		"a signed subject":     {"Bearer " + actor, actor, f.issuer.sign(ecSigner()), 400, codeGrant},
		"HS256, no signature":  {"Bearer " + actor, actor, unsigned(`{"alg":"HS256"}`, `{"sub":"ann"}`), 400, codeGrant},
		"no sub":               {"Bearer " + actor, actor, unsigned(`{"alg":"none"}`, `{"SUB":"ann"}`), 400, codeGrant},
		"expired subject":      {"Bearer " + actor, actor, unsigned(`{"alg":"none"}`, `{"sub":"ann","exp":1}`), 400, codeGrant},
		"not a JWT":            {"Bearer " + actor, actor, "ann", 400, codeGrant},
		"actor of another":     {"Bearer " + f.tokenOf(other), actor, subjectOf("ann"), 400, codeGrant},
		"actor is a user":      {"Bearer " + token, token, subjectOf("bob"), 400, codeUnallowed},
		"actor is foreign":     {"", f.issuer.sign(ecSigner()), subjectOf("ann"), 400, codeGrant},
		"alias without issuer": {"", f.tokenOf(other), subjectOf("ann"), 400, codeUnallowed},
		"unknown key":          {"", must(NewAPIKey(zeros{}, "")).Text, subjectOf("ann"), 400, codeGrant},
	} {
		_, err := ask(row.bearer, row.actor, row.subject)
		wantOAuth(t, name, err, row.status, row.code)
	}

	renew := func(header string) (TokenAnswer, error) {
		return f.post(header, "grant_type", grantExchange, "subject_token", token, "subject_token_type", typeAccess)
	}
	wantUser := func(name string, answer TokenAnswer, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if caller, err := f.ask("Bearer " + answer.AccessToken); err != nil || caller.Name != "corp:ann" || !caller.IsActing() {
			t.Errorf("%s: got %+v, error %v", name, caller, err)
		}
	}
	answer, err := renew("Bearer " + token)
	wantUser("renewed by the token", answer, err)
	_, err = renew("Bearer " + actor)
	wantOAuth(t, "renewed by the engine's token", err, 400, codeGrant)
	f.clock.Advance(2 * time.Hour)
	answer, err = renew(basic(engine.Text)) // Java's request for the session of a user
	wantUser("renewed by the engine's credential", answer, err)
	_, err = renew(basic(other.Text))
	wantOAuth(t, "renewed by another engine", err, 400, codeGrant)
	token = answer.AccessToken
	delete(f.records.speaks, "key:trino")
	_, err = renew("Bearer " + token)
	wantOAuth(t, "renewed without impersonate", err, 400, codeUnallowed)
	_, err = renew(basic(engine.Text))
	wantOAuth(t, "renewed by the credential without impersonate", err, 400, codeUnallowed)
	delete(f.records.keys, engine.ID)
	_, err = f.ask("Bearer " + token)
	wantReason(t, f, err, "key:trino "+engine.ID+": withdrawn")
}

// zeros is a source of random bits that returns only zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A token of one node is valid on the others, after one lookup. Keys that no node has published are
// looked up at most ten times a second, however many tokens refer to such keys.
func TestTokensOfOtherNodes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	other := newFixture(t, func(c *Config) { c.Records, c.Now = f.records, f.clock.Now })
	token := f.tokenOf(f.key("key:etl"))
	for range 3 {
		if caller, err := other.ask("Bearer " + token); err != nil || caller.Name != "key:etl" {
			t.Fatalf("got %+v, error %v", caller, err)
		}
	}
	if f.records.lookups != 1 {
		t.Errorf("%d lookups", f.records.lookups)
	}
	forged := make([]string, 500)
	for i := range forged {
		body := must(json.Marshal(ownClaims{Issuer: ownIssuer + "store1", Subject: "key:etl", Ends: f.clock.Now().Unix() + 60}))
		forged[i] = signed(newEdKey(fmt.Sprint("forged", i)), body, nil)
	}
	for i, token := range forged {
		if _, err := other.askFrom(fmt.Sprintf("192.0.2.%d:1", i%250), "Bearer "+token); err == nil {
			t.Fatal("a forged token was accepted")
		}
	}
	if f.records.lookups > 1+lookupsMax {
		t.Errorf("%d lookups in a second", f.records.lookups)
	}
}

// An address that sends tokens with unpublished keys gets 401 and then 429. It does not affect
// other addresses' tokens of another node, or tokens whose key is known.
func TestUnknownKeysAreLimitedByAddress(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	other := newFixture(t, func(c *Config) { c.Records, c.Now = f.records, f.clock.Now })
	kinds := map[moorage.Kind]int{}
	for i := range 10 * lookupsMax { // each address forges as much as its share of failures allows
		body := must(json.Marshal(ownClaims{Issuer: ownIssuer + "store1", Subject: "key:etl", Ends: f.clock.Now().Unix() + 60}))
		forged := signed(newEdKey(fmt.Sprint("unknown", i)), body, nil)
		_, err := other.askFrom(fmt.Sprintf("192.0.2.%d:1", i%10), "Bearer "+forged)
		kinds[moorage.KindOf(err)]++
	}
	if kinds[moorage.KindNotAuthorized]+kinds[moorage.KindTooManyRequests] != 10*lookupsMax || kinds[moorage.KindTooManyRequests] == 0 {
		t.Errorf("forged tokens are answered %v", kinds)
	}
	if f.records.lookups > lookupsMax*3/4+10*lookupsShare {
		t.Errorf("%d lookups in a second", f.records.lookups)
	}
	token := f.tokenOf(f.key("key:etl"))
	for range 2 { // the key is looked up once, and is then known
		if caller, err := other.askFrom("203.0.113.7:1", "Bearer "+token); err != nil || caller.Name != "key:etl" {
			t.Errorf("meanwhile the token of another node: %+v, %v", caller, err)
		}
	}
}

// A token is valid only in its store, and only with a published key.
func TestOwnTokensAreRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	key := f.key("key:etl")
	node := newEdKey("node")
	public := PublicKey{node.private.Public().(ed25519.PublicKey), f.clock.Now().Add(time.Hour)}
	f.records.public["node"] = public
	now := f.clock.Now().Unix()
	good := ownClaims{
		Issuer: ownIssuer + "store1", Subject: "key:etl", ID: "1", Issued: now, Ends: now + 60, Authenticated: now, Key: ownKey{key.ID, 1},
	}
	sign := func(change func(*ownClaims)) string {
		c := good
		change(&c)
		return signed(node, must(json.Marshal(c)), nil)
	}
	if _, err := f.ask("Bearer " + sign(func(*ownClaims) {})); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		change func(*ownClaims)
		reason string
	}{
		"another store":      {func(c *ownClaims) { c.Issuer = ownIssuer + "store2" }, reasonStore},
		"no subject":         {func(c *ownClaims) { c.Subject = "" }, reasonClaims},
		"no key":             {func(c *ownClaims) { c.Key = ownKey{} }, reasonClaims},
		"other generation":   {func(c *ownClaims) { c.Key.Generation = 2 }, "key:etl " + key.ID + ": replaced"},
		"key of another":     {func(c *ownClaims) { c.Subject = "key:other" }, reasonAPIKey},
		"ended":              {func(c *ownClaims) { c.Ends = now }, reasonExpired},
		"lives too long":     {func(c *ownClaims) { c.Ends = now + 13*3600 }, reasonLifetime},
		"actor of other key": {func(c *ownClaims) { c.Actor = &ownActor{"key:other"} }, reasonAPIKey},
	} {
		_, err := f.ask("Bearer " + sign(row.change))
		if wantReason(t, f, err, row.reason); t.Failed() {
			t.Fatal(name)
		}
	}
	f.clock.Advance(2 * time.Hour) // the public key has ended
	now = f.clock.Now().Unix()
	_, err := f.ask("Bearer " + sign(func(c *ownClaims) { c.Issued, c.Ends = now, now+60 }))
	wantReason(t, f, err, reasonKey)
}

// A node signs with a new key after a day. It never signs with a key that it could not publish.
func TestSigningKeyTurns(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	key := f.key("key:etl")
	f.records.down = errDown
	if _, err := f.post("", "grant_type", grantCredentials, "client_secret", key.Text); moorage.KindOf(err) != moorage.KindUnavailable {
		t.Errorf("got %v", err)
	}
	f.records.down = nil
	f.tokenOf(key)
	f.tokenOf(key)
	if len(f.records.public) != 1 {
		t.Errorf("%d keys", len(f.records.public))
	}
	f.clock.Advance(signerLife)
	if _, err := f.ask("Bearer " + f.tokenOf(key)); err != nil || len(f.records.public) != 2 {
		t.Errorf("%d keys, error %v", len(f.records.public), err)
	}
}

// For a key that was once valid, administrators can find its name and why it is no longer valid.
// The response says nothing about that. A wrong secret leads to no name.
func TestDeadKeysAreNamed(t *testing.T) {
	t.Parallel()
	log := new(strings.Builder)
	f := newFixture(t, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	key := f.key("key:etl")
	token := f.tokenOf(key)
	refused := func(header, reason string) {
		t.Helper()
		_, err := f.ask(header)
		if moorage.KindOf(err) != moorage.KindNotAuthorized || strings.Contains(moorage.MessageOf(err), "etl") {
			t.Errorf("%s: %v", reason, err)
		}
		if got := f.lastReason(); !strings.HasPrefix(got, reason) {
			t.Errorf("the reason is %q, want %q", got, reason)
		}
	}
	refused("Bearer "+f.wrong(key), reasonAPIKey)
	known := f.records.keys[key.ID]
	known.Disabled = true
	f.records.keys[key.ID] = known
	refused("Bearer "+key.Text, "key:etl "+key.ID+": principal is disabled")
	known.Disabled = false
	known.Secrets = []KeySecret{known.Secrets[0]}
	known.Secrets[0].Ends = f.clock.Now().Add(-time.Hour)
	f.records.keys[key.ID] = known
	for range 3 {
		refused("Bearer "+key.Text, "key:etl "+key.ID+": ended 2026-07-01T11:00:00Z")
	}
	refused("Bearer "+token, "key:etl "+key.ID+": ended 2026-07-01T11:00:00Z")
	delete(f.records.keys, key.ID)
	refused("Bearer "+token, "key:etl "+key.ID+": withdrawn")
	refused("Bearer "+key.Text, reasonAPIKey)
	if lines := strings.Count(log.String(), "no longer valid"); lines != 3 {
		t.Errorf("%d lines, want one for each reason in a minute: %s", lines, log)
	}
}
