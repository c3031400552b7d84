package gate

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"moorage"
	"moorage/access"
	"moorage/registry"
)

// Config holds the parts and settings of a Guard. Fields without a default are required.
type Config struct {
	Store registry.Store
	// Alone is true if no other process uses the store, and all parts of this process write through
	// the store returned by Watch. Then requests need not read the epoch.
	Alone bool
	// Admins are the names of principals that always have the privilege admin, whatever the store
	// contains.
	Admins []string
	Now    func() time.Time // default time.Now
	Logger *slog.Logger     // default: discards
	// The guard calls Decided with each decision. Decided must not block. It may be nil.
	Decided func(ctx context.Context, decision Decision)
}

// Guard authorizes callers. It is safe for concurrent use. As an Authorizer it decides about verbs
// on the whole server. It admits other verbs: the code that finds their object calls Decide.
type Guard struct {
	config Config
	view   atomic.Pointer[view]
	// seen is the greatest epoch of the store that this process knows.
	seen atomic.Uint64
	// doubts is the number of this process's policy changes with an unknown outcome, in the order
	// in which the outcome became unknown. The first settled of them can no longer take effect.
	doubts, settled atomic.Uint64
	makers          knownMakers
	looks           looks
	// following is a lock with a capacity of one: the request that holds it builds the next view.
	following chan struct{}
}

// view is a snapshot of the whole policy.
type view struct {
	*access.Snapshot
	enabled bool // whether access control is enabled; if not, every request is allowed
	store   registry.AccessStore
}

// covers reports whether v contains every change of policy up to an epoch.
func (v *view) covers(epoch uint64) bool {
	return v != nil && (epoch == 0 || v.enabled && v.Epoch() >= epoch)
}

// Object is an object in the form that a decision needs.
type Object struct {
	Ident moorage.Identifier // a warehouse or namespace has an empty name
	// Path holds the object and its containers up to its warehouse. It is empty for the server.
	Path []access.Object
}

// IDs returns the ids of objects in the form that records have.
func IDs(objects []access.Object) []registry.ID {
	ids := make([]registry.ID, len(objects))
	for i, object := range objects {
		ids[i] = registry.ID(object.ID)
	}
	return ids
}

// Kind returns the kind of the object.
func (o Object) Kind() access.Kind {
	if len(o.Path) == 0 {
		return access.Server
	}
	return o.Path[0].Kind
}

// Decision is one decision of a Guard.
type Decision struct {
	Caller moorage.Caller
	Verb   Verb
	Object Object
	Asked  access.Privileges
	access.Decision
	Epoch uint64 // the epoch of the policy that decided
	Took  time.Duration
	// Through lists the views through which the caller reached the object, outermost first. If a
	// view refused the caller, Walk has that view. Walk also has the principal whose privileges
	// counted. Walk.Decision equals the Decision above.
	Through []moorage.Identifier
	Walk    access.Walk
	// Ignored lists the views in the request that the guard ignored, because their sender is not
	// trusted.
	Ignored []moorage.Identifier
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

// Key returns the key of the record that must be read in the same call as the object of a decision.
// wanted is false if no such read is necessary.
func (g *Guard) Key() (key registry.Key, wanted bool) {
	if g == nil || g.config.Alone && g.settled.Load() >= g.doubts.Load() {
		return registry.Key{}, false
	}
	return registry.EpochKey(), true
}

// Observe processes the record of Key after it was read. If the record cannot be decoded, the guard
// denies all requests until it can be decoded.
func (g *Guard) Observe(record registry.Record) {
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

// unreadable stands for the epoch in a record that cannot be decoded. No view has this epoch.
const unreadable = ^uint64(0)

// numberOf returns the epoch in record.
func numberOf(record registry.Record) uint64 {
	epoch, err := registry.Decode[registry.Epoch](record)
	if err != nil {
		return unreadable
	}
	return epoch.Number
}

// look reads the epoch if Key requires that, and passes it to Observe.
func (g *Guard) look(ctx context.Context) error {
	key, wanted := g.Key()
	if !wanted {
		return nil
	}
	records, err := g.config.Store.Get(ctx, key)
	if err != nil {
		return unavailable(err)
	}
	g.Observe(records[0])
	return nil
}

// unavailable wraps err, which prevented a decision.
func unavailable(err error) error {
	return moorage.E("gate.unavailable", "", moorage.KindUnavailable, err)
}

// current returns a view that has every change of policy that this process has seen.
func (g *Guard) current(ctx context.Context) (*view, error) {
	if v := g.view.Load(); v.covers(g.seen.Load()) {
		return v, nil
	}
	select {
	case g.following <- struct{}{}:
	case <-ctx.Done():
		return nil, unavailable(ctx.Err())
	}
	defer func() { <-g.following }()
	v := g.view.Load()
	if v.covers(g.seen.Load()) {
		return v, nil
	}
	next, err := g.follow(ctx, v)
	if err != nil {
		return nil, unavailable(err)
	}
	g.view.Store(next)
	if next.enabled {
		g.seen.CompareAndSwap(unreadable, next.Epoch()) // the epoch record was repaired
	}
	return next, nil
}

// Fresh reads the present policy of the store. If access control is disabled, enabled is false and
// there is no policy.
//
// Errors: KindUnavailable.
func (g *Guard) Fresh(ctx context.Context) (snapshot *access.Snapshot, enabled bool, err error) {
	if err := g.look(ctx); err != nil {
		return nil, false, err
	}
	v, err := g.current(ctx)
	if err != nil {
		return nil, false, err
	}
	return v.Snapshot, v.enabled, nil
}

// Known returns the latest policy that this process has seen, with the same results as Fresh.
func (g *Guard) Known(ctx context.Context) (snapshot *access.Snapshot, enabled bool, err error) {
	v, err := g.current(ctx)
	if err != nil {
		return nil, false, err
	}
	return v.Snapshot, v.enabled, nil
}

// Store returns the record with the time when access control was enabled. If access control is
// disabled, enabled is false.
//
// Errors: KindUnavailable.
func (g *Guard) Store(ctx context.Context) (store registry.AccessStore, enabled bool, err error) {
	v, err := g.current(ctx)
	if err != nil {
		return registry.AccessStore{}, false, err
	}
	return v.store, v.enabled, nil
}

// Who returns a caller's entry in the present policy of the store, and that policy. who is nil for
// a job of the server, which may do everything.
//
// Errors: KindUnsupported if access control is disabled; KindNotAuthorized, as for Decide;
// KindUnavailable.
func (g *Guard) Who(ctx context.Context, caller moorage.Caller) (who *access.Who, policy *access.Snapshot, err error) {
	policy, enabled, err := g.Fresh(ctx)
	switch {
	case err != nil:
		return nil, nil, err
	case !enabled:
		return nil, nil, moorage.Errorf(moorage.KindUnsupported,
			"Access control is off in this store: every caller may do everything. Switch it on with "+
				"moorage key create NAME --admin, or moorage access enable, "+
				"and start the server with --keys, --issuer or --tls-client-ca")
	case IsSystem(caller):
		return nil, policy, nil
	}
	who, err = g.entry(&view{Snapshot: policy}, caller, g.config.Now())
	return who, policy, err
}

// DecideBy decides q by calling rule. who is the caller's entry in policy (see Who). DecideBy
// reports the decision to Config.Decided. It returns nil if the decision allows q, or the error for
// the decision. If who is nil, the caller is a job of the server, which may do everything.
//
// Errors: the errors of Decide.
func (g *Guard) DecideBy(ctx context.Context, who *access.Who, policy *access.Snapshot, q Question,
	rule func(who *access.Who, path []access.Object) access.Decision) error {
	if who == nil {
		return nil
	}
	decision := rule(who, q.Object.Path)
	if decision.Outcome == access.Hidden {
		shown, err := g.MarkOwned(ctx, q.Caller, q.Object.Path)
		if err != nil {
			return err
		}
		if shown != nil {
			decision = rule(who, shown)
		}
	}
	if g.config.Decided != nil {
		g.config.Decided(ctx, Decision{
			Caller: q.Caller, Verb: q.Verb, Object: q.Object, Asked: q.Asked, Decision: decision, Epoch: policy.Epoch(),
		})
	}
	return q.Refusal(decision)
}

// MayManage allows q if the caller may see and change the grants on the object. It has the
// parameters and the errors of DecideBy.
func (g *Guard) MayManage(ctx context.Context, who *access.Who, policy *access.Snapshot, q Question) error {
	return g.DecideBy(ctx, who, policy, q, func(who *access.Who, path []access.Object) access.Decision {
		return who.DecideGrant(path, 0)
	})
}

// ForLists returns a caller's entry in the policy that this process has seen, for verbs that list
// objects. It is nil if the caller sees everything, because access control is off or the caller is
// a job of the server.
//
// Errors: KindNotAuthorized, as for Decide; KindUnavailable.
func (g *Guard) ForLists(ctx context.Context, caller moorage.Caller) (*access.Who, error) {
	if g == nil {
		return nil, nil
	}
	v, err := g.current(ctx)
	if err != nil || !v.enabled || IsSystem(caller) {
		return nil, err
	}
	return g.entry(v, caller, g.config.Now())
}
