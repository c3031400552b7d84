package identity

import (
	"context"
	"crypto/subtle"
	"time"

	"moorage"
)

// callerOfKey returns who shows that key. A key that is not known costs as much as a wrong secret.
func (a *Authenticator) callerOfKey(ctx context.Context, id, secret string) (moorage.Caller, error) {
	if a.config.Records == nil {
		return moorage.Caller{}, refuse(reasonAPIKey)
	}
	key, found, err := a.config.Records.APIKey(ctx, id)
	if err != nil {
		return moorage.Caller{}, unavailable("look up an API key", err)
	}
	given, now := hashOf(secret), a.config.Now()
	var alive KeySecret
	matches := 0
	for i := range keySecretsMax {
		var known KeySecret // whose hash nothing has
		if i < len(key.Secrets) {
			known = key.Secrets[i]
		}
		if subtle.ConstantTimeCompare(given[:], known.SHA256[:]) == 1 && now.Before(known.Ends) {
			alive = known
			matches++
		}
	}
	if !found || matches == 0 {
		return moorage.Caller{}, refuse(reasonAPIKey)
	}
	return moorage.Caller{
		Name: key.Principal, Only: key.Roles, Source: moorage.SourceKey,
		KeyID: id, KeyGeneration: alive.Generation, Ends: alive.Ends,
	}, nil
}

// keySecretsMax is how many secrets of a key are looked at: the old one and the new one while it is
// being replaced.
const keySecretsMax = 2

// isAlive reports whether the API key by which caller got its credential is still alive.
func (a *Authenticator) isAlive(ctx context.Context, caller *moorage.Caller, now time.Time) (bool, error) {
	if a.config.Records == nil {
		return false, nil
	}
	key, found, err := a.config.Records.APIKey(ctx, caller.KeyID)
	if err != nil {
		return false, unavailable("look up an API key", err)
	}
	owner := caller.Name
	if caller.IsActing() {
		owner = caller.Via[len(caller.Via)-1]
	}
	if !found || key.Principal != owner {
		return false, nil
	}
	for _, known := range key.Secrets {
		if known.Generation == caller.KeyGeneration && now.Before(known.Ends) {
			return true, nil
		}
	}
	return false, nil
}
