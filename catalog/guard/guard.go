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
	// seen is the greatest epoch that the store may have, as far as this process knows.
	seen atomic.Uint64
	// doubts counts the changes of policy of this process whose outcome is unknown, in the order in
	// which that came out. Those up to settled can no longer happen.
	doubts, settled atomic.Uint64
	// following has room for the one request that makes the next view.
	following chan struct{}
}

// view is a snapshot of all policy.
type view struct {
	*access.Snapshot
	on     bool   // access is; else there is no policy, and everybody may do everything
	covers uint64 // the greatest of what was seen when the snapshot was read
	store  registry.AccessStore
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
}

// New returns a guard that has not read any policy yet.
func New(config Config) *Guard {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	return &Guard{config: config, following: make(chan struct{}, 1)}
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

// numberOf returns the epoch that record holds, the greatest that there is if it cannot be read.
func numberOf(record registry.Record) uint64 {
	epoch, err := registry.Decode[registry.Epoch](record)
	if err != nil {
		return ^uint64(0)
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
	if v := g.view.Load(); v != nil && v.covers >= g.seen.Load() {
		return v, nil
	}
	select {
	case g.following <- struct{}{}:
	case <-ctx.Done():
		return nil, unavailable(ctx.Err())
	}
	defer func() { <-g.following }()
	v := g.view.Load()
	if v != nil && v.covers >= g.seen.Load() {
		return v, nil
	}
	next, err := g.follow(ctx, v)
	if err != nil {
		return nil, unavailable(err)
	}
	g.view.Store(next)
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
