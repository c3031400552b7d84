package management

import (
	"encoding/json"
	"errors"
	"net/http"

	"moorage"
	"moorage/internal/web"
	"moorage/management/client"
)

// maintenanceOperations returns the operations about maintenance.
func (s *server) maintenanceOperations() []operation {
	m := maintained{s}
	const get, post, put, remove = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	return []operation{
		{"loadMaintenancePolicy", get, "/maintenance/policies/{type}", m.loadMaintenancePolicy},
		{"putMaintenancePolicy", put, "/maintenance/policies/{type}", s.change(m.putMaintenancePolicy)},
		{"deleteMaintenancePolicy", remove, "/maintenance/policies/{type}", s.change(m.deleteMaintenancePolicy)},
		{"previewMaintenancePolicy", post, "/maintenance/policies/{type}/preview", m.previewMaintenancePolicy},
		{"loadMaintenance", get, "/maintenance/status", m.loadMaintenance},
		{"listMaintenanceJobs", get, "/maintenance/jobs", m.listMaintenanceJobs},
		{"listMaintenanceBlockers", get, "/maintenance/blockers", m.listMaintenanceBlockers},
		{"pauseMaintenance", post, "/maintenance/pause", s.change(m.pauseMaintenance)},
		{"resumeMaintenance", post, "/maintenance/resume", s.change(m.resumeMaintenance)},
		{"rescanMaintenance", post, "/maintenance/rescan", s.change(m.rescanMaintenance)},
		{"runMaintenance", post, "/maintenance/run", s.change(m.runMaintenance)},
		{"planMaintenance", post, "/maintenance/plan", m.planMaintenance},
		{"adoptOrphans", post, "/maintenance/adopt", s.change(m.adoptOrphans)},
		{"listMaintenanceJobFiles", get, "/maintenance/jobs/{id}/files", m.listMaintenanceJobFiles},
		{"cancelMaintenanceJob", post, "/maintenance/jobs/{id}/cancel", s.change(m.changeMaintenanceJob(jobCancel))},
		{"retryMaintenanceJob", post, "/maintenance/jobs/{id}/retry", s.change(m.changeMaintenanceJob(jobRetry))},
		{"quarantineMaintenanceJob", post, "/maintenance/jobs/{id}/quarantine",
			s.change(m.changeMaintenanceJob(jobQuarantine))},
		{"pauseMaintenanceJob", post, "/maintenance/jobs/{id}/pause", s.change(m.changeMaintenanceJob(jobPause))},
		{"resumeMaintenanceJob", post, "/maintenance/jobs/{id}/resume", s.change(m.changeMaintenanceJob(jobResume))},
	}
}

// maintained answers requests about maintenance.
type maintained struct{ server *server }

// caretaker returns the Caretaker of the caller of r.
func (m maintained) caretaker(r *http.Request) Caretaker {
	return m.server.config.Maintenance(web.CallerOf(r))
}

// objectOfQuery returns the object that the parameters of a request name.
func objectOfQuery(r *http.Request) (client.Object, error) {
	q := web.QueryOf(r)
	var broken error
	object, err := client.ObjectOfQuery(func(name string) string {
		value, _, err := q.Text(name)
		broken = errors.Join(broken, err)
		return value
	})
	switch {
	case broken != nil:
		return object, broken
	case err != nil:
		return object, moorage.Errorf(moorage.KindBadRequest, "Name an object: %w", err)
	}
	return object, nil
}

// policyIn returns the object and the type of a request about a policy.
func policyIn(r *http.Request) (object client.Object, of string, err error) {
	if of, err = web.PathParam(r, "type"); err != nil {
		return object, of, err
	}
	object, err = objectOfQuery(r)
	return object, of, err
}

func (m maintained) loadMaintenancePolicy(w http.ResponseWriter, r *http.Request) error {
	object, of, err := policyIn(r)
	if err != nil {
		return err
	}
	found, err := m.caretaker(r).MaintenancePolicy(r.Context(), object, of)
	if err != nil {
		return err
	}
	return m.server.AnswerJSON(w, r, found)
}

func (m maintained) putMaintenancePolicy(r *http.Request, body []byte) (any, error) {
	object, of, err := policyIn(r)
	if err != nil {
		return nil, err
	}
	said, err := policyOfBody(body)
	if err != nil {
		return nil, err
	}
	return said, m.caretaker(r).PutMaintenancePolicy(r.Context(), object, of, said)
}

// policyOfBody reads a policy for a type of job.
func policyOfBody(body []byte) (said client.MaintenancePolicy, err error) {
	f, err := web.ParseFields(body, "policy")
	if err != nil {
		return said, err
	}
	f.Require("status")
	said = client.MaintenancePolicy{Status: f.Text("status"), Unsafe: f.Boolean("unsafe")}
	if f.Has("settings") {
		if err := json.Unmarshal(f.Get("settings").Bytes(), &said.Settings); err != nil {
			f.Fail("member %q has one member, which is called as the type is: an object of settings", "settings")
		}
	}
	return said, f.Failure
}

func (m maintained) deleteMaintenancePolicy(r *http.Request, _ []byte) (any, error) {
	object, of, err := policyIn(r)
	if err != nil {
		return nil, err
	}
	return client.MaintenanceChange{Object: object}, m.caretaker(r).DeleteMaintenancePolicy(r.Context(), object, of)
}

func (m maintained) loadMaintenance(w http.ResponseWriter, r *http.Request) error {
	object, err := objectOfQuery(r)
	if err != nil {
		return err
	}
	found, err := m.caretaker(r).MaintenanceStatus(r.Context(), object)
	if err != nil {
		return err
	}
	return m.server.AnswerJSON(w, r, found)
}

func (m maintained) listMaintenanceJobs(w http.ResponseWriter, r *http.Request) error {
	return list(m.server, "maintenance jobs", pageSizes, m.caretaker(r).MaintenanceJobs,
		func(found []client.MaintenanceJob, next *string) any {
			return client.MaintenanceJobsPage{Jobs: found, NextPageToken: next}
		})(w, r)
}

func (m maintained) listMaintenanceBlockers(w http.ResponseWriter, r *http.Request) error {
	return list(m.server, "maintenance blockers", pageSizes, m.caretaker(r).MaintenanceBlockers,
		func(found []client.MaintenanceBlocker, next *string) any {
			return client.MaintenanceBlockersPage{Blockers: found, NextPageToken: next}
		})(w, r)
}

// maintenanceChange reads an operator's request about the maintenance of an object.
func maintenanceChange(body []byte) (change client.MaintenanceChange, err error) {
	f, err := web.ParseFields(body, "request")
	if err != nil {
		return change, err
	}
	change = client.MaintenanceChange{Object: objectIn(f), Kind: f.Text("kind"), Reason: f.Text("reason")}
	return change, f.Failure
}

func (m maintained) pauseMaintenance(r *http.Request, body []byte) (any, error) {
	change, err := maintenanceChange(body)
	if err == nil {
		err = m.caretaker(r).PauseMaintenance(r.Context(), change)
	}
	return change, err
}

func (m maintained) resumeMaintenance(r *http.Request, body []byte) (any, error) {
	change, err := maintenanceChange(body)
	if err == nil {
		err = m.caretaker(r).ResumeMaintenance(r.Context(), change)
	}
	return change, err
}

func (m maintained) rescanMaintenance(r *http.Request, body []byte) (any, error) {
	change, err := maintenanceChange(body)
	if err == nil {
		err = m.caretaker(r).RescanMaintenance(r.Context(), change)
	}
	return change, err
}

// changeMaintenanceJob returns the handler of a change of the job whose id is in the path. The
// response repeats the request.
func (m maintained) changeMaintenanceJob(change string) func(r *http.Request, body []byte) (any, error) {
	return func(r *http.Request, body []byte) (any, error) {
		id, err := web.PathParam(r, "id")
		if err != nil {
			return nil, err
		}
		answer := client.MaintenanceJobChange{Job: id, Change: change}
		if len(body) > 0 {
			f, err := web.ParseFields(body, "request")
			if err != nil {
				return nil, err
			}
			answer.Reason, answer.Confirm = f.Text("reason"), f.Boolean("confirm")
			if f.Failure != nil {
				return nil, f.Failure
			}
		}
		return answer, m.caretaker(r).ChangeMaintenanceJob(r.Context(), answer)
	}
}
