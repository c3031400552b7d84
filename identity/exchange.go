package identity

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"moorage"
)

// exchange answers a request for a token exchange. The request contains one of the store's own
// tokens, or the name of a user for whom an engine acts. Source: RFC 8693, and the requests of
// Java, Trino and PyIceberg.
func (a *Authenticator) exchange(ctx context.Context, r tokenRequest) (TokenAnswer, error) {
	types := []string{typeAccess, typeJWT}
	for _, name := range []string{"subject_token", "subject_token_type"} {
		if r.form.Get(name) == "" {
			return TokenAnswer{}, oauthErrorf(codeRequest, "%s is missing", name)
		}
	}
	if !slices.Contains(types, r.form.Get("subject_token_type")) {
		return TokenAnswer{}, oauthErrorf(codeRequest, "subject_token_type must be one of %v", types)
	}
	if wanted := r.form.Get("requested_token_type"); wanted != "" && !slices.Contains(types, wanted) {
		return TokenAnswer{}, oauthErrorf(codeRequest, "requested_token_type must be one of %v", types)
	}
	if r.form.Get("actor_token") != "" {
		return a.exchangeFor(ctx, r, types)
	}
	return a.renew(ctx, r)
}

// renew answers a request to replace one of the store's own tokens with a new one. If the token has
// not expired, the token itself can authenticate the request, as the bearer token. Otherwise the
// request must have the API key that the token was issued for.
func (a *Authenticator) renew(ctx context.Context, r tokenRequest) (TokenAnswer, error) {
	client, shown, err := a.clientOf(ctx, r)
	if err != nil {
		return TokenAnswer{}, err
	}
	which := isNotExpired
	if shown {
		which = maybeExpired
	}
	old, err := a.ownToken(ctx, r.form.Get("subject_token"), which, r.address)
	if err != nil {
		return TokenAnswer{}, err
	}
	caller, authenticated := old.caller(), time.Unix(old.Authenticated, 0)
	if shown {
		owner := caller.Name
		if caller.IsActing() {
			owner = caller.Via[0]
		}
		if owner != client.Name {
			return TokenAnswer{}, oauthErrorf(codeGrant, "The token does not belong to its sender")
		}
		authenticated = a.config.Now()
		caller.KeyID, caller.KeyGeneration = client.KeyID, client.KeyGeneration
		if !caller.IsActing() {
			return a.issue(ctx, r, client, authenticated) // the same answer as for a request with only the key
		}
	} else if err := a.checkBearer(ctx, r, caller); err != nil {
		return TokenAnswer{}, err
	}
	if caller.IsActing() {
		if err := a.mayStillActFor(ctx, caller); err != nil {
			return TokenAnswer{}, err
		}
	}
	return a.issue(ctx, r, caller, authenticated)
}

// ownToken reads one of the store's own tokens, which is the subject or actor of an exchange.
// address is the address of the request.
func (a *Authenticator) ownToken(ctx context.Context, text string, which expiry, address string) (ownClaims, error) {
	t, err := parseToken(text)
	if err == nil {
		if from, _ := t.claims.text("iss"); !strings.HasPrefix(from, ownIssuer) {
			return ownClaims{}, oauthErrorf(codeGrant, "The token is of another issuer: use it as it is")
		}
		var c ownClaims
		if c, err = a.ownClaimsOf(ctx, t, which, address); err == nil {
			if which == maybeExpired { // the request's own key decides, not the key that the token was issued for
				return c, nil
			}
			if _, err = a.checkAlive(ctx, c.caller(), time.Time{}); err == nil {
				return c, nil
			}
		}
	}
	if refused, ok := errors.AsType[*refusal](err); ok {
		if refused.reason == reasonExpired {
			return ownClaims{}, oauthErrorf(codeGrant, "The token has expired: present the credential")
		}
		return ownClaims{}, oauthErrorf(codeGrant, "The token is not valid")
	}
	return ownClaims{}, err
}

// checkBearer returns an error if the credential that authenticates an exchange does not belong to
// caller.
func (a *Authenticator) checkBearer(ctx context.Context, r tokenRequest, caller moorage.Caller) error {
	if r.header == "" {
		return oauthErrorf(codeClient, "Authentication required: the request has no credentials")
	}
	sender, err := a.authorize(ctx, r.header, r.address)
	if _, refused := errors.AsType[*refusal](err); refused {
		return oauthErrorf(codeClient, "Invalid credentials")
	}
	if err != nil {
		return err
	}
	if sender.caller.Name != caller.Name || !slices.Equal(sender.caller.Via, caller.Via) {
		return oauthErrorf(codeGrant, "The token does not belong to its sender")
	}
	return nil
}

// mayStillActFor returns an error if the engine that acts in the name of caller may no longer do
// so.
func (a *Authenticator) mayStillActFor(ctx context.Context, caller moorage.Caller) error {
	key, _, err := a.config.Records.APIKey(ctx, caller.KeyID)
	if err != nil {
		return unavailable("look up an API key", err)
	}
	engine := moorage.Caller{
		Name: caller.Via[0], Only: key.Roles, Source: moorage.SourceToken,
		KeyID: caller.KeyID, KeyGeneration: caller.KeyGeneration,
	}
	alias, err := a.aliasFor(ctx, engine)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(caller.Name, alias+":") || slices.Contains(a.config.Admins, caller.Name) {
		return oauthErrorf(codeUnallowed, "%s may not act for that principal", engine.Name)
	}
	return nil
}

// aliasFor returns the alias of the issuer for whose subjects engine may act.
func (a *Authenticator) aliasFor(ctx context.Context, engine moorage.Caller) (string, error) {
	alias, may, err := a.config.Records.SpeaksFor(ctx, engine)
	switch {
	case err != nil:
		return "", unavailable("look up what an engine may", err)
	case !may:
		return "", oauthErrorf(codeUnallowed, "%s may not act for others: it needs impersonate", engine.Name)
	case !a.aliases[alias]:
		return "", oauthErrorf(codeUnallowed, "%s speaks for %.70q, and there is no such issuer", engine.Name, alias)
	}
	return alias, nil
}

// exchangeFor answers a request by an engine, the actor, that acts in the name of a user. Trino
// sends the user in a JWT without a signature. The JWT is trusted because the engine has the right
// to impersonate.
func (a *Authenticator) exchangeFor(ctx context.Context, r tokenRequest, types []string) (TokenAnswer, error) {
	if !slices.Contains(types, r.form.Get("actor_token_type")) {
		return TokenAnswer{}, oauthErrorf(codeRequest, "actor_token_type must be one of %v", types)
	}
	engine, authenticated, err := a.actorOf(ctx, r)
	if err != nil {
		return TokenAnswer{}, err
	}
	if r.form.Get("subject_token_type") != typeJWT {
		return TokenAnswer{}, oauthErrorf(codeGrant, "The subject of an engine is a JWT without a signature")
	}
	subject, err := a.unsignedSubject(r.form.Get("subject_token"))
	if err != nil {
		return TokenAnswer{}, err
	}
	alias, err := a.aliasFor(ctx, engine)
	if err != nil {
		return TokenAnswer{}, err
	}
	name, ok := nameOf(alias, subject)
	if !ok {
		return TokenAnswer{}, oauthErrorf(codeGrant, "The subject has no name that can be used")
	}
	if slices.Contains(a.config.Admins, name) {
		return TokenAnswer{}, oauthErrorf(codeUnallowed, "%s may not act for that principal", engine.Name)
	}
	return a.issue(ctx, r, moorage.Caller{
		Name: name, Via: []string{engine.Name}, KeyID: engine.KeyID, KeyGeneration: engine.KeyGeneration,
	}, authenticated)
}

// actorOf returns the engine that makes the request, and the time at which it presented its
// credential.
func (a *Authenticator) actorOf(ctx context.Context, r tokenRequest) (moorage.Caller, time.Time, error) {
	shown := r.form.Get("actor_token")
	engine, authenticated := moorage.Caller{}, a.config.Now()
	if id, secret, ok := parseAPIKey(shown); ok {
		key, err := a.checkKey(ctx, id, secret)
		if _, refused := errors.AsType[*refusal](err); refused {
			err = oauthErrorf(codeGrant, "The actor is not valid")
		}
		if err != nil {
			return moorage.Caller{}, time.Time{}, err
		}
		engine = key.caller
	} else {
		c, err := a.ownToken(ctx, shown, isNotExpired, r.address)
		if err != nil {
			return moorage.Caller{}, time.Time{}, err
		}
		engine, authenticated = c.caller(), time.Unix(c.Authenticated, 0)
	}
	if engine.IsActing() {
		return moorage.Caller{}, time.Time{}, oauthErrorf(codeUnallowed,
			"A caller that acts for another may not pass that on")
	}
	if r.header == "" {
		return engine, authenticated, nil
	}
	return engine, authenticated, a.checkBearer(ctx, r, engine)
}

// unsignedSubject returns the subject of a JWT without a signature.
func (a *Authenticator) unsignedSubject(text string) (string, error) {
	if len(text) > tokenBytesMax || !strings.HasSuffix(text, ".") {
		return "", oauthErrorf(codeGrant, "The subject is signed: use it as it is")
	}
	header, body, err := splitToken(text)
	if err != nil {
		return "", oauthErrorf(codeGrant, "The subject is not a JWT")
	}
	if algorithm, _ := header.text("alg"); algorithm != "none" {
		return "", oauthErrorf(codeGrant, "The subject is signed: use it as it is")
	}
	if ends, found, err := body.moment("exp"); err != nil || found && !a.config.Now().Before(ends.Add(leeway)) {
		return "", oauthErrorf(codeGrant, "The subject has expired")
	}
	subject, ok := body.text("sub")
	if !ok {
		return "", oauthErrorf(codeGrant, "The subject has no sub")
	}
	return subject, nil
}
