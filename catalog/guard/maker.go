package guard

import (
	"context"

	"moorage"
	"moorage/access"
)

// Maker is somebody who makes or changes something, as policy knows him.
type Maker struct {
	who      *access.Who
	snapshot *access.Snapshot
	caller   moorage.Caller
}

// Maker returns caller as all policy knows him that this process has seen; nil for one who owns
// nothing: access is not on, or he is a job of the server.
//
// Errors: KindNotAuthorized as Decide; KindUnavailable.
func (g *Guard) Maker(ctx context.Context, caller moorage.Caller) (*Maker, error) {
	v, err := g.current(ctx)
	if err != nil || !v.on || IsSystem(caller) {
		return nil, err
	}
	who, err := g.who(v, caller, g.config.Now())
	return &Maker{who, v.Snapshot, caller}, err
}

// Is reports whether m is a principal, or has a role.
func (m *Maker) Is(grantee string) bool { return m.who.Is(grantee) }

// IsTrusted reports whether m is trusted about views in the warehouse of object.
func (m *Maker) IsTrusted(object Object) bool {
	return isTrusted(m.snapshot, m.who, m.caller, object)
}
