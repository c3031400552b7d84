package management

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"moorage"
	"moorage/maintenance/due"
	"moorage/maintenance/jobs"
	"moorage/maintenance/policy"
	"moorage/management/client"
	"moorage/registry"
)

// statusOf returns the state of the maintenance of an object.
func statusOf(object client.Object, found due.Status) client.MaintenanceStatus {
	status := client.MaintenanceStatus{
		Object: object, Policies: make(map[string]client.MaintenancePolicy), Pauses: []client.MaintenancePause{},
		Kinds: []client.MaintenanceKind{}, Jobs: []client.MaintenanceJob{}, Runs: []client.MaintenanceRun{},
	}
	for t, sent := range found.Said {
		status.Policies[string(t)] = policyOf(t, sent)
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
	return status
}

func policyOf(t policy.Type, sent policy.Said) client.MaintenancePolicy {
	answer := client.MaintenancePolicy{
		Status: string(sent.Status), Unsafe: sent.Unsafe, Since: sent.Since, By: sent.By,
	}
	settings := make(client.MaintenanceSettings, len(sent.Settings))
	for name, text := range sent.Settings {
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

// valueText returns a value in the form of a policy. A value from a table property may not be a
// whole number of the setting's units. Such a value is written with its own unit.
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

func keptOf(kept []registry.KeptOf) (all []client.MaintenanceKept) {
	for _, k := range kept {
		all = append(all, client.MaintenanceKept{Reason: k.Reason, Files: k.Files})
	}
	return all
}
