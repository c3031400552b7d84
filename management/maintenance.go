package management

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"moorage"
	"moorage/catalog"
	"moorage/catalog/gate"
	"moorage/internal/web"
	"moorage/maintenance/due"
	"moorage/maintenance/jobs"
	"moorage/maintenance/policy"
	"moorage/management/client"
	"moorage/registry"
)

// Steering has the methods of *due.Control.
type Steering interface {
	Status(ctx context.Context, scopes policy.Scopes, ident moorage.Identifier) (due.Status, error)
	Run(ctx context.Context, scopes policy.Scopes, ident moorage.Identifier, kind policy.Kind) error
	Begin(ctx context.Context, scopes policy.Scopes, ident moorage.Identifier, asked due.JobRequest) (jobs.Began, error)
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
	Put(ctx context.Context, scopes policy.Scopes, ident moorage.Identifier, asked policy.Asked,
		match policy.Match) error
	Delete(ctx context.Context, scopes policy.Scopes, ident moorage.Identifier, t policy.Type,
		match policy.Match) error
	Of(ctx context.Context, scope catalog.Scope) (map[policy.Type]policy.Said, error)
	List(ctx context.Context, page moorage.Page) ([]policy.ScopeSaid, string, error)
	NoDeletions(ident moorage.Identifier) catalog.Requires
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

// maintenanceOperations returns the operations about maintenance.
func (s *server) maintenanceOperations() []operation {
	const get, post, put, remove = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	return []operation{
		{"listMaintenancePolicies", get, "/maintenance/policies", s.listMaintenancePolicies},
		{"loadMaintenancePolicy", get, "/maintenance/policies/{type}", s.loadMaintenancePolicy},
		{"putMaintenancePolicy", put, "/maintenance/policies/{type}", s.changeIfMatch(s.putMaintenancePolicy)},
		{"deleteMaintenancePolicy", remove, "/maintenance/policies/{type}",
			s.changeIfMatch(s.deleteMaintenancePolicy)},
		{"previewMaintenancePolicy", post, "/maintenance/policies/{type}/preview", s.previewMaintenancePolicy},
		{"loadMaintenance", get, "/maintenance/status", s.loadMaintenance},
		{"listMaintenanceJobs", get, "/maintenance/jobs", s.listMaintenanceJobs},
		{"pauseMaintenance", post, "/maintenance/pause", s.change(s.pauseMaintenance)},
		{"resumeMaintenance", post, "/maintenance/resume", s.change(s.resumeMaintenance)},
		{"rescanMaintenance", post, "/maintenance/rescan", s.change(s.rescanMaintenance)},
		{"runMaintenance", post, "/maintenance/run", s.change(s.runMaintenance)},
		{"planMaintenance", post, "/maintenance/plan", s.planMaintenance},
		{"adoptOrphans", post, "/maintenance/adopt", s.change(s.adoptOrphans)},
		{"listMaintenanceJobFiles", get, "/maintenance/jobs/{id}/files", s.listMaintenanceJobFiles},
		{"cancelMaintenanceJob", post, "/maintenance/jobs/{id}/cancel", s.change(s.changeMaintenanceJob(jobCancel))},
		{"retryMaintenanceJob", post, "/maintenance/jobs/{id}/retry", s.change(s.changeMaintenanceJob(jobRetry))},
		{"quarantineMaintenanceJob", post, "/maintenance/jobs/{id}/quarantine",
			s.change(s.changeMaintenanceJob(jobQuarantine))},
		{"pauseMaintenanceJob", post, "/maintenance/jobs/{id}/pause", s.change(s.changeMaintenanceJob(jobPause))},
		{"resumeMaintenanceJob", post, "/maintenance/jobs/{id}/resume", s.change(s.changeMaintenanceJob(jobResume))},
	}
}

// scopes returns the scopes that the caller of r may see or change.
func (s *server) scopes(r *http.Request) policy.Scopes { return s.config.Scopes(web.CallerOf(r)) }

// objectOfQuery returns the object named in the query parameters.
func objectOfQuery(r *http.Request) (client.Object, error) {
	object, unnamed, err := objectNamed(web.QueryOf(r))
	if unnamed != nil {
		err = cmp.Or(err, moorage.Errorf(moorage.KindBadRequest, "Name an object: %w", unnamed))
	}
	return object, err
}

// objectNamed returns the object named in the query parameters. If they name no object, unnamed is
// the reason.
func objectNamed(q web.Query) (object client.Object, unnamed, err error) {
	object, unnamed = client.ObjectOfQuery(func(name string) string {
		value, _, broken := q.Text(name)
		err = errors.Join(err, broken)
		return value
	})
	return object, unnamed, err
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

// policyIn returns the object and the type of policy in a request.
func policyIn(r *http.Request) (ident moorage.Identifier, t policy.Type, err error) {
	of, err := web.PathParam(r, "type")
	if err != nil {
		return ident, "", err
	}
	object, err := objectOfQuery(r)
	if err != nil {
		return ident, "", err
	}
	if t = policy.Type(of); t.Check(nil, false) != nil {
		return ident, "", moorage.Errorf(moorage.KindNotFound, "%s", t.Check(nil, false))
	}
	ident, err = identOf(object)
	return ident, t, err
}

func (s *server) loadMaintenancePolicy(w http.ResponseWriter, r *http.Request) error {
	ident, t, err := policyIn(r)
	if err != nil {
		return err
	}
	scope, err := s.scopes(r).Find(r.Context(), gate.LoadMaintenancePolicy, ident)
	if err != nil {
		return err
	}
	all, err := s.config.Policies.Of(r.Context(), scope)
	if err != nil {
		return err
	}
	found, ok := all[t]
	if !ok {
		return moorage.Errorf(moorage.KindNotFound, "The %s has no policy of its own for %s", objectCalled(ident), t)
	}
	answer := policyOf(t, found)
	w.Header()["ETag"] = []string{tagOfValue(answer)}
	return s.AnswerJSON(w, r, answer)
}

func (s *server) listMaintenancePolicies(w http.ResponseWriter, r *http.Request) error {
	shown := func(found policy.ScopeSaid) client.MaintenanceScope {
		scope := client.MaintenanceScope{Scope: found.Scope, Policies: make(map[string]client.MaintenancePolicy)}
		for t, sent := range found.Said {
			scope.Policies[string(t)] = policyOf(t, sent)
		}
		return scope
	}
	return list(s, "maintenance policies", pageSizes, pagesOf(s.config.Policies.List, shown),
		func(found []client.MaintenanceScope, next *string) any {
			return client.MaintenanceScopesPage{Scopes: found, NextPage: client.NextPage{NextPageToken: next}}
		})(w, r)
}

func (s *server) putMaintenancePolicy(r *http.Request, body []byte) (any, error) {
	ident, t, err := policyIn(r)
	if err != nil {
		return nil, err
	}
	sent, asked, err := policyOfBody(r, t, body)
	if err != nil {
		return nil, err
	}
	return sent, s.config.Policies.Put(r.Context(), s.scopes(r), ident, asked, matchPolicy(r, t))
}

// matchPolicy returns what r requires of the present policy for t.
func matchPolicy(r *http.Request, t policy.Type) policy.Match {
	return func(present *policy.Said) bool {
		if present == nil {
			return matches(r, "", false)
		}
		return matches(r, tagOfValue(policyOf(t, *present)), true)
	}
}

// policyOfBody parses a policy for a type of job. It returns the policy in the form of the request,
// and in the stored form.
func policyOfBody(r *http.Request, t policy.Type, body []byte) (sent client.MaintenancePolicy, asked policy.Asked,
	err error) {
	f, err := web.ParseFields(body, "policy")
	if err != nil {
		return sent, asked, err
	}
	f.Require("status")
	sent = client.MaintenancePolicy{Status: f.Text("status"), Unsafe: f.Boolean("unsafe")}
	if f.Has("settings") {
		if err := json.Unmarshal(f.Get("settings").Bytes(), &sent.Settings); err != nil {
			f.Fail("member %q has one member, with the name of the type: an object of settings", "settings")
		}
	}
	if f.Failure != nil {
		return sent, asked, f.Failure
	}
	settings, err := settingsOf(t, sent.Settings)
	return sent, policy.Asked{
		Type: t, Status: policy.Status(sent.Status), Settings: settings, Unsafe: sent.Unsafe, By: web.CallerOf(r).Name,
	}, err
}

func (s *server) deleteMaintenancePolicy(r *http.Request, _ []byte) (any, error) {
	ident, t, err := policyIn(r)
	if err != nil {
		return nil, err
	}
	return client.MaintenanceChange{Object: objectCalled(ident)},
		s.config.Policies.Delete(r.Context(), s.scopes(r), ident, t, matchPolicy(r, t))
}

// previewSizes are the page sizes of a preview. They are small, because for each table the server
// reads as much as the table's job would.
var previewSizes = web.PageSizes{Default: 10, Max: 100, Always: true}

// previewMaintenancePolicy answers with the effects that putMaintenancePolicy with the same body
// would have.
func (s *server) previewMaintenancePolicy(w http.ResponseWriter, r *http.Request) error {
	ident, t, err := policyIn(r)
	if err != nil {
		return err
	}
	body, err := s.ReadBody(w, r)
	if err != nil {
		return err
	}
	_, asked, err := policyOfBody(r, t, body)
	if err != nil {
		return err
	}
	find := func(ctx context.Context, page moorage.Page) ([]client.MaintenancePreview, string, error) {
		found, next, err := s.config.Steering.Preview(ctx, s.scopes(r), ident, asked, page.After, page.Limit)
		return each(found, previewOf), next, err
	}
	return list(s, "preview of "+string(t)+" of "+objectCalled(ident).String(), previewSizes, find,
		func(found []client.MaintenancePreview, next *string) any {
			return client.MaintenancePreviewPage{Tables: found, NextPage: client.NextPage{NextPageToken: next}}
		})(w, r)
}

func previewOf(of due.Preview) client.MaintenancePreview {
	made := client.MaintenancePreview{
		Object: objectCalled(of.Table), Nothing: of.Nothing, Failed: of.Failed,
		Snapshots: len(of.Run.Expiry.Snapshots), Refs: len(of.Run.Expiry.Refs),
		Files: of.Run.Files, Bytes: of.Run.Bytes, Due: of.Due,
	}
	if of.Run.Blocked != "" {
		made.Failed = "the job would stop: " + of.Run.Blocked
	}
	if of.Due {
		made.Files = max(of.Files, 0)
	}
	return made
}

// settingsOf reads the settings of a policy of a type. It accepts numbers and booleans in place of
// strings.
func settingsOf(t policy.Type, sent map[string]client.MaintenanceSettings) (policy.Settings, error) {
	settings := make(policy.Settings)
	for of, members := range sent {
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

func (s *server) loadMaintenance(w http.ResponseWriter, r *http.Request) error {
	object, err := objectOfQuery(r)
	if err != nil {
		return err
	}
	ident, err := identOf(object)
	if err != nil {
		return err
	}
	found, err := s.config.Steering.Status(r.Context(), s.scopes(r), ident)
	if err != nil {
		return err
	}
	return s.AnswerJSON(w, r, statusOf(object, found))
}

func (s *server) listMaintenanceJobs(w http.ResponseWriter, r *http.Request) error {
	find := func(ctx context.Context, page moorage.Page) ([]client.MaintenanceJob, string, error) {
		found, next, err := s.config.Jobs.List(ctx, registry.ID{}, page.After, page.Limit)
		return each(found, jobOf), next, err
	}
	return list(s, "maintenance jobs", pageSizes, find, func(found []client.MaintenanceJob, next *string) any {
		return client.MaintenanceJobsPage{Jobs: found, NextPage: client.NextPage{NextPageToken: next}}
	})(w, r)
}

// maintenanceChange parses an operator's request about the maintenance of an object.
func maintenanceChange(body []byte) (change client.MaintenanceChange, ident moorage.Identifier, err error) {
	f, err := web.ParseFields(body, "request")
	if err != nil {
		return change, ident, err
	}
	change = client.MaintenanceChange{Object: objectIn(f), Kind: f.Text("kind"), Reason: f.Text("reason")}
	if f.Failure != nil {
		return change, ident, f.Failure
	}
	ident, err = identOf(change.Object)
	return change, ident, err
}

func (s *server) pauseMaintenance(r *http.Request, body []byte) (any, error) {
	change, ident, err := maintenanceChange(body)
	if err == nil {
		err = s.config.Steering.Pause(r.Context(), s.scopes(r), ident, change.Reason, web.CallerOf(r).Name)
	}
	return change, err
}

func (s *server) resumeMaintenance(r *http.Request, body []byte) (any, error) {
	change, ident, err := maintenanceChange(body)
	if err == nil {
		err = s.config.Steering.Resume(r.Context(), s.scopes(r), ident)
	}
	return change, err
}

func (s *server) rescanMaintenance(r *http.Request, body []byte) (any, error) {
	change, ident, err := maintenanceChange(body)
	if err == nil {
		err = s.config.Steering.Rescan(r.Context(), s.scopes(r), ident)
	}
	return change, err
}

func jobCalled(id string) (job registry.ID, err error) {
	if err := job.UnmarshalText([]byte(id)); err != nil {
		return job, moorage.Errorf(moorage.KindNotFound, "%q is not the id of a job", moorage.Cut(id, 100))
	}
	return job, nil
}

// The changes that an operator can make to a job.
const (
	jobCancel     = "cancel"
	jobRetry      = "retry"
	jobQuarantine = "quarantine"
	jobPause      = "pause"
	jobResume     = "resume"
)

// changeMaintenanceJob returns the handler that makes a change to the job whose id is in the path.
// The response repeats the request.
func (s *server) changeMaintenanceJob(change string) func(r *http.Request, body []byte) (any, error) {
	return func(r *http.Request, body []byte) (any, error) {
		id, err := web.PathParam(r, "id")
		if err != nil {
			return nil, err
		}
		asked := client.MaintenanceJobChange{Job: id, Change: change}
		if len(body) > 0 {
			f, err := web.ParseFields(body, "request")
			if err != nil {
				return nil, err
			}
			asked.Reason, asked.Confirm = f.Text("reason"), f.Boolean("confirm")
			if f.Failure != nil {
				return nil, f.Failure
			}
		}
		job, err := jobCalled(id)
		switch {
		case err != nil:
			return nil, err
		case asked.Reason == "" && slices.Contains([]string{jobQuarantine, jobPause}, change):
			return nil, moorage.Errorf(moorage.KindBadRequest, "The reason is missing: give one with --reason")
		case asked.Confirm && change != jobRetry:
			return nil, moorage.Errorf(moorage.KindBadRequest, "Only a retry is confirmed")
		}
		kept, caller := s.config.Jobs, web.CallerOf(r).Name
		switch change {
		case jobCancel:
			err = kept.Cancel(r.Context(), job, caller)
		case jobRetry:
			err = kept.Retry(r.Context(), job, jobs.Retrying{Confirmed: asked.Confirm})
		case jobQuarantine:
			err = kept.Quarantine(r.Context(), job, asked.Reason, caller)
		case jobPause:
			err = kept.Pause(r.Context(), job, asked.Reason, caller)
		case jobResume:
			err = kept.Resume(r.Context(), job)
		}
		return asked, err
	}
}
