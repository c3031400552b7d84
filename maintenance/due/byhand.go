package due

import (
	"context"
	"errors"
	"strings"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/maintenance/jobs"
	"moorage/maintenance/policy"
	"moorage/metadata"
	"moorage/registry"
)

// JobRequest is a requested job. Exactly one of the two fields is set.
type JobRequest struct {
	Snapshots *jobs.SnapshotSettings
	Orphans   *jobs.OrphanSettings
}

// Begin begins a job on the table called ident. Policies have no effect on it.
//
// Errors: KindIllegalArgument if nothing may be deleted from the table, or if the scope is paused;
// KindCommitFailed if such a job exists, or if a pause has changed meanwhile; the errors of
// catalog.Scopes.Find and jobs.Expire.
func (s *Control) Begin(ctx context.Context, scopes policy.Scopes, ident moorage.Identifier, asked JobRequest) (
	jobs.Began, error) {
	const op = "due.Begin"
	scope, err := findTable(ctx, scopes, gate.RunMaintenance, ident)
	if err != nil {
		return jobs.Began{}, err
	}
	pauses, err := s.notPaused(ctx, scope)
	if err != nil {
		return jobs.Began{}, err
	}
	unpaused, err := jobs.RequirePauses(ctx, s.Ledger, pauses)
	if err != nil {
		return jobs.Began{}, moorage.Annotate(op, ident.String(), callerErrors(ident, err))
	}
	extra := func(*catalog.Version) ([]registry.Condition, []registry.Write, error) {
		return []registry.Condition{unpaused}, nil, nil
	}
	if asked.Orphans != nil && asked.Orphans.Adopt {
		if _, err := scopes.Find(ctx, gate.AdoptFiles, moorage.Identifier{Warehouse: ident.Warehouse}); err != nil {
			return jobs.Began{}, moorage.Annotate(op, ident.String(), err)
		}
	}
	var began jobs.Began
	if asked.Orphans != nil {
		began, err = s.Jobs.FindOrphans(ctx, scope.Pointer, *asked.Orphans, extra)
	} else {
		began, err = s.Jobs.Expire(ctx, scope.Pointer, *asked.Snapshots, extra)
	}
	if err = callerErrors(ident, err); err == nil {
		s.kick()
	}
	return began, moorage.Annotate(op, ident.String(), err)
}

func findTable(ctx context.Context, scopes policy.Scopes, v gate.Verb, ident moorage.Identifier) (
	catalog.Scope, error) {
	if ident.Name == "" {
		return catalog.Scope{}, moorage.Errorf(moorage.KindIllegalArgument, "Name a table")
	}
	return scopes.Find(ctx, v, ident)
}

// notPaused returns an error if the table's maintenance is paused. Otherwise it returns the record
// of the pauses.
func (s *Control) notPaused(ctx context.Context, scope catalog.Scope) (registry.Record, error) {
	pauses, record, err := s.pauses(ctx)
	if err != nil {
		return registry.Record{}, err
	}
	for _, pause := range pauses.Pauses {
		if pause.Covers(asPointer(scope)) {
			by := ""
			if pause.By != "" {
				by = " by " + pause.By
			}
			object := ObjectOf(pause)
			words, name, named := strings.Cut(object, " ")
			if named {
				words += " " + moorage.ShellWord(name)
			}
			return registry.Record{}, moorage.Errorf(moorage.KindIllegalArgument, "Maintenance of the %s is paused%s: "+
				"%s. Resume it with moorage maintain resume %s", object, by, pause.Reason, words)
		}
	}
	return record, nil
}

// ObjectOf returns the object of a pause as commands spell it: "server", or a kind and a name.
// Parts of the name that contain a dot are quoted.
func ObjectOf(pause registry.Pause) string {
	if pause.Scope == registry.ScopeServer {
		return "server"
	}
	kind, parts := "warehouse", append([]string{pause.Ident.Warehouse}, pause.Ident.Namespace...)
	if len(pause.Ident.Namespace) > 0 {
		kind = "namespace"
	}
	if pause.Ident.Name != "" {
		kind, parts = "table", append(parts, pause.Ident.Name)
	}
	for i, part := range parts {
		if strings.Contains(part, ".") {
			parts[i] = `"` + part + `"`
		}
	}
	return kind + " " + strings.Join(parts, ".")
}

// asPointer converts a scope to a pointer, which the check of pauses needs.
func asPointer(scope catalog.Scope) registry.Pointer {
	ident := scope.Ident
	return registry.Pointer{
		ID: scope.Pointer, Warehouse: ident.Warehouse, Namespace: ident.Namespace, Name: ident.Name,
	}
}

// callerErrors turns the reasons why a job does not begin into errors for the caller.
func callerErrors(ident moorage.Identifier, err error) error {
	if held, ok := errors.AsType[*jobs.HeldError](err); ok {
		return moorage.Errorf(moorage.KindIllegalArgument, "%s: %w", ident, held) // nothing is deleted
	}
	if blocked, ok := errors.AsType[*jobs.BlockedError](err); ok {
		return moorage.Errorf(moorage.KindIllegalArgument, "%s: %w", ident, blocked)
	}
	if errors.Is(err, jobs.ErrBusy) {
		return moorage.Errorf(moorage.KindCommitFailed,
			"There is a job of this kind on %s, or a pause has changed; see moorage maintain status", ident)
	}
	return err
}

// Plan returns what a job on the table called ident would do now. It lists at most sample of the
// files, and changes nothing. If asked has no settings, Plan uses the policies' settings, even if
// the policy is disabled.
//
// Errors: KindIllegalArgument for a kind that the server does not run itself; the errors of
// catalog.Scopes.Find.
func (s *Control) Plan(ctx context.Context, scopes policy.Scopes, ident moorage.Identifier, kind policy.Kind,
	asked JobRequest, sample int) (jobs.DryRun, error) {
	const op = "due.Plan"
	scope, err := findTable(ctx, scopes, gate.PlanMaintenance, ident)
	if err != nil {
		return jobs.DryRun{}, err
	}
	if asked == (JobRequest{}) {
		if asked, err = s.byPolicy(ctx, scope, kind); err != nil {
			return jobs.DryRun{}, moorage.Annotate(op, ident.String(), err)
		}
	}
	var run jobs.DryRun
	if asked.Orphans != nil {
		run, err = jobs.DryRunOrphans(ctx, s.Jobs, scope.Pointer, *asked.Orphans, sample)
	} else {
		run, err = jobs.DryRunSnapshots(ctx, s.Jobs, scope.Pointer, *asked.Snapshots, sample)
	}
	return run, moorage.Annotate(op, ident.String(), err)
}

// Leftovers returns how many files of a warehouse lie outside of all tables and views. It lists at
// most sample of them. The caller needs the right to plan on the warehouse. Policies and pauses do
// not apply, because nothing is deleted.
//
// Errors: KindIllegalArgument, as for jobs.Leftovers; the errors of catalog.Scopes.Find.
func (s *Control) Leftovers(ctx context.Context, scopes policy.Scopes, warehouse string,
	asked jobs.LeftoverSettings, sample int) (jobs.DryRun, error) {
	const op = "due.Leftovers"
	_, err := scopes.Find(ctx, gate.PlanMaintenance, moorage.Identifier{Warehouse: warehouse})
	if err != nil {
		return jobs.DryRun{}, moorage.Annotate(op, warehouse, err)
	}
	run, err := jobs.Leftovers(ctx, s.Jobs, warehouse, asked, sample)
	return run, moorage.Annotate(op, warehouse, err)
}

// byPolicy returns the settings that the policies give for a kind, as the planner would use them.
func (s *Control) byPolicy(ctx context.Context, scope catalog.Scope, kind policy.Kind) (JobRequest, error) {
	t, ok := policy.TypeOf(kind)
	if !ok || kind != policy.Snapshots && kind != policy.Orphans {
		return JobRequest{}, moorage.Errorf(moorage.KindIllegalArgument, "Name the kind snapshots or orphans")
	}
	matcher, err := s.Policies.Reload(ctx)
	if err != nil {
		return JobRequest{}, err
	}
	version, table, err := s.Tables.TableByID(ctx, scope.Pointer)
	if err != nil {
		return JobRequest{}, err
	}
	document := version.Document.(*metadata.Document)
	rule := policy.Effective(matcher.Chain(table.ID, table.Identifier()), document.Properties())[t]
	if rule.Held != "" {
		return JobRequest{}, moorage.Errorf(moorage.KindIllegalArgument, "%s of %s is held: %s", t, table.Identifier(),
			rule.Held)
	}
	if kind == policy.Orphans {
		settings := OrphanSettings(rule)
		return JobRequest{Orphans: &settings}, nil
	}
	schedules, err := ReadSchedules(ctx, s.Ledger, scope.Pointer)
	if err != nil {
		return JobRequest{}, err
	}
	settings := SnapshotSettings(rule, schedules[0].Value.Seq)
	return JobRequest{Snapshots: &settings}, nil
}
