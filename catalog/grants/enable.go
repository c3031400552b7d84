package grants

import (
	"context"
	"io"

	"moorage"
	"moorage/access"
	"moorage/catalog/commit"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
)

// IsOn reports whether access control is enabled in the store.
func (g *Grants) IsOn(ctx context.Context) (bool, error) {
	if g.guard == nil {
		return false, nil
	}
	_, on, err := g.guard.Fresh(ctx)
	return on, moorage.Annotate("grants.IsOn", "", err)
}

// Enable enables access control, permanently. From then on, every action requires a grant. It
// returns nil if access control is already enabled. The principal that enables it gets admin,
// operate and audit, so that it can grant privileges. The caller must be authenticated.
func (g *Grants) Enable(ctx context.Context) error {
	const op = "grants.Enable"
	by := g.caller
	on, err := g.IsOn(ctx)
	switch {
	case err != nil || on:
		return moorage.Annotate(op, "", err)
	case g.guard == nil:
		return moorage.Annotate(op, "", moorage.Errorf(moorage.KindUnsupported,
			"This server decides nothing about access"))
	case !gate.IsSystem(by) && access.GranteeOf(by.Name) != access.IsPrincipal:
		return moorage.Annotate(op, "", moorage.Errorf(moorage.KindNotAuthorized,
			"Authenticate to switch access control on, or do it on the store: moorage key create --admin NAME"))
	}
	_, err = g.pipeline.Submit(ctx, commit.Intent{
		Caller: by, Verb: gate.EnableAccess, On: []moorage.Identifier{{}}, Silent: true,
		Plan: func(ctx context.Context, _ *commit.Attempt) (*commit.Plan, error) {
			return g.planEnable(ctx, by)
		},
	})
	return moorage.Annotate(op, "", err)
}

// planEnable plans the records of the first epoch, which enable access control.
func (g *Grants) planEnable(ctx context.Context, by moorage.Caller) (*commit.Plan, error) {
	id, err := g.ledger.NewID()
	if err != nil {
		return nil, err
	}
	store := registry.AccessStore{ID: id, Since: g.now()}
	if _, err := io.ReadFull(g.random, store.PageKey[:]); err != nil {
		return nil, moorage.E("grants.planEnable", "", moorage.KindInternal, err)
	}
	first := registry.PolicyChange{Epoch: 1, Keys: []registry.Key{}}
	var puts []ledger.Write
	conditions := []registry.Condition{registry.Absent(registry.EpochKey())}
	if !gate.IsSystem(by) {
		key := registry.GrantsKey(registry.ID{})
		privileges := access.OfAdministrators
		puts = append(puts, ledger.Put(key, registry.StateNone, registry.Grants{
			Kind:   access.Server.String(),
			Grants: []registry.Grant{{Grantee: by.Name, Privileges: privileges.Words(), By: by.Name, At: g.now()}},
		}))
		first.Keys, conditions = append(first.Keys, key), append(conditions, registry.Absent(key))
	}
	puts = append(puts,
		ledger.Put(registry.EpochKey(), registry.StateNone, registry.Epoch{Number: 1}),
		ledger.Put(registry.RecentKey(), registry.StateNone, registry.Recent{Changes: []registry.PolicyChange{first}}),
		ledger.Put(registry.AccessStoreKey(), registry.StateNone, store))
	writes, err := ledger.Encode(puts...)
	records, getErr := g.ledger.Get(ctx, registry.EpochKey())
	switch {
	case err != nil:
		return nil, err
	case getErr != nil:
		return nil, getErr
	case records[0].Exists(): // another call has enabled it
		return &commit.Plan{Empty: true}, nil
	}
	return &commit.Plan{Conditions: conditions, Writes: writes}, nil
}
