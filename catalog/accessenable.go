package catalog

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog/commit"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
)

// IsOn reports whether access control is on in the store.
func (a Access) IsOn(ctx context.Context) (bool, error) {
	if a.catalog.planner.guard == nil {
		return false, nil
	}
	_, on, err := a.catalog.planner.guard.Fresh(ctx)
	return on, moorage.Annotate("catalog.IsOn", "", err)
}

// Enable switches access control on, permanently. From then on every action requires a grant. It
// returns nil if access control is on already. A principal that does this gets admin, operate and
// audit, so that it can grant privileges. The caller must be authenticated.
func (a Access) Enable(ctx context.Context) error {
	const op = "catalog.Enable"
	by := a.catalog.caller
	on, err := a.IsOn(ctx)
	switch {
	case err != nil || on:
		return moorage.Annotate(op, "", err)
	case a.catalog.planner.guard == nil:
		return moorage.Annotate(op, "", moorage.Errorf(moorage.KindUnsupported,
			"This server decides nothing about access"))
	case !gate.IsSystem(by) && access.GranteeOf(by.Name) != access.IsPrincipal:
		return moorage.Annotate(op, "", moorage.Errorf(moorage.KindNotAuthorized,
			"Show who you are to switch access on, or do it on the store: moorage key create --admin NAME"))
	}
	_, err = a.catalog.submit(ctx, commit.Intent{
		Verb: gate.EnableAccess, On: []moorage.Identifier{{}}, Silent: true,
		Plan: func(ctx context.Context, _ *commit.Attempt) (*commit.Plan, error) {
			return a.catalog.planner.planEnable(ctx, by)
		},
	})
	return moorage.Annotate(op, "", err)
}

// planEnable plans the first epoch.
func (p *planner) planEnable(ctx context.Context, by moorage.Caller) (*commit.Plan, error) {
	id, err := p.ledger.NewID()
	if err != nil {
		return nil, err
	}
	store := registry.AccessStore{ID: id, Since: p.now()}
	if _, err := io.ReadFull(p.random, store.PageKey[:]); err != nil {
		return nil, moorage.E("catalog.planEnable", "", moorage.KindInternal, err)
	}
	first := registry.PolicyChange{Epoch: 1, Keys: []registry.Key{}}
	var puts []ledger.Write
	conditions := []registry.Condition{registry.Absent(registry.EpochKey())}
	if !gate.IsSystem(by) {
		key := registry.GrantsKey(registry.ID{})
		privileges := access.OfAdministrators
		puts = append(puts, ledger.Put(key, registry.StateNone, registry.Grants{
			Kind:   access.Server.String(),
			Grants: []registry.Grant{{Grantee: by.Name, Privileges: privileges.Words(), By: by.Name, At: p.now()}},
		}))
		first.Keys, conditions = append(first.Keys, key), append(conditions, registry.Absent(key))
	}
	puts = append(puts,
		ledger.Put(registry.EpochKey(), registry.StateNone, registry.Epoch{Number: 1}),
		ledger.Put(registry.RecentKey(), registry.StateNone, registry.Recent{Changes: []registry.PolicyChange{first}}),
		ledger.Put(registry.AccessStoreKey(), registry.StateNone, store))
	writes, err := ledger.Encode(puts...)
	records, getErr := p.ledger.Get(ctx, registry.EpochKey())
	switch {
	case err != nil:
		return nil, err
	case getErr != nil:
		return nil, getErr
	case records[0].Exists(): // another call was first
		return &commit.Plan{Empty: true}, nil
	}
	return &commit.Plan{Conditions: conditions, Writes: writes}, nil
}

// Key returns the API key called id, for authentication; found is false if there is none. The key
// may have expired, and its principal may be disabled. The caller needs no privileges. A key that
// was created before the call is found, on every node. For an id that this node does not know, Key
// reads the store, at most ten times a second.
func (a Access) Key(ctx context.Context, id string) (key KnownKey, found bool, err error) {
	const op = "catalog.Key"
	g := a.catalog.planner.guard
	if g == nil {
		return KnownKey{}, false, nil
	}
	policy, on, err := g.Known(ctx)
	if err != nil {
		return KnownKey{}, false, moorage.Annotate(op, "", err)
	}
	fresh := g.FreshForUnknown
	if on {
		if known, found := knownKey(policy, id); found && known.lives(a.catalog.planner.now()) {
			fresh = g.Fresh
		}
	}
	if policy, on, err = fresh(ctx); err != nil || !on {
		return KnownKey{}, false, moorage.Annotate(op, "", err)
	}
	key, found = knownKey(policy, id)
	return key, found, nil
}

// knownKey returns the API key called id from policy.
func knownKey(policy *access.Snapshot, id string) (key KnownKey, found bool) {
	secrets, owner := policy.Keys(id)
	key.Principal, key.Disabled = owner.Name, owner.Disabled
	for _, each := range secrets {
		key.Roles = each.Roles
		key.Secrets = append(key.Secrets, KeySecret{each.SHA256, each.Generation, each.Ends})
	}
	return key, len(key.Secrets) > 0
}

// lives reports whether a secret of k is valid at now.
func (k KnownKey) lives(now time.Time) bool {
	return !k.Disabled && slices.ContainsFunc(k.Secrets, func(s KeySecret) bool { return now.Before(s.Ends) })
}

// KeyEnd is the expiry of an API key.
type KeyEnd struct {
	Principal string
	ID        string
	Ends      time.Time // of its newest secret
}

// KeyEnds returns the expiry of all API keys whose principals are not disabled, the soonest first.
// It includes expired keys. It is empty while access control is off. The caller needs no
// privileges.
func (a Access) KeyEnds(ctx context.Context) (ends []KeyEnd, err error) {
	if a.catalog.planner.guard == nil {
		return nil, nil
	}
	policy, on, err := a.catalog.planner.guard.Fresh(ctx)
	if err != nil || !on {
		return nil, moorage.Annotate("catalog.KeyEnds", "", err)
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

// SpeaksFor returns the alias of the issuer whose subjects caller may act for. may is false if
// there is none. It requires impersonate.
func (a Access) SpeaksFor(ctx context.Context, caller moorage.Caller) (alias string, may bool, err error) {
	const op = "catalog.SpeaksFor"
	if a.catalog.planner.guard == nil {
		return "", false, nil
	}
	who, _, err := a.catalog.planner.guard.Who(ctx, caller)
	if err != nil || who == nil {
		return "", false, moorage.Annotate(op, caller.Name, err)
	}
	if who.Decide(nil, access.Impersonate).Outcome != access.Allow {
		return "", false, nil
	}
	p, err := readPrincipal(ctx, a.catalog.planner, caller.Name)
	return p.value.SpeaksFor, err == nil && p.value.SpeaksFor != "", moorage.Annotate(op, caller.Name, err)
}

// RolesOf returns the roles of caller, direct and inherited; sorted.
func (a Access) RolesOf(ctx context.Context, caller moorage.Caller) ([]string, error) {
	const op = "catalog.RolesOf"
	if a.catalog.planner.guard == nil {
		return nil, nil
	}
	who, _, err := a.catalog.planner.guard.Who(ctx, caller)
	if err != nil || who == nil {
		return nil, moorage.Annotate(op, caller.Name, err)
	}
	return who.Roles(), nil
}

// StoreID returns the id of the store in tokens; zero while access control is off.
func (a Access) StoreID(ctx context.Context) (registry.ID, error) {
	if a.catalog.planner.guard == nil {
		return registry.ID{}, nil
	}
	if _, _, err := a.catalog.planner.guard.Fresh(ctx); err != nil {
		return registry.ID{}, moorage.Annotate("catalog.StoreID", "", err)
	}
	store, _, err := a.catalog.planner.guard.Store(ctx)
	return store.ID, moorage.Annotate("catalog.StoreID", "", err)
}

// publicKeysMax is how many public keys PublishKey checks for expiry.
const publicKeysMax = 1000

// PublishKey stores the public half of a key. Other nodes find it when it returns. It removes
// expired keys.
func (a Access) PublishKey(ctx context.Context, key PublicKey) error {
	const op = "catalog.PublishKey"
	records := a.catalog.planner.ledger
	writes, err := ledger.Encode(ledger.Put(registry.PublicKeyKey(key.ID), registry.StateNone, registry.PublicKey{
		Algorithm: key.Algorithm, Key: key.Key, Ends: key.Ends,
	}))
	if err != nil {
		return moorage.Annotate(op, key.ID, err)
	}
	const prefix = registry.PublicKeyPrefix
	err = records.Scan(ctx, registry.TableAccess, prefix, "", func(record registry.Record) (bool, error) {
		old, err := ledger.Decode[registry.PublicKey](record)
		if err == nil && old.Ends.Before(a.catalog.planner.now()) && record.Key != writes[0].Key {
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

// PublicKey returns the public key called id; found is false if there is none.
func (a Access) PublicKey(ctx context.Context, id string) (key PublicKey, found bool, err error) {
	records, err := a.catalog.planner.ledger.Get(ctx, registry.PublicKeyKey(id))
	if err != nil || !records[0].Exists() {
		return PublicKey{}, false, moorage.Annotate("catalog.PublicKey", id, err)
	}
	value, err := ledger.Decode[registry.PublicKey](records[0])
	key = PublicKey{id, value.Algorithm, value.Key, value.Ends}
	return key, err == nil, moorage.Annotate("catalog.PublicKey", id, err)
}
