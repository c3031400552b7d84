package identity

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"moorage"
)

// expiry selects whether expired tokens of the store are accepted.
type expiry bool

const (
	isNotExpired expiry = false // tokens that have not expired
	maybeExpired expiry = true
)

// verifyOwn returns the caller of one of the store's own tokens.
func (a *Authenticator) verifyOwn(ctx context.Context, t *token, address string) (moorage.Caller, error) {
	c, err := a.ownClaimsOf(ctx, t, isNotExpired, address)
	if err != nil {
		return moorage.Caller{}, err
	}
	return c.caller(), nil
}

// ownClaimsOf returns the claims of a token that a node of this store has issued. The token was
// sent from address.
func (a *Authenticator) ownClaimsOf(ctx context.Context, t *token, which expiry, address string) (ownClaims, error) {
	if a.config.Records == nil {
		return ownClaims{}, refuse(reasonIssuer)
	}
	body, err := a.mint.verify(ctx, t, address)
	if err != nil {
		return ownClaims{}, err
	}
	store, err := a.config.Records.Store(ctx)
	if err != nil {
		return ownClaims{}, unavailable("look up the store", err)
	}
	var c ownClaims
	if json.Unmarshal(body, &c) != nil || !isName(c.Subject) || c.Subject == "" || c.Key.ID == "" {
		return ownClaims{}, refuse(reasonClaims)
	}
	if c.Issuer != ownIssuer+store {
		return ownClaims{}, refuse(reasonStore)
	}
	_, err = t.claims.checkTimes(a.config.Now(), tokenLifetimeMax, 0)
	if refused, ok := errors.AsType[*refusal](err); ok && which == maybeExpired && refused.reason == reasonExpired {
		err = nil
	}
	return c, err
}

// give signs a token for caller. authenticated is when the caller presented its credential.
func (a *Authenticator) give(ctx context.Context, caller moorage.Caller, authenticated time.Time, grant string) (
	text string, life time.Duration, err error) {
	now := a.config.Now()
	life = min(a.config.TokenLifetime, authenticated.Add(tokenLifetimeMax).Sub(now)).Truncate(time.Second)
	if life <= 0 {
		return "", 0, oauthErrorf(codeGrant, "The credential was presented more than %s ago: present it again",
			tokenLifetimeMax)
	}
	id, err := drawText(a.config.Random, 22)
	if err != nil {
		return "", 0, err
	}
	store, err := a.config.Records.Store(ctx)
	if err != nil {
		return "", 0, unavailable("look up the store", err)
	}
	c := ownClaims{
		Issuer: ownIssuer + store, Subject: caller.Name, ID: id, Only: slices.Clone(caller.Only),
		Issued: now.Unix(), Ends: now.Add(life).Unix(), Authenticated: authenticated.Unix(),
		Key: ownKey{caller.KeyID, caller.KeyGeneration},
	}
	if caller.IsActing() {
		c.Actor = &ownActor{caller.Via[0]}
	}
	if text, err = a.mint.sign(ctx, c); err != nil {
		return "", 0, err
	}
	stands := c.caller()
	stands.Address, stands.Client = caller.Address, caller.Client
	a.config.Issued(ctx, Issued{Caller: stands, Grant: grant, ID: id, Ends: stands.Ends})
	return text, life, nil
}
