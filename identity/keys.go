package identity

import (
	"context"
	"crypto/subtle"
	"slices"
	"time"

	"moorage"
)

// checkKey checks an API key. It takes the same time for an unknown key as for a wrong secret.
func (a *Authenticator) checkKey(ctx context.Context, id, secret string) (accepted, error) {
	if a.config.Records == nil {
		return accepted{}, refuse(reasonAPIKey)
	}
	key, found, err := a.config.Records.APIKey(ctx, id)
	if err != nil {
		return accepted{}, unavailable("look up an API key", err)
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
		return accepted{}, key.refusal(id, hashOf(secret), now)
	}
	caller := moorage.Caller{
		Name: key.Principal, Only: key.Roles, Source: moorage.SourceKey,
		KeyID: id, KeyGeneration: alive.Generation, Ends: alive.Ends,
	}
	return accepted{caller, key.Epoch, alive.Ends}, nil
}

// refusal returns an error with the reason why a secret with this hash is refused. id is the key's
// id. The error names the key only if the secret is, or was, one of the key's own.
func (k APIKey) refusal(id string, hash [32]byte, now time.Time) error {
	for _, known := range k.Secrets {
		if subtle.ConstantTimeCompare(hash[:], known.SHA256[:]) != 1 {
			continue
		}
		if !now.Before(known.Ends) {
			reason := k.Principal + " " + id + ": ended " + known.Ends.UTC().Format(time.RFC3339)
			return &refusal{reason: reason, isKey: true, ended: known.Ends}
		}
		return refuseKey(k.Principal, id, "principal is disabled")
	}
	return refuse(reasonAPIKey)
}

// whyDead explains why the key for which a token was issued is no longer valid.
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

// keySecretsMax is the maximum number of a key's secrets that are compared. During a replacement, a
// key has an old and a new secret.
const keySecretsMax = 2

// checkAlive checks that the API key for which caller's token was issued is still valid, if there
// is such a key. until is the time when the token expires.
func (a *Authenticator) checkAlive(ctx context.Context, caller moorage.Caller, until time.Time) (accepted, error) {
	if caller.KeyID == "" {
		return accepted{caller: caller}, nil
	}
	if a.config.Records == nil {
		return accepted{}, refuse(reasonAPIKey)
	}
	key, found, err := a.config.Records.APIKey(ctx, caller.KeyID)
	if err != nil {
		return accepted{}, unavailable("look up an API key", err)
	}
	owner := caller.Name
	if caller.IsActing() {
		owner = caller.Via[len(caller.Via)-1]
	}
	if found && key.Principal != owner {
		return accepted{}, refuse(reasonAPIKey)
	}
	now := a.config.Now()
	at := slices.IndexFunc(key.Secrets, func(known KeySecret) bool {
		return known.Generation == caller.KeyGeneration && now.Before(known.Ends)
	})
	if !found || key.Disabled || at < 0 {
		return accepted{}, refuseKey(owner, caller.KeyID, key.whyDead(found, caller.KeyGeneration))
	}
	if ends := key.Secrets[at].Ends; ends.Before(until) {
		until = ends
	}
	return accepted{caller, key.Epoch, until}, nil
}
