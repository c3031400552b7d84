package guard

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"moorage"
	"moorage/access"
	"moorage/catalog/verb"
	"moorage/registry"
)

// Config is what a Guard is made of. Fields without a default are required.
type Config struct {
	Store registry.Store
	// Alone says that no other process uses the store, and that all parts of this one write through
	// the store that Watch returns. Then requests need not read the epoch.
	Alone bool
	// Admins are the names of principals who have the privilege admin whatever the store says.
	Admins []string
	Now    func() time.Time // default time.Now
	Logger *slog.Logger     // default: discards
	// Decided is called with each decision. It must not block. Default: does nothing.
	Decided func(ctx context.Context, decision Decision)
}

// Guard decides. It is safe for concurrent use. It is a verb.Gate: it decides there about verbs on
// the whole server, and lets the others through to where their object is found.
type Guard struct {
	config Config
	view   atomic.Pointer[view]
	// seen is the greatest epoch that the store has, as far as this process knows.
	seen atomic.Uint64
	// doubts counts the changes of policy of this process whose outcome is unknown, in the order in
	// which that came out. Those up to settled can no longer happen.
	doubts, settled atomic.Uint64
	ways            ways
	looks           looks
	// following has room for the one request that makes the next view.
	following chan struct{}
}

// view is a snapshot of all policy.
type view struct {
	*access.Snapshot
	on    bool // access is; else there is no policy, and everybody may do everything
	store registry.AccessStore
}

// has reports whether v has every change of policy up to an epoch.
func (v *view) has(epoch uint64) bool {
	return v != nil && (epoch == 0 || v.on && v.Epoch() >= epoch)
}

// Object is what is decided on.
type Object struct {
	Ident moorage.Identifier // of a warehouse or namespace without a name
	// Path begins with the object and goes up to its warehouse. It is empty for the server.
	Path []access.Object
}

// Kind returns the kind of the object.
func (o Object) Kind() access.Kind {
	if len(o.Path) == 0 {
		return access.Server
	}
	return o.Path[0].Kind
}

// Decision is one answer of a Guard.
type Decision struct {
	Caller moorage.Caller
	Verb   verb.Verb
	Object Object
	Asked  access.Privileges
	access.Decision
	Epoch uint64 // of the policy that decided
	Took  time.Duration
	// Through are the views by which the caller came to the object, the outermost first. Walk says
	// which of them refused him, if one did, and whose rights decided. Its Decision is the one
	// above.
	Through []moorage.Identifier
	Walk    access.Walk
	// Unheeded are views that the request named, and that were not heeded: nobody trusts who sent
	// it.
	Unheeded []moorage.Identifier
}

// New returns a guard that has not read any policy yet.
func New(config Config) *Guard {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	return &Guard{
		config: config, following: make(chan struct{}, 1), looks: looks{turn: make(chan struct{}, 1)},
	}
}

// Key returns the key that is to be read with what is decided on; wanted is false if that is not
// necessary.
func (g *Guard) Key() (key registry.Key, wanted bool) {
	if g == nil || g.config.Alone && g.settled.Load() >= g.doubts.Load() {
		return registry.Key{}, false
	}
	return registry.EpochKey(), true
}

// Saw notes the record of Key, as it was read. One that cannot be read denies everything until it
// can be.
func (g *Guard) Saw(record registry.Record) {
	if !record.Exists() {
		return
	}
	number := numberOf(record)
	for {
		seen := g.seen.Load()
		if seen >= number || g.seen.CompareAndSwap(seen, number) {
			return
		}
	}
}

// unreadable stands for an epoch that cannot be read: no view has it.
const unreadable = ^uint64(0)

// numberOf returns the epoch that record holds.
func numberOf(record registry.Record) uint64 {
	epoch, err := registry.Decode[registry.Epoch](record)
	if err != nil {
		return unreadable
	}
	return epoch.Number
}

// look reads the epoch where requests must, and notes it.
func (g *Guard) look(ctx context.Context) error {
	key, wanted := g.Key()
	if !wanted {
		return nil
	}
	records, err := g.config.Store.Get(ctx, key)
	if err != nil {
		return unavailable(err)
	}
	g.Saw(records[0])
	return nil
}

// unavailable returns the error of a decision that cannot be made.
func unavailable(err error) error {
	return moorage.E("guard.unavailable", "", moorage.KindUnavailable, err)
}

// current returns a view that has every change of policy that this process has seen.
func (g *Guard) current(ctx context.Context) (*view, error) {
	if v := g.view.Load(); v.has(g.seen.Load()) {
		return v, nil
	}
	select {
	case g.following <- struct{}{}:
	case <-ctx.Done():
		return nil, unavailable(ctx.Err())
	}
	defer func() { <-g.following }()
	v := g.view.Load()
	if v.has(g.seen.Load()) {
		return v, nil
	}
	next, err := g.follow(ctx, v)
	if err != nil {
		return nil, unavailable(err)
	}
	g.view.Store(next)
	if next.on {
		g.seen.CompareAndSwap(unreadable, next.Epoch()) // somebody has mended the record
	}
	return next, nil
}

// Fresh returns all policy, as new as the store has it now. on is false if access is not on: then
// there is none.
//
// Errors: KindUnavailable.
func (g *Guard) Fresh(ctx context.Context) (snapshot *access.Snapshot, on bool, err error) {
	if err := g.look(ctx); err != nil {
		return nil, false, err
	}
	v, err := g.current(ctx)
	if err != nil {
		return nil, false, err
	}
	return v.Snapshot, v.on, nil
}

// Known returns all policy that this process has seen. Its results are those of Fresh.
func (g *Guard) Known(ctx context.Context) (snapshot *access.Snapshot, on bool, err error) {
	v, err := g.current(ctx)
	if err != nil {
		return nil, false, err
	}
	return v.Snapshot, v.on, nil
}

// Store returns the record that says since when access is on; on is false if it is not.
//
// Errors: KindUnavailable.
func (g *Guard) Store(ctx context.Context) (store registry.AccessStore, on bool, err error) {
	v, err := g.current(ctx)
	if err != nil {
		return registry.AccessStore{}, false, err
	}
	return v.store, v.on, nil
}

// Who returns what policy, as new as the store has it, says of a caller, and that policy. who is
// nil for jobs of the server, which may do everything.
//
// Errors: KindUnsupported if access is not on; KindNotAuthorized as Decide; KindUnavailable.
func (g *Guard) Who(ctx context.Context, caller moorage.Caller) (who *access.Who, policy *access.Snapshot, err error) {
	policy, on, err := g.Fresh(ctx)
	switch {
	case err != nil:
		return nil, nil, err
	case !on:
		return nil, nil, moorage.Errorf(moorage.KindUnsupported,
			"Access is not on in this store: everybody may do everything. Switch it on with moorage key create NAME "+
				"--admin, or moorage access enable, and start the server with --keys, --issuer or --tls-client-ca")
	case IsSystem(caller):
		return nil, policy, nil
	}
	who, err = g.who(&view{Snapshot: policy}, caller, g.config.Now())
	return who, policy, err
}

// Heard notes a decision that was made by policy, on which Who was asked, and returns the error
// that it is answered with; nil if it allows what q asks for.
func (g *Guard) Heard(ctx context.Context, policy *access.Snapshot, q Question, decision access.Decision) error {
	if g.config.Decided != nil {
		g.config.Decided(ctx, Decision{
			Caller: q.Caller, Verb: q.Verb, Object: q.Object, Asked: q.Asked, Decision: decision, Epoch: policy.Epoch(),
		})
	}
	return q.Refusal(decision)
}

// Seeing returns what all policy that this process has seen says of a caller, for lists. It is nil
// for one who sees everything: access is not on, or he is a job of the server.
//
// Errors: KindNotAuthorized as Decide; KindUnavailable.
func (g *Guard) Seeing(ctx context.Context, caller moorage.Caller) (*access.Who, error) {
	if g == nil {
		return nil, nil
	}
	v, err := g.current(ctx)
	if err != nil || !v.on || IsSystem(caller) {
		return nil, err
	}
	return g.who(v, caller, g.config.Now())
}
