package grants

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"moorage"
	"moorage/access"
	"moorage/ledger"
	"moorage/registry"
)

// KeySecret is the data that authentication compares with a presented credential.
type KeySecret struct {
	SHA256     [32]byte
	Generation uint64
	Ends       time.Time
}

// KnownKey is an API key in the form that authentication needs.
type KnownKey struct {
	Principal string
	Disabled  bool // whether its principal is disabled
	Roles     []string
	Secrets   []KeySecret // including expired secrets
	Epoch     uint64      // the epoch of the policy that has the key
}

// PublicKey is the public half of a key that nodes use to sign tokens.
type PublicKey struct {
	ID        string
	Algorithm string
	Key       string    // base64url without padding
	Ends      time.Time // when the last token signed with the key expires
}

// Key returns the API key called id, for authentication. found is false if there is no such key.
// The key may have expired, and its principal may be disabled. The caller needs no privileges. A
// key that was created before the call is found, on every node. For ids that this node does not
// know, Key reads the store at most ten times a second.
func (g *Grants) Key(ctx context.Context, id string) (key KnownKey, found bool, err error) {
	const op = "grants.Key"
	if g.guard == nil {
		return KnownKey{}, false, nil
	}
	policy, on, err := g.guard.Known(ctx)
	if err != nil {
		return KnownKey{}, false, moorage.Annotate(op, "", err)
	}
	fresh := g.guard.FreshForUnknown
	if on {
		if known, found := knownKey(policy, id); found && known.lives(g.now()) {
			fresh = g.guard.Fresh
		}
	}
	if policy, on, err = fresh(ctx); err != nil || !on {
		return KnownKey{}, false, moorage.Annotate(op, "", err)
	}
	key, found = knownKey(policy, id)
	return key, found, nil
}

// Epoch returns the epoch of the store's present policy. Each change of a key or a principal
// changes the epoch. It is 0 if access control is disabled. The caller needs no privileges.
func (g *Grants) Epoch(ctx context.Context) (uint64, error) {
	if g.guard == nil {
		return 0, nil
	}
	policy, on, err := g.guard.Fresh(ctx)
	if err != nil || !on {
		return 0, moorage.Annotate("grants.Epoch", "", err)
	}
	return policy.Epoch(), nil
}

// knownKey returns the API key called id from policy.
func knownKey(policy *access.Snapshot, id string) (key KnownKey, found bool) {
	secrets, owner := policy.Keys(id)
	key.Principal, key.Disabled, key.Epoch = owner.Name, owner.Disabled, policy.Epoch()
	for _, each := range secrets {
		key.Roles = each.Roles
		key.Secrets = append(key.Secrets, KeySecret{each.SHA256, each.Generation, each.Ends})
	}
	return key, len(key.Secrets) > 0
}

// lives reports whether any secret of k is valid at the time now.
func (k KnownKey) lives(now time.Time) bool {
	return !k.Disabled && slices.ContainsFunc(k.Secrets, func(s KeySecret) bool { return now.Before(s.Ends) })
}

// KeyEnd is the expiry of an API key.
type KeyEnd struct {
	Principal string
	ID        string
	Ends      time.Time // the expiry of its newest secret
}

// KeyEnds returns the expiry of all API keys whose principals are not disabled, soonest first. It
// includes expired keys. The result is empty while access control is disabled. The caller needs no
// privileges.
func (g *Grants) KeyEnds(ctx context.Context) (ends []KeyEnd, err error) {
	if g.guard == nil {
		return nil, nil
	}
	policy, on, err := g.guard.Fresh(ctx)
	if err != nil || !on {
		return nil, moorage.Annotate("grants.KeyEnds", "", err)
	}
	for _, name := range policy.Principals() {
		principal, _ := policy.Principal(name)
		if principal.Disabled {
			continue
		}
		newest := make(map[string]time.Time)
		for _, key := range principal.Keys {
			if key.Ends.After(newest[key.ID]) {
				newest[key.ID] = key.Ends
			}
		}
		for id, end := range newest {
			ends = append(ends, KeyEnd{name, id, end})
		}
	}
	slices.SortFunc(ends, func(a, b KeyEnd) int {
		return cmp.Or(a.Ends.Compare(b.Ends), strings.Compare(a.ID, b.ID))
	})
	return ends, nil
}

// SpeaksFor returns the alias of the issuer whose subjects caller may act for. If there is no such
// issuer, or if caller lacks the privilege impersonate, the result called may is false.
func (g *Grants) SpeaksFor(ctx context.Context, caller moorage.Caller) (alias string, may bool, err error) {
	const op = "grants.SpeaksFor"
	if g.guard == nil {
		return "", false, nil
	}
	who, _, err := g.guard.Who(ctx, caller)
	if err != nil || who == nil {
		return "", false, moorage.Annotate(op, caller.Name, err)
	}
	if who.Decide(nil, access.Impersonate).Outcome != access.Allow {
		return "", false, nil
	}
	p, err := g.readPrincipal(ctx, caller.Name)
	return p.value.SpeaksFor, err == nil && p.value.SpeaksFor != "", moorage.Annotate(op, caller.Name, err)
}

// RolesOf returns the direct and inherited roles of caller, sorted.
func (g *Grants) RolesOf(ctx context.Context, caller moorage.Caller) ([]string, error) {
	const op = "grants.RolesOf"
	if g.guard == nil {
		return nil, nil
	}
	who, _, err := g.guard.Who(ctx, caller)
	if err != nil || who == nil {
		return nil, moorage.Annotate(op, caller.Name, err)
	}
	return who.Roles(), nil
}

// StoreID returns the ID of the store in tokens. It is zero while access control is disabled.
func (g *Grants) StoreID(ctx context.Context) (registry.ID, error) {
	if g.guard == nil {
		return registry.ID{}, nil
	}
	if _, _, err := g.guard.Fresh(ctx); err != nil {
		return registry.ID{}, moorage.Annotate("grants.StoreID", "", err)
	}
	store, _, err := g.guard.Store(ctx)
	return store.ID, moorage.Annotate("grants.StoreID", "", err)
}

// publicKeysMax is the maximum number of public keys that PublishKey checks for expiry.
const publicKeysMax = 1000

// PublishKey stores the public half of a key. After it returns, other nodes find the key. It also
// removes expired keys.
func (g *Grants) PublishKey(ctx context.Context, key PublicKey) error {
	const op = "grants.PublishKey"
	records := g.ledger
	writes, err := ledger.Encode(ledger.Put(registry.PublicKeyKey(key.ID), registry.StateNone, registry.PublicKey{
		Algorithm: key.Algorithm, Key: key.Key, Ends: key.Ends,
	}))
	if err != nil {
		return moorage.Annotate(op, key.ID, err)
	}
	const prefix = registry.PublicKeyPrefix
	err = records.Scan(ctx, registry.TableAccess, prefix, "", func(record registry.Record) (bool, error) {
		old, err := ledger.Decode[registry.PublicKey](record)
		if err == nil && old.Ends.Before(g.now()) && record.Key != writes[0].Key {
			writes = append(writes, registry.Delete(record.Key))
		}
		return len(writes) < publicKeysMax, nil
	})
	if err == nil {
		_, err = records.Step(ctx, registry.Batch{Writes: writes})
		err = ledger.StepError(op, err)
	}
	return moorage.Annotate(op, key.ID, err)
}

// PublicKey returns the public key called id. found is false if there is no such key.
func (g *Grants) PublicKey(ctx context.Context, id string) (key PublicKey, found bool, err error) {
	records, err := g.ledger.Get(ctx, registry.PublicKeyKey(id))
	if err != nil || !records[0].Exists() {
		return PublicKey{}, false, moorage.Annotate("grants.PublicKey", id, err)
	}
	value, err := ledger.Decode[registry.PublicKey](records[0])
	key = PublicKey{id, value.Algorithm, value.Key, value.Ends}
	return key, err == nil, moorage.Annotate("grants.PublicKey", id, err)
}

// ConsoleKey returns the record of the key that all nodes use to encrypt browser sessions. If the
// store has no such record, or still has the one whose Key equals former, ConsoleKey stores the
// result of draw. If another node was faster, it returns the record of that node.
func (g *Grants) ConsoleKey(ctx context.Context, former string, draw func() (registry.ConsoleKey, error)) (
	registry.ConsoleKey, error) {
	const op = "grants.ConsoleKey"
	for range consoleKeyTries {
		found, exists, record, err := g.readConsoleKey(ctx)
		if err != nil {
			return registry.ConsoleKey{}, moorage.Annotate(op, "", err)
		}
		if exists && found.Key != former {
			return found, nil
		}
		made, err := draw()
		if err != nil {
			return registry.ConsoleKey{}, moorage.Annotate(op, "", err)
		}
		made.Drawn = g.now().UTC()
		writes, err := ledger.Encode(ledger.Put(registry.ConsoleKeyKey(), registry.StateNone, made))
		if err != nil {
			return registry.ConsoleKey{}, moorage.Annotate(op, "", err)
		}
		asRead := []registry.Condition{ledger.AsRead(record, registry.ConsoleKeyKey())}
		_, err = g.ledger.Step(ctx, registry.Batch{Conditions: asRead, Writes: writes})
		if _, lost := registry.FailedCondition(err); lost {
			continue
		}
		return made, moorage.Annotate(op, "", ledger.StepError(op, err))
	}
	return registry.ConsoleKey{},
		moorage.Errorf(moorage.KindUnavailable, "The key of sessions is being drawn; try again")
}

// RedrawConsoleKey replaces the record of ConsoleKey with the result of draw, which ends all
// sessions. It does nothing if the store has no such record.
func (g *Grants) RedrawConsoleKey(ctx context.Context, draw func() (registry.ConsoleKey, error)) error {
	found, exists, _, err := g.readConsoleKey(ctx)
	if err == nil && exists {
		_, err = g.ConsoleKey(ctx, found.Key, draw)
	}
	return moorage.Annotate("grants.RedrawConsoleKey", "", err)
}

func (g *Grants) readConsoleKey(ctx context.Context) (
	key registry.ConsoleKey, exists bool, record registry.Record, err error) {
	records, err := g.ledger.Get(ctx, registry.ConsoleKeyKey())
	if err != nil || !records[0].Exists() {
		return key, false, registry.Record{}, err
	}
	key, err = ledger.Decode[registry.ConsoleKey](records[0])
	return key, true, records[0], err
}

// consoleKeyTries is how many times ConsoleKey reads the record. If another node was faster, the
// second read finds its record.
const consoleKeyTries = 3
