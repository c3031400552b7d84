package due

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/maintenance/jobs"
	"moorage/maintenance/policy"
	"moorage/metadata"
	"moorage/registry"
)

// Control shows operators the state of a store's maintenance, and carries out their commands. It is
// safe for concurrent use.
type Control struct {
	Ledger   *ledger.Ledger
	Policies *policy.Policies
	Jobs     *jobs.Jobs
	Tables   Tables
	// Kick makes the monitor and the planner work at once. If Kick is nil, they keep their
	// schedule.
	Kick func()
}

func (s *Control) kick() {
	if s.Kick != nil {
		s.Kick()
	}
}

// runsShown is the maximum number of runs in a Status.
const runsShown = 20

// KindStatus is the state of one kind of job of a table.
type KindStatus struct {
	Rule     policy.Rule
	Schedule registry.KindSchedule
	Job      *jobs.Under // in progress; nil if there is none
	Blocker  *registry.Due
}

// Status is the state of a scope's maintenance.
type Status struct {
	Said   map[policy.Type]policy.Said // the scope's own policies
	Pauses []registry.Pause            // the pauses that apply to the scope
	// The fields below are set only for a table.
	Kinds []KindStatus // in the order of their types
	Jobs  []jobs.Under // in progress
	Runs  []registry.Run
}

// Status returns the state of a scope's maintenance. Errors: as for catalog.Scopes.Find.
func (s *Control) Status(ctx context.Context, scopes policy.Scopes, ident moorage.Identifier) (Status, error) {
	scope, err := scopes.Find(ctx, gate.LoadMaintenance, ident)
	if err != nil {
		return Status{}, err
	}
	var status Status
	if status.Said, err = s.Policies.Of(ctx, scope); err != nil {
		return Status{}, err
	}
	pauses, _, err := s.pauses(ctx)
	if err != nil {
		return Status{}, err
	}
	for _, pause := range pauses.Pauses {
		if pause.Covers(asPointer(scope)) {
			status.Pauses = append(status.Pauses, pause)
		}
	}
	if scope.Pointer.IsZero() {
		return status, nil
	}
	return status, s.addTable(ctx, scope, &status)
}

// addTable adds the state of a table.
func (s *Control) addTable(ctx context.Context, scope catalog.Scope, status *Status) error {
	matcher, err := s.Policies.Reload(ctx)
	if err != nil {
		return err
	}
	version, table, err := s.Tables.TableByID(ctx, scope.Pointer)
	if err != nil {
		return err
	}
	document := version.Document.(*metadata.Document)
	rules := policy.Effective(matcher.Chain(table.ID, table.Identifier()), document.Properties())
	schedules, err := ReadSchedules(ctx, s.Ledger, scope.Pointer)
	if err != nil {
		return err
	}
	under, _, err := s.Jobs.List(ctx, scope.Pointer, "", 0)
	if err != nil {
		return err
	}
	status.Jobs = under
	for _, t := range policy.Types() {
		kind := KindStatus{Rule: rules[t], Schedule: schedules[0].Value.Job(string(t.Kind()))}
		for i := range under {
			if under[i].Kind == string(t.Kind()) {
				kind.Job = &under[i]
			}
		}
		blockers, err := s.Ledger.Get(ctx, registry.DueBlockedKey(scope.Pointer, string(t.Kind())))
		if err != nil {
			return err
		}
		if blockers[0].Exists() {
			blocker, err := ledger.Decode[registry.Due](blockers[0])
			if err != nil {
				return err
			}
			kind.Blocker = &blocker
		}
		status.Kinds = append(status.Kinds, kind)
	}
	status.Runs, err = s.Jobs.Runs(ctx, scope.Pointer, runsShown)
	return err
}

// Run makes the table called ident due at once for one kind of job, even if that kind was blocked.
// Run retries a blocked job, unless an operator has put the job into quarantine.
//
// Errors: KindIllegalArgument if no policy requires the kind and it is not blocked, or if a job of
// the kind is in quarantine; the errors of catalog.Scopes.Find.
func (s *Control) Run(ctx context.Context, scopes policy.Scopes, ident moorage.Identifier,
	kind policy.Kind) error {
	t, ok := policy.TypeOf(kind)
	if !ok || ident.Name == "" {
		return moorage.Errorf(moorage.KindIllegalArgument,
			"Name a table, and the kind snapshots, orphans or compaction")
	}
	scope, err := scopes.Find(ctx, gate.RunMaintenance, ident)
	if err != nil {
		return err
	}
	matcher, err := s.Policies.Reload(ctx)
	if err != nil {
		return err
	}
	version, table, err := s.Tables.TableByID(ctx, scope.Pointer)
	if err != nil {
		return err
	}
	document := version.Document.(*metadata.Document)
	rule := policy.Effective(matcher.Chain(table.ID, table.Identifier()), document.Properties())[t]
	run := &runRequest{Control: s, scope: scope, kind: kind, rule: rule}
	err = s.Ledger.Retry(ctx, moorage.KindUnavailable, func(int) error { return run.try(ctx) })
	if err == nil {
		s.kick()
	}
	return moorage.Annotate("due.Run", ident.String(), err)
}

// runRequest is one call of Run, after its table was found.
type runRequest struct {
	*Control
	scope   catalog.Scope
	kind    policy.Kind
	rule    policy.Rule
	retried bool // a blocked job was retried
}

func (r *runRequest) try(ctx context.Context) error {
	records, err := r.Ledger.Get(ctx, registry.JobKey(r.scope.Pointer, string(r.kind)),
		registry.DueBlockedKey(r.scope.Pointer, string(r.kind)))
	if err != nil {
		return err
	}
	if records[0].State == registry.StateBlocked {
		if err := r.retryJob(ctx, records[0], records[1]); err != nil {
			return err
		}
		r.retried = true
		return ledger.ErrRetry // the planner checks the table again when the job has ended
	}
	if isBlocked := r.retried || records[1].Exists(); !isBlocked {
		switch {
		case !r.rule.Enabled:
			return moorage.Errorf(moorage.KindIllegalArgument, "No policy requires %s of %s", r.rule.Type,
				r.scope.Ident)
		case r.rule.Held != "":
			return moorage.Errorf(moorage.KindIllegalArgument, "%s of %s is held: %s", r.rule.Type, r.scope.Ident,
				r.rule.Held)
		}
	}
	now, err := r.Ledger.Time(ctx)
	if err != nil {
		return err
	}
	schedules, err := ReadSchedules(ctx, r.Ledger, r.scope.Pointer)
	if err != nil {
		return err
	}
	change, err := schedules[0].Unblock(string(r.kind), now, records[1])
	if err != nil {
		return err
	}
	return r.apply(ctx, change)
}

// retryJob lets a blocked job continue, and removes its blocker.
func (s *Control) retryJob(ctx context.Context, record, blocker registry.Record) error {
	job, err := ledger.Decode[registry.Job](record)
	if err != nil {
		return err
	}
	if blocker.Exists() {
		due, err := ledger.Decode[registry.Due](blocker)
		if err != nil {
			return err
		}
		if due.By != "" {
			return moorage.Errorf(moorage.KindIllegalArgument, "%s has put the job %s into quarantine: %s. "+
				"Release it with moorage maintain job retry %s", due.By, job.ID, due.Reason, job.ID)
		}
	}
	err = s.Jobs.Retry(ctx, job.ID, jobs.Retrying{})
	if kind := moorage.KindOf(err); kind == moorage.KindNotFound || kind == moorage.KindCommitFailed {
		return ledger.ErrRetry // another caller was faster
	}
	return err
}

func (s *Control) apply(ctx context.Context, change Change) error {
	_, err := s.Ledger.Step(ctx, registry.Batch{Conditions: change.Conditions, Writes: change.Writes})
	if retry := ledger.RetryOnConflict(err); errors.Is(retry, ledger.ErrRetry) {
		return retry
	}
	return ledger.StepError("due.apply", err)
}

func (s *Control) pauses(ctx context.Context) (registry.Pauses, registry.Record, error) {
	records, err := s.Ledger.Get(ctx, registry.PauseKey())
	if err != nil || !records[0].Exists() {
		return registry.Pauses{}, registry.Record{}, err
	}
	value, err := ledger.Decode[registry.Pauses](records[0])
	return value, records[0], err
}

// Pauses returns all present pauses.
func (s *Control) Pauses(ctx context.Context) ([]registry.Pause, error) {
	pauses, _, err := s.pauses(ctx)
	return pauses.Pauses, moorage.Annotate("due.Pauses", "", err)
}

// Pause stops the maintenance of a scope until a caller resumes it. Jobs check for pauses before
// each batch of files.
//
// Errors: the errors of catalog.Scopes.Change.
func (s *Control) Pause(ctx context.Context, scopes policy.Scopes, ident moorage.Identifier,
	reason, by string) error {
	return s.changePauses(ctx, scopes, gate.PauseMaintenance, ident, func(scope catalog.Scope, now time.Time,
		all []registry.Pause) []registry.Pause {
		all = withoutScope(all, scope.Name)
		pause := registry.Pause{Scope: scope.Name, Ident: scope.Ident, Reason: reason, By: by, Since: now}
		all = append(all, pause)
		slices.SortFunc(all, func(a, b registry.Pause) int { return strings.Compare(orderOf(a), orderOf(b)) })
		return all
	})
}

// orderOf returns a sort key that puts the server first.
func orderOf(pause registry.Pause) string {
	if pause.Scope == registry.ScopeServer {
		return ""
	}
	return pause.Scope
}

func withoutScope(all []registry.Pause, scope string) []registry.Pause {
	return slices.DeleteFunc(slices.Clone(all), func(pause registry.Pause) bool { return pause.Scope == scope })
}

// Resume ends the pause of a scope. The pauses of other scopes stay. It is not an error if the
// scope is not paused. Resuming the whole server also ends its doubt about the store's clock.
//
// Errors: the errors of catalog.Scopes.Change.
func (s *Control) Resume(ctx context.Context, scopes policy.Scopes, ident moorage.Identifier) error {
	err := s.changePauses(ctx, scopes, gate.ResumeMaintenance, ident, func(scope catalog.Scope, _ time.Time,
		all []registry.Pause) []registry.Pause {
		return withoutScope(all, scope.Name)
	}, func(ctx context.Context, scope catalog.Scope) (catalog.Beside, error) {
		records, err := s.Ledger.Get(ctx, registry.ClockKey())
		if err != nil || scope.Name != registry.ScopeServer || !records[0].Exists() {
			return catalog.Beside{}, err
		}
		return catalog.Beside{
			Conditions: []registry.Condition{ledger.Unchanged(records[0])},
			Writes:     []registry.Write{registry.Delete(records[0].Key)},
		}, nil
	})
	if err == nil {
		s.kick()
	}
	return err
}

func (s *Control) changePauses(ctx context.Context, scopes policy.Scopes, v gate.Verb, ident moorage.Identifier,
	edit func(scope catalog.Scope, now time.Time, all []registry.Pause) []registry.Pause,
	more ...func(ctx context.Context, scope catalog.Scope) (catalog.Beside, error)) error {
	return scopes.Change(ctx, v, ident, func(ctx context.Context, scope catalog.Scope) (catalog.Beside, error) {
		value, record, err := s.pauses(ctx)
		if err != nil {
			return catalog.Beside{}, err
		}
		now, err := s.Ledger.Time(ctx)
		if err != nil {
			return catalog.Beside{}, err
		}
		value.Pauses = edit(scope, now, value.Pauses)
		beside, err := putUnchanged(registry.PauseKey(), record, value)
		for _, each := range more {
			other, failed := each(ctx, scope)
			if failed != nil {
				return catalog.Beside{}, failed
			}
			beside.Conditions = append(beside.Conditions, other.Conditions...)
			beside.Writes = append(beside.Writes, other.Writes...)
		}
		return beside, err
	})
}

// putUnchanged returns a write of a record, with the condition that the record is unchanged.
func putUnchanged(key registry.Key, record registry.Record, value registry.Value) (catalog.Beside, error) {
	writes, err := ledger.Encode(ledger.Put(key, registry.StateNone, value))
	condition := registry.Absent(key)
	if record.Exists() {
		condition = ledger.Unchanged(record)
	}
	return catalog.Beside{Conditions: []registry.Condition{condition}, Writes: writes}, err
}

// Rescan makes the monitor walk over all tables of a scope. The walk makes each table due if the
// policies require it.
//
// Errors: the errors of catalog.Scopes.Change.
func (s *Control) Rescan(ctx context.Context, scopes policy.Scopes, ident moorage.Identifier) error {
	err := scopes.Change(ctx, gate.RescanMaintenance, ident, func(ctx context.Context, scope catalog.Scope) (
		catalog.Beside, error) {
		key := registry.WalkKey(scope.Name)
		records, err := s.Ledger.Get(ctx, key)
		if err != nil {
			return catalog.Beside{}, err
		}
		now, err := s.Ledger.Time(ctx)
		if err != nil {
			return catalog.Beside{}, err
		}
		return putUnchanged(key, records[0], registry.Walk{Ident: scope.Ident, Reason: "rescan", Since: now})
	})
	if err == nil {
		s.kick()
	}
	return err
}

// Blocker describes one kind of job that is blocked on one table.
type Blocker struct {
	registry.Due
	Pointer registry.ID
	Table   moorage.Identifier // empty if the table is gone
	Kind    string
}

// Blockers returns a page of the blockers, in the order of their IDs. The page begins with the
// first ID greater than after. To get the next page, pass next as after. On the last page, next is
// empty.
func (s *Control) Blockers(ctx context.Context, after string, limit int) (all []Blocker, next string, err error) {
	prefix, last := registry.DueBlockedPrefix(), ""
	err = s.Ledger.Scan(ctx, registry.TableDue, prefix, after, func(record registry.Record) (bool, error) {
		if limit > 0 && len(all) == limit {
			next = last
			return false, nil
		}
		value, err := ledger.Decode[registry.Due](record)
		if err != nil {
			return false, err
		}
		blocker := Blocker{Due: value}
		pointer, kind, _ := strings.Cut(strings.TrimPrefix(record.Key.ID, prefix), "/")
		if blocker.Kind = kind; blocker.Pointer.UnmarshalText([]byte(pointer)) == nil {
			if blocker.Table, err = jobs.NameOf(ctx, s.Ledger, blocker.Pointer); err != nil {
				return false, err
			}
		}
		all, last = append(all, blocker), record.Key.ID
		return true, nil
	})
	return all, next, moorage.Annotate("due.Blockers", "", err)
}
