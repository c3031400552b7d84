package management

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"moorage"
	"moorage/internal/jsontext"
	"moorage/internal/web"
	"moorage/maintenance/due"
	"moorage/maintenance/jobs"
	"moorage/maintenance/policy"
	"moorage/management/client"
)

// sampleMax is the maximum number of files that a plan names.
const sampleMax = 1000

// settingsByHand has the valid settings of each kind of job that an operator can begin.
var settingsByHand = map[string][]string{
	jobs.KindSnapshots: {
		"max-snapshot-age-seconds", "min-snapshots", "max-ref-age-seconds", "delay-seconds", "keep-files",
	},
	jobs.KindOrphans: {"older-than-seconds", "quarantine-seconds", "equal-authorities", "confirm", "unsafe", "adopt"},
}

// byHandIn parses a request about a job.
func byHandIn(body []byte) (asked client.MaintenanceByHand, err error) {
	f, err := web.ParseFields(body, "request")
	if err != nil {
		return asked, err
	}
	asked = client.MaintenanceByHand{Object: objectIn(f), Kind: f.Text("kind"), Sample: int(countIn(f, "sample"))}
	if asked.Sample > sampleMax {
		f.Fail("member %q is at most %d", "sample", sampleMax)
	}
	if value := f.Typed("settings", jsontext.Object); !value.IsZero() && f.Failure == nil {
		if settingsByHand[asked.Kind] == nil {
			return asked, moorage.Errorf(moorage.KindBadRequest,
				"Settings are of the kind snapshots or orphans, not of %q", moorage.Cut(asked.Kind, 50))
		}
		inner := f.Within(value, "settings", "")
		asked.Settings = settingsIn(inner, asked.Kind)
		f.Keep(inner.Failure)
	}
	return asked, f.Failure
}

// settingsIn reads the settings for a kind of job, and refuses settings of other kinds.
func settingsIn(f *web.Fields, kind string) *client.MaintenanceSettingsByHand {
	for other, names := range settingsByHand {
		for _, name := range names {
			if other != kind && f.Has(name) {
				f.Fail("%q is a setting of %s", name, other)
			}
		}
	}
	number := func(name string) *int64 {
		if f.Get(name).IsZero() {
			return nil
		}
		n := countIn(f, name)
		if n > secondsMax {
			f.Fail("member %q is too large", name)
		}
		return &n
	}
	return &client.MaintenanceSettingsByHand{
		MaxSnapshotAgeSeconds: number("max-snapshot-age-seconds"), MinSnapshots: number("min-snapshots"),
		MaxRefAgeSeconds: number("max-ref-age-seconds"), DelaySeconds: number("delay-seconds"),
		KeepFiles:        f.Boolean("keep-files"),
		OlderThanSeconds: number("older-than-seconds"), QuarantineSeconds: number("quarantine-seconds"),
		EqualAuthorities: f.Boolean("equal-authorities"), Confirm: f.Boolean("confirm"), Unsafe: f.Boolean("unsafe"),
		Adopt: f.Boolean("adopt"),
	}
}

// byHand returns the job that the settings describe, or the zero value if there are no settings.
func byHand(caller, kind string, sent *client.MaintenanceSettingsByHand) (asked due.JobRequest, err error) {
	if sent == nil {
		return asked, nil
	}
	seconds := func(into *time.Duration, n *int64) {
		if n != nil {
			*into = time.Duration(*n) * time.Second
		}
	}
	switch kind {
	case jobs.KindSnapshots:
		s := jobs.DefaultSnapshots()
		seconds(&s.Retention.MaxSnapshotAge, sent.MaxSnapshotAgeSeconds)
		seconds(&s.Retention.MaxRefAge, sent.MaxRefAgeSeconds)
		seconds(&s.Delay, sent.DelaySeconds)
		if n := sent.MinSnapshots; n != nil {
			s.Retention.MinSnapshots = int(*n)
		}
		if s.Retention.MinSnapshots < 1 {
			return asked, moorage.Errorf(moorage.KindIllegalArgument, "A branch keeps at least one snapshot")
		}
		s.KeepFiles, s.Caller = sent.KeepFiles, caller
		asked.Snapshots = &s
	case jobs.KindOrphans:
		if sent.Unsafe {
			return asked, moorage.Errorf(moorage.KindIllegalArgument, "Only a plan for a warehouse can be unsafe")
		}
		s := jobs.DefaultOrphans()
		seconds(&s.OlderThan, sent.OlderThanSeconds)
		seconds(&s.Quarantine, sent.QuarantineSeconds)
		s.EqualAuthorities, s.Confirmed, s.Caller = sent.EqualAuthorities, sent.Confirm, caller
		s.Adopt = sent.Adopt
		asked.Orphans = &s
	default:
		return asked, moorage.Errorf(moorage.KindIllegalArgument, "Name the kind snapshots or orphans")
	}
	return asked, nil
}

// runMaintenance begins a job on a table with the requested settings. Without settings, it makes
// the table due, so that the server applies the table's policies now.
func (s *server) runMaintenance(r *http.Request, body []byte) (any, error) {
	asked, err := byHandIn(body)
	if err != nil {
		return nil, err
	}
	begun := client.MaintenanceBegun{Object: asked.Object, Kind: asked.Kind, Outcome: client.BegunDue}
	ident, err := identOf(asked.Object)
	if err != nil {
		return nil, err
	}
	if asked.Settings == nil {
		return begun, s.config.Steering.Run(r.Context(), s.scopes(r), ident, policy.Kind(asked.Kind))
	}
	job, err := byHand(web.CallerOf(r).Name, asked.Kind, asked.Settings)
	if err != nil {
		return nil, err
	}
	began, err := s.config.Steering.Begin(r.Context(), s.scopes(r), ident, job)
	if err != nil {
		return nil, err
	}
	begun.Snapshots, begun.Refs = began.Snapshots, began.Refs
	switch began.Outcome {
	case jobs.OutcomeNothing:
		begun.Outcome = client.BegunNothing
		return begun, nil
	case jobs.OutcomeDone:
		begun.Outcome = client.BegunDone
	default:
		begun.Outcome = client.BegunBegun
		s.config.Begun(r.Context(), ident, asked.Kind)
	}
	begun.Job = began.Job.String()
	return begun, nil
}

// planMaintenance answers with the effects that a job on a table would have now. For kind orphans
// and a warehouse, it answers with the files that belong to no table.
func (s *server) planMaintenance(w http.ResponseWriter, r *http.Request) error {
	body, err := s.ReadBody(w, r)
	if err != nil {
		return err
	}
	asked, err := byHandIn(body)
	if err != nil {
		return err
	}
	ident, err := identOf(asked.Object)
	if err != nil {
		return err
	}
	if asked.Kind == jobs.KindOrphans && isWarehouse(ident) {
		plan, err := s.leftovers(r, asked)
		if err != nil {
			return err
		}
		return s.AnswerJSON(w, r, plan)
	}
	job, err := byHand(web.CallerOf(r).Name, asked.Kind, asked.Settings)
	if err != nil {
		return err
	}
	run, err := s.config.Steering.Plan(r.Context(), s.scopes(r), ident, policy.Kind(asked.Kind), job, asked.Sample)
	if err != nil {
		return err
	}
	plan := planOf(asked, run)
	for _, each := range run.Expiry.Snapshots {
		plan.Snapshots = append(plan.Snapshots, client.MaintenancePlanSnapshot{
			ID: each.ID, Time: time.UnixMilli(each.TimestampMS).UTC(), Expires: true,
		})
	}
	for _, kept := range run.Expiry.Kept {
		plan.Snapshots = append(plan.Snapshots, client.MaintenancePlanSnapshot{ID: kept.ID, Why: string(kept.Why)})
	}
	return s.AnswerJSON(w, r, plan)
}

// planOf returns a plan without snapshots.
func planOf(asked client.MaintenanceByHand, run jobs.DryRun) client.MaintenancePlan {
	return client.MaintenancePlan{
		Object: asked.Object, Kind: asked.Kind, Held: run.Held, Blocked: run.Blocked,
		Snapshots: []client.MaintenancePlanSnapshot{}, Refs: append([]string{}, run.Expiry.Refs...),
		Reach: run.Reach, Manifests: run.Cost.Manifests, ReadBytes: run.Cost.Bytes,
		Files: run.Files, Bytes: run.Bytes, More: run.More, Kept: keptOf(run.Kept), LeftOut: run.LeftOut,
		Sample: pathsOf(run.Sample),
	}
}

func isWarehouse(ident moorage.Identifier) bool {
	return ident.Warehouse != "" && len(ident.Namespace) == 0 && ident.Name == ""
}

// leftovers returns the files in a warehouse that belong to no table.
func (s *server) leftovers(r *http.Request, asked client.MaintenanceByHand) (client.MaintenancePlan, error) {
	settings := jobs.DefaultLeftovers()
	if sent := asked.Settings; sent != nil {
		if sent.QuarantineSeconds != nil || sent.EqualAuthorities || sent.Confirm || sent.Adopt {
			return client.MaintenancePlan{}, moorage.Errorf(moorage.KindIllegalArgument,
				"A plan for a warehouse deletes nothing, so it takes only older-than-seconds and unsafe")
		}
		if n := sent.OlderThanSeconds; n != nil {
			settings.OlderThan = time.Duration(*n) * time.Second
		}
		settings.Unsafe = sent.Unsafe
	}
	run, err := s.config.Steering.Leftovers(r.Context(), s.scopes(r), asked.Object.Warehouse, settings, asked.Sample)
	return planOf(asked, run), err
}

func pathsOf(files []jobs.Listed) []string {
	paths := make([]string, len(files))
	for i, file := range files {
		paths[i] = file.Path
	}
	return paths
}

// listMaintenanceJobFiles answers with a page of the files that a job will delete. The token of a
// page is the number of files on all pages before it.
func (s *server) listMaintenanceJobFiles(w http.ResponseWriter, r *http.Request) error {
	id, err := web.PathParam(r, "id")
	if err != nil {
		return err
	}
	find := func(ctx context.Context, page moorage.Page) ([]string, string, error) {
		job, err := jobCalled(id)
		if err != nil {
			return nil, "", err
		}
		skip := 0
		if page.After != "" {
			if skip, err = strconv.Atoi(page.After); err != nil || skip < 0 {
				return nil, "", moorage.Errorf(moorage.KindBadRequest, "Invalid page token")
			}
		}
		files, err := s.config.Jobs.Files(ctx, job, skip, page.Limit+1)
		if err != nil {
			return nil, "", err
		}
		next := ""
		if len(files) > page.Limit {
			next = strconv.Itoa(skip + page.Limit)
		}
		return pathsOf(files[:min(len(files), page.Limit)]), next, nil
	}
	return list(s, "files of the job "+id, pageSizes, find, func(files []string, next *string) any {
		return client.MaintenanceFilesPage{Files: files, NextPage: client.NextPage{NextPageToken: next}}
	})(w, r)
}

// adoptOrphans makes this store the only one that may remove orphans in a warehouse.
func (s *server) adoptOrphans(r *http.Request, body []byte) (any, error) {
	f, err := web.ParseFields(body, "request")
	if err != nil {
		return nil, err
	}
	f.Require("warehouse")
	warehouse := f.Text("warehouse")
	if f.Failure != nil {
		return nil, f.Failure
	}
	other, err := s.config.Jobs.Adopt(r.Context(), warehouse)
	return client.MaintenanceAdopted{Warehouse: warehouse, Other: other}, err
}
