package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
)

// Scopes finds the objects that have policies, with the privileges of one caller. catalog.Scopes
// implements it.
type Scopes interface {
	Find(ctx context.Context, v gate.Verb, ident moorage.Identifier) (catalog.Scope, error)
	Change(ctx context.Context, v gate.Verb, ident moorage.Identifier,
		plan func(ctx context.Context, scope catalog.Scope) (catalog.Beside, error)) error
}

// reloadTimeout limits the reading of the policies after a change, because the client may be gone.
const reloadTimeout = 30 * time.Second

// Policies keeps the policies of a store. It is safe for concurrent use.
type Policies struct {
	ledger  *ledger.Ledger
	reloads atomic.Int64 // number of calls of Reload that have begun
	current atomic.Pointer[Matcher]
	changed func()
}

// New returns the policies of a store. Policies calls changed, which may be nil, after each change
// made by this process.
func New(l *ledger.Ledger, changed func()) *Policies {
	if changed == nil {
		changed = func() {}
	}
	return &Policies{ledger: l, changed: changed}
}

// stored is a policy and its scope, as in a record.
type stored struct {
	scope string
	value registry.MaintenancePolicy
}

// Reload reads all policies, and returns their matcher. If a call that began later has already
// ended, Reload returns the matcher of that call. If one record cannot be read, Reload fails,
// because no work may be based on only a part of the policies.
func (p *Policies) Reload(ctx context.Context) (*Matcher, error) {
	number := p.reloads.Add(1)
	// The anchors must be read before the policies. If the read of the policies then misses a part
	// of a concurrent change, the conditions on the anchors fail.
	anchors := make(map[string]registry.Record)
	for _, prefix := range []string{registry.ScopeServer, "w/"} {
		err := p.scan(ctx, prefix, func(record registry.Record) (bool, error) {
			anchors[record.Key.ID] = record
			return true, nil
		})
		if err != nil {
			return nil, err
		}
	}
	var all []stored
	err := p.scan(ctx, "", func(record registry.Record) (bool, error) {
		value, err := ledger.Decode[registry.MaintenancePolicy](record)
		all = append(all, stored{record.Key.ID, value})
		return true, err
	})
	if err != nil {
		return nil, err
	}
	m := newMatcher(all)
	m.anchors, m.number = anchors, number
	return p.keep(m), nil
}

// keep makes m the current matcher, unless a later Reload has already finished. It returns the
// current matcher.
func (p *Policies) keep(m *Matcher) *Matcher {
	for {
		before := p.current.Load()
		if before != nil && before.number > m.number {
			return before
		}
		if p.current.CompareAndSwap(before, m) {
			return m
		}
	}
}

func (p *Policies) scan(ctx context.Context, prefix string, visit ledger.Visit) error {
	err := p.ledger.Scan(ctx, registry.TableMaintenancePolicy, prefix, "", visit)
	return moorage.Annotate("policy.scan", "", err)
}

// Current returns the result of the last Reload. This process calls Reload after each change that
// it makes. Before the first Reload, Current returns nil. A nil matcher requires nothing.
func (p *Policies) Current() *Matcher { return p.current.Load() }

// Said is a scope's own policy for a type.
type Said struct {
	Job
	By string
}

// Of returns a scope's own policies, by type.
func (p *Policies) Of(ctx context.Context, scope catalog.Scope) (map[Type]Said, error) {
	records, err := p.ledger.Get(ctx, registry.MaintenancePolicyKey(scope.Name))
	if err != nil || !records[0].Exists() {
		return nil, err
	}
	value, err := ledger.Decode[registry.MaintenancePolicy](records[0])
	if err != nil {
		return nil, err
	}
	return saidOf(scope.Name, value), nil
}

// ScopeSaid holds a scope's own policies.
type ScopeSaid struct {
	Scope string // the name of the scope, as in Records of the package comment
	Said  map[Type]Said
}

// List returns the scopes that have their own policies, sorted by name. A scope in the list may be
// gone. next is page.After for the next page.
func (p *Policies) List(ctx context.Context, page moorage.Page) (scopes []ScopeSaid, next string, err error) {
	const table = registry.TableMaintenancePolicy
	err = p.ledger.Scan(ctx, table, "", page.After, func(record registry.Record) (bool, error) {
		value, err := ledger.Decode[registry.MaintenancePolicy](record)
		if err != nil || len(value.Jobs) == 0 {
			return true, err
		}
		if page.Limit > 0 && len(scopes) == page.Limit {
			next = scopes[len(scopes)-1].Scope
			return false, nil
		}
		scopes = append(scopes, ScopeSaid{record.Key.ID, saidOf(record.Key.ID, value)})
		return true, nil
	})
	return scopes, next, moorage.Annotate("policy.List", "", err)
}

// saidOf returns the policies in the record of a scope, by type.
func saidOf(scope string, value registry.MaintenancePolicy) map[Type]Said {
	said, made := make(map[Type]Said), policyOf(scope, value)
	for _, job := range value.Jobs {
		said[Type(job.Type)] = Said{made.Jobs[Type(job.Type)], job.By}
	}
	return said
}

// Asked is a requested policy for a type.
type Asked struct {
	Type     Type
	Status   Status
	Settings Settings
	// Unsafe allows settings that may harm readers and writers in progress.
	Unsafe bool
	By     string
}

// Match reports whether a change of a policy may go on. present is the policy that the change
// replaces, or nil if the scope has none of its own for the type.
type Match func(present *Said) bool

// Put replaces a scope's policy for a type with the requested one. If match is not nil, it must
// accept the present policy.
//
// Errors: KindIllegalArgument for invalid settings; KindPreconditionFailed if match refuses; the
// errors of the scope.
func (p *Policies) Put(ctx context.Context, scopes Scopes, ident moorage.Identifier, asked Asked, match Match) error {
	const op = "policy.Put"
	if err := asked.Check(); err != nil {
		return moorage.E(op, "", moorage.KindIllegalArgument, err)
	}
	return p.change(ctx, scopes, gate.PutMaintenancePolicy, ident, func(scope catalog.Scope,
		value *registry.MaintenancePolicy) error {
		if err := match.check(scope, *value, asked.Type); err != nil {
			return err
		}
		job, err := p.jobOf(ctx, asked, value.Jobs)
		if err != nil {
			return err
		}
		value.Jobs = without(value.Jobs, asked.Type)
		at, _ := slices.BinarySearchFunc(value.Jobs, job, func(a, b registry.JobPolicy) int {
			return cmp.Compare(a.Type, b.Type)
		})
		value.Jobs = slices.Insert(value.Jobs, at, job)
		return nil
	})
}

// Check returns nil if the policy is valid, and otherwise a KindIllegalArgument error with the
// reason.
func (a Asked) Check() error {
	if err := a.Type.Check(a.Settings, a.Unsafe); err != nil {
		return moorage.Errorf(moorage.KindIllegalArgument, "%s", err)
	}
	if a.Status != Enabled && a.Status != Disabled {
		return moorage.Errorf(moorage.KindIllegalArgument, "The status is %q, and must be enabled or disabled",
			moorage.Cut(string(a.Status), 50))
	}
	return nil
}

// jobOf returns the requested policy in stored form. If the status does not change, its time does
// not change either.
func (p *Policies) jobOf(ctx context.Context, asked Asked, before []registry.JobPolicy) (registry.JobPolicy, error) {
	job := registry.JobPolicy{
		Type: string(asked.Type), Status: string(asked.Status), By: asked.By, Unsafe: asked.Unsafe,
	}
	for _, each := range before {
		if each.Type == job.Type && each.Status == job.Status {
			job.Since = each.Since
		}
	}
	now, err := p.ledger.Time(ctx)
	if err != nil {
		return job, err
	}
	if job.Since.IsZero() || registry.IsAhead(job.Since, now) {
		job.Since = now
	}
	if len(asked.Settings) > 0 {
		job.Settings, err = json.Marshal(asked.Settings)
	}
	return job, err
}

// check returns nil if m accepts the policy for t in the record of a scope.
func (m Match) check(scope catalog.Scope, value registry.MaintenancePolicy, t Type) error {
	if m == nil {
		return nil
	}
	var present *Said
	if said, ok := saidOf(scope.Name, value)[t]; ok {
		present = &said
	}
	if m(present) {
		return nil
	}
	return moorage.Errorf(moorage.KindPreconditionFailed, "The policy for %s has changed", t)
}

// Delete removes a scope's policy for a type. If match is not nil, it must accept the present
// policy.
//
// Errors: KindPreconditionFailed if match refuses; the errors of the scope.
func (p *Policies) Delete(ctx context.Context, scopes Scopes, ident moorage.Identifier, t Type, match Match) error {
	if err := t.Check(nil, false); err != nil {
		return moorage.Errorf(moorage.KindIllegalArgument, "%s", err)
	}
	return p.change(ctx, scopes, gate.DeleteMaintenancePolicy, ident, func(scope catalog.Scope,
		value *registry.MaintenancePolicy) error {
		if err := match.check(scope, *value, t); err != nil {
			return err
		}
		value.Jobs = without(value.Jobs, t)
		return nil
	})
}

func without(jobs []registry.JobPolicy, t Type) []registry.JobPolicy {
	return slices.DeleteFunc(slices.Clone(jobs), func(job registry.JobPolicy) bool { return job.Type == string(t) })
}

// change changes the policy of a scope, and rewrites the policy record of its warehouse.
func (p *Policies) change(ctx context.Context, scopes Scopes, v gate.Verb, ident moorage.Identifier,
	edit func(scope catalog.Scope, value *registry.MaintenancePolicy) error) error {
	err := scopes.Change(ctx, v, ident, func(ctx context.Context, scope catalog.Scope) (catalog.Beside, error) {
		keys := []registry.Key{registry.MaintenancePolicyKey(scope.Name)}
		anchor := registry.MaintenancePolicyKey(registry.WarehouseScope(scope.Warehouse))
		if !scope.Warehouse.IsZero() && anchor != keys[0] {
			keys = append(keys, anchor)
		}
		records, err := p.ledger.Get(ctx, keys...)
		if err != nil {
			return catalog.Beside{}, err
		}
		var beside catalog.Beside
		for i, record := range records {
			value := registry.MaintenancePolicy{Ident: ident}
			if i > 0 {
				value.Ident = moorage.Identifier{Warehouse: ident.Warehouse}
			}
			if record.Exists() {
				if value, err = ledger.Decode[registry.MaintenancePolicy](record); err != nil {
					return catalog.Beside{}, err
				}
			}
			if i == 0 {
				if value.Ident = ident; scope.Name == registry.ScopeServer {
					value.Ident = moorage.Identifier{}
				}
				if err := edit(scope, &value); err != nil {
					return catalog.Beside{}, err
				}
			}
			writes, err := ledger.Encode(ledger.Put(keys[i], registry.StateNone, value))
			if err != nil {
				return catalog.Beside{}, err
			}
			beside.Conditions = append(beside.Conditions, unchanged(record, keys[i]))
			beside.Writes = append(beside.Writes, writes...)
		}
		return beside, nil
	})
	if err != nil {
		return err
	}
	ctx, cancel := moorage.Detached(ctx, reloadTimeout) // the change is done, even if the client is gone
	defer cancel()
	_, err = p.Reload(ctx)
	p.changed()
	return err
}

// unchanged returns the condition that the record at key is unchanged.
func unchanged(record registry.Record, key registry.Key) registry.Condition {
	if !record.Exists() {
		return registry.Absent(key)
	}
	return ledger.Unchanged(record)
}

// ReloadFor reads all policies, and returns their matcher with the conditions of ConditionsFor.
func (p *Policies) ReloadFor(ctx context.Context, name string) (*Matcher, []registry.Condition, error) {
	m, err := p.Reload(ctx)
	if err != nil {
		return nil, nil, err
	}
	_, conditions, err := p.ConditionsFor(ctx, m, name)
	return m, conditions, err
}

// ConditionsFor returns the id of a warehouse, and conditions that fail if a policy that applies to
// it differs from m. It creates the records that the conditions need. It returns no conditions if m
// is outdated, or if there is no such warehouse.
func (p *Policies) ConditionsFor(ctx context.Context, m *Matcher, name string) (
	id registry.ID, conditions []registry.Condition, err error) {
	if moorage.ValidateName("warehouse name", name) != nil { // there is no such warehouse
		return registry.ID{}, nil, nil
	}
	records, err := p.ledger.Get(ctx, registry.WarehouseKey(name))
	if err != nil || !records[0].Exists() {
		return registry.ID{}, nil, err
	}
	warehouse, err := ledger.Decode[registry.Warehouse](records[0])
	if err != nil {
		return registry.ID{}, nil, err
	}
	if conditions, ok := m.requires(warehouse.ID); ok {
		return warehouse.ID, conditions, nil
	}
	anchored, err := p.anchor(ctx, records[0], warehouse.ID, name)
	if err != nil || anchored.Hash() != m.Hash() {
		return warehouse.ID, nil, err
	}
	conditions, _ = anchored.requires(warehouse.ID)
	return warehouse.ID, conditions, nil
}

// NoDeletions returns a requirement for the register of a table or view called ident: no policy
// enables maintenance that deletes its files when the register happens.
//
// Errors of the requirement: KindAlreadyExists, which is final, with the policy and its scope.
func (p *Policies) NoDeletions(ident moorage.Identifier) catalog.Requires {
	fresh := false // a later call follows a change of a policy
	return func(ctx context.Context, pointer registry.ID) ([]registry.Condition, error) {
		m := p.Current()
		for ; ; fresh = true {
			if fresh || m == nil {
				var err error
				if m, err = p.Reload(ctx); err != nil {
					return nil, err
				}
				fresh = true
			}
			rule, deletes := deleting(Effective(m.Chain(pointer, ident), nil))
			if !deletes {
				break
			}
			if fresh {
				return nil, moorage.Errorf(moorage.KindAlreadyExists, "%s of %s may delete files that another catalog "+
					"still needs: disable the policy, or confirm with --source-frozen that nothing uses the source",
					rule.Type.Kind(), rule.From.Name)
			}
		}
		fresh = true
		_, conditions, err := p.ConditionsFor(ctx, m, ident.Warehouse)
		if err == nil && len(conditions) == 0 { // a policy changed meanwhile
			err = ledger.ErrRetry
		}
		return conditions, err
	}
}

// deleting returns the first rule under which maintenance deletes files.
func deleting(rules Rules) (Rule, bool) {
	for _, t := range Types() {
		if rule := rules[t]; rule.Enabled && t != Compaction {
			return rule, true
		}
	}
	return Rule{}, false
}

// anchor creates the records that the method requires needs for a warehouse, and then calls Reload.
// record is the record of the warehouse. If it has changed, anchor creates no record for the
// warehouse, because that record would stay if the warehouse was dropped.
func (p *Policies) anchor(ctx context.Context, record registry.Record, warehouse registry.ID, name string) (
	*Matcher, error) {
	for i, key := range []registry.Key{
		registry.MaintenancePolicyKey(registry.ScopeServer),
		registry.MaintenancePolicyKey(registry.WarehouseScope(warehouse)),
	} {
		value, conditions := registry.MaintenancePolicy{}, []registry.Condition{registry.Absent(key)}
		if i > 0 {
			value.Ident.Warehouse = name
			conditions = append(conditions, ledger.Unchanged(record))
		}
		writes, err := ledger.Encode(ledger.Put(key, registry.StateNone, value))
		if err != nil {
			return nil, err
		}
		_, err = p.ledger.Step(ctx, registry.Batch{Conditions: conditions, Writes: writes})
		if _, failed := registry.FailedCondition(err); err != nil && !failed {
			return nil, ledger.StepError("policy.anchor", err)
		}
	}
	return p.Reload(ctx)
}
