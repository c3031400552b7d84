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
	Value string `json:"value"` // as a policy would say it; else with its unit
	From  string `json:"from"`  // level and name; and if a property was raised to what is safe
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
	// Kept counts the files that stayed although they were listed, or could have been.
	Kept []MaintenanceKept `json:"kept,omitempty"`
}

// MaintenanceKept counts files that stay, for a reason.
type MaintenanceKept struct {
	// Reason is outside, unreadable, named again, look-alike or changed; of a warehouse also the
	// words of a longer one, such as "too young".
	Reason string `json:"reason"`
	Files  int64  `json:"files"`
}

// MaintenancePause says that nothing is done to a scope.
type MaintenancePause struct {
	Object Object    `json:"object"`
	Reason string    `json:"reason"`
	By     string    `json:"by"`
	Since  time.Time `json:"since"`
}

// MaintenanceStatus is what is known of the maintenance of a scope. Kinds, Jobs and Runs are those
// of a table.
type MaintenanceStatus struct {
	Object   Object                       `json:"object"`
	Policies map[string]MaintenancePolicy `json:"policies"` // of the scope itself, by type
	Pauses   []MaintenancePause           `json:"pauses"`
	Kinds    []MaintenanceKind            `json:"kinds"`
	Jobs     []MaintenanceJob             `json:"jobs"` // under way
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
	Paused    string    `json:"paused,omitempty"` // by whom, and why; empty: it is not
	// Kept counts the files that stay so far.
	Kept []MaintenanceKept `json:"kept,omitempty"`
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

// MaintenanceSettingsByHand are the settings of a job that somebody begins. What is nil is as
// Moorage has it by default. Times are whole seconds.
type MaintenanceSettingsByHand struct {
	// Of snapshots.
	MaxSnapshotAgeSeconds *int64 `json:"max-snapshot-age-seconds,omitempty"` // default 5 days
	MinSnapshots          *int64 `json:"min-snapshots,omitempty"`            // of each branch; default 1
	MaxRefAgeSeconds      *int64 `json:"max-ref-age-seconds,omitempty"`      // default 0: refs stay
	DelaySeconds          *int64 `json:"delay-seconds,omitempty"`            // until files go; default a day
	KeepFiles             bool   `json:"keep-files,omitempty"`               // no file is deleted
	// Of orphans.
	OlderThanSeconds  *int64 `json:"older-than-seconds,omitempty"` // default 3 days, of a warehouse 7
	QuarantineSeconds *int64 `json:"quarantine-seconds,omitempty"` // default 10 days
	EqualAuthorities  bool   `json:"equal-authorities,omitempty"`
	Confirm           bool   `json:"confirm,omitempty"` // it is right that most files are orphans
	Adopt             bool   `json:"adopt,omitempty"`   // files from before the table lived there are its own
	Unsafe            bool   `json:"unsafe,omitempty"`  // of a warehouse: files may be younger than 7 days
}

// MaintenanceByHand asks what a job would do, or for the job.
type MaintenanceByHand struct {
	// Object is a table. A plan of orphans may be of a warehouse: it names the files that lie
	// outside of all tables and views, which no job deletes.
	Object Object `json:"object"`
	Kind   string `json:"kind"` // snapshots or orphans
	// Settings of nil are those of the policies: a plan is what they would do, and a run looks at
	// the table now.
	Settings *MaintenanceSettingsByHand `json:"settings,omitempty"`
	Sample   int                        `json:"sample,omitempty"` // files that a plan names at most
}

// MaintenanceBegun is what became of a run.
type MaintenanceBegun struct {
	Object Object `json:"object"`
	Kind   string `json:"kind"`
	// Outcome is begun, done if no file is to be deleted, nothing if nothing expires, or due if the
	// server looks at the table by its policies.
	Outcome   string `json:"outcome"`
	Job       string `json:"job,omitempty"` // of begun and done
	Snapshots int    `json:"snapshots"`     // that expired
	Refs      int    `json:"refs"`
}

// The outcomes of MaintenanceBegun.
const (
	BegunBegun   = "begun"
	BegunDone    = "done"
	BegunNothing = "nothing"
	BegunDue     = "due"
)

// MaintenancePlan is what a job would do now.
type MaintenancePlan struct {
	Object  Object `json:"object"`
	Kind    string `json:"kind"`
	Held    string `json:"held,omitempty"`    // why nothing may be deleted
	Blocked string `json:"blocked,omitempty"` // why the job would stop until an operator looks
	// Snapshots are all that the table has, and Refs those that would go.
	Snapshots []MaintenancePlanSnapshot `json:"snapshots"`
	Refs      []string                  `json:"refs"`
	// Reach is how files are found: "full", or empty if there is nothing to find. Manifests and
	// ReadBytes are what the job reads for that.
	Reach     string            `json:"reach,omitempty"`
	Manifests int64             `json:"manifests"`
	ReadBytes int64             `json:"read-bytes"`
	Files     int64             `json:"files"`          // that would be deleted
	Bytes     int64             `json:"bytes"`          // of orphans
	More      bool              `json:"more,omitempty"` // of a warehouse: there are more than Files
	Kept      []MaintenanceKept `json:"kept,omitempty"`
	LeftOut   []string          `json:"left-out,omitempty"` // folders of other warehouses within this one
	Sample    []string          `json:"sample"`             // locations of the first of the files
}

// MaintenancePlanSnapshot is a snapshot in a plan.
type MaintenancePlanSnapshot struct {
	ID      int64     `json:"snapshot-id"`
	Time    time.Time `json:"time,omitzero"` // of one that expires
	Expires bool      `json:"expires"`
	Why     string    `json:"why,omitempty"` // it stays
}

// MaintenanceFilesPage is a page of the files that a job will delete.
type MaintenanceFilesPage struct {
	Files         []string `json:"files"` // locations
	NextPageToken *string  `json:"next-page-token"`
}

// MaintenanceAdopted says which store removed orphans in a warehouse until now; empty: this one, or
// none.
type MaintenanceAdopted struct {
	Warehouse string `json:"warehouse"`
	Other     string `json:"other,omitempty"`
}

// MaintenanceJobChange is what is asked for a job, or was done to it.
type MaintenanceJobChange struct {
	Job    string `json:"job"`
	Change string `json:"change"` // cancel, retry, quarantine, pause or resume
	Reason string `json:"reason,omitempty"`
	// Confirm says of a retry that it is right if most files of the table are orphans.
	Confirm bool `json:"confirm,omitempty"`
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

// RunMaintenance begins a job on a table, or has the server look at it now.
func (m Maintenance) RunMaintenance(ctx context.Context, asked MaintenanceByHand) (begun MaintenanceBegun, err error) {
	err = m.client.ask(ctx, http.MethodPost, maintenancePath+"/run", asked, &begun)
	return begun, err
}

// PlanMaintenance returns what a job on a table would do now.
func (m Maintenance) PlanMaintenance(ctx context.Context, asked MaintenanceByHand) (plan MaintenancePlan, err error) {
	err = m.client.ask(ctx, http.MethodPost, maintenancePath+"/plan", asked, &plan)
	return plan, err
}

// AdoptOrphans makes the store of the server the one that removes orphans in a warehouse.
func (m Maintenance) AdoptOrphans(ctx context.Context, warehouse string) (adopted MaintenanceAdopted, err error) {
	err = m.client.ask(ctx, http.MethodPost, maintenancePath+"/adopt",
		MaintenanceAdopted{Warehouse: warehouse}, &adopted)
	return adopted, err
}

// MaintenanceFiles returns a page of the files that a job will delete.
func (m Maintenance) MaintenanceFiles(ctx context.Context, job string, page Page) ([]string, string, error) {
	var answer MaintenanceFilesPage
	path := maintenancePath + "/jobs/" + url.PathEscape(job) + "/files" + query(page)
	err := m.client.ask(ctx, http.MethodGet, path, nil, &answer)
	return answer.Files, valueOf(answer.NextPageToken), err
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

// ChangeMaintenanceJob cancels, retries, quarantines, pauses or resumes a job.
func (m Maintenance) ChangeMaintenanceJob(ctx context.Context, asked MaintenanceJobChange) error {
	var answer MaintenanceJobChange
	path := maintenancePath + "/jobs/" + url.PathEscape(asked.Job) + "/" + url.PathEscape(asked.Change)
	return m.client.ask(ctx, http.MethodPost, path, struct {
		Reason  string `json:"reason,omitempty"`
		Confirm bool   `json:"confirm,omitempty"`
	}{asked.Reason, asked.Confirm}, &answer)
}
