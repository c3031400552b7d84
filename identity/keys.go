package identity

import (
	"context"
	"crypto/subtle"
	"slices"
	"time"

	"moorage"
)

// callerOfKey returns the caller of an API key. It takes as much time for an unknown key as for a
// wrong secret.
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
		var known KeySecret // the zero value, because no secret has its hash
		if i < len(key.Secrets) {
			known = key.Secrets[i]
		}
		if subtle.ConstantTimeCompare(given[:], known.SHA256[:]) == 1 && now.Before(known.Ends) {
			alive = known
			matches++
		}
	}
	if !found || matches == 0 || key.Disabled {
		return moorage.Caller{}, key.refusal(id, hashOf(secret), now)
	}
	return moorage.Caller{
		Name: key.Principal, Only: key.Roles, Source: moorage.SourceKey,
		KeyID: id, KeyGeneration: alive.Generation, Ends: alive.Ends,
	}, nil
}

// refusal returns an error that has the reason why a secret with the hash given is refused. id is
// the id of the key. The error names the key only if the secret is, or was, one of the key's own.
func (k APIKey) refusal(id string, given [32]byte, now time.Time) error {
	for _, known := range k.Secrets {
		if subtle.ConstantTimeCompare(given[:], known.SHA256[:]) != 1 {
			continue
		}
		if !now.Before(known.Ends) {
			return refuseKey(k.Principal, id, "ended "+known.Ends.UTC().Format(time.RFC3339))
		}
		return refuseKey(k.Principal, id, "principal is disabled")
	}
	return refuse(reasonAPIKey)
}

// whyDead returns why the key for which a token was issued is no longer valid.
func (k APIKey) whyDead(found bool, generation uint64) string {
	switch {
	case !found:
		return "withdrawn"
	case k.Disabled:
		return "principal is disabled"
	}
	for _, known := range k.Secrets {
		if known.Generation == generation {
			return "ended " + known.Ends.UTC().Format(time.RFC3339)
		}
	}
	return "replaced"
}

// keySecretsMax is how many secrets of a key are compared. During a replacement, a key has an old
// and a new one.
const keySecretsMax = 2

// refuseDead returns an error if caller's credential was issued for an API key that is no longer
// valid, and nil otherwise.
func (a *Authenticator) refuseDead(ctx context.Context, caller *moorage.Caller, now time.Time) error {
	if a.config.Records == nil {
		return refuse(reasonAPIKey)
	}
	key, found, err := a.config.Records.APIKey(ctx, caller.KeyID)
	if err != nil {
		return unavailable("look up an API key", err)
	}
	owner := caller.Name
	if caller.IsActing() {
		owner = caller.Via[len(caller.Via)-1]
	}
	if found && key.Principal != owner {
		return refuse(reasonAPIKey)
	}
	isAlive := found && !key.Disabled &&
		slices.ContainsFunc(key.Secrets, func(known KeySecret) bool {
			return known.Generation == caller.KeyGeneration && now.Before(known.Ends)
		})
	if isAlive {
		return nil
	}
	return refuseKey(owner, caller.KeyID, key.whyDead(found, caller.KeyGeneration))
}
