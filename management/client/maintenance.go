package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// MaintenancePolicy is what a scope says of a type of job. Its body is that of Amazon S3 Tables.
type MaintenancePolicy struct {
	Status string `json:"status"` // enabled or disabled
	// Settings has one member, which is called as the type is: an object of settings.
	Settings map[string]MaintenanceSettings `json:"settings,omitempty"`
	// Unsafe allows settings that are below what is safe for readers and writers under way.
	Unsafe bool      `json:"unsafe,omitempty"`
	Since  time.Time `json:"since,omitzero"` // when the status became what it is
	By     string    `json:"by,omitempty"`
}

// MaintenanceSettings are settings by name: numbers, and texts.
type MaintenanceSettings map[string]json.RawMessage

// MaintenanceValue is the effective value of a setting, and who says so.
type MaintenanceValue struct {
	Value string `json:"value"` // times and sizes with their unit
	From  string `json:"from"`  // level and name
}

// MaintenanceKind is what is known of a kind of job of a table.
type MaintenanceKind struct {
	Kind string `json:"kind"`
	Type string `json:"type"`
	// State is Disabled, Held, Blocked, Paused, Running, Waiting, Failed, Successful or
	// Not_Yet_Run.
	State    string                      `json:"state"`
	From     string                      `json:"from"`          // who enabled or disabled it
	Why      string                      `json:"why,omitempty"` // it is held, blocked or has failed
	Due      time.Time                   `json:"due,omitzero"`
	Last     time.Time                   `json:"last,omitzero"`
	Outcome  string                      `json:"outcome,omitempty"` // of the last look
	Job      string                      `json:"job,omitempty"`     // id of the one under way
	Settings map[string]MaintenanceValue `json:"settings"`
}

// MaintenanceRun is a job that has ended.
type MaintenanceRun struct {
	Job       string    `json:"job"`
	Kind      string    `json:"kind"`
	Outcome   string    `json:"outcome"`
	Began     time.Time `json:"began"`
	Ended     time.Time `json:"ended"`
	Snapshots int64     `json:"snapshots"`
	Files     int64     `json:"files"`
	Bytes     int64     `json:"bytes"`
	Error     string    `json:"error,omitempty"`
}

// MaintenancePause says that nothing is done to a scope.
type MaintenancePause struct {
	Object Object    `json:"object"`
	Reason string    `json:"reason"`
	By     string    `json:"by"`
	Since  time.Time `json:"since"`
}

// MaintenanceStatus is what is known of the maintenance of a scope. Kinds and Runs are those of a
// table.
type MaintenanceStatus struct {
	Object   Object                       `json:"object"`
	Policies map[string]MaintenancePolicy `json:"policies"` // of the scope itself, by type
	Pauses   []MaintenancePause           `json:"pauses"`
	Kinds    []MaintenanceKind            `json:"kinds"`
	Runs     []MaintenanceRun             `json:"runs"`
}

// MaintenanceJob is a job under way.
type MaintenanceJob struct {
	ID        string    `json:"id"`
	Kind      string    `json:"kind"`
	Object    *Object   `json:"object,omitempty"` // nil: the table is gone
	State     string    `json:"state"`
	Principal string    `json:"principal"`
	Created   time.Time `json:"created"`
	NotBefore time.Time `json:"not-before,omitzero"`
	Files     int64     `json:"files"` // that will be deleted, as far as that is known
	Deleted   int64     `json:"deleted"`
	LastError string    `json:"last-error,omitempty"`
}

// MaintenanceJobsPage is a page of jobs.
type MaintenanceJobsPage struct {
	Jobs          []MaintenanceJob `json:"jobs"`
	NextPageToken *string          `json:"next-page-token"`
}

// MaintenanceBlocker says that a kind of job is blocked on a table.
type MaintenanceBlocker struct {
	Kind   string    `json:"kind"`
	Object *Object   `json:"object,omitempty"` // nil: the table is gone
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
	By     string    `json:"by,omitempty"`
}

// MaintenanceBlockersPage is a page of blockers.
type MaintenanceBlockersPage struct {
	Blockers      []MaintenanceBlocker `json:"blockers"`
	NextPageToken *string              `json:"next-page-token"`
}

// MaintenanceChange is what operators tell maintenance about an object.
type MaintenanceChange struct {
	Object Object `json:"object"`
	Kind   string `json:"kind,omitempty"`   // of a run
	Reason string `json:"reason,omitempty"` // of a pause
}

// MaintenanceJobChange is what was done to a job.
type MaintenanceJobChange struct {
	Job    string `json:"job"`
	Change string `json:"change"` // cancel, retry or quarantine
	Reason string `json:"reason,omitempty"`
}

// Maintenance asks a server about maintenance. It is safe for concurrent use.
type Maintenance struct{ client *Client }

// MaintenanceOf returns the maintenance of the server that c asks.
func MaintenanceOf(c *Client) Maintenance { return Maintenance{c} }

const maintenancePath = "/maintenance"

func policyPath(object Object, of string) string {
	return maintenancePath + "/policies/" + url.PathEscape(of) + "?" + object.query().Encode()
}

// MaintenancePolicy returns what an object says of a type of job.
func (m Maintenance) MaintenancePolicy(ctx context.Context, object Object, of string) (p MaintenancePolicy, err error) {
	err = m.client.ask(ctx, http.MethodGet, policyPath(object, of), nil, &p)
	return p, err
}

// PutMaintenancePolicy makes an object say something of a type of job.
func (m Maintenance) PutMaintenancePolicy(ctx context.Context, object Object, of string, said MaintenancePolicy) error {
	var answer MaintenancePolicy
	return m.client.ask(ctx, http.MethodPut, policyPath(object, of), said, &answer)
}

// DeleteMaintenancePolicy makes an object say nothing of a type of job.
func (m Maintenance) DeleteMaintenancePolicy(ctx context.Context, object Object, of string) error {
	var answer MaintenanceChange
	return m.client.ask(ctx, http.MethodDelete, policyPath(object, of), nil, &answer)
}

// MaintenanceStatus returns what is known of the maintenance of an object.
func (m Maintenance) MaintenanceStatus(ctx context.Context, object Object) (status MaintenanceStatus, err error) {
	err = m.client.ask(ctx, http.MethodGet, maintenancePath+"/status?"+object.query().Encode(), nil, &status)
	return status, err
}

// PauseMaintenance stops the maintenance of an object.
func (m Maintenance) PauseMaintenance(ctx context.Context, change MaintenanceChange) error {
	return m.changeMaintenance(ctx, "pause", change)
}

// ResumeMaintenance ends the pause of an object.
func (m Maintenance) ResumeMaintenance(ctx context.Context, change MaintenanceChange) error {
	return m.changeMaintenance(ctx, "resume", change)
}

// RescanMaintenance has all tables of an object looked at for what is due.
func (m Maintenance) RescanMaintenance(ctx context.Context, change MaintenanceChange) error {
	return m.changeMaintenance(ctx, "rescan", change)
}

// RunMaintenance has a table looked at now.
func (m Maintenance) RunMaintenance(ctx context.Context, change MaintenanceChange) error {
	return m.changeMaintenance(ctx, "run", change)
}

func (m Maintenance) changeMaintenance(ctx context.Context, what string, change MaintenanceChange) error {
	var answer MaintenanceChange
	return m.client.ask(ctx, http.MethodPost, maintenancePath+"/"+what, change, &answer)
}

// MaintenanceJobs returns a page of the jobs under way.
func (m Maintenance) MaintenanceJobs(ctx context.Context, page Page) ([]MaintenanceJob, string, error) {
	var answer MaintenanceJobsPage
	err := m.client.ask(ctx, http.MethodGet, maintenancePath+"/jobs"+query(page), nil, &answer)
	return answer.Jobs, valueOf(answer.NextPageToken), err
}

// MaintenanceBlockers returns a page of what is blocked.
func (m Maintenance) MaintenanceBlockers(ctx context.Context, page Page) ([]MaintenanceBlocker, string, error) {
	var answer MaintenanceBlockersPage
	err := m.client.ask(ctx, http.MethodGet, maintenancePath+"/blockers"+query(page), nil, &answer)
	return answer.Blockers, valueOf(answer.NextPageToken), err
}

// ChangeMaintenanceJob cancels, retries or quarantines a job, for a reason.
func (m Maintenance) ChangeMaintenanceJob(ctx context.Context, id, change, reason string) error {
	var answer MaintenanceJobChange
	path := maintenancePath + "/jobs/" + url.PathEscape(id) + "/" + url.PathEscape(change)
	return m.client.ask(ctx, http.MethodPost, path, struct {
		Reason string `json:"reason,omitempty"`
	}{reason}, &answer)
}
