package gate

import (
	"context"

	"moorage"
	"moorage/access"
)

// Maker is a caller that creates or changes an object, with the caller's entry in the policy.
type Maker struct {
	who      *access.Who
	snapshot *access.Snapshot
	caller   moorage.Caller
}

// Maker returns caller's entry in the policy that this process has seen. It is nil if the caller
// cannot own objects, because access control is off or the caller is a job of the server.
//
// Errors: KindNotAuthorized, as for Decide; KindUnavailable.
func (g *Guard) Maker(ctx context.Context, caller moorage.Caller) (*Maker, error) {
	v, err := g.current(ctx)
	if err != nil || !v.enabled || IsSystem(caller) {
		return nil, err
	}
	who, err := g.entry(v, caller, g.config.Now())
	return &Maker{who, v.Snapshot, caller}, err
}

// Is reports whether identity is the identity of m, or of one of its roles.
func (m *Maker) Is(identity string) bool { return m.who.Is(identity) }

// Identity returns the identity that refers to m in records.
func (m *Maker) Identity() string { return m.snapshot.Identity(m.caller.Name) }

// Creator returns the identity to record for a caller that creates an object. It is empty for a
// caller that did not have to authenticate, and for a job of the server.
//
// Errors: the errors of Maker.
func (g *Guard) Creator(ctx context.Context, caller moorage.Caller) (string, error) {
	if access.GranteeOf(caller.Name) != access.IsPrincipal || IsSystem(caller) {
		return "", nil
	}
	if g == nil {
		return caller.Name, nil
	}
	maker, err := g.Maker(ctx, caller)
	if err != nil || maker == nil {
		return caller.Name, err
	}
	return maker.Identity(), nil
}

// identity returns the identity of a caller according to the policy in memory.
func (g *Guard) identity(caller moorage.Caller) string {
	if v := g.view.Load(); v != nil && v.enabled {
		return v.Identity(caller.Name)
	}
	return caller.Name
}

// IsTrusted reports whether m is trusted to name views in the warehouse of object.
func (m *Maker) IsTrusted(object Object) bool {
	return isTrusted(m.snapshot, m.who, m.caller, object)
}
