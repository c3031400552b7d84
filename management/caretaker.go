package management

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/maintenance/due"
	"moorage/maintenance/jobs"
	"moorage/maintenance/policy"
	"moorage/management/client"
	"moorage/registry"
)

// Steering has the methods of *steer.Steering.
type Steering interface {
	Status(ctx context.Context, scopes policy.Scopes, ident moorage.Identifier) (due.Status, error)
	Run(ctx context.Context, scopes policy.Scopes, ident moorage.Identifier, kind policy.Kind) error
	Begin(ctx context.Context, scopes policy.Scopes, ident moorage.Identifier, asked due.JobRequest) (
		jobs.Began, error)
	Plan(ctx context.Context, scopes policy.Scopes, ident moorage.Identifier, kind policy.Kind, asked due.JobRequest,
		sample int) (jobs.DryRun, error)
	Leftovers(ctx context.Context, scopes policy.Scopes, warehouse string, asked jobs.LeftoverSettings,
		sample int) (jobs.DryRun, error)
	Pause(ctx context.Context, scopes policy.Scopes, ident moorage.Identifier, reason, by string) error
	Resume(ctx context.Context, scopes policy.Scopes, ident moorage.Identifier) error
	Rescan(ctx context.Context, scopes policy.Scopes, ident moorage.Identifier) error
	Blockers(ctx context.Context, after string, limit int) ([]due.Blocker, string, error)
	Preview(ctx context.Context, scopes policy.Scopes, ident moorage.Identifier, asked policy.Asked, after string,
		limit int) ([]due.Preview, string, error)
}

// Policies has the methods of *policy.Policies.
type Policies interface {
	Put(ctx context.Context, scopes policy.Scopes, ident moorage.Identifier, asked policy.Asked) error
	Delete(ctx context.Context, scopes policy.Scopes, ident moorage.Identifier, t policy.Type) error
	Of(ctx context.Context, scope catalog.Scope) (map[policy.Type]policy.Said, error)
}

// Jobs has the methods of *jobs.Jobs.
type Jobs interface {
	List(ctx context.Context, pointer registry.ID, after string, limit int) ([]jobs.Under, string, error)
	Cancel(ctx context.Context, id registry.ID, caller string) error
	Retry(ctx context.Context, id registry.ID, how jobs.Retrying) error
	Quarantine(ctx context.Context, id registry.ID, reason, caller string) error
	Pause(ctx context.Context, id registry.ID, reason, caller string) error
	Resume(ctx context.Context, id registry.ID) error
	Files(ctx context.Context, id registry.ID, skip, limit int) ([]jobs.Listed, error)
	Adopt(ctx context.Context, warehouse string) (other string, err error)
}

// Caretaker manages maintenance in the terms of the API, for one caller. It is safe for concurrent
// use.
type Caretaker struct {
	Scopes   policy.Scopes
	Policies Policies
	Steering Steering
	Jobs     Jobs
	Caller   string
}

// identOf returns the identifier of an object.
func identOf(object client.Object) (moorage.Identifier, error) {
	if object.View+object.Function != "" {
		return moorage.Identifier{}, moorage.Errorf(moorage.KindIllegalArgument, "There is no maintenance of a %s",
			strings.Fields(object.String())[0])
	}
	return moorage.Identifier{Warehouse: object.Warehouse, Namespace: object.Namespace, Name: object.Table}, nil
}

// objectCalled returns the object with the identifier ident.
func objectCalled(ident moorage.Identifier) client.Object {
	return client.Object{Warehouse: ident.Warehouse, Namespace: ident.Namespace, Table: ident.Name}
}

// typeOf parses the name of a type.
func typeOf(text string) (policy.Type, error) {
	t := policy.Type(text)
	if err := t.Check(nil, false); err != nil {
		return "", moorage.Errorf(moorage.KindNotFound, "%s", err)
	}
	return t, nil
}

// MaintenancePolicy returns an object's own policy for a type of job. KindNotFound if it has no
// policy.
func (c Caretaker) MaintenancePolicy(ctx context.Context, object client.Object, of string) (
	client.MaintenancePolicy, error) {
	var none client.MaintenancePolicy
	t, err := typeOf(of)
	if err != nil {
		return none, err
	}
	ident, err := identOf(object)
	if err != nil {
		return none, err
	}
	scope, err := c.Scopes.Find(ctx, gate.LoadMaintenancePolicy, ident)
	if err != nil {
		return none, err
	}
	all, err := c.Policies.Of(ctx, scope)
	if err != nil {
		return none, err
	}
	said, ok := all[t]
	if !ok {
		return none, moorage.Errorf(moorage.KindNotFound, "The %s says nothing of %s", object, t)
	}
	return policyOf(t, said), nil
}

func policyOf(t policy.Type, said policy.Said) client.MaintenancePolicy {
	answer := client.MaintenancePolicy{
		Status: string(said.Status), Unsafe: said.Unsafe, Since: said.Since, By: said.By,
	}
	settings := make(client.MaintenanceSettings, len(said.Settings))
	for name, text := range said.Settings {
		if _, err := strconv.ParseInt(text, 10, 64); err == nil {
			settings[name] = json.RawMessage(text)
			continue
		}
		settings[name], _ = json.Marshal(text) // a string can always be encoded
	}
	if len(settings) > 0 {
		answer.Settings = map[string]client.MaintenanceSettings{string(t): settings}
	}
	return answer
}

// settingsOf reads the settings of a policy of a type. It accepts numbers and booleans in place of
// strings.
func settingsOf(t policy.Type, said map[string]client.MaintenanceSettings) (policy.Settings, error) {
	settings := make(policy.Settings)
	for of, members := range said {
		if of != string(t) {
			return nil, moorage.Errorf(moorage.KindBadRequest, "The settings are of %q, and the policy is of %s",
				moorage.Cut(of, 100), t)
		}
		for name, raw := range members {
			decoder := json.NewDecoder(bytes.NewReader(raw))
			decoder.UseNumber()
			var value any
			if err := decoder.Decode(&value); err != nil {
				return nil, moorage.Errorf(moorage.KindBadRequest, "The setting %q cannot be read",
					moorage.Cut(name, 100))
			}
			switch value := value.(type) {
			case json.Number:
				settings[name] = value.String()
			case string:
				settings[name] = value
			case bool:
				settings[name] = strconv.FormatBool(value)
			default:
				return nil, moorage.Errorf(moorage.KindBadRequest, "The setting %q is no number and no text",
					moorage.Cut(name, 100))
			}
		}
	}
	return settings, nil
}

// PutMaintenancePolicy sets an object's policy for a type of job.
func (c Caretaker) PutMaintenancePolicy(ctx context.Context, object client.Object, of string,
	said client.MaintenancePolicy) error {
	asked, err := c.askedOf(of, said)
	if err != nil {
		return err
	}
	ident, err := identOf(object)
	if err != nil {
		return err
	}
	return c.Policies.Put(ctx, c.Scopes, ident, asked)
}

// DeleteMaintenancePolicy removes an object's policy for a type of job.
func (c Caretaker) DeleteMaintenancePolicy(ctx context.Context, object client.Object, of string) error {
	t, err := typeOf(of)
	if err != nil {
		return err
	}
	ident, err := identOf(object)
	if err != nil {
		return err
	}
	return c.Policies.Delete(ctx, c.Scopes, ident, t)
}

// MaintenanceStatus returns the state of the maintenance of an object.
func (c Caretaker) MaintenanceStatus(ctx context.Context, object client.Object) (client.MaintenanceStatus, error) {
	ident, err := identOf(object)
	if err != nil {
		return client.MaintenanceStatus{}, err
	}
	found, err := c.Steering.Status(ctx, c.Scopes, ident)
	if err != nil {
		return client.MaintenanceStatus{}, err
	}
	status := client.MaintenanceStatus{
		Object: object, Policies: make(map[string]client.MaintenancePolicy), Pauses: []client.MaintenancePause{},
		Kinds: []client.MaintenanceKind{}, Jobs: []client.MaintenanceJob{}, Runs: []client.MaintenanceRun{},
	}
	for t, said := range found.Said {
		status.Policies[string(t)] = policyOf(t, said)
	}
	for _, pause := range found.Pauses {
		status.Pauses = append(status.Pauses, client.MaintenancePause{
			Object: objectCalled(pause.Ident), Reason: pause.Reason, By: pause.By, Since: pause.Since,
		})
	}
	for _, kind := range found.Kinds {
		status.Kinds = append(status.Kinds, kindOf(kind, len(found.Pauses) > 0))
	}
	for _, job := range found.Jobs {
		status.Jobs = append(status.Jobs, jobOf(job))
	}
	for _, run := range found.Runs {
		status.Runs = append(status.Runs, client.MaintenanceRun{
			Job: run.Job.String(), Kind: run.Kind, Outcome: run.Outcome, Began: run.Began, Ended: run.Ended,
			Snapshots: run.Totals.Snapshots, Files: run.Totals.Files, Bytes: run.Totals.Bytes, Error: run.Error,
			Kept: keptOf(run.Totals.Kept),
		})
	}
	return status, nil
}

// kindOf returns the state of a kind of job.
func kindOf(kind due.KindStatus, paused bool) client.MaintenanceKind {
	answer := client.MaintenanceKind{
		Kind: string(kind.Rule.Type.Kind()), Type: string(kind.Rule.Type), From: fromOf(kind.Rule.From),
		Due: kind.Schedule.Due, Last: kind.Schedule.Last, Outcome: kind.Schedule.Outcome,
		Settings: make(map[string]client.MaintenanceValue, len(kind.Rule.Values)),
	}
	answer.State, answer.Why = stateOf(kind, paused)
	if kind.Job != nil {
		answer.Job = kind.Job.ID.String()
	}
	for _, setting := range kind.Rule.Type.Settings() {
		value, set := kind.Rule.Values[setting.Name]
		if !set {
			continue
		}
		from := fromOf(value.From)
		if value.Raised {
			from += ", raised to what is safe"
		}
		answer.Settings[setting.Name] = client.MaintenanceValue{Value: valueText(setting, value), From: from}
	}
	return answer
}

// valueText returns a value as a policy spells it. A table property's value may be no whole number
// of the setting's units. Such a value is written with its own unit.
func valueText(setting policy.Setting, value policy.Value) string {
	switch {
	case value.Text != "":
		return value.Text
	case value.Number%setting.Unit == 0:
		return strconv.FormatInt(value.Number/setting.Unit, 10)
	case strings.HasSuffix(setting.Name, "MB"):
		return strconv.FormatInt(value.Number, 10) + " bytes"
	default:
		return (time.Duration(value.Number) * time.Millisecond).String()
	}
}

// fromOf returns the level and the name of a setting's source.
func fromOf(source policy.Source) string {
	if source.Name == "" || source.Level == policy.LevelServer {
		return string(source.Level)
	}
	return string(source.Level) + " " + source.Name
}

// stateOf returns the state of a kind of job, and the reason for it.
func stateOf(kind due.KindStatus, paused bool) (state, why string) {
	job := kind.Job
	switch {
	case job != nil && job.State == registry.StateBlocked:
		return "Blocked", job.LastError
	case kind.Blocker != nil:
		return "Blocked", kind.Blocker.Reason
	case job != nil && job.Paused:
		return "Paused", job.PausedWhy
	case job != nil && paused, paused && kind.Rule.Enabled:
		return "Paused", ""
	case job != nil && job.State == registry.StateWaiting:
		return "Waiting", job.LastError
	case job != nil:
		return "Running", job.LastError
	case !kind.Rule.Enabled:
		return "Disabled", ""
	case kind.Rule.Held != "":
		return "Held", kind.Rule.Held
	case kind.Schedule.Error != "":
		return "Failed", kind.Schedule.Error
	case kind.Schedule.Last.IsZero():
		return "Not_Yet_Run", ""
	}
	return "Successful", ""
}

// PauseMaintenance stops the maintenance of an object.
func (c Caretaker) PauseMaintenance(ctx context.Context, change client.MaintenanceChange) error {
	ident, err := identOf(change.Object)
	if err == nil {
		err = c.Steering.Pause(ctx, c.Scopes, ident, change.Reason, c.Caller)
	}
	return err
}

// ResumeMaintenance ends the pause of an object.
func (c Caretaker) ResumeMaintenance(ctx context.Context, change client.MaintenanceChange) error {
	ident, err := identOf(change.Object)
	if err == nil {
		err = c.Steering.Resume(ctx, c.Scopes, ident)
	}
	return err
}

// RescanMaintenance makes all tables of an object due for a check of their maintenance.
func (c Caretaker) RescanMaintenance(ctx context.Context, change client.MaintenanceChange) error {
	ident, err := identOf(change.Object)
	if err == nil {
		err = c.Steering.Rescan(ctx, c.Scopes, ident)
	}
	return err
}

// MaintenanceJobs returns a page of the jobs in progress.
func (c Caretaker) MaintenanceJobs(ctx context.Context, page client.Page) ([]client.MaintenanceJob, string, error) {
	found, next, err := c.Jobs.List(ctx, registry.ID{}, page.After, page.Limit)
	all := make([]client.MaintenanceJob, len(found))
	for i, job := range found {
		all[i] = jobOf(job)
	}
	return all, next, err
}

func jobOf(job jobs.Under) client.MaintenanceJob {
	answer := client.MaintenanceJob{
		ID: job.ID.String(), Kind: job.Kind, Object: objectIfAny(job.Table),
		State: strings.ToLower(job.State.String()), Principal: job.Caller,
		Created: job.Created, NotBefore: job.NotBefore, Deleted: job.Totals.Files,
		LastError: job.LastError, Paused: job.PausedWhy, Kept: keptOf(job.Totals.Kept),
	}
	for _, list := range job.Lists {
		answer.Files += list.Count
	}
	return answer
}

func objectIfAny(ident moorage.Identifier) *client.Object {
	if ident.Name == "" {
		return nil
	}
	object := objectCalled(ident)
	return &object
}

// MaintenanceBlockers returns a page of the blocked kinds of job.
func (c Caretaker) MaintenanceBlockers(ctx context.Context, page client.Page) ([]client.MaintenanceBlocker, string,
	error) {
	found, next, err := c.Steering.Blockers(ctx, page.After, page.Limit)
	all := make([]client.MaintenanceBlocker, len(found))
	for i, blocker := range found {
		all[i] = client.MaintenanceBlocker{
			Kind: blocker.Kind, Object: objectIfAny(blocker.Table), Reason: blocker.Reason, Since: blocker.Since.UTC(),
			By: blocker.By,
		}
	}
	return all, next, err
}

func keptOf(kept []registry.KeptOf) (all []client.MaintenanceKept) {
	for _, k := range kept {
		all = append(all, client.MaintenanceKept{Reason: k.Reason, Files: k.Files})
	}
	return all
}

func jobCalled(id string) (job registry.ID, err error) {
	if err := job.UnmarshalText([]byte(id)); err != nil {
		return job, moorage.Errorf(moorage.KindNotFound, "%q is not the id of a job", moorage.Cut(id, 100))
	}
	return job, nil
}

// The changes of a job.
const (
	jobCancel     = "cancel"
	jobRetry      = "retry"
	jobQuarantine = "quarantine"
	jobPause      = "pause"
	jobResume     = "resume"
)

// ChangeMaintenanceJob cancels, retries, quarantines, pauses or resumes a job.
func (c Caretaker) ChangeMaintenanceJob(ctx context.Context, asked client.MaintenanceJobChange) error {
	job, err := jobCalled(asked.Job)
	if err != nil {
		return err
	}
	reason := asked.Reason
	if reason == "" && slices.Contains([]string{jobQuarantine, jobPause}, asked.Change) {
		return moorage.Errorf(moorage.KindBadRequest, "Say why with --reason: the reason is missing")
	}
	if asked.Confirm && asked.Change != jobRetry {
		return moorage.Errorf(moorage.KindBadRequest, "Only a retry is confirmed")
	}
	switch asked.Change {
	case jobCancel:
		return c.Jobs.Cancel(ctx, job, c.Caller)
	case jobRetry:
		return c.Jobs.Retry(ctx, job, jobs.Retrying{Confirmed: asked.Confirm})
	case jobQuarantine:
		return c.Jobs.Quarantine(ctx, job, reason, c.Caller)
	case jobPause:
		return c.Jobs.Pause(ctx, job, reason, c.Caller)
	case jobResume:
		return c.Jobs.Resume(ctx, job)
	}
	return moorage.Errorf(moorage.KindBadRequest, "A job is cancelled, retried, quarantined, paused or resumed, not %q",
		moorage.Cut(asked.Change, 100))
}
